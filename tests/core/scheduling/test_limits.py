"""Sections 3 and 7: what a NodePool may still make, and reserved capacity."""

import pytest
from msgspec.structs import replace

from karpy.model.instances import InstanceType, Offering
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, RESERVED, SPOT, ZONE
from karpy.model.pods import HostPort
from karpy.model.settings import ReservedMode, Settings
from karpy.model.verdicts import LaunchOption, Reason, Refusal
from tests.builders import (
    FAMILY,
    RESERVATION,
    ZONE_A,
    ZONE_B,
    anti_affinity,
    catalog,
    exists,
    instance_type,
    is_in,
    min_values,
    node,
    offering,
    pod,
    pods,
    pool,
    snapshot,
    taint,
    term,
)
from tests.core.scheduling.answers import (
    decide_checked,
    hosts,
    launches,
    only_launch,
    only_refusal,
    pods_launched,
    types_launched,
)

SMALL = instance_type("small", cpu="2", memory="4Gi", dollars=1)
LARGE = instance_type("large", cpu="8", memory="32Gi", dollars=2)
BOTH = catalog([SMALL, LARGE])
FULL = taint("full")
STRICT = Settings(reserved_mode=ReservedMode.STRICT)
FALLBACK = Settings(reserved_mode=ReservedMode.FALLBACK)
ON_DEMAND_TOO = offering(ZONE_A, ON_DEMAND, 1)
RESERVED_ONLY = pool("reserved", weight=9, requirements=[is_in(CAPACITY_TYPE, RESERVED)])


@pytest.mark.parametrize(
    ("limits", "types"),
    [
        ({"cpu": "8"}, [["small", "large"]]),
        ({"cpu": "7999m"}, [["small"]]),
        ({"cpu": "1"}, []),
        ({"memory": "32Gi"}, [["small", "large"]]),
        ({"memory": "31Gi"}, [["small"]]),
        ({"cpu": "8", "memory": "4Gi"}, [["small"]]),
        ({"example.com/gpu": "0"}, [["small", "large"]]),
        ({"cpu": "0"}, []),
    ],
)
def test_types_that_exceed_any_limit_are_out(
    limits: dict[str, str], types: list[list[str]]
) -> None:
    cluster = snapshot(pods=[pod("p")], pools=[pool(limits=limits)], catalog=BOTH)

    assert types_launched(cluster) == types


def test_capacity_counts_not_what_the_system_leaves_of_it() -> None:
    kind = instance_type("t", cpu="4", overhead={"cpu": "1"})
    batch = [pod("p", cpu="2")]

    def count(limit: str) -> int:
        pools = [pool(limits={"cpu": limit})]
        return len(launches(snapshot(pods=batch, pools=pools, catalog=catalog([kind]))))

    assert count("3900m") == 0
    assert count("4") == 1


def test_a_type_counts_with_the_most_it_may_turn_out_to_have() -> None:
    """Any of its offerings may be launched, including that with the larger capacity."""
    kind = instance_type(
        "t", cpu="4", offerings=[offering(dollars=1), offering(dollars=2, capacity={"cpu": "6"})]
    )
    cluster = snapshot(pods=[pod("p")], pools=[pool(limits={"cpu": "5"})], catalog=catalog([kind]))

    assert hosts(cluster) == {"p": "NO_HOST"}


def test_existing_nodes_of_the_pool_count_unless_they_are_being_deleted() -> None:
    cluster = snapshot(
        nodes=[
            node("n", cpu="4", taints=[FULL]),
            node("going", cpu="99", deleting=True),
            node("other", cpu="99", pool="other", taints=[FULL]),
            node("booting", cpu="1", initialized=False, taints=[FULL]),
        ],
        pools=[pool(limits={"cpu": "12"})],
        catalog=BOTH,
        pods=[pod("p")],
    )

    assert types_launched(cluster) == [["small"]]


