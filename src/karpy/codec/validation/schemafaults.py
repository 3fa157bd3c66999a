"""The faults of a value by its schema, in the words of an API server."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from karpy.codec.validation.correlation import NOTHING, OldItems, old_field
from karpy.codec.validation.faults import Fault, FaultKind
from karpy.codec.validation.formats import FORMATS
from karpy.codec.validation.patterns import matches
from karpy.codec.validation.shaping import Schema

_TYPE_META: Final = frozenset({"apiVersion", "kind"})
_BOUNDS: Final = {"int32": 2**31, "int64": 2**63}
_NUMBER_FORMATS: Final = frozenset({"int32", "int64", "float", "double"})
_GO_FORMATS: Final = {"integer": "int64", "number": "float64"}


class SchemaPlace(Struct, frozen=True):
    """The path of a value: `inner` within the schema, which messages name, and `outer` above it."""

    inner: str = ""
    outer: str = ""

    @property
    def path(self) -> str:
        return ".".join(each for each in (self.outer, self.inner) if each)

    def field(self, key: str) -> "SchemaPlace":
        return SchemaPlace(f"{self.inner}.{key}" if self.inner else key, self.outer)

    def item(self, index: int) -> "SchemaPlace":
        return SchemaPlace(f"{self.inner}[{index}]", self.outer)

    def fault(self, detail: str, value: object) -> Fault:
        return Fault(FaultKind.INVALID, self.path, value, f"{self.inner} in body {detail}")

    def plain(self, detail: str) -> Fault:
        """Make a fault whose place an API server does not name."""
        return Fault(FaultKind.INVALID, self.outer, "", detail)


def schema_faults(
    value: object, schema: Schema, place: SchemaPlace, old: object = NOTHING
) -> list[Fault]:
    """List the faults of a value; none if the value is unchanged."""
    faults = list(_faults(value, schema, place, old))
    return [] if faults and value == old else faults


def _faults(value: object, schema: Schema, place: SchemaPlace, old: object) -> Iterator[Fault]:
    yield from _type_faults(value, schema, place)
    if value is not None:
        yield from _combined(value, schema, place)
    match value:
        case bool():
            pass
        case str():
            yield from _text_faults(value, schema, place)
        case int() | float():
            yield from _number_faults(value, schema, place)
        case list():
            yield from _list_faults(value, schema, place, old)
    if "enum" in schema and value not in schema["enum"]:
        known = ", ".join(f'"{each}"' for each in schema["enum"])
        yield Fault(FaultKind.NOT_SUPPORTED, place.path, value, f"supported values: {known}")
    if isinstance(value, dict):
        yield from _object_faults(value, schema, place, old)


def _type_faults(value: object, schema: Schema, place: SchemaPlace) -> Iterator[Fault]:
    wanted = [schema["type"]] if "type" in schema else []
    if schema.get("x-kubernetes-int-or-string"):
        wanted = ["integer", "string"]
    found = _type_of(value)
    if not wanted or found in wanted or (value is None and schema.get("nullable")):
        return
    if found != "boolean" and _is_number_for(value, wanted):
        return
    name = schema.get("format", "")
    if (name in _NUMBER_FORMATS or name in FORMATS) and not isinstance(value, str | list | None):
        wanted, found = [name], _GO_FORMATS.get(found, "")
    detail = f'{place.inner} in body must be of type {",".join(wanted)}: "{found}"'
    yield Fault(FaultKind.TYPE_INVALID, place.path, found, detail)


def _is_number_for(value: object, wanted: list[str]) -> bool:
    return isinstance(value, int | float) and (
        "number" in wanted or ("integer" in wanted and float(value).is_integer())
    )


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "array"
    return "object"


def _text_faults(value: str, schema: Schema, place: SchemaPlace) -> Iterator[Fault]:
    longest, shortest = schema.get("maxLength"), schema.get("minLength", 0)
    if longest is not None and len(value) > longest:
        unit = "byte" if longest == 1 else "bytes"
        detail = f"may not be more than {longest} {unit}"
        yield Fault(FaultKind.TOO_LONG, place.path, detail=detail)
    elif len(value) < shortest:
        yield place.fault(f"should be at least {shortest} chars long", value)
    elif "pattern" in schema and not matches(schema["pattern"], value):
        yield place.fault(f"should match '{schema['pattern']}'", value)
    fits = FORMATS.get(schema.get("format", ""))
    if fits and not fits(value):
        detail = f'{place.inner} in body must be of type {schema["format"]}: "{value}"'
        yield Fault(FaultKind.TYPE_INVALID, place.path, value, detail)


def _number_faults(value: float, schema: Schema, place: SchemaPlace) -> Iterator[Fault]:
    name = schema.get("format", "")
    bound = _BOUNDS.get(name, _BOUNDS["int64"])
    is_whole = float(value).is_integer() and -bound <= value < bound
    if schema.get("type") == "integer" and not is_whole:
        words = f"with format {name}" if name in _BOUNDS else "(default format)"
        yield place.plain(f"Checked value must be of type integer {words} in {place.inner}")
    factor = schema.get("multipleOf")
    if factor and value % factor:
        yield place.fault(f"should be a multiple of {factor}", value)
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None:
        is_open = schema.get("exclusiveMinimum", False)
        if value < least or (is_open and value == least):
            words = "greater than" if is_open else "greater than or equal to"
            yield place.fault(f"should be {words} {_plain(least)}", value)
    if most is not None:
        is_open = schema.get("exclusiveMaximum", False)
        if value > most or (is_open and value == most):
            words = "less than" if is_open else "less than or equal to"
            yield place.fault(f"should be {words} {_plain(most)}", value)


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _list_faults(
    value: list[Any], schema: Schema, place: SchemaPlace, old: object
) -> Iterator[Fault]:
    items = schema.get("items")
    if items is not None:
        before = OldItems(schema, old)
        for index, each in enumerate(value):
            yield from schema_faults(each, items, place.item(index), before.of(each))
    fewest, most = schema.get("minItems", 0), schema.get("maxItems")
    if len(value) < fewest:
        yield place.fault(f"should have at least {fewest} items", len(value))
    if most is not None and len(value) > most:
        yield _too_many(place, len(value), most)
    if schema.get("uniqueItems") and any(each in value[:at] for at, each in enumerate(value)):
        yield place.fault("shouldn't contain duplicates", "")


def _too_many(place: SchemaPlace, count: int, most: int) -> Fault:
    unit = "item" if most == 1 else "items"
    return Fault(FaultKind.TOO_MANY, place.path, count, f"must have at most {most} {unit}")


def _object_faults(
    value: dict[str, Any], schema: Schema, place: SchemaPlace, old: object
) -> Iterator[Fault]:
    fewest, most = schema.get("minProperties", 0), schema.get("maxProperties")
    if len(value) < fewest:
        yield place.fault(f"should have at least {fewest} properties", len(value))
    if most is not None and len(value) > most:
        yield _too_many(place, len(value), most)
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    for key, each in value.items():
        below = properties.get(key, others)
        if below is False:
            detail = f"{place.inner}.{key} in body is a forbidden property"
            yield Fault(FaultKind.INVALID, place.path, key, detail)
        elif isinstance(below, dict):
            is_hidden = not place.path and key in _TYPE_META
            before = NOTHING if is_hidden else old_field(old, key)
            yield from schema_faults(each, below, place.field(key), before)
    for key in schema.get("required", ()):
        if key not in value:
            yield Fault(FaultKind.REQUIRED, place.field(key).path)


def _combined(value: object, schema: Schema, place: SchemaPlace) -> Iterator[Fault]:
    """Find the faults of combined schemas; an API server names no precise place for them."""
    name = f'"{place.inner}"'
    any_of = [schema_faults(value, each, place) for each in schema.get("anyOf", ())]
    if any_of and all(any_of):
        yield place.plain(f"{name} must validate at least one schema (anyOf)")
        yield from any_of[0]
    one_of = [schema_faults(value, each, place) for each in schema.get("oneOf", ())]
    valid = one_of.count([])
    if one_of and valid != 1:
        found = f"Found {valid} valid alternatives" if valid else "Found none valid"
        yield place.plain(f"{name} must validate one and only one schema (oneOf). {found}")
        if not valid:
            yield from one_of[0]
    all_of = [schema_faults(value, each, place) for each in schema.get("allOf", ())]
    for faults in all_of:
        yield from faults
    if any(all_of):
        hint = "" if [] in all_of else ". None validated"
        yield place.plain(f"{name} must validate all the schemas (allOf){hint}")
    if "not" in schema and not schema_faults(value, schema["not"], place):
        yield place.plain(f"{name} must not validate the schema (not)")
