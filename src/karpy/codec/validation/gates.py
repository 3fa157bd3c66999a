"""A quick check of valid values, by schemas in the dialect that jsonschema-rs compiles."""

from collections.abc import Callable
from typing import Any, Final

from karpy.codec.fields import JsonObject
from karpy.codec.validation.formats import FORMATS
from karpy.codec.validation.patterns import json_schema, linear
from karpy.codec.validation.shaping import Schema

_NUMBERS: Final = {"int32": 2**31, "int64": 2**63}
_SAME: Final = (
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "maxProperties",
    "minProperties",
    "required",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
)
_MANY: Final = ("allOf", "anyOf", "oneOf")


def gate(schema: Schema) -> Callable[[object], bool]:
    """
    Return a function that accepts valid values within a few microseconds.

    It never accepts an invalid value. A value that it does not accept may still be valid, such as
    1.0, which is no integer in Draft 4: `schema_faults` decides.
    """
    try:
        made = json_schema().Draft4Validator(
            _draft4(schema),
            formats=dict(FORMATS),
            validate_formats=True,
            pattern_options=linear(),
            offline=True,
        )
    except ValueError:
        # A pattern cannot be compiled: leave every value to `schema_faults`.
        return lambda _: False
    is_valid: Callable[[object], bool] = made.is_valid
    return is_valid


def _draft4(schema: Schema) -> JsonObject:
    made: JsonObject = {key: schema[key] for key in _SAME if key in schema}
    made.update(_types(schema))
    for key in _MANY:
        if schema.get(key):
            made[key] = [_draft4(each) for each in schema[key]]
    if "not" in schema:
        made["not"] = _draft4(schema["not"])
    if "items" in schema:
        made["items"] = _draft4(schema["items"])
    if "properties" in schema:
        made["properties"] = {key: _draft4(each) for key, each in schema["properties"].items()}
    others = schema.get("additionalProperties")
    if others is not None:
        made["additionalProperties"] = _draft4(others) if isinstance(others, dict) else others
    return made


def _types(schema: Schema) -> JsonObject:
    made: JsonObject = {}
    types: list[Any] = [schema["type"]] if "type" in schema else []
    if schema.get("x-kubernetes-int-or-string"):
        types = ["integer", "string"]
    if types and schema.get("nullable"):
        types.append("null")
    if types:
        made["type"] = types
    if "enum" in schema:
        made["enum"] = list(schema["enum"])
    name = schema.get("format", "")
    if name in FORMATS:
        made["format"] = name
    if name in _NUMBERS and schema.get("type") == "integer":
        bound = _NUMBERS[name]
        made["allOf"] = [{"minimum": -bound, "maximum": bound - 1}]
    return made
