"""Where and at which price an instance type can be had."""

import pytest
from msgspec.structs import replace

from karpy.core.aws.offerings import OfferingBuilder, Places, is_launchable
from karpy.model.ec2 import (
    CAPACITY_RESERVATION_ID,
    EFA_ONLY,
    PLACEMENT_GROUP_PARTITION,
    ZONE_ID,
    AmiFamily,
    CapacityReservation,
    Ec2Market,
    InstanceSettings,
    InstanceTypeInfo,
    NetworkCard,
    PlacementGroup,
)
from karpy.model.ec2nodeclass import NetworkInterface
from karpy.model.instances import Offering
from tests.builders.ec2 import M5_LARGE, M5_METAL, M5_XLARGE, PLAIN, market

MARKET = market(M5_LARGE, M5_XLARGE)
CLUSTER = PlacementGroup("pg-1", strategy="cluster")
PARTITIONS = PlacementGroup("pg-1", strategy="partition", partitions=2)
RESERVATION = CapacityReservation("cr-1", "m5.large", "eu-west-1a", left=2)
A1 = replace(M5_LARGE, name="a1.large", architectures=("arm64",))
TWO_CARDS = replace(M5_LARGE, cards=(NetworkCard(2, 1), NetworkCard(1, 1)), efa_max=1)
PRIMARY = NetworkInterface(0, 0)
EFA_ON_SECOND = NetworkInterface(1, 0, EFA_ONLY)


def offered(
    sold: Ec2Market = MARKET, settings: InstanceSettings = PLAIN, info: InstanceTypeInfo = M5_LARGE
) -> list[Offering]:
    return list(OfferingBuilder(sold, settings, Places()).offerings(info))


def available(
    sold: Ec2Market = MARKET, settings: InstanceSettings = PLAIN
) -> list[tuple[str, str]]:
    return [
        (each.capacity_type, each.zone) for each in offered(sold, settings) if each.is_available
    ]


def test_a_type_is_sold_on_demand_and_as_spot_in_each_zone() -> None:
    found = [
        (each.capacity_type, each.zone, min(each.requirements[ZONE_ID].values), each.price)
        for each in offered()
    ]

    assert found == [
        ("on-demand", "eu-west-1a", "euw1-az1", 96_000),
        ("spot", "eu-west-1a", "euw1-az1", 48_000),
        ("on-demand", "eu-west-1b", "euw1-az2", 96_000),
        ("spot", "eu-west-1b", "euw1-az2", 48_000),
    ]
    assert all(each.is_available for each in offered())
    assert all(each.requirements[CAPACITY_RESERVATION_ID].is_empty for each in offered())


def test_spot_costs_what_on_demand_does_until_spot_prices_are_known() -> None:
    assert {each.price for each in offered(replace(MARKET, spot=None))} == {96_000}


SPOT_IN_A = replace(MARKET, spot={"m5.large": {"eu-west-1a": 30_000}})
SOLD_OUT = replace(MARKET, unavailable=frozenset({("spot", "m5.large", "eu-west-1a")}))
NO_SPOT = replace(MARKET, closed_capacity_types=frozenset({"spot"}))
SHIFTED = replace(MARKET, shifted_zones=frozenset({"eu-west-1a"}))
PRICELESS = replace(MARKET, on_demand={}, spot={})


@pytest.mark.parametrize(
    ("sold", "settings", "left"),
    [
        (SPOT_IN_A, PLAIN, ["on-demand a", "spot a", "on-demand b"]),
        (SOLD_OUT, PLAIN, ["on-demand a", "on-demand b", "spot b"]),
        (NO_SPOT, PLAIN, ["on-demand a", "on-demand b"]),
        (SHIFTED, PLAIN, ["on-demand b", "spot b"]),
        (PRICELESS, PLAIN, []),
        (MARKET, InstanceSettings(zones={"eu-west-1b": ""}), ["on-demand b", "spot b"]),
        (
            MARKET,
            InstanceSettings(full_zones=frozenset({"eu-west-1a"})),
            ["on-demand b", "spot b"],
        ),
        (MARKET, InstanceSettings(needs_nested_virtualization=True), []),
    ],
)
def test_what_cannot_be_had_stays_in_the_catalog_and_is_not_available(
    sold: Ec2Market, settings: InstanceSettings, left: list[str]
) -> None:
    found = [f"{capacity_type} {zone[-1]}" for capacity_type, zone in available(sold, settings)]

    assert found == left
    assert len(offered(sold, settings)) == 4