def test_a_pool_beyond_its_limit_launches_nothing() -> None:
    cluster = snapshot(
        nodes=[node("n", cpu="4", taints=[FULL])],
        pools=[pool(limits={"cpu": "3"})],
        pods=[pod("p")],
    )

    assert hosts(cluster) == {"p": "NO_HOST"}


def test_a_claim_counts_with_the_largest_type_it_had_when_it_was_made() -> None:
    """The first claim may become large, so that only a small one is left, and then none."""
    cluster = snapshot(
        pools=[pool(limits={"cpu": "10"})], catalog=BOTH, pods=pods("p", 3, ports=[HostPort(80)])
    )

    assert types_launched(cluster) == [["small", "large"], ["small"]]
    assert hosts(cluster)["p-2"] == "NO_HOST"


def test_what_a_claim_loses_later_is_not_given_back() -> None:
    """Parity: the second pod makes the first claim small, and it still counts as large."""
    only_small = instance_type("small", cpu="2", capacity={"example.com/disk": "1"})
    cluster = snapshot(
        pools=[pool(limits={"cpu": "9"})],
        catalog=catalog([only_small, LARGE]),
        pods=[
            pod("p", cpu="1"),
            pod("narrows", cpu="900m", more={"example.com/disk": "1"}),
            pod("late", cpu="800m"),
        ],
    )

    assert hosts(cluster) == {"late": "NO_HOST", "narrows": "default-0", "p": "default-0"}


def test_claims_count_one_after_the_other() -> None:
    cluster = snapshot(
        pools=[pool(limits={"cpu": "18"})],
        catalog=BOTH,
        pods=[*pods("big", 3, cpu="7"), *pods("little", 2, cpu="1500m")],
    )

    assert hosts(cluster) == {
        "big-0": "default-0",
        "big-1": "default-1",
        "big-2": "NO_HOST",
        "little-0": "default-2",
        "little-1": "NO_HOST",
    }


def test_claims_of_this_decision_count_against_the_node_limit_at_once() -> None:
    """Karpenter counts them only in the next loop, and makes too many."""
    cluster = snapshot(
        nodes=[node("n", taints=[FULL]), node("going", deleting=True)],
        pools=[pool(limits={"nodes": "2"})],
        catalog=catalog([SMALL]),
        pods=pods("p", 2, cpu="1500m"),
    )

    assert hosts(cluster) == {"p-0": "default-0", "p-1": "NO_HOST"}


def test_pods_that_want_a_node_each_stay_within_the_node_limit() -> None:
    shy = pods("p", 4, labels={"app": "p"}, anti_affinity=[anti_affinity(HOSTNAME, {"app": "p"})])
    pools = [pool("few", weight=9, limits={"nodes": "2"}), pool("many", limits={"nodes": "1"})]

    assert hosts(snapshot(pods=shy, pools=pools)) == {
        "p-0": "few-0",
        "p-1": "few-1",
        "p-2": "many-2",
        "p-3": "NO_HOST",
    }


def test_pods_that_want_a_node_each_stay_within_other_limits_too() -> None:
    shy = pods("p", 4, labels={"app": "p"}, anti_affinity=[anti_affinity(HOSTNAME, {"app": "p"})])
    cluster = snapshot(pods=shy, pools=[pool(limits={"cpu": "4"})], catalog=catalog([SMALL]))

    assert pods_launched(cluster) == [["p-0"], ["p-1"]]


def test_a_pool_without_nodes_left_still_fills_its_claims() -> None:
    cluster = snapshot(pools=[pool(limits={"nodes": "1"})], pods=pods("p", 5))

    assert pods_launched(cluster) == [["p-0", "p-1", "p-2", "p-3", "p-4"]]


def test_a_pool_at_its_limit_makes_way_for_the_next() -> None:
    cluster = snapshot(
        pools=[pool("first", weight=1, limits={"cpu": "2"}), pool("second")],
        catalog=catalog([SMALL]),
        pods=pods("p", 2, cpu="1500m"),
    )

    assert hosts(cluster) == {"p-0": "first-0", "p-1": "second-1"}


