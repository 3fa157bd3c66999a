"""Unknown fields of custom resources, by their structural schema."""

from collections.abc import Iterator
from typing import Final

from karpy.adapters.apiserver.decoding import Decoder
from karpy.adapters.apiserver.shapes import METADATA, shapes
from karpy.codec.fields import JsonObject

_KEEPS: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDS: Final = "x-kubernetes-embedded-resource"
_TYPE_META: Final = frozenset({"apiVersion", "kind", "metadata"})


def version_of(definition: JsonObject, version: str) -> JsonObject:
    """Return the entry of a version in a CustomResourceDefinition."""
    versions: list[JsonObject] = definition["spec"]["versions"]
    return next((each for each in versions if each["name"] == version), {})


def schema_of(definition: JsonObject, version: str) -> JsonObject:
    """Return the schema of a version; an empty one if there is none, which keeps all fields."""
    schema = version_of(definition, version).get("schema") or {}
    return dict(schema.get("openAPIV3Schema") or {_KEEPS: True})


def unknown_fields(obj: JsonObject, schema: JsonObject, *, is_patch: bool = False) -> list[str]:
    """List the fields of a custom resource that would be dropped; raise Mismatch."""
    decoder = Decoder(is_patch=is_patch)
    decoder.read(obj.get("metadata") or {}, shapes()[METADATA], "metadata")
    return [*decoder.unknown, *_unknown(obj, schema, "", is_object=True)]


def _unknown(value: object, schema: JsonObject, path: str, *, is_object: bool) -> Iterator[str]:
    if isinstance(value, list):
        item = schema.get("items")
        for index, each in enumerate(value):
            if isinstance(item, dict):
                yield from _unknown(each, item, f"{path}[{index}]", is_object=False)
    elif isinstance(value, dict):
        yield from _unknown_keys(value, schema, path, is_object=is_object)


def _unknown_keys(
    value: JsonObject, schema: JsonObject, path: str, *, is_object: bool
) -> Iterator[str]:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    is_whole = is_object or bool(schema.get(_EMBEDS))
    for key, each in value.items():
        here = f"{path}.{key}" if path else key
        if is_whole and key in _TYPE_META:
            continue
        if key in properties:
            yield from _unknown(each, properties[key], here, is_object=False)
        elif isinstance(others, dict):
            yield from _unknown(each, others, here, is_object=False)
        elif not (others or schema.get(_KEEPS)):
            yield here
