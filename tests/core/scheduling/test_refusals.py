"""Why a pod fits nowhere: what excludes how many types, what decides, what nearly fits."""

import pytest
from msgspec.structs import replace

from karpy.model.labels import HOSTNAME, ZONE
from karpy.model.pods import HostPort
from karpy.model.verdicts import (
    Constraint,
    Exclusion,
    NearMiss,
    PoolRefusal,
    Reason,
    Refusal,
)
from tests.builders import (
    DRIVER,
    FAMILY,
    ZONE_A,
    ZONE_B,
    affinity,
    anti_affinity,
    catalog,
    daemon,
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
    spread,
    storage,
    taint,
    term,
    volume_claim,
)
from tests.core.scheduling.answers import (
    decide_checked,
    only_pool_refusal,
    only_refusal,
)

WEB = {"app": "web"}


# --- the tree --------------------------------------------------------------------------------


def test_a_refusal_counts_what_each_constraint_excludes_on_its_own() -> None:
    """
    Four of twelve types are of family c, three have 16 CPUs; one is both, but beyond the limit.

    Asking for less CPU would open three types, a higher limit just that one.
    """
    cluster = snapshot(
        pods=[pod("p", cpu="15", memory="1Gi", selector={FAMILY: "c"})],
        pools=[pool(limits={"cpu": "8"})],
    )
    family = Exclusion(Constraint.REQUIREMENT, f"{FAMILY} In [c]", 8)
    cpu = Exclusion(Constraint.RESOURCE, "cpu: 15 asked, 15900m is the most a type leaves", 9)
    limit = Exclusion(Constraint.LIMIT, "cpu: 8 left of 8", 3)

    assert only_refusal(cluster) == Refusal(
        Reason.NO_HOST,
        ("default/p",),
        pools=(
            PoolRefusal(
                "default",
                decisive=cpu,
                is_single=True,
                types=12,
                exclusions=(family, cpu, limit),
                nearest=NearMiss("c.4xlarge", ("cpu: 8 left of 8",)),
            ),
        ),
    )


def test_without_a_single_cause_the_worst_is_named() -> None:
    cluster = snapshot(
        pods=[pod("p", cpu="17", selector={FAMILY: "c"})], pools=[pool(taints=[taint("x")])]
    )

    refused = only_pool_refusal(cluster)

    assert (refused.decisive.constraint, refused.is_single) == (Constraint.TAINT, False)
    assert [each.constraint for each in refused.exclusions] == [
        Constraint.TAINT,
        Constraint.REQUIREMENT,
        Constraint.RESOURCE,
    ]


def test_the_decisive_constraint_is_the_one_whose_end_opens_most_types() -> None:
    """Without the selector two types would do, with less memory only one."""
    cluster = snapshot(
        pods=[pod("p", cpu="15", memory="20Gi", selector={FAMILY: "c"})],
        catalog=catalog(
            [
                instance_type("c.small", cpu="16", memory="16Gi"),
                instance_type("m.one", cpu="16", memory="32Gi"),
                instance_type("m.two", cpu="16", memory="32Gi"),
            ]
        ),
    )

    refused = only_pool_refusal(cluster)

    assert (refused.decisive.constraint, refused.is_single) == (Constraint.REQUIREMENT, True)


def test_the_nearest_miss_fails_the_fewest_constraints_then_has_the_most_room() -> None:
    types = [
        instance_type("c.small", cpu="2", memory="4Gi"),
        instance_type("c.large", cpu="8", memory="16Gi"),
        instance_type("m.huge", cpu="9", memory="64Gi"),
    ]
    cluster = snapshot(pods=[pod("p", cpu="10", selector={FAMILY: "c"})], catalog=catalog(types))

    assert only_pool_refusal(cluster).nearest == NearMiss(
        "c.large", ("cpu: 10 asked, 9 is the most a type leaves",)
    )


def test_daemons_are_named_where_the_pod_would_fit_without_them() -> None:
    types = catalog([instance_type("t", cpu="4")])
    daemons = [daemon("agent", cpu="2")]
    fits_alone = snapshot(pods=[pod("p", cpu="3")], daemons=daemons, catalog=types)
    never_fits = snapshot(pods=[pod("p", cpu="5")], daemons=daemons, catalog=types)

    assert [only_pool_refusal(each).decisive.detail for each in (fits_alone, never_fits)] == [
        "cpu: 3 asked, 2 is the most a type leaves, DaemonSets take 2",
        "cpu: 5 asked, 2 is the most a type leaves",
    ]


def test_the_nearest_miss_may_lack_several_things_if_all_do() -> None:
    """One type fails two constraints, the other three."""
    types = [
        instance_type("c.near", cpu="2", memory="4Gi"),
        instance_type("m.far", cpu="4", memory="8Gi"),
    ]
    cluster = snapshot(
        pods=[pod("p", cpu="10", memory="10Gi", selector={FAMILY: "c"})], catalog=catalog(types)
    )

    nearest = only_pool_refusal(cluster).nearest

    assert nearest == NearMiss(
        "c.near",
        (
            "cpu: 10 asked, 4 is the most a type leaves",
            "memory: 10Gi asked, 8Gi is the most a type leaves",
        ),
    )


