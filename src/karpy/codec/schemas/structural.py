"""Types to structural schemas, the dialect of OpenAPI that CustomResourceDefinitions are in."""

from functools import cache
from typing import Final

import msgspec

from karpy.codec.fields import JsonObject
from karpy.codec.schemas.wire import DEFAULT

_NULL: Final = {"type": "null"}
_NO_DEFAULT: Final = ("default", None)
_REPLACED: Final = frozenset({"$ref", "anyOf", "title"})


@cache
def structural(kind: object) -> JsonObject:
    """Return the schema of a type, written out in full as an API server wants it."""
    (root,), named = msgspec.json.schema_components([kind], ref_template="{name}")
    return _written_out(root, named)


def _written_out(schema: JsonObject, named: dict[str, JsonObject]) -> JsonObject:
    """Replace what an API server does not take: references, null as a type, titles."""
    made = _referred(schema, named)
    made.update(
        (key, value)
        for key, value in schema.items()
        if key not in _REPLACED and (key, value) != _NO_DEFAULT
    )
    if DEFAULT in made:
        made["default"] = made.pop(DEFAULT)
    if not made.get("required", made):
        del made["required"]
    if "enum" in made:
        made["type"] = "string"
    for key in ("items", "additionalProperties"):
        if key in schema:
            made[key] = _written_out(schema[key], named)
    if "properties" in schema:
        made["properties"] = {
            name: _written_out(each, named) for name, each in sorted(schema["properties"].items())
        }
    return made


def _referred(schema: JsonObject, named: dict[str, JsonObject]) -> JsonObject:
    """Resolve a reference or union; "this or null" becomes this: absent fields replace null."""
    if "$ref" in schema:
        return _written_out(named[schema["$ref"]], named)
    given = [each for each in schema.get("anyOf", ()) if each != _NULL]
    if len(given) == 1:
        return _written_out(given[0], named)
    return {"anyOf": given} if given else {}