def test_each_pool_has_limits_of_its_own() -> None:
    cluster = snapshot(
        pools=[pool("a", limits={"cpu": "2"}), pool("b", limits={"cpu": "2"})],
        catalog=catalog([SMALL]),
        pods=pods("p", 3, cpu="1500m"),
    )

    assert hosts(cluster) == {"p-0": "b-0", "p-1": "a-1", "p-2": "NO_HOST"}


def _reserved(left: int, name: str = "cr", zone: str = ZONE_A) -> Offering:
    return offering(zone, dollars=0.1, reservation=name, left=left)


def _type(*offerings: Offering, name: str = "t", cpu: str = "4") -> InstanceType:
    return instance_type(name, cpu=cpu, offerings=offerings)


# --- holding ---------------------------------------------------------------------------------


def test_a_claim_that_holds_a_reservation_launches_as_reserved() -> None:
    on_sale = catalog([_type(_reserved(1), ON_DEMAND_TOO)])

    launch = only_launch(snapshot(pods=[pod("p")], catalog=on_sale))

    assert launch.reservations == ("cr",)
    assert launch.requirements[CAPACITY_TYPE] == is_in(CAPACITY_TYPE, RESERVED)
    assert launch.requirements[RESERVATION] == is_in(RESERVATION, "cr")
    assert launch.options == (LaunchOption("t", 100_000, ZONE_A, RESERVED),)


def test_a_cloud_without_a_label_for_reservations_has_them_all_the_same() -> None:
    on_sale = replace(catalog([_type(_reserved(1), ON_DEMAND_TOO)]), reservation_label="")

    launch = only_launch(snapshot(pods=[pod("p")], catalog=on_sale))

    assert (launch.reservations, RESERVATION in launch.requirements) == (("cr",), False)


def test_a_claim_holds_every_reservation_it_could_land_on() -> None:
    """No other claim may use one of them, because the cloud chooses which one is used."""
    first = _type(_reserved(1, "x"), _reserved(1, "y", ZONE_B))
    on_sale = catalog([first, _type(_reserved(1, "z"), name="u")])
    cluster = snapshot(pods=pods("p", 2, cpu="3"), catalog=on_sale)

    assert [launch.reservations for launch in launches(cluster)] == [("x", "y", "z")]
    assert hosts(cluster)["p-1"] == "WAITS_FOR_RESERVATION"


def test_a_reservation_that_no_longer_suits_is_given_back() -> None:
    """The second pod narrows the first claim to zone-a; the third gets the other reservation."""
    on_sale = catalog([_type(_reserved(1, "x"), _reserved(1, "y", ZONE_B))])
    cluster = snapshot(
        pods=[pod("p", cpu="3"), pod("narrows", cpu="900m", selector={ZONE: ZONE_A}), pod("late")],
        catalog=on_sale,
    )
    filled = snapshot(pods=[*cluster.pods[:2], pod("late", cpu="800m")], catalog=on_sale)

    assert pods_launched(cluster) == [["p", "narrows", "late"]]
    assert [(each.pods, each.reservations) for each in launches(filled)] == [
        (("default/p", "default/narrows"), ("x",)),
        (("default/late",), ("y",)),
    ]


def test_a_reservation_is_held_by_as_many_claims_as_it_has_machines() -> None:
    on_sale = catalog([_type(_reserved(2), ON_DEMAND_TOO)])
    cluster = snapshot(pods=pods("p", 3, cpu="3"), catalog=on_sale, settings=FALLBACK)

    assert [launch.reservations for launch in launches(cluster)] == [("cr",), ("cr",), ()]


def test_the_least_that_offerings_report_of_a_reservation_counts() -> None:
    on_sale = catalog([_type(_reserved(9), name="x"), _type(_reserved(1, zone=ZONE_B), name="y")])

    assert hosts(snapshot(pods=pods("p", 2, cpu="3"), catalog=on_sale)) == {
        "p-0": "default-0",
        "p-1": "WAITS_FOR_RESERVATION",
    }


