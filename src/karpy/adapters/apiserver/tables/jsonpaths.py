"""The JSON paths in `additionalPrinterColumns`."""

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct

_STEP: Final = re.compile(
    r"(?P<deep>\.\.)|\.(?P<all>\*)|\.?(?P<field>(?:\\.|[^.\[\]\\{}\s])+)"
    r"|\[(?P<inside>(?:'[^']*'|\"[^\"]*\"|[^\]'\"])*)\]|(?P<dot>\.)"
)
_FILTER: Final = re.compile(
    r"\?\(\s*@(?P<path>[^=!<>]*?)\s*(?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<value>.+?))?\s*\)"
)
_SIGNS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_QUOTES: Final = "'\""
_SLICE_MAX: Final = 3


class PathInvalid(ValueError):
    """A path cannot be read."""


class Path(Struct, frozen=True):
    """A parsed path."""

    steps: tuple[Callable[[Any], Iterator[Any]], ...]

    def first(self, value: object) -> tuple[Any, ...]:
        """Return the first value at the path in a tuple, which is empty if there is none."""
        return next(((found,) for found in self.find(value)), ())

    def find(self, value: object) -> Iterator[Any]:
        """Yield all values at the path."""
        found: Iterator[Any] = iter((value,))
        for step in self.steps:
            found = _taken(step, found)
        return found


def _taken(step: Callable[[Any], Iterator[Any]], values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        yield from step(value)


@lru_cache(maxsize=1024)
def read_path(text: str) -> Path:
    """Parse a path such as `.status.conditions[?(@.type=="Ready")].status`; raise PathInvalid."""
    text = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps: list[Callable[[Any], Iterator[Any]]] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise PathInvalid(text)
        at = match.end()
        if match["deep"]:
            steps.append(_everything)
        elif match["all"]:
            steps.append(_children)
        elif match["field"] is not None:
            steps.append(_field(re.sub(r"\\(.)", r"\1", match["field"])))
        elif match["inside"] is not None:
            steps.append(_inside(match["inside"].strip()))
    return Path(tuple(steps))


def _field(name: str) -> Callable[[Any], Iterator[Any]]:
    def step(value: object) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _children(value: object) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _everything(value: object) -> Iterator[Any]:
    yield value
    for each in _children(value):
        yield from _everything(each)


def _inside(text: str) -> Callable[[Any], Iterator[Any]]:
    if text == "*":
        return _children
    if text.startswith("?"):
        return _filter(text)
    if text[:1] in _QUOTES and text[-1:] == text[:1]:
        return _field(text[1:-1])
    if "," in text:
        return _union([_inside(each.strip()) for each in text.split(",")])
    return _items(text)


def _union(steps: list[Callable[[Any], Iterator[Any]]]) -> Callable[[Any], Iterator[Any]]:
    def step(value: object) -> Iterator[Any]:
        for each in steps:
            yield from each(value)

    return step


def _items(text: str) -> Callable[[Any], Iterator[Any]]:
    parts = text.split(":")
    try:
        numbers = [int(each) if each else None for each in parts]
    except ValueError as error:
        raise PathInvalid(text) from error
    if len(parts) > _SLICE_MAX or (len(parts) == 1 and numbers[0] is None):
        raise PathInvalid(text)

    def step(value: object) -> Iterator[Any]:
        if isinstance(value, list):
            first = numbers[0]
            if len(numbers) > 1:
                yield from value[slice(*numbers)]
            elif first is not None and -len(value) <= first < len(value):
                yield value[first]

    return step


def _filter(text: str) -> Callable[[Any], Iterator[Any]]:
    match = _FILTER.fullmatch(text)
    if match is None:
        raise PathInvalid(text)
    path = read_path(match["path"])
    sign, wanted = match["sign"], _literal(match["value"])

    def step(value: object) -> Iterator[Any]:
        for each in _children(value):
            found = path.first(each)
            if found and (sign is None or _compares(found[0], sign, wanted)):
                yield each

    return step


def _literal(text: str | None) -> object:
    if text is None:
        return None
    if text[:1] in _QUOTES and text[-1:] == text[:1]:
        return text[1:-1]
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise PathInvalid(text) from error


def _compares(found: object, sign: str, wanted: object) -> bool:
    try:
        return _SIGNS[sign](found, wanted)
    except TypeError:
        return False