def test_the_nearest_miss_always_lacks_something() -> None:
    cluster = snapshot(
        pods=[pod("p", selector={FAMILY: "m"})],
        pools=[pool(requirements=[min_values(exists(FAMILY), 2)])],
    )

    nearest = only_pool_refusal(cluster).nearest

    assert nearest is not None
    assert nearest.lacks != ()


def test_every_pool_says_why_heaviest_first_then_those_that_take_no_part() -> None:
    cluster = snapshot(
        pods=[pod("p", selector={"foo": "a"})],
        pools=[
            pool("light"),
            pool("heavy", weight=9, taints=[taint("x")]),
            pool("empty", requirements=[is_in(FAMILY, "x")]),
            pool("static", weight=99, static=True),
        ],
    )

    assert [(each.pool, each.is_single, each.types) for each in only_refusal(cluster).pools] == [
        ("heavy", False, 12),
        ("light", True, 12),
        ("static", False, 0),
        ("empty", False, 12),
    ]


def test_pods_that_are_alike_share_a_refusal_others_do_not() -> None:
    cluster = snapshot(pods=[*pods("a", 3, cpu="17"), *pods("b", 2, cpu="18")])

    assert [each.pods for each in decide_checked(cluster).refusals] == [
        ("default/b-0", "default/b-1"),
        ("default/a-0", "default/a-1", "default/a-2"),
    ]


def test_pods_that_differ_only_in_what_does_not_matter_are_explained_alike() -> None:
    first = pod("a", cpu="17", labels={"i": "1"}, more={"example.com/gpu": "0"})
    second = replace(first, name="b", uid="b", labels={"i": "2"})

    one, two = decide_checked(snapshot(pods=[first, second])).refusals

    assert (one.pods, two.pods) == (("default/b",), ("default/a",))
    assert one.pools == two.pools


def test_the_last_step_of_the_ladder_is_explained() -> None:
    """Dropped preferences are no reason to stay pending."""
    wishful = pod("p", cpu="17", prefers=[(1, term(is_in(FAMILY, "x")))])

    refused = only_pool_refusal(snapshot(pods=[wishful]))

    assert [each.constraint for each in refused.exclusions] == [Constraint.RESOURCE]


def test_a_type_with_overrides_counts_once() -> None:
    kind = instance_type("t", offerings=[offering(ZONE_A), offering(ZONE_B, capacity={"cpu": "6"})])

    refused = only_pool_refusal(snapshot(pods=[pod("p", cpu="7")], catalog=catalog([kind])))

    assert (refused.types, refused.decisive.count) == (1, 1)


# --- existing nodes --------------------------------------------------------------------------


def test_existing_nodes_are_counted_by_the_first_reason_they_give() -> None:
    cluster = snapshot(
        nodes=[
            node("tainted", taints=[taint("x")], zone=ZONE_B),
            node("elsewhere", zone=ZONE_B, cpu="0"),
            node("full-1", cpu="1"),
            node("full-2", cpu="1"),
            node("busy"),
            node("going", deleting=True),
        ],
        pods=[
            pod("old", on="busy", ports=[HostPort(80)]),
            pod("p", cpu="2", selector={ZONE: ZONE_A}, ports=[HostPort(80)]),
        ],
        pools=[],
    )

    assert only_refusal(cluster).nodes == (
        Exclusion(Constraint.TAINT, "", 1),
        Exclusion(Constraint.REQUIREMENT, "", 1),
        Exclusion(Constraint.RESOURCE, "", 2),
        Exclusion(Constraint.HOST_PORT, "", 1),
    )


NODE_CAUSES = {
    "spread over hosts": (
        Constraint.SPREAD,
        [pod("old", labels=WEB, on="n"), pod("p", labels=WEB, spreads=[spread(HOSTNAME, WEB)])],
    ),
    "affinity to hosts": (Constraint.AFFINITY, [pod("p", affinity=[affinity(HOSTNAME, WEB)])]),
    "anti-affinity of hosts": (
        Constraint.ANTI_AFFINITY,
        [pod("old", labels=WEB, on="n"), pod("p", anti_affinity=[anti_affinity(HOSTNAME, WEB)])],
    ),
    "spread over racks": (
        Constraint.SPREAD,
        [pod("p", labels=WEB, spreads=[spread("rack", WEB)])],
    ),
    "affinity to zones": (Constraint.AFFINITY, [pod("p", affinity=[affinity(ZONE, WEB)])]),
    "anti-affinity of zones": (
        Constraint.ANTI_AFFINITY,
        [pod("old", labels=WEB, on="n"), pod("p", anti_affinity=[anti_affinity(ZONE, WEB)])],
    ),
    "oversold": (
        Constraint.RESOURCE,
        [pod("old", on="n", cpu="999"), pod("p", cpu="0")],
    ),
    "volume limit": (Constraint.VOLUME_LIMIT, [pod("p", claims=["c"])]),
}


@pytest.mark.parametrize("cause", NODE_CAUSES)
def test_a_refusal_names_the_topology_rule_that_excludes_a_node(cause: str) -> None:
    constraint, batch = NODE_CAUSES[cause]
    cluster = snapshot(
        nodes=[node("n", volume_limits={DRIVER: 0})],
        pods=batch,
        pools=[],
        storage=storage(volume_claim("c")),
    )

    assert only_refusal(cluster).nodes == (Exclusion(constraint, "", 1),)