def test_a_reservation_is_an_offering_next_to_free() -> None:
    reserved = offered(settings=InstanceSettings(reservations=(RESERVATION,)))[-1]

    assert (reserved.capacity_type, reserved.zone, reserved.price) == ("reserved", "eu-west-1a", 1)
    assert (reserved.reservation_id, reserved.reservation_capacity) == ("cr-1", 2)
    assert reserved.is_launchable


def test_reserved_capacity_of_larger_types_costs_more() -> None:
    sold = replace(MARKET, on_demand={"m5.large": 96_000, "m5.xlarge": 192_000})
    larger = replace(RESERVATION, id="cr-2", instance_type="m5.xlarge")
    settings = InstanceSettings(reservations=(RESERVATION, larger))

    small, large = (offered(sold, settings, info)[-1].price for info in (M5_LARGE, M5_XLARGE))

    assert small < large


@pytest.mark.parametrize(
    "reservation",
    [
        replace(RESERVATION, left=0),
        replace(RESERVATION, state="expiring"),
        replace(RESERVATION, zone="eu-west-1c"),
    ],
)
def test_a_reservation_that_is_full_or_ends_or_is_elsewhere_cannot_be_had(
    reservation: CapacityReservation,
) -> None:
    reserved = offered(settings=InstanceSettings(reservations=(reservation,)))[-1]

    assert not reserved.is_available


def test_each_partition_of_a_placement_group_is_an_offering() -> None:
    full = frozenset({("spot", "m5.large", "eu-west-1a", "pg-1", "2")})
    sold = replace(MARKET, unavailable_in_group=full)

    found = [
        (each.capacity_type, min(each.requirements[PLACEMENT_GROUP_PARTITION].values))
        for each in offered(sold, InstanceSettings(placement=PARTITIONS))
        if each.zone == "eu-west-1a" and each.is_available
    ]

    assert found == [("on-demand", "1"), ("on-demand", "2"), ("spot", "1")]


def test_a_placement_group_without_room_takes_no_more_of_a_type() -> None:
    full = frozenset({("spot", "m5.large", "eu-west-1a", "pg-1", "")})
    sold = replace(MARKET, unavailable_in_group=full)

    assert ("spot", "eu-west-1a") not in available(sold, InstanceSettings(placement=CLUSTER))
    assert ("spot", "eu-west-1a") in available(sold)


def test_types_that_are_sold_alike_share_their_places() -> None:
    shop = OfferingBuilder(MARKET, PLAIN, Places())

    assert shop.offerings(M5_LARGE).places is shop.offerings(M5_XLARGE).places


@pytest.mark.parametrize(
    ("info", "settings", "expected"),
    [
        (M5_LARGE, InstanceSettings(), True),
        (A1, InstanceSettings(), False),
        (A1, InstanceSettings(AmiFamily.AL2), True),
        (M5_LARGE, InstanceSettings(needs_nested_virtualization=True), False),
        (
            replace(M5_LARGE, has_nested_virtualization=True),
            InstanceSettings(needs_nested_virtualization=True),
            True,
        ),
        (M5_LARGE, InstanceSettings(tracks_connections=True), True),
        (M5_METAL, InstanceSettings(tracks_connections=True), False),
        (M5_LARGE, InstanceSettings(placement=PlacementGroup("pg-1", strategy="cluster")), True),
        (
            replace(M5_LARGE, placement_strategies=frozenset({"spread"})),
            InstanceSettings(placement=PlacementGroup("pg-1", strategy="cluster")),
            False,
        ),
        (M5_LARGE, InstanceSettings(network_interfaces=(PRIMARY,)), True),
        (replace(M5_LARGE, has_ena=False), InstanceSettings(network_interfaces=(PRIMARY,)), False),
        (M5_LARGE, InstanceSettings(network_interfaces=(PRIMARY, NetworkInterface(0, 3))), False),
        (M5_LARGE, InstanceSettings(network_interfaces=(PRIMARY, NetworkInterface(1, 0))), False),
        (TWO_CARDS, InstanceSettings(network_interfaces=(PRIMARY, EFA_ON_SECOND)), True),
        (
            replace(TWO_CARDS, efa_max=0),
            InstanceSettings(network_interfaces=(PRIMARY, EFA_ON_SECOND)),
            False,
        ),
    ],
)
def test_a_type_must_have_what_the_node_class_asks_for(
    info: InstanceTypeInfo, settings: InstanceSettings, *, expected: bool
) -> None:
    assert is_launchable(info, settings) is expected