def test_an_unavailable_offering_counts_for_the_capacity_of_its_reservation() -> None:
    elsewhere = replace(_reserved(1, zone=ZONE_B), is_available=False)
    on_sale = catalog([_type(_reserved(9), name="x"), _type(elsewhere, name="y")])

    assert hosts(snapshot(pods=pods("p", 2, cpu="3"), catalog=on_sale)) == {
        "p-0": "default-0",
        "p-1": "WAITS_FOR_RESERVATION",
    }


def test_reservations_are_shared_by_pools() -> None:
    on_sale = catalog([_type(_reserved(1), name="a.x"), _type(_reserved(1), name="b.x")])
    pools = [
        pool("a", requirements=[is_in(FAMILY, "a")]),
        pool("b", requirements=[is_in(FAMILY, "b")]),
    ]
    batch = [pod("a", cpu="2", selector={FAMILY: "a"}), pod("b", selector={FAMILY: "b"})]

    assert hosts(snapshot(pods=batch, pools=pools, catalog=on_sale)) == {
        "a": "a-0",
        "b": "WAITS_FOR_RESERVATION",
    }


def test_a_reserved_offering_is_only_an_option_while_it_is_available() -> None:
    gone = offering(ZONE_A, dollars=0.1, reservation="cr", left=5, available=False)

    launch = only_launch(snapshot(pods=[pod("p")], catalog=catalog([_type(gone, ON_DEMAND_TOO)])))

    assert (launch.reservations, [each.capacity_type for each in launch.options]) == (
        (),
        [ON_DEMAND],
    )


# --- waiting ---------------------------------------------------------------------------------


def test_strict_pods_wait_for_a_reservation_that_is_taken_others_go_elsewhere() -> None:
    on_sale = catalog([_type(_reserved(1), ON_DEMAND_TOO)])
    batch = pods("p", 2, cpu="3")

    strict = decide_checked(snapshot(pods=batch, catalog=on_sale, settings=STRICT))

    assert [launch.pods for launch in strict.launches] == [("default/p-0",)]
    assert strict.refusals == (Refusal(Reason.WAITS_FOR_RESERVATION, ("default/p-1",)),)
    assert hosts(snapshot(pods=batch, catalog=on_sale, settings=FALLBACK)) == {
        "p-0": "default-0",
        "p-1": "default-1",
    }


def test_waiting_for_a_reservation_ends_the_search_for_pools_and_the_ladder() -> None:
    on_sale = catalog([_type(_reserved(1)), instance_type("other")])
    wishful = [
        pod(f"p-{i}", cpu="3", prefers=[(1, term(is_in(CAPACITY_TYPE, RESERVED)))]) for i in (0, 1)
    ]
    by_pool = snapshot(
        pods=pods("p", 2, cpu="3"), pools=[RESERVED_ONLY, pool("any")], catalog=on_sale
    )

    assert hosts(by_pool) == {"p-0": "reserved-0", "p-1": "WAITS_FOR_RESERVATION"}
    assert hosts(snapshot(pods=wishful, catalog=on_sale)) == {
        "p-0": "default-0",
        "p-1": "WAITS_FOR_RESERVATION",
    }


def test_a_heavier_pool_that_can_help_spares_the_wait() -> None:
    on_sale = catalog([_type(_reserved(1)), instance_type("other")])
    first = pool("first", weight=99, requirements=[is_in(CAPACITY_TYPE, ON_DEMAND)])
    cluster = snapshot(pods=pods("p", 2, cpu="3"), pools=[RESERVED_ONLY, first], catalog=on_sale)

    assert hosts(cluster) == {"p-0": "first-0", "p-1": "first-1"}


