"""Malformed objects: some fields of some objects, mutated by seed."""

import copy
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind
from tests.fuzz.dice import Dice

Path: TypeAlias = tuple[str | int, ...]
Json: TypeAlias = Any
"""A part of an object."""

WITNESS: Final = "witness"
"""Objects with this word in their metadata are not mutated."""
KEPT: Final = "kept"
"""Of pods with this word in their name only the spec is mutated, except for the node."""
_SPOILT: Final = 0.4
_DEEP: Final = "deep-0451"
_NESTED: Final = b"[" * 4900 + b"]" * 4900
_BYTES_MAX: Final = 1_000_000
"""Below the limit of an API server, 1.5 MB."""
_IDENTITY: Final = {
    ("metadata", each) for each in ("name", "namespace", "uid", "resourceVersion", "finalizers")
} | {("apiVersion",), ("kind",), ("metadata",)}
EXTREMES: Final[tuple[Json, ...]] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63 - 1,
    -(2**63),
    10**30,
    1.5,
    1e308,
    "",
    "abc",
    "0",
    "-1",
    "1e9999",
    "9" * 5000,
    "1" * 20_000 + "h",
    "100000000h",
    "1h" * 5000,
    "NaN",
    "1e999999999",
    "é\u0000\ud7ff",
    "a" * 100_000,
    "2026-13-45T99:99:99Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "((((((((((" * 100,
    "*/0 * * * *",
    "300%",
    "FutureValue",
    [],
    {},
    [[]],
    [None],
    [{}],
    {"": None},
    {"key": "foo", "operator": "Gt", "values": ["abc"]},
    [{"key": "foo", "operator": "Gt", "values": ["abc"]}],
    _DEEP,
)


class Mutations:
    """The mutations of objects, equal for all versions of an object."""

    def __init__(self, seed: int) -> None:
        self._dice = Dice(seed)
        self._edits: dict[tuple[Kind, str, str], list[tuple[Path, Json]]] = {}

    def spoil(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Return the mutated object."""
        meta = obj["metadata"]
        if WITNESS in str(meta):
            return obj
        key = kind, meta.get("namespace", ""), meta["name"]
        if key not in self._edits:
            self._edits[key] = self._random_edits(obj) if self._dice.chance(_SPOILT) else []
        edits = self._edits[key]
        if not edits:
            return obj
        spoilt = copy.deepcopy(obj)
        for path, value in edits:
            put(spoilt, path, value)
        return spoilt

    def _random_edits(self, obj: JsonObject) -> list[tuple[Path, Json]]:
        name = obj["metadata"]["name"]
        root = ("spec",) if KEPT in name else ()
        paths = [
            path
            for path in paths_of(obj)
            if path not in _IDENTITY
            and path[:2] not in _IDENTITY
            and path[: len(root)] == root
            and not (root and path == ("spec", "nodeName"))
            and path != root
        ]
        return [
            (self._dice.one(paths), self._random_value(obj)) for _ in range(self._dice.number(1, 3))
        ]

    def _random_value(self, obj: JsonObject) -> Json:
        match self._dice.number(0, 9):
            case 0:
                value, count = self._dice.one(EXTREMES), self._dice.number(2, 3000)
                return [value] * min(count, _BYTES_MAX // len(encode(value)))
            case 1:
                return {f"{each}": each for each in range(self._dice.number(2, 3000))}
            case 2:
                # Use one part of the object as the value of another.
                return _at(obj, self._dice.one(list(paths_of(obj))))
            case _:
                return self._dice.one(EXTREMES)


def encode(obj: Json) -> bytes:
    """Encode an object as JSON, with deep nesting at its placeholders."""
    return msgspec.json.encode(obj).replace(f'"{_DEEP}"'.encode(), _NESTED)


def paths_of(value: Json, above: Path = ()) -> Iterator[Path]:
    """Yield the paths of all values in an object."""
    inner: Iterator[tuple[str | int, Any]] = iter(())
    if isinstance(value, dict):
        inner = iter(value.items())
    elif isinstance(value, list):
        inner = iter(enumerate(value))
    for step, each in inner:
        yield (*above, step)
        yield from paths_of(each, (*above, step))


def _at(value: Json, path: Path) -> Json:
    for step in path:
        value = value[step]
    return copy.deepcopy(value)


def put(value: Json, path: Path, new: Json) -> None:
    """Set the value at a path, if the path exists."""
    *above, last = path
    try:
        for step in above:
            value = value[step]
        value[last]
        value[last] = new
    except (KeyError, IndexError, TypeError):
        return
