"""The faults of the schemas in a CustomResourceDefinition."""

from collections.abc import Iterator, Sequence
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.validation.faults import Fault, FaultKind
from karpy.codec.validation.patterns import PatternInvalid, check_pattern
from karpy.codec.validation.shaping import Schema

_ONE: Final = ("additionalProperties", "items", "not")
_MANY: Final = ("allOf", "anyOf", "oneOf")


def definition_faults(versions: Sequence[JsonObject]) -> Iterator[Fault]:
    """Find the patterns that are no valid regular expressions."""
    for index, version in enumerate(versions):
        schema = ((version or {}).get("schema") or {}).get("openAPIV3Schema") or {}
        # With one version, an API server names the schema as one for all versions.
        place = "spec.validation" if len(versions) == 1 else f"spec.versions[{index}].schema"
        yield from _pattern_faults(schema, f"{place}.openAPIV3Schema")


def _pattern_faults(schema: Schema, path: str) -> Iterator[Fault]:
    if pattern := schema.get("pattern"):
        try:
            check_pattern(pattern)
        except PatternInvalid as error:
            detail = f"must be a valid regular expression, but isn't: error parsing regexp: {error}"
            yield Fault(FaultKind.INVALID, f"{path}.pattern", pattern, detail)
    for place, each in _below(schema):
        yield from _pattern_faults(each, f"{path}.{place}")


def _below(schema: Schema) -> Iterator[tuple[str, Schema]]:
    for name, each in (schema.get("properties") or {}).items():
        yield f"properties[{name}]", each
    for key in _ONE:
        if isinstance(schema.get(key), dict):
            yield key, schema[key]
    for key in _MANY:
        for index, each in enumerate(schema.get(key) or ()):
            yield f"{key}[{index}]", each
