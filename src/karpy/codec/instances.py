"""Instance types as karpbench/v1 and Karpy's own catalogs write them, fast."""

from decimal import Decimal, InvalidOperation
from marshal import dumps
from typing import Any, Final, TypeAlias

from karpy.codec.constraints import POOL_OPERATORS, read_requirement
from karpy.codec.fields import FieldInvalid, Fields, JsonObject, read_amounts
from karpy.model.instances import MICROS_PER_DOLLAR, InstanceType, Offering, micros
from karpy.model.labels import ALIASES, CAPACITY_TYPE, ZONE
from karpy.model.requirement import Requirement
from karpy.model.requirements import Requirements, collect, from_labels
from karpy.model.resources import Resources, add

RESERVATION_SUFFIX: Final = "reservation-id"
_PRICE_MAX: Final = 1e9
_MARSHAL: Final = 2
_Known: TypeAlias = str | int | tuple[str | int, ...]
"""
What tells requirements on one key apart: the value of In, or all its values, or the length of an
operator that stands alone (no two are equal).
"""
_NONE_KNOWN: Final[dict[_Known, Requirement]] = {}
_NOTHING: Final[Resources] = {}
_NO_LIMITS: Final[dict[str, int]] = {}
_PLACE: Final = 2
"""Most offerings have two labels: their zone and their capacity type."""
_USUAL: Final = 3
"""Labels, price and availability are the three fields of most offerings."""
_OVERHEAD_PARTS: Final = ("kubeReserved", "systemReserved", "evictionThreshold")


