"""Sections 7 and 9: reservations, and what is asked of the cloud."""

from karpy.model.instances import InstanceType
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from karpy.model.settings import MinValuesPolicy, ReservedMode, Settings
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import LaunchOption
from tests.builders import (
    RESERVATION,
    ZONE_A,
    ZONE_B,
    amounts,
    catalog,
    daemon,
    exists,
    instance_type,
    is_in,
    min_values,
    offering,
    pod,
    pods,
    pool,
    snapshot,
)
from tests.reference.answers import hosts, types_launched
from tests.reference.solver import solve

FALLBACK = Settings(reserved_mode=ReservedMode.FALLBACK)
STRICT = Settings(reserved_mode=ReservedMode.STRICT)


def _reserved(left: int, *, also_on_demand: bool = True) -> InstanceType:
    sold = [offering(ZONE_A, dollars=0.1, reservation="cr", left=left)]
    sold += [offering(ZONE_A, ON_DEMAND, 1)] if also_on_demand else []
    return instance_type("t", offerings=sold)


def test_a_claim_that_holds_a_reservation_launches_as_reserved() -> None:
    launch = solve(snapshot(pods=[pod("p")], catalog=catalog([_reserved(1)]))).launches[0]

    assert launch.reservations == ("cr",)
    assert str(launch.requirements[CAPACITY_TYPE]) == f"{CAPACITY_TYPE} In [{RESERVED}]"
    assert str(launch.requirements[RESERVATION]) == f"{RESERVATION} In [cr]"
    assert launch.options == (LaunchOption("t", 100_000, ZONE_A, RESERVED),)


def test_strict_pods_wait_for_a_reservation_that_is_taken() -> None:
    batch = pods("p", 2, cpu="3")
    on_sale = catalog([_reserved(1)])

    assert hosts(snapshot(pods=batch, catalog=on_sale, settings=STRICT)) == {
        "p-0": "default#0",
        "p-1": "WAITS_FOR_RESERVATION",
    }
    fallback = snapshot(pods=batch, catalog=on_sale, settings=FALLBACK)
    assert [launch.reservations for launch in solve(fallback).launches] == [("cr",), ()]


def test_waiting_for_a_reservation_ends_the_search() -> None:
    """Neither a lower weight nor a dropped preference is tried."""
    pools = [pool("first", weight=1, requirements=[is_in(CAPACITY_TYPE, RESERVED)]), pool("second")]
    batch = pods("p", 2, cpu="3")
    on_sale = catalog([_reserved(1), instance_type("other")])

    assert hosts(snapshot(pods=batch, pools=pools, catalog=on_sale))["p-1"] == (
        "WAITS_FOR_RESERVATION"
    )


def test_a_full_reservation_does_not_matter_beside_something_else() -> None:
    launch = solve(snapshot(pods=[pod("p")], catalog=catalog([_reserved(0)]))).launches[0]

    assert launch.reservations == ()
    assert [option.capacity_type for option in launch.options] == [ON_DEMAND]


def test_only_full_reservations_make_strict_pods_wait_and_others_look_elsewhere() -> None:
    full = _reserved(0, also_on_demand=False)
    pools = [pool("reserved", weight=1, requirements=[is_in(CAPACITY_TYPE, RESERVED)]), pool("x")]
    on_sale = catalog([full, instance_type("other")])

    def placed(settings: Settings) -> dict[str, str]:
        cluster = snapshot(pods=[pod("p")], pools=pools, catalog=on_sale, settings=settings)
        return hosts(cluster)

    assert placed(STRICT) == {"p": "WAITS_FOR_RESERVATION"}
    assert placed(FALLBACK) == {"p": "x#0"}


def test_a_claim_may_not_lose_all_its_reservations() -> None:
    """The big pod no longer fits the reserved type; strict claims refuse it, others go on."""
    small = instance_type(
        "small", cpu="2", offerings=[offering(ZONE_A, reservation="cr", left=1, dollars=0.1)]
    )
    large = instance_type("large", cpu="8", offerings=[offering(ZONE_A, dollars=2)])
    batch = [pod("a", cpu="1500m"), pod("b", cpu="1")]
    on_sale = catalog([small, large])

    assert hosts(snapshot(pods=batch, catalog=on_sale, settings=STRICT)) == {
        "a": "default#0",
        "b": "WAITS_FOR_RESERVATION",
    }
    assert hosts(snapshot(pods=batch, catalog=on_sale, settings=FALLBACK)) == {
        "a": "default#0",
        "b": "default#0",
    }


