"""Instance types in the format of karpbench/v1 and of Karpy's catalogs, read fast."""

from decimal import Decimal, InvalidOperation
from itertools import compress
from operator import ne
from typing import Any, Final

from karpy.codec.constraints import POOL_OPERATORS, read_requirement
from karpy.codec.fields import FieldInvalid, Fields, JsonObject, read_amounts
from karpy.codec.fingerprints import fingerprint
from karpy.model.instances import MICROS_PER_DOLLAR, InstanceType, Offering, PriceList, micros
from karpy.model.labels import ALIASES
from karpy.model.requirements import Requirement, Requirements, collect, from_labels
from karpy.model.resources import Resources, add

RESERVATION_SUFFIX: Final = "reservation-id"
_PRICE_MAX: Final = 1e9
_NO_VALUES: Final[list[str]] = []
_NO_LIMITS: Final[dict[str, int]] = {}
_USUAL_FIELDS: Final = 3
"""Number of fields of most offerings: labels, price and availability."""
_OVERHEAD_PARTS: Final = ("kubeReserved", "systemReserved", "evictionThreshold")


class InstanceReader:
    """
    Reads instance types; equal requirements, places and amounts are one object.

    Catalogs are sorted, so that most fields of a type equal those of the type before it. Comparing
    two plain objects takes a fraction of the time of reading one.
    """

    def __init__(self) -> None:
        """Start with empty caches."""
        self.reservation_label = ""
        self._single: dict[str, dict[str, Requirement]] = {}
        """Requirements with one value, by key and value."""
        self._requirements: dict[tuple[str, ...], Requirement] = {}
        """All other requirements, by key, operator and values."""
        self._last_raw: list[JsonObject] = []
        self._last_requirements: dict[str, Requirement] = {}
        self._place_lists: dict[bytes, tuple[Offering, ...]] = {}
        self._last_sold: list[object] | None = None
        self._last_places: tuple[Offering, ...] = ()
        self._offered: dict[tuple[str, ...], tuple[Requirements, str]] = {}
        """Requirements and reservation of an offering, by its labels."""
        self._amounts: dict[bytes, Resources] = {}
        self._overheads: dict[bytes, Resources] = {}
        self._last_kept: JsonObject | None = None
        self._last_overhead: Resources = {}

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
                self._overhead_of(obj, path),
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
        raw = obj["requirements"]
        found = self._changed_requirements(raw, obj, path)
        if found is None:
            found = {each["key"]: self._requirement(each, obj, path) for each in raw}
            if len(found) < len(raw) or not ALIASES.keys().isdisjoint(found):
                parts = list(Fields(obj, path).children("requirements"))
                return collect(read_requirement(part, POOL_OPERATORS) for part in parts)
        self._last_raw, self._last_requirements = raw, found
        return found

    def _changed_requirements(
        self, raw: list[JsonObject], obj: JsonObject, path: str
    ) -> dict[str, Requirement] | None:
        """Copy the requirements of the type before, and read those that differ; None if keys do."""
        before = self._last_raw
        if len(raw) != len(before):
            return None
        found = self._last_requirements.copy()
        for index in compress(range(len(raw)), map(ne, raw, before)):
            each = raw[index]
            key = each["key"]
            if key != before[index]["key"]:
                return None
            found[key] = self._requirement(each, obj, path)
        return found

    def _requirement(self, each: JsonObject, obj: JsonObject, path: str) -> Requirement:
        key, operator, values = each["key"], each["operator"], each.get("values") or _NO_VALUES
        if len(values) == 1 and operator == "In":
            value = values[0]
            single = self._single.get(key)
            requirement = single.get(value) if single else None
            if requirement is None:
                if single and type(value) is str:
                    requirement = Requirement(key, frozenset(values))
                else:
                    requirement = _read_requirement(each, Fields(obj, path))
                    single = self._single.setdefault(key, {})
                single[value] = requirement
            return requirement
        name = (key, operator, *values)
        requirement = self._requirements.get(name)
        if requirement is None:
            requirement = self._requirements[name] = _read_requirement(each, Fields(obj, path))
        return requirement

    def _offerings_of(self, obj: JsonObject, path: str) -> PriceList:
        columns = _usual_columns(obj["offerings"])
        if columns is None:
            return self._read_offerings(Fields(obj, path))
        sold, prices = columns
        if sold != self._last_sold:
            key = fingerprint(sold)
            places = self._place_lists.get(key)
            if places is None:
                places = self._place_lists[key] = self._read_offerings(Fields(obj, path)).places
            self._last_sold, self._last_places = sold, places
        return PriceList(self._last_places, prices)

    def _read_offerings(self, fields: Fields) -> PriceList:
        """Read offerings one by one, with all checks."""
        places = tuple([self._read_offering(each) for each in fields.children("offerings")])
        return PriceList(places, [place.price for place in places])

    def _read_offering(self, fields: Fields) -> Offering:
        if "labels" not in fields:
            fields.fail("labels", "is missing", "add the zone and the capacity type")
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
            overhead_override=_read_overhead(fields, "overheadOverride"),
        )

    def _add_offered(
        self, key: tuple[str, ...], labels: dict[str, str]
    ) -> tuple[Requirements, str]:
        named = [name for name in sorted(labels) if name.endswith(RESERVATION_SUFFIX)]
        if named and not self.reservation_label:
            self.reservation_label = named[0]
        shared = from_labels(labels), labels[named[0]] if named else ""
        self._offered[key] = shared
        return shared

    def _amounts_of(self, obj: JsonObject, name: str, path: str) -> Resources:
        raw = obj.get(name)
        key = fingerprint(raw)
        amounts = self._amounts.get(key)
        if amounts is None:
            read = read_amounts(raw) if raw else None
            if not read or min(read.values()) < 0:
                read = Fields(obj, path).quantities(name)
            amounts = self._amounts[key] = read
        return amounts

    def _overhead_of(self, obj: JsonObject, path: str) -> Resources:
        raw = obj.get("overhead")
        if raw != self._last_kept:
            key = fingerprint(raw)
            amounts = self._overheads.get(key)
            if amounts is None:
                amounts = self._overheads[key] = _read_overhead(Fields(obj, path), "overhead")
            self._last_kept, self._last_overhead = raw, amounts
        return self._last_overhead

    def _find_fault(self, fields: Fields) -> None:
        """Read an instance type with all checks, to raise FieldInvalid for the wrong field."""
        for key in ("requirements", "offerings"):
            if key not in fields:
                fields.fail(key, "is missing", f"add a list of {key}")
        for part in fields.children("requirements"):
            read_requirement(part, POOL_OPERATORS)
        for part in fields.children("offerings"):
            self._read_offering(part)


def _usual_columns(raw: list[JsonObject]) -> tuple[list[object], list[int]] | None:
    """Return labels and availability of usual offerings, and their prices; else None."""
    sold: list[object] = []
    prices: list[int] = []
    dollars, price = -1.0, 0
    for each in raw:
        value = each.get("price")
        if type(value) is not float or len(each) != _USUAL_FIELDS or "available" not in each:
            return None
        if value != dollars:
            # Most prices are the same in several zones.
            if not 0.0 <= value < _PRICE_MAX:
                return None
            dollars, price = value, round(value * MICROS_PER_DOLLAR)
        prices.append(price)
        sold.append(each.get("labels"))
        sold.append(each["available"])
    return sold, prices


def _read_requirement(each: JsonObject, fields: Fields) -> Requirement:
    """Read one requirement of a type with all checks; errors name its index in the list."""
    index = next(i for i, some in enumerate(fields.items("requirements")) if some is each)
    return read_requirement(Fields(each, f"requirements[{index}]", fields), POOL_OPERATORS)


def _read_overhead(fields: Fields, name: str) -> dict[str, int]:
    """Sum up the parts of an overhead; one without parts is a mapping of amounts."""
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