class InstanceReader:
    """Reads instance types; equal requirements, offering labels and amounts are one object."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self.reservation_label = ""
        self._requirements: dict[str, dict[_Known, Requirement]] = {}
        self._offered: dict[tuple[str, ...], tuple[Requirements, str]] = {}
        self._places: dict[tuple[str | None, str | None], tuple[Requirements, str]] = {}
        """The same for offerings that name their zone and capacity type, and nothing else."""
        self._amounts: dict[bytes, Resources] = {}
        self._overheads: dict[bytes, Resources] = {}

    def read(self, obj: JsonObject, path: str = "") -> InstanceType:
        """Read one instance type; raise FieldInvalid with the path of what is wrong."""
        try:
            name = obj["name"]
            if type(name) is not str or not name:
                Fields(obj, path).needed("name")
            return InstanceType(
                name,
                self._requirements_of(obj, path),
                self._offerings_of(obj, path),
                self._amounts_of(obj, "capacity", path),
                self._overhead_of(obj, "overhead", path),
                _volume_limits(Fields(obj, path)) if "volumeLimits" in obj else _NO_LIMITS,
            )
        except FieldInvalid:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            fields = Fields(obj, path)
            fields.needed("name")
            self._find_fault(fields)
            fields.fail("", f"is no instance type: {error!r}", "compare it with a working one")

    def _requirements_of(self, obj: JsonObject, path: str) -> Requirements:
        known = self._requirements
        raw = obj["requirements"]
        found: dict[str, Requirement] = {}
        for each in raw:
            key = each["key"]
            values = each.get("values")
            of_key = known.get(key, _NONE_KNOWN)
            value: _Known
            if values and len(values) == 1 and each["operator"] == "In":
                value = values[0]
                requirement = of_key.get(value)
                if requirement is None and of_key and type(value) is str:
                    requirement = of_key[value] = Requirement(key, frozenset(values))
            else:
                value = (each["operator"], *values) if values else len(each["operator"])
                requirement = of_key.get(value)
            found[key] = requirement or self._add_requirement(value, each, obj, path)
        if len(found) < len(raw) or not ALIASES.keys().isdisjoint(found):
            parts = list(Fields(obj, path).children("requirements"))
            return collect(read_requirement(part, POOL_OPERATORS) for part in parts)
        return found

    def _add_requirement(
        self, value: _Known, each: JsonObject, obj: JsonObject, path: str
    ) -> Requirement:
        fields = Fields(obj, path)
        index = next(i for i, some in enumerate(fields.items("requirements")) if some is each)
        part = Fields(each, f"requirements[{index}]", fields)
        requirement = read_requirement(part, POOL_OPERATORS)
        self._requirements.setdefault(each["key"], {})[value] = requirement
        return requirement

    def _offerings_of(self, obj: JsonObject, path: str) -> tuple[Offering, ...]:
        known, places = self._offered, self._places
        offerings: list[Offering] = []
        for each in obj["offerings"]:
            labels, price = each["labels"], each["price"]
            shared = (
                places.get((labels.get(ZONE), labels.get(CAPACITY_TYPE)))
                if len(labels) == _PLACE
                else known.get((*labels, *labels.values()))
            )
            if shared and len(each) == _USUAL and type(price) is float and 0 <= price < _PRICE_MAX:
                # The empty overrides are passed on purpose: a fresh pair for each offering wakes
                # the garbage collector, which then walks through the whole workload.
                is_available = each["available"] is True
                cost = round(price * MICROS_PER_DOLLAR)
                offerings.append(
                    Offering(shared[0], cost, is_available, 0, shared[1], _NOTHING, _NOTHING)
                )
            else:
                part = Fields(each, f"offerings[{len(offerings)}]", Fields(obj, path))
                offerings.append(self._unusual_offering(part))
        return tuple(offerings)

    def _unusual_offering(self, fields: Fields) -> Offering:
        labels = fields.labels("labels")
        key = (*labels, *labels.values())
        requirements, reservation = self._offered.get(key) or self._add_offered(key, labels)
        return Offering(
            requirements=requirements,
            price=micros(read_price(fields)),
            is_available=fields.flag("available", default=True),
            reservation_capacity=fields.number("reservationCapacity", 0) or 0,
            reservation_id=reservation,
            capacity_override=self._amounts_of(fields.obj, "capacityOverride", fields.path),
            overhead_override=self._overhead_of(fields.obj, "overheadOverride", fields.path),
        )

    def _add_offered(
        self, key: tuple[str, ...], labels: dict[str, str]
    ) -> tuple[Requirements, str]:
        named = [name for name in sorted(labels) if name.endswith(RESERVATION_SUFFIX)]
        if named and not self.reservation_label:
            self.reservation_label = named[0]
        shared = from_labels(labels), labels[named[0]] if named else ""
        self._offered[key] = shared
        if len(labels) == _PLACE and ZONE in labels and CAPACITY_TYPE in labels:
            self._places[labels[ZONE], labels[CAPACITY_TYPE]] = shared
        return shared

    def _amounts_of(self, obj: JsonObject, name: str, path: str) -> Resources:
        raw = obj.get(name)
        key = dumps(raw, _MARSHAL)
        amounts = self._amounts.get(key)
        if amounts is None:
            read = read_amounts(raw) if raw else None
            if not read or min(read.values()) < 0:
                read = Fields(obj, path).quantities(name)
            amounts = self._amounts[key] = read
        return amounts

    def _overhead_of(self, obj: JsonObject, name: str, path: str) -> Resources:
        key = dumps(obj.get(name), _MARSHAL)
        amounts = self._overheads.get(key)
        if amounts is None:
            amounts = self._overheads[key] = _read_overhead(Fields(obj, path), name)
        return amounts

    def _find_fault(self, fields: Fields) -> None:
        """Read an instance type carefully, to learn which field is not what it should be."""
        for key in ("requirements", "offerings"):
            if key not in fields:
                fields.fail(key, "is missing", f"add a list of {key}")
        for part in fields.children("requirements"):
            read_requirement(part, POOL_OPERATORS)
        for offering in fields.children("offerings"):
            offering.labels("labels")
            if "labels" not in offering:
                offering.fail("labels", "is missing", "add the zone and the capacity type")
            read_price(offering)
            offering.flag("available")


def _read_overhead(fields: Fields, name: str) -> dict[str, int]:
    """Sum up the parts of an overhead; a plain list of amounts is one, too."""
    if name not in fields:
        return {}
    overhead = fields.child(name)
    parts = [part for part in _OVERHEAD_PARTS if part in overhead]
    if not parts:
        return fields.quantities(name)
    return add(*(overhead.quantities(part) for part in parts))


def read_price(fields: Fields, key: str = "price") -> float:
    """Read dollars per hour, written as a number or as text."""
    value: Any = fields.obj.get(key)
    try:
        price = float(Decimal(str(value)))
    except (InvalidOperation, ValueError):
        price = -1.0
    if isinstance(value, bool) or not 0 <= price < _PRICE_MAX:
        shown = "missing" if value is None else f"`{value}`"
        fields.fail(key, f"is {shown}, not a price", "write dollars per hour, such as `0.096`")
    return price


def _volume_limits(fields: Fields) -> dict[str, int]:
    limits = fields.child("volumeLimits")
    return {driver: limits.number(driver) or 0 for driver in sorted(limits.obj)}