def test_the_least_capacity_that_offerings_report_counts() -> None:
    types = [
        instance_type("x", offerings=[offering(ZONE_A, reservation="cr", left=9)]),
        instance_type("y", offerings=[offering(ZONE_B, reservation="cr", left=1)]),
    ]

    assert hosts(snapshot(pods=pods("p", 2, cpu="3"), catalog=catalog(types))) == {
        "p-0": "default#0",
        "p-1": "WAITS_FOR_RESERVATION",
    }


def test_without_the_gate_nothing_is_reserved() -> None:
    cluster = snapshot(
        pods=pods("p", 2, cpu="3"),
        catalog=catalog([_reserved(1)]),
        settings=Settings(reserved_capacity=False),
    )

    assert [launch.reservations for launch in solve(cluster).launches] == [(), ()]


# --- launches --------------------------------------------------------------------------------


def test_options_are_ordered_by_price_then_by_name() -> None:
    types = [
        instance_type("b", dollars=1),
        instance_type("a", dollars=1),
        instance_type("spot", dollars=9, spot_dollars=0.5),
    ]
    launch = solve(snapshot(pods=[pod("p")], catalog=catalog(types))).launches[0]

    assert launch.options == (
        LaunchOption("spot", 500_000, ZONE_A, SPOT),
        LaunchOption("a", 1_000_000, ZONE_A, ON_DEMAND),
        LaunchOption("b", 1_000_000, ZONE_A, ON_DEMAND),
    )


def test_at_most_600_types_are_offered_and_they_must_satisfy_min_values() -> None:
    many = [instance_type(f"m.{i:03}", dollars=1, zones=[ZONE_A]) for i in range(601)]
    late = instance_type("z", dollars=9, zones=[ZONE_B])
    on_sale = catalog([*many, late])
    zones = pool(requirements=[min_values(exists(ZONE), 2)])
    lenient = Settings(min_values_policy=MinValuesPolicy.BEST_EFFORT)
    batch = [pod("p")]

    assert [len(each) for each in types_launched(snapshot(pods=batch, catalog=on_sale))] == [600]
    assert hosts(snapshot(pods=batch, catalog=on_sale, pools=[zones])) == {
        "p": "MIN_VALUES_TRUNCATED"
    }
    assert hosts(snapshot(pods=batch, catalog=on_sale, pools=[zones], settings=lenient)) == {
        "p": "default#0"
    }


def test_types_that_cannot_be_launched_do_not_satisfy_min_values() -> None:
    """A full reservation is a type left, but no option; then strict pods go without a node."""
    on_sale = catalog([_reserved(0, also_on_demand=False), instance_type("other")])
    two = pool(requirements=[min_values(exists(INSTANCE_TYPE), 2)])

    def cluster(policy: MinValuesPolicy) -> Snapshot:
        settings = Settings(min_values_policy=policy)
        return snapshot(pods=[pod("p")], pools=[two], catalog=on_sale, settings=settings)

    strict, lenient = cluster(MinValuesPolicy.STRICT), cluster(MinValuesPolicy.BEST_EFFORT)
    assert hosts(strict) == {"p": "MIN_VALUES_TRUNCATED"}
    assert hosts(lenient) == {"p": "default#0"}
    launch = solve(lenient).launches[0]
    assert launch.is_min_values_relaxed
    assert launch.requirements[INSTANCE_TYPE].min_values == 1


def test_a_launch_asks_for_its_pods_and_the_least_daemons() -> None:
    types = [instance_type("x"), instance_type("y")]
    daemons = [
        daemon("everywhere", cpu="100m", memory="1Gi"),
        daemon("on-x", cpu="300m", memory="1Mi", selector={INSTANCE_TYPE: "x"}),
    ]
    cluster = snapshot(
        pods=[pod("p", cpu="1", memory="1Gi")], catalog=catalog(types), daemons=daemons
    )

    launch = solve(cluster).launches[0]

    assert launch.resources == {**amounts(cpu="1100m", memory="2Gi"), "pods": 2}
