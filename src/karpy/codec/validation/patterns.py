"""Regular expressions in the syntax of an API server, which differs from Python's."""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib import import_module
from types import ModuleType
from typing import Final

from karpy.codec.validation.celrules import CelError, compile_test


@cache
def json_schema() -> ModuleType:
    """Import the package that checks schemas on first use."""
    return import_module("jsonschema_rs")


def linear() -> object:
    """Return options for patterns that match in linear time, as Go's do."""
    return json_schema().RegexOptions()


_INVALID: Final = "INVALID_ARGUMENT: invalid regular expression: "


class PatternInvalid(ValueError):
    """A pattern is no regular expression; the text says why, in the words of an API server."""


def check_pattern(pattern: str) -> None:
    """Raise PatternInvalid if an API server cannot compile a pattern."""
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
        # The pattern has syntax that only Go supports, such as a named group.
        return lambda text: _search(pattern, text) is True
    is_valid: Callable[[str], bool] = made.is_valid
    return is_valid


def _search(pattern: str, text: str) -> object:
    """Search with RE2, which the CEL library contains and Go's engine derives from."""
    return _re2_test()({"self": {"pattern": pattern, "text": text}})


@cache
def _re2_test() -> Callable[[Mapping[str, object]], object]:
    test = compile_test("self.text.matches(self.pattern)")
    assert test is not None
    return test
