"""Limits on the size of documents, and the errors for passing them."""

from itertools import chain
from typing import Final, cast

DEPTH_MAX: Final = 128
"""Deepest nesting of a value; a large CustomResourceDefinition nests some 50 deep."""
DIGITS_MAX: Final = 308
"""Most digits of a number; one with more is too large for a double."""
YAML_MAX: Final = 64 * 2**20
"""Most characters of a YAML document."""
ALIASED_MAX: Final = 4_000_000
"""Most characters that aliases may add to a YAML document."""

TOO_DEEP: Final = f"is nested more than {DEPTH_MAX} deep"
TOO_VAST: Final = f"holds a number of more than {DIGITS_MAX} digits"

_KEY_SHOWN_MAX: Final = 60
_PARTS: Final = frozenset({dict, list})


class Unparsable(ValueError):
    """A text cannot be parsed: the problem, its line, and what to do."""

    def __init__(self, problem: str, *, line: int = 0, hint: str = "") -> None:
        super().__init__(f"{problem} in line {line}" if line else problem)
        self.problem = problem
        self.line = line
        """Counted from 1; 0 if it is not known."""
        self.hint = hint


class Refused(Unparsable):
    """A text is well-formed but refused; parsing it as another format does not help."""


class TooMuch(Refused):
    """A text passes a limit."""


def repeated_key(key: str, line: int = 0) -> Refused:
    """Return the error for a mapping that has a key twice."""
    shown = key if len(key) <= _KEY_SHOWN_MAX else f"{key[:_KEY_SHOWN_MAX]}…"
    return Refused(f"has the key `{shown}` twice", line=line, hint="keep one of the two")


def half_character() -> Refused:
    """Return the error for a lone surrogate, which no encoding can write."""
    what = "holds half a character (a lone surrogate, such as `\\ud800`)"
    return Refused(what, hint="write the whole character, or leave it out")


def too_deep(line: int = 0) -> TooMuch:
    """Return the error for a text whose values nest too deeply."""
    return TooMuch(TOO_DEEP, line=line, hint="check that it is a manifest")


def too_vast(line: int = 0) -> TooMuch:
    """Return the error for a number that is too large for a double."""
    return TooMuch(TOO_VAST, line=line, hint="write a smaller number, or put it in quotes")


def is_too_deep(value: object) -> bool:
    """Say whether a value nests deeper than any document may."""
    level = [value] if type(value) in _PARTS else []
    for _ in range(DEPTH_MAX):
        if not level:
            return False
        below = chain.from_iterable(
            part.values() if type(part) is dict else cast("list[object]", part) for part in level
        )
        level = [each for each in below if type(each) in _PARTS]
    return bool(level)
