import pytest
from msgspec.structs import replace

from karpy.model.instances import (
    Catalog,
    InstanceType,
    Offering,
    PriceList,
    allocatable,
    columns,
    micros,
)
from karpy.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from karpy.model.requirements import from_labels

GIB = 2**30


def _offering(capacity_type: str, *, is_available: bool = True, left: int = 0) -> Offering:
    requirements = from_labels({ZONE: "a", CAPACITY_TYPE: capacity_type})
    return Offering(requirements, 100, is_available, reservation_capacity=left)


@pytest.mark.parametrize(
    ("offering", "expected"),
    [
        (_offering(RESERVED, left=0), False),
        (_offering(RESERVED, left=3), True),
        (_offering(RESERVED, left=3, is_available=False), False),
        (_offering(ON_DEMAND), True),
        (_offering(ON_DEMAND, is_available=False), False),
        (_offering(SPOT), True),
        (Offering({}, 100), True),
    ],
)
def test_a_full_reservation_is_available_but_not_launchable(
    offering: Offering, *, expected: bool
) -> None:
    """It is healthy, so pods may wait for it; no machine can be had from it now."""
    assert offering.is_launchable is expected


def test_an_offering_knows_its_zone_and_capacity_type() -> None:
    sold, vague = _offering(SPOT), Offering({}, 100)

    assert (sold.zone, sold.capacity_type, sold.is_reserved) == ("a", "spot", False)
    assert (vague.zone, vague.capacity_type, vague.is_reserved) == ("", "", False)
    assert _offering(RESERVED).is_reserved


PLACES = (_offering(SPOT), _offering(ON_DEMAND, is_available=False))
SOLD = (replace(PLACES[0], price=7), replace(PLACES[1], price=9))


def test_a_price_list_is_as_good_as_its_offerings() -> None:
    listed = PriceList(PLACES, [7, 9])

    assert (*listed,) == SOLD
    assert (len(listed), listed[1], listed[:1]) == (2, SOLD[1], SOLD[:1])
    assert (SOLD[0] in listed, listed.index(SOLD[1])) == (True, 1)
    assert repr(listed) == repr(SOLD)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (SOLD, True),
        (SOLD[:1], False),
        (PriceList(SOLD, [7, 9]), True),
        (PriceList(PLACES, [7, 8]), False),
        (list(SOLD), False),
    ],
)
def test_a_price_list_equals_what_says_the_same(other: object, *, expected: bool) -> None:
    listed = PriceList(PLACES, [7, 9])

    assert (listed == other, other == listed) == (expected, expected)


def test_offerings_come_apart_into_places_and_prices() -> None:
    assert columns(PriceList(PLACES, [7, 9])) == (PLACES, [7, 9])
    assert columns(SOLD) == (SOLD, [7, 9])


@pytest.mark.parametrize(
    ("capacity", "overhead", "expected"),
    [
        ({"cpu": 4000, "memory": 16}, {"cpu": 100, "memory": 2}, {"cpu": 3900, "memory": 14}),
        ({"cpu": 4000}, {"cpu": 100, "ephemeral-storage": 5}, {"cpu": 3900}),
        ({"cpu": 100}, {"cpu": 200}, {"cpu": -100}),
        (
            {"memory": 16, "hugepages-2Mi": 4, "hugepages-1Gi": 2},
            {"memory": 1},
            {"memory": 9, "hugepages-2Mi": 4, "hugepages-1Gi": 2},
        ),
        (
            {"memory": 16, "hugepages-2Mi": 20},
            {"memory": 1},
            {"memory": 0, "hugepages-2Mi": 20},
        ),
        ({"hugepages-2Mi": 4}, {}, {"hugepages-2Mi": 4}),
        ({"memory": 16, "hugepages-2Mi": 0}, {}, {"memory": 16, "hugepages-2Mi": 0}),
    ],
)
def test_huge_pages_come_out_of_memory_too(
    capacity: dict[str, int], overhead: dict[str, int], expected: dict[str, int]
) -> None:
    assert allocatable(capacity, overhead) == expected


def test_overrides_replace_name_by_name() -> None:
    """The golden value of Karpenter v1.15; earlier ones added them."""
    capacity = {"cpu": 4000, "memory": 16 * GIB} | {"example.com/ext": 12}
    overhead = {"cpu": 100, "memory": GIB} | {"memory": 3 * GIB}

    assert allocatable(capacity, overhead) == {
        "cpu": 3900,
        "memory": 13 * GIB,
        "example.com/ext": 12,
    }


def test_an_instance_type_keeps_its_overhead_for_the_system() -> None:
    kind = InstanceType("m5.large", {}, (), capacity={"cpu": 2000}, overhead={"cpu": 70})

    assert kind.allocatable == {"cpu": 1930}


@pytest.mark.parametrize(
    ("dollars", "expected"),
    [(0.0, 0), (0.027147483648, 27_147), (0.1, 100_000), (0.7 * 0.1, 70_000), (12.5, 12_500_000)],
)
def test_prices_are_whole_micro_dollars(dollars: float, expected: int) -> None:
    assert micros(dollars) == expected


def test_prices_that_differ_by_float_noise_are_equal() -> None:
    """A saving of 4e-16 dollars is no reason to replace a node."""
    assert micros(0.1 + 0.2) == micros(0.3)


def test_a_pool_sees_the_whole_catalog_unless_it_has_its_own() -> None:
    small = InstanceType("small", {}, (), {})
    large = InstanceType("large", {}, (), {})
    catalog = Catalog((small, large), by_pool={"web": (small,), "none": ()})

    assert catalog.types_for("batch") == (small, large)
    assert catalog.types_for("web") == (small,)
    assert catalog.types_for("none") == ()


def test_types_of_single_pools_count_too_and_once() -> None:
    a, b, c = (InstanceType(name, {}, (), {}) for name in "abc")

    catalog = Catalog((a, b), by_pool={"p": (b, c), "q": (replace(c, capacity={"cpu": 1}),)})

    assert catalog.type_count == 3
