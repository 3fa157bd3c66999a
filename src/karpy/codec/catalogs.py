"""Catalogs of instance types: that of the KWOK provider, and those in files."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from karpy.codec.claims import write_requirement, write_resources
from karpy.codec.constraints import POOL_OPERATORS, read_requirement
from karpy.codec.fields import FieldInvalid, Fields, JsonObject, describe
from karpy.codec.instances import RESERVATION_SUFFIX, InstanceReader, read_price
from karpy.errors import CatalogInvalid
from karpy.model.instances import (
    MICROS_PER_DOLLAR,
    Catalog,
    InstanceType,
    Offering,
    PriceList,
    columns,
    micros,
)
from karpy.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    SPOT,
    WELL_KNOWN,
    ZONE,
)
from karpy.model.requirements import Requirements, collect, one_of
from karpy.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, format_quantity

KWOK: Final = "karpenter.kwok.sh/"
KWOK_LABELS: Final = frozenset(
    KWOK + name for name in ("instance-size", "instance-family", "instance-cpu", "instance-memory")
)
_CPUS: Final = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
_FAMILIES: Final = (("c", 2), ("s", 4), ("m", 8))
"""Families: name, and gibibytes of memory per CPU."""
_SYSTEMS: Final = ("linux", "windows")
_ARCHITECTURES: Final = ("amd64", "arm64")
_ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
_GIB: Final = 2**30
_PODS_PER_CPU: Final = 16
_PODS_MAX: Final = 1024
_PODS_DEFAULT: Final = 110
_DOLLARS_PER_CPU: Final = 0.025
_DOLLARS_PER_GB: Final = 0.001
_SHARES: Final = {SPOT: 0.7, ON_DEMAND: 1.0}
"""The share of a type's full price, by capacity type."""
_OVERHEAD: Final = {CPU: 100, MEMORY: 10 * 2**20}
_SIZE: Final = re.compile(r"\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)", re.ASCII)
_ARCHITECTURE: Final = "architecture"


@lru_cache(maxsize=1)
def kwok_catalog() -> Catalog:
    """Return the 144 instance types of Karpenter's KWOK provider."""
    # Parity: the instance types of KWOK: they are those of Karpenter's
    # kwok/tools/gen_instance_types.go.
    types = tuple(
        _kwok_type(cpu, family, gib, system, architecture)
        for cpu in _CPUS
        for family, gib in _FAMILIES
        for system in _SYSTEMS
        for architecture in _ARCHITECTURES
    )
    return Catalog(types=types, well_known=WELL_KNOWN | KWOK_LABELS)


def read_catalog(value: object, name: str = "catalog") -> Catalog:
    """
    Read a catalog of any of three shapes.

    These are a list in the format of Karpenter's KWOK provider, a list of karpbench instance types,
    and an object with `instanceTypes`, such a list, and `wellKnownLabels`.
    """
    try:
        return _read_catalog(value)
    except FieldInvalid as error:
        raise CatalogInvalid(path=name, problem=f"{error}; {error.hint}") from error


def write_catalog(catalog: Catalog) -> JsonObject:
    """
    Write a catalog as an object that `read_catalog` reads.

    Types and prices that only some NodePools have are not written.
    """
    return {
        "wellKnownLabels": sorted(catalog.well_known - WELL_KNOWN),
        "instanceTypes": [_write_type(each) for each in catalog.types],
    }


def _write_type(type_: InstanceType) -> JsonObject:
    return {
        "name": type_.name,
        "requirements": [
            entry
            for _, each in sorted(type_.requirements.items())
            for entry in write_requirement(each)
        ],
        "offerings": [_write_offering(each) for each in type_.offerings],
        "capacity": write_resources(type_.capacity),
        "overhead": {"kubeReserved": write_resources(type_.overhead)},
    }


def _write_offering(offering: Offering) -> JsonObject:
    values = {key: each.values for key, each in offering.requirements.items() if each.values}
    labels = {key: min(some) for key, some in sorted(values.items())}
    written: JsonObject = {"labels": labels, "price": offering.price / MICROS_PER_DOLLAR}
    return written if offering.is_available else {**written, "available": False}


def _read_catalog(value: object) -> Catalog:
    match value:
        case dict():
            fields = Fields(value)
        case list():
            fields = Fields({"instanceTypes": value})
        case _:
            raise FieldInvalid("", f"it is {describe(value)}", "give a list or an object")
    entries = fields.items("instanceTypes")
    if not entries:
        fields.fail("instanceTypes", "is empty", "add at least one instance type")
    well_known = WELL_KNOWN.union(fields.texts("wellKnownLabels"))
    reader = InstanceReader()
    types = []
    for index, each in enumerate(entries):
        place = f"instanceTypes[{index}]"
        entry = Fields(each, place)
        if _ARCHITECTURE in entry:
            types.append(_read_kwok_type(entry))
            well_known |= KWOK_LABELS.union(*(made.requirements for made in types[-1].offerings))
        else:
            types.append(reader.read(each, place))
    _refuse_repeated(types)
    labels = {_reservation_key(sold.requirements) for kind in types for sold in kind.offerings}
    return Catalog(tuple(types), well_known=well_known, reservation_label=max(labels))


