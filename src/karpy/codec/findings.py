"""Findings about an input, besides the answer: errors, warnings and notes."""

import re
from collections.abc import Iterable
from enum import Enum
from typing import Final

from msgspec import Struct

from karpy.errors import ConfigError, ManifestInvalid

_PLACE: Final = re.compile(r"(`[^`]*`(?: document \d+[^,]*)?)(?:, (.*))?", re.DOTALL)


CONVERTED: Final = "CONVERTED"
"""The code of notes on a converted field of an old version."""


class Severity(Enum):
    """How much a finding matters."""

    ERROR = "error"
    """The answer does not reflect a part of the input."""
    WARNING = "warning"
    """The answer may differ from what the author of the input intended."""
    NOTE = "note"


class Finding(Struct, frozen=True):
    """A fact about the input, or about one of its objects, that the user should know."""

    severity: Severity
    code: str
    """The code of an error, KP…, or the stable name of a note."""
    message: str
    object: str = ""
    """Kind, namespace and name; empty if it is about the whole input."""
    source: str = ""
    """The file and the document in it."""
    path: str = ""
    hint: str = ""
    is_left_out: bool = False
    """Whether the answer leaves out a part of the input that may matter."""

    @property
    def is_partial(self) -> bool:
        """Whether the answer is only about a part of the input."""
        return self.is_left_out or self.severity is Severity.ERROR

    def __str__(self) -> str:
        """Write place, field and message in one sentence."""
        place = ", ".join(each for each in (self.source, self.object) if each)
        what = f"`{self.path}` {self.message}" if self.path else self.message
        return f"{place}: {what}" if place else what


def note(code: str, message: str, *, where: str = "", path: str = "", hint: str = "") -> Finding:
    """Return a note; `where` names document and object as in errors."""
    source, about = place_of(where)
    return Finding(Severity.NOTE, code, message, about, source, path, hint)


def finding_of(
    error: ConfigError,
    *,
    where: str = "",
    path: str = "",
    is_warning: bool = False,
    is_left_out: bool = False,
) -> Finding:
    """Return an error about the input, or a warning, as a finding."""
    severity = Severity.WARNING if is_warning else Severity.ERROR
    source, about = place_of(where)
    return Finding(
        severity, error.code, error.message, about, source, path, error.hint, is_left_out
    )


def of_problem(problem: ManifestInvalid) -> Finding:
    """Return an error of the reader as a finding."""
    source, about = place_of(problem.where)
    return Finding(
        Severity.ERROR,
        problem.code,
        problem.problem,
        about,
        source,
        problem.path,
        problem.hint,
        is_left_out=True,
    )


def place_of(where: str) -> tuple[str, str]:
    """Return the document and the object that a place such as "`f` document 1, Pod a" names."""
    found = _PLACE.fullmatch(where)
    return (found[1], found[2] or "") if found else ("", where)


def file_of(where: str) -> str:
    """Return the file that a place such as "`f` document 1, Pod a" names."""
    found = _PLACE.fullmatch(where)
    return found[1].split("`")[1] if found else ""


def is_partial(findings: Iterable[Finding]) -> bool:
    """Say whether the answer is only about a part of the input."""
    return any(each.is_partial for each in findings)