def test_pods_that_cannot_use_the_reservation_do_not_wait_for_it() -> None:
    on_sale = catalog([_type(_reserved(1), ON_DEMAND_TOO)])
    batch = pods("p", 2, cpu="3", selector={CAPACITY_TYPE: ON_DEMAND})

    assert hosts(snapshot(pods=batch, catalog=on_sale)) == {"p-0": "default-0", "p-1": "default-1"}


def test_a_claim_may_not_lose_all_its_reservations() -> None:
    """The second pod no longer fits the reserved type; strict claims refuse it, others go on."""
    small = _type(_reserved(1), name="small", cpu="2")
    large = _type(offering(ZONE_A, dollars=2), name="large", cpu="8")
    batch = [pod("a", cpu="1500m"), pod("b", cpu="1")]
    on_sale = catalog([small, large])

    assert hosts(snapshot(pods=batch, catalog=on_sale, settings=STRICT)) == {
        "a": "default-0",
        "b": "WAITS_FOR_RESERVATION",
    }
    assert hosts(snapshot(pods=batch, catalog=on_sale, settings=FALLBACK)) == {
        "a": "default-0",
        "b": "default-0",
    }


# --- full reservations -----------------------------------------------------------------------


def test_a_full_reservation_does_not_matter_beside_something_else() -> None:
    launch = only_launch(
        snapshot(pods=[pod("p")], catalog=catalog([_type(_reserved(0), ON_DEMAND_TOO)]))
    )

    assert launch.reservations == ()
    assert launch.options == (LaunchOption("t", 1_000_000, ZONE_A, ON_DEMAND),)


@pytest.mark.parametrize(
    ("settings", "host"), [(STRICT, "WAITS_FOR_RESERVATION"), (FALLBACK, "any-0")]
)
def test_only_full_reservations_make_strict_pods_wait_and_others_look_elsewhere(
    settings: Settings, host: str
) -> None:
    on_sale = catalog([_type(_reserved(0)), instance_type("other")])
    cluster = snapshot(
        pods=[pod("p")], pools=[RESERVED_ONLY, pool("any")], catalog=on_sale, settings=settings
    )

    assert hosts(cluster) == {"p": host}


def test_only_full_reservations_and_no_other_pool_refuse_the_pod() -> None:
    cluster = snapshot(pods=[pod("p")], catalog=catalog([_type(_reserved(0))]), settings=FALLBACK)

    assert only_refusal(cluster).reason is Reason.NO_HOST


# --- the gate --------------------------------------------------------------------------------


def test_without_the_gate_nothing_is_reserved() -> None:
    cluster = snapshot(
        pods=pods("p", 2, cpu="3"),
        catalog=catalog([_type(_reserved(2), ON_DEMAND_TOO)]),
        settings=Settings(reserved_capacity=False),
    )

    assert [launch.reservations for launch in launches(cluster)] == [(), ()]


def test_without_the_gate_full_reservations_alone_refuse_the_pod() -> None:
    """No offering can be launched, and minValues do not matter."""
    cluster = snapshot(
        pods=[pod("p")],
        catalog=catalog([_type(_reserved(0))]),
        settings=Settings(reserved_capacity=False),
    )

    assert hosts(cluster) == {"p": "NO_HOST"}


def test_held_reservations_free_a_launch_from_min_values() -> None:
    """minValues are for finding a machine; those of a reservation are certain."""
    picky = pool(requirements=[min_values(exists(FAMILY), 2)])
    on_sale = catalog([_type(_reserved(1), name="a.x"), instance_type("b.x", spot_dollars=0.5)])

    launch = only_launch(snapshot(pods=[pod("p")], pools=[picky], catalog=on_sale))

    assert (launch.reservations, [each.instance_type for each in launch.options]) == (
        ("cr",),
        ["a.x"],
    )


def test_spot_and_reservations_stand_side_by_side() -> None:
    on_sale = catalog([_type(_reserved(1), offering(ZONE_A, SPOT, 0.01))])

    launch = only_launch(snapshot(pods=[pod("p")], catalog=on_sale))

    assert [each.capacity_type for each in launch.options] == [RESERVED]