def _refuse_repeated(types: Sequence[InstanceType]) -> None:
    seen: set[str] = set()
    for index, each in enumerate(types):
        if each.name in seen:
            path = f"instanceTypes[{index}].name"
            raise FieldInvalid(path, f"is `{each.name}` again", "give each type its own name")
        seen.add(each.name)


def _kwok_type(
    cpu: int, family: str, gib_per_cpu: int, system: str, architecture: str
) -> InstanceType:
    memory = cpu * gib_per_cpu * _GIB
    price = _DOLLARS_PER_CPU * cpu + _DOLLARS_PER_GB * memory / 1e9
    prices = [micros(price * share) for _ in _ZONES for share in _SHARES.values()]
    capacity = {
        CPU: cpu * 1000,
        MEMORY: memory,
        PODS: min(_PODS_PER_CPU * cpu, _PODS_MAX),
        EPHEMERAL_STORAGE: 20 * _GIB,
    }
    name = f"{family}-{cpu}x-{architecture}-{system}"
    return _assemble(name, architecture, (system,), capacity, PriceList(_kwok_places(), prices))


@lru_cache(maxsize=1)
def _kwok_places() -> tuple[Offering, ...]:
    return tuple(
        Offering(collect((one_of(CAPACITY_TYPE, capacity_type), one_of(ZONE, zone))), price=0)
        for zone in _ZONES
        for capacity_type in _SHARES
    )


def _read_kwok_type(fields: Fields) -> InstanceType:
    capacity = fields.quantities("resources")
    for name in (CPU, MEMORY):
        if name not in capacity:
            fields.fail(f"resources.{name}", "is missing", f"add how much {name} the type has")
    capacity.setdefault(PODS, _PODS_DEFAULT)
    offerings = tuple(_read_kwok_offering(each) for each in fields.children("offerings"))
    if not offerings:
        fields.fail("offerings", "is empty", "add at least one offering")
    systems = fields.texts("operatingSystems") or ("linux",)
    name, architecture = fields.needed("name"), fields.needed(_ARCHITECTURE)
    return _assemble(name, architecture, systems, capacity, offerings)


def _read_kwok_offering(fields: Fields) -> Offering:
    """Read an offering, which is always available; field names match in any case, as in Go."""
    # Parity: offerings in a file of KWOK instance types: as in Karpenter's kwok/cloudprovider, each
    # is available, whatever the file says.
    lower = Fields({key.lower(): value for key, value in fields.obj.items()}, fields.path)
    parts = [read_requirement(each, POOL_OPERATORS) for each in lower.children("requirements")]
    requirements = collect(parts)
    for key in (ZONE, CAPACITY_TYPE):
        if key not in requirements:
            fields.fail("Requirements", f"say nothing of `{key}`", f"add `{key}`")
    reservation = _reservation_key(requirements)
    return Offering(
        requirements=requirements,
        price=micros(read_price(lower)),
        reservation_capacity=lower.number("reservationcapacity", 0) or 0,
        reservation_id=min(requirements[reservation].values, default="") if reservation else "",
    )


def _reservation_key(requirements: Requirements) -> str:
    return min((key for key in requirements if key.endswith(RESERVATION_SUFFIX)), default="")


def _assemble(
    name: str,
    architecture: str,
    systems: Sequence[str],
    capacity: dict[str, int],
    offerings: Sequence[Offering],
) -> InstanceType:
    places, _ = columns(offerings)
    cpu = format_quantity(capacity[CPU], CPU)
    sized = _SIZE.fullmatch(name)
    parts = [
        one_of(INSTANCE_TYPE, name),
        one_of(ARCH, architecture),
        one_of(OS, *systems),
        one_of(ZONE, *_values(places, ZONE)),
        one_of(CAPACITY_TYPE, *_values(places, CAPACITY_TYPE)),
        one_of(KWOK + "instance-size", sized[1] if sized else cpu),
        one_of(KWOK + "instance-family", _family(name)),
        one_of(KWOK + "instance-cpu", cpu),
        one_of(KWOK + "instance-memory", format_quantity(capacity[MEMORY], MEMORY)),
    ]
    return InstanceType(name, collect(parts), offerings, capacity, _OVERHEAD)


def _family(name: str) -> str:
    head = re.split(r"[.-]", name, maxsplit=1)[0]
    return head if head != name else name[:1]


def _values(offerings: Sequence[Offering], key: str) -> set[str]:
    return {value for each in offerings for value in each.requirements[key].values}
