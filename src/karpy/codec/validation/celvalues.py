"""Plain values as CEL rules see them: by their schema, with names that CEL can write."""

import base64
import re
from collections.abc import Callable
from typing import Final, TypeAlias

from karpy.codec.validation.shaping import Schema

Converter: TypeAlias = Callable[[object], object]

_RESERVED: Final = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_NAME: Final = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*", re.ASCII)
_ESCAPED: Final = re.compile(r"__|[-./]")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escaped(name: str) -> str:
    """Write the name of a field as rules do; a name that CEL cannot express is unchanged."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return name
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)


def converter(schema: Schema) -> Converter | None:
    """Return a function that converts values of a schema for rules; None if none is needed."""
    match schema.get("type"):
        case "number":
            return _number
        case "string" if schema.get("format") == "byte":
            return _bytes
        case "array":
            return _list_converter(schema)
        case "object":
            return _object_converter(schema)
    return None


def _number(value: object) -> object:
    return float(value) if isinstance(value, int) else value


def _bytes(value: object) -> object:
    return base64.b64decode(value) if isinstance(value, str) else value


def _list_converter(schema: Schema) -> Converter | None:
    each = converter(schema.get("items", {}))
    if each is None:
        return None

    def convert(value: object) -> object:
        return [each(item) for item in value] if isinstance(value, list) else value

    return convert


def _object_converter(schema: Schema) -> Converter | None:
    properties = schema.get("properties", {})
    names = {key: escaped(key) for key in properties if escaped(key) != key}
    below = {key: each for key, part in properties.items() if (each := converter(part))}
    others = schema.get("additionalProperties")
    rest = converter(others) if isinstance(others, dict) else None
    if not (names or below or rest):
        return None

    def convert(value: object) -> object:
        if not isinstance(value, dict):
            return value
        made = {}
        for key, item in value.items():
            change = below.get(key) or (rest if key not in properties else None)
            made[names.get(key, key)] = change(item) if change else item
        return made

    return convert
