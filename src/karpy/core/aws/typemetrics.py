"""What metrics tell of instance types: their size, and where they can be had at which price."""

from collections.abc import Iterator, Sequence
from typing import Final

from karpy.core.lifecycle.changes import Count
from karpy.model.instances import MICROS_PER_DOLLAR, Catalog, InstanceType
from karpy.model.resources import CPU, MEMORY

CORES: Final = "cloudprovider_instance_type_cpu_cores"
BYTES: Final = "cloudprovider_instance_type_memory_bytes"
AVAILABLE: Final = "cloudprovider_instance_type_offering_available"
PRICE: Final = "cloudprovider_instance_type_offering_price_estimate"
_MILLI: Final = 1000


def type_gauges(catalog: Catalog) -> Iterator[Count]:
    """Give the gauges of all types that some NodePool may use."""
    by_name: dict[str, list[InstanceType]] = {}
    lists = {id(each): each for each in (catalog.types, *catalog.by_pool.values())}
    for types in lists.values():
        for each in types:
            by_name.setdefault(each.name, []).append(each)
    for name, some in sorted(by_name.items()):
        yield from _of_type(name, some)


def _of_type(name: str, some: Sequence[InstanceType]) -> Iterator[Count]:
    places: dict[tuple[str, str], tuple[bool, int]] = {}
    for type_ in some:
        for offer in type_.offerings:
            key = offer.capacity_type, offer.zone
            known = places.get(key, (False, offer.price))
            places[key] = known[0] or offer.is_available, known[1]
    label = {"instance_type": name}
    yield Count(CORES, label, some[0].capacity.get(CPU, 0) / _MILLI)
    yield Count(BYTES, label, float(some[0].capacity.get(MEMORY, 0)))
    for (capacity_type, zone), (is_available, price) in sorted(places.items()):
        labels = {**label, "capacity_type": capacity_type, "zone": zone}
        yield Count(AVAILABLE, labels, float(is_available))
        yield Count(PRICE, labels, price / MICROS_PER_DOLLAR)
