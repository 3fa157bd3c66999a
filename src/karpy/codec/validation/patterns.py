"""Regular expressions as an API server reads them, which is not quite as Python does."""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import Final

from karpy.codec.validation.celrules import CelError, compile_test


@cache
def json_schema() -> ModuleType:
    """Return the package that checks schemas, when it is first asked."""
    return import_module("jsonschema_rs")


def linear() -> object:
    """Return options for patterns that never take longer than the text is long, as Go's."""
    return json_schema().RegexOptions()


_INVALID: Final = "INVALID_ARGUMENT: invalid regular expression: "


class PatternInvalid(ValueError):
    """A pattern is none; the text says why, as a server does."""


def check_pattern(pattern: str) -> None:
    """Raise PatternInvalid if a pattern is none for the engine that API servers have."""
    answer = _search(pattern, "")
    if isinstance(answer, CelError):
        raise PatternInvalid(answer.problem.removeprefix(_INVALID))


def matches(pattern: str, text: str) -> bool:
    """Say whether the pattern is found in the text; anchors mean the text, never a line."""
    return _matcher(pattern)(text)


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Callable[[str], bool]:
    try:
        made = json_schema().Draft4Validator({"pattern": pattern}, pattern_options=linear())
    except ValueError:
        # Something only Go knows, such as a named group.
        return lambda text: _search(pattern, text) is True
    is_valid: Callable[[str], bool] = made.is_valid
    return is_valid


def _search(pattern: str, text: str) -> object:
    """Ask RE2, of which Go's engine is a descendant, and which CEL brings along."""
    return _asker()({"self": {"pattern": pattern, "text": text}})


@cache
def _asker() -> Callable[[Mapping[str, object]], object]:
    test = compile_test("self.text.matches(self.pattern)")
    assert test is not None
    return test
