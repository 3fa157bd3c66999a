import pytest

from karpy.adapters.clouds.kwok.offers import PricedType, choose, stock
from karpy.codec.catalogs import kwok_catalog
from karpy.model.instances import Catalog, InstanceType, Offering
from karpy.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from karpy.model.requirements import Operator, Requirement, collect, one_of, require
from karpy.model.verdicts import LaunchOption
from karpy.ports.cloud import LaunchSpec
from tests.adapters.clouds.kwok.stage import spec_of
from tests.sim.stories import SMALL, option

RESERVATION = "example.com/reservation-id"
MEDIUM = "c-2x-amd64-linux"
ARM = "c-1x-arm64-linux"
BOTH = (option(MEDIUM), option(SMALL))


def chosen(spec: LaunchSpec, catalog: Catalog | None = None) -> PricedType | None:
    catalog = catalog or kwok_catalog()
    return choose(spec, stock(catalog, spec.pool), catalog.well_known)


def place(offer: PricedType | None) -> tuple[str, str, str] | None:
    if offer is None:
        return None
    return offer.type.name, offer.offering.zone, offer.offering.capacity_type


def reserved(id_: str, capacity: int, price: int) -> Offering:
    requirements = collect(
        (one_of(ZONE, "a"), one_of(CAPACITY_TYPE, RESERVED), one_of(RESERVATION, id_))
    )
    return Offering(requirements, price, reservation_capacity=capacity, reservation_id=id_)


def one_type(*offerings: Offering) -> Catalog:
    type_ = InstanceType("big", {}, offerings, {"cpu": 4000})
    return Catalog((type_,), reservation_label=RESERVATION)


def test_the_cheapest_type_is_taken() -> None:
    assert place(chosen(spec_of(options=BOTH))) == (SMALL, "test-zone-a", ON_DEMAND)


def test_without_requirements_only_the_options_will_do() -> None:
    options = (option(SMALL, "test-zone-c", SPOT), option(SMALL, "test-zone-d"))

    assert place(chosen(spec_of(options=options))) == (SMALL, "test-zone-c", SPOT)


@pytest.mark.parametrize(
    ("asked", "zones", "capacity_type"),
    [
        ((one_of(CAPACITY_TYPE, ON_DEMAND),), "abcd", ON_DEMAND),
        ((one_of(ZONE, "test-zone-b", "test-zone-c"),), "bc", SPOT),
        ((require(ZONE, Operator.NOT_IN, ["test-zone-a"]),), "bcd", SPOT),
        ((one_of("example.com/team", "shop"),), "abcd", SPOT),
    ],
)
def test_with_requirements_any_place_they_allow_will_do(
    asked: tuple[Requirement, ...], zones: str, capacity_type: str
) -> None:
    specs = [spec_of(token=f"uid-{each}", requirements=collect(asked)) for each in range(50)]

    places = {place(chosen(spec)) for spec in specs}

    assert places == {(SMALL, f"test-zone-{zone}", capacity_type) for zone in zones}


def test_a_claim_always_gets_the_same_place() -> None:
    spec = spec_of(requirements=collect([one_of(CAPACITY_TYPE, SPOT)]))

    assert chosen(spec) == chosen(spec)


def test_of_types_that_cost_the_same_the_first_by_name_is_taken() -> None:
    found = chosen(spec_of(options=(option(ARM), option(SMALL))))

    assert found is not None
    assert found.type.name == SMALL


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ((), ()),
        ((option("c-1x-sparc-plan9"),), ()),
        ((option(zone="test-zone-x"),), ()),
        ((option(),), (one_of(ZONE, "test-zone-x"),)),
    ],
)
def test_there_is_nothing_where_nothing_is_sold(
    options: tuple[LaunchOption, ...], asked: tuple[Requirement, ...]
) -> None:
    assert chosen(spec_of(options=options, requirements=collect(asked))) is None


def test_a_full_reservation_and_what_is_sold_out_are_passed_over() -> None:
    on_demand = collect((one_of(ZONE, "a"), one_of(CAPACITY_TYPE, ON_DEMAND)))
    catalog = one_type(
        reserved("cr-1", 0, 1), Offering(on_demand, 50, is_available=False), reserved("cr-2", 1, 90)
    )
    options = (option("big", "a", RESERVED), option("big", "a", ON_DEMAND))

    found = chosen(spec_of(options=options), catalog)

    assert found is not None
    assert found.offering.reservation_id == "cr-2"


def test_a_launch_gets_only_the_reservations_it_names() -> None:
    catalog = one_type(reserved("cr-1", 5, 1), reserved("cr-2", 5, 2))
    options = (option("big", "a", RESERVED),)

    found = chosen(spec_of(options=options, reservations=("cr-2",)), catalog)

    assert found is not None
    assert found.offering.reservation_id == "cr-2"


def test_a_pool_has_its_own_types() -> None:
    cheap, dear = reserved("cr-1", 5, 1), reserved("cr-2", 5, 2)
    own = InstanceType("big", {}, (dear,), {"cpu": 4000})
    catalog = Catalog(one_type(cheap).types, by_pool={"general": (own,)})

    found = chosen(spec_of(options=(option("big", "a", RESERVED),)), catalog)

    assert found == PricedType(own, dear)
