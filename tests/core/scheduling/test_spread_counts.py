"""Section 5: topology spread, which pods on which nodes are counted."""

import pytest

from karpy.model.constraints import PREFER_NO_SCHEDULE, LabelSelector, SpreadConstraint
from karpy.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE
from karpy.model.requirements import Requirement
from tests.builders import (
    CPUS,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    affinity,
    catalog,
    daemon_pod,
    exists,
    instance_type,
    is_in,
    node,
    not_in,
    pod,
    pods,
    pool,
    selecting,
    snapshot,
    spread,
    taint,
    term,
    tolerate,
)
from tests.core.scheduling.answers import hosts, pods_launched, values_launched

WEB = {"app": "web"}
TINY = catalog([instance_type("tiny", cpu="1", pods=1)])
BY_ZONE = spread(ZONE, WEB)


def test_counted_are_active_bound_pods_of_the_namespace() -> None:
    """If any other pod were counted, zone-a would be fuller than zone-b."""
    web = pod("p", labels=WEB, spreads=[BY_ZONE])
    cluster = snapshot(
        nodes=[node("a", zone=ZONE_A, cpu="0")],
        pods=[
            pod("leaving", labels=WEB, on="a", deleting=True),
            pod("done", labels=WEB, on="a", phase="Succeeded"),
            pod("other", labels={"app": "db"}, on="a"),
            pod("foreign", labels=WEB, on="a", namespace="shop"),
            pod("lost", labels=WEB, on="gone"),
            pod("early", labels=WEB, unschedulable=False),
            web,
        ],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_A]]


def test_a_pod_that_moves_is_counted_where_it_goes_not_where_it_was() -> None:
    cluster = snapshot(
        nodes=[node("old", zone=ZONE_A, deleting=True)],
        pods=[pod("moves", labels=WEB, on="old", spreads=[BY_ZONE])],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_A]]


def test_a_daemon_on_a_deleting_node_is_counted_to_the_end() -> None:
    """The daemon is not placed again, and kube-scheduler counts it until it is gone."""
    cluster = snapshot(
        nodes=[node("old", zone=ZONE_A, deleting=True)],
        pods=[daemon_pod("d", labels=WEB, on="old"), pod("p", labels=WEB, spreads=[BY_ZONE])],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_B]]


def test_a_node_without_the_label_does_not_count() -> None:
    cluster = snapshot(
        nodes=[node("n", labels={ZONE: ""}, cpu="0")],
        pods=[pod("old", labels=WEB, on="n"), pod("p", labels=WEB, spreads=[BY_ZONE])],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_A]]


def test_a_placed_pod_counts_once_its_domain_is_certain() -> None:
    """The claim of `free` allows any zone; the claim in zone-a does not."""
    free = pod("free", labels=WEB, cpu="4")
    pinned = pod("pinned", labels=WEB, cpu="4", selector={ZONE: ZONE_A})
    web = pod("p", labels=WEB, spreads=[BY_ZONE])
    one = catalog([instance_type("four", cpu="4")])

    assert values_launched(snapshot(pods=[free, web], catalog=one), ZONE) == [[], [ZONE_A]]
    assert values_launched(snapshot(pods=[pinned, web], catalog=one), ZONE) == [[ZONE_A], [ZONE_B]]


def test_a_placed_pod_counts_as_soon_as_a_later_pod_decides_the_domain_of_its_claim() -> None:
    """Karpenter never counts the pod, because its zone was open when it was placed."""
    free = pod("free", labels=WEB, cpu="3")
    settles = pod("settles", cpu="900m", selector={ZONE: ZONE_A})
    web = pod("p", labels=WEB, spreads=[BY_ZONE])
    one = catalog([instance_type("four", cpu="4", pods=2)])

    cluster = snapshot(pods=[free, settles, web], catalog=one)

    assert values_launched(cluster, ZONE) == [[ZONE_A], [ZONE_B]]


def test_a_pod_counts_for_spreads_it_does_not_have_itself() -> None:
    nodes = [node("a", zone=ZONE_A, cpu="1"), node("b", zone=ZONE_B, cpu="1")]
    plain = pod("plain", labels=WEB, cpu="900m")
    web = pod("web", labels=WEB, cpu="50m", spreads=[spread(HOSTNAME, WEB)])

    assert hosts(snapshot(nodes=nodes, pods=[plain, web])) == {"plain": "a", "web": "b"}


# --- selectors -------------------------------------------------------------------------------


def test_a_spread_without_a_selector_counts_no_pod_and_still_needs_one_domain() -> None:
    batch = pods("web", 2, labels=WEB, spreads=[spread(ZONE, None)])

    assert values_launched(snapshot(pods=batch, catalog=TINY), ZONE) == [[ZONE_A], [ZONE_A]]


def test_an_empty_selector_counts_every_pod_of_the_namespace() -> None:
    batch = [
        pod("a", labels={"x": "1"}, spreads=[spread(HOSTNAME, LabelSelector())]),
        pod("b", spreads=[spread(HOSTNAME, LabelSelector())]),
        pod("c", namespace="shop", spreads=[spread(HOSTNAME, LabelSelector())]),
    ]

    assert hosts(snapshot(pods=batch)) == {"a": "default-0", "b": "default-1", "c": "default-0"}


@pytest.mark.parametrize(
    ("rule", "launches"),
    [
        (spread(HOSTNAME, selecting({}, exists("app"))), 2),
        (spread(HOSTNAME, selecting({}, not_in("app", "db"))), 2),
        (spread(HOSTNAME, selecting({}, is_in("app", "web", "db"))), 2),
        (spread(HOSTNAME, selecting({"app": "web"}, exists("track"))), 1),
    ],
)
def test_a_selector_may_have_expressions(rule: SpreadConstraint, launches: int) -> None:
    batch = pods("web", 2, labels=WEB, spreads=[rule])

    assert len(pods_launched(snapshot(pods=batch))) == launches


def test_match_label_keys_spread_each_revision_on_its_own() -> None:
    """Keys that the pod does not carry are ignored."""
    rule = spread(HOSTNAME, WEB, match_label_keys=["hash", "absent"])
    batch = [
        *pods("a", 2, labels={**WEB, "hash": "1"}, spreads=[rule]),
        *pods("b", 2, labels={**WEB, "hash": "2"}, spreads=[rule]),
    ]

    assert hosts(snapshot(pods=batch)) == {
        "a-0": "default-0",
        "a-1": "default-1",
        "b-0": "default-0",
        "b-1": "default-1",
    }


# --- policies --------------------------------------------------------------------------------


def _zones_of_red(*, honors_affinity: bool) -> list[list[str]]:
    """Place a pod for red nodes while one like it runs on a blue node in zone-a."""
    rule = spread(ZONE, WEB, honors_affinity=honors_affinity)
    cluster = snapshot(
        nodes=[node("n", zone=ZONE_A, labels={"team": "blue"}, cpu="0")],
        pools=[pool(labels={"team": "red"})],
        pods=[
            pod("old", labels=WEB, on="n"),
            pod("p", labels=WEB, spreads=[rule], selector={"team": "red"}),
        ],
    )
    return values_launched(cluster, ZONE)


def test_nodes_the_pod_cannot_use_count_only_if_affinity_is_ignored() -> None:
    assert _zones_of_red(honors_affinity=True) == [[ZONE_A]]
    assert _zones_of_red(honors_affinity=False) == [[ZONE_B]]


def test_any_of_the_required_terms_lets_a_node_count() -> None:
    terms = [term(is_in("team", "red")), term(is_in("team", "blue"))]
    cluster = snapshot(
        nodes=[node("n", zone=ZONE_A, labels={"team": "blue"}, cpu="0")],
        pools=[pool(labels={"team": "red"})],
        pods=[pod("old", labels=WEB, on="n"), pod("p", labels=WEB, spreads=[BY_ZONE], terms=terms)],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_B]]


def test_a_term_that_was_dropped_still_lets_nodes_count() -> None:
    """kube-scheduler reads all terms; the pod cannot go to blue nodes, but one of them counts."""
    terms = [term(is_in("team", "blue")), term(is_in("team", "red"))]
    cluster = snapshot(
        nodes=[node("n", zone=ZONE_A, labels={"team": "blue"}, cpu="0")],
        pools=[pool(labels={"team": "red"})],
        pods=[pod("old", labels=WEB, on="n"), pod("p", labels=WEB, spreads=[BY_ZONE], terms=terms)],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_B]]


def test_the_minimum_is_over_all_zones_if_affinity_is_ignored() -> None:
    """As in kube-scheduler, zone-c counts for the minimum, although the pod cannot go there."""
    only = [not_in(ZONE, ZONE_C)]

    def placed(*, honors_affinity: bool) -> int:
        rule = spread(ZONE, WEB, honors_affinity=honors_affinity)
        batch = pods("web", 4, labels=WEB, spreads=[rule], selector=only)
        return len(pods_launched(snapshot(pods=batch, catalog=TINY)))

    assert placed(honors_affinity=True) == 4
    assert placed(honors_affinity=False) == 2


def test_zones_behind_a_taint_count_unless_taints_are_honoured() -> None:
    pools = [
        pool("open", requirements=[is_in(ZONE, ZONE_A)]),
        pool("closed", requirements=[is_in(ZONE, ZONE_B)], taints=[taint("closed")]),
    ]

    def placed(rule: SpreadConstraint, **more: bool) -> int:
        tolerations = [tolerate("closed")] if more.get("tolerates") else []
        batch = pods("web", 3, labels=WEB, spreads=[rule], tolerations=tolerations)
        return len(pods_launched(snapshot(pods=batch, pools=pools, catalog=TINY)))

    assert placed(BY_ZONE) == 1
    assert placed(spread(ZONE, WEB, honors_taints=True)) == 3
    assert placed(spread(ZONE, WEB, honors_taints=True), tolerates=True) == 3


def test_pods_on_tainted_nodes_count_unless_taints_are_honoured() -> None:
    def zones(rule: SpreadConstraint) -> list[list[str]]:
        cluster = snapshot(
            nodes=[node("n", zone=ZONE_A, taints=[taint("closed")])],
            pods=[pod("old", labels=WEB, on="n"), pod("p", labels=WEB, spreads=[rule])],
        )
        return values_launched(cluster, ZONE)

    assert zones(BY_ZONE) == [[ZONE_B]]
    assert zones(spread(ZONE, WEB, honors_taints=True)) == [[ZONE_A]]


def test_pods_on_nodes_with_soft_taints_are_counted() -> None:
    """kube-scheduler checks hard taints only; Karpenter checks soft ones, too."""
    soft = [taint("please", effect=PREFER_NO_SCHEDULE)]
    rule = spread(ZONE, WEB, honors_taints=True)
    cluster = snapshot(
        nodes=[node("n", zone=ZONE_A, taints=soft)],
        pods=[pod("old", labels=WEB, on="n"), pod("p", labels=WEB, spreads=[rule])],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_B]]


def test_a_zone_of_tainted_nodes_alone_counts_unless_taints_are_honoured() -> None:
    def placed(rule: SpreadConstraint) -> int:
        nodes = [node("n", zone="zone-z", taints=[taint("closed")])]
        batch = pods("web", 4, labels=WEB, spreads=[rule])
        return len(pods_launched(snapshot(nodes=nodes, pods=batch, catalog=TINY)))

    assert placed(BY_ZONE) == 3
    assert placed(spread(ZONE, WEB, honors_taints=True)) == 4


def test_a_claim_counts_for_a_spread_if_it_requires_what_the_node_filter_requires() -> None:
    """The claim of `first` may become spot, but only `asked` requires it."""
    second = pod("second", labels=WEB, spreads=[BY_ZONE], selector={CAPACITY_TYPE: SPOT})

    def zones(asked: dict[str, str]) -> list[list[str]]:
        first = pod("first", cpu="2", labels=WEB, selector={ZONE: ZONE_A, **asked})
        return values_launched(snapshot(pods=[first, second]), ZONE)

    assert zones({CAPACITY_TYPE: SPOT}) == [[ZONE_A], [ZONE_B]]
    assert zones({}) == [[ZONE_A]]
    assert zones({CAPACITY_TYPE: ON_DEMAND}) == [[ZONE_A], [ZONE_A]]


@pytest.mark.parametrize(
    ("asked", "launches"),
    [
        (is_in(ZONE, ZONE_C), [["first", "second"]]),
        (is_in(CPUS, "8"), [["first", "second"]]),
        (not_in(ZONE, ZONE_C), [["first"], ["second"]]),
    ],
    ids=str,
)
def test_a_pod_joins_a_claim_without_a_requirement_on_a_label_that_the_pod_requires(
    asked: Requirement, launches: list[list[str]]
) -> None:
    """The spread does not count the pod on the claim, unless the required label may be absent."""
    first = pod("first", labels=WEB, cpu="2")
    second = pod("second", labels=WEB, terms=[term(asked)], spreads=[spread(HOSTNAME, WEB)])

    assert pods_launched(snapshot(pods=[first, second])) == launches


def test_a_soft_spread_launches_no_second_node_beside_a_claim_that_it_does_not_count() -> None:
    """The claim of `first` is in one zone because of its affinity, but requires no architecture."""
    first = pod("first", labels=WEB, cpu="2", prefers_near=[(10, affinity(ZONE, WEB))])
    soft = spread(ZONE, WEB, soft=True)
    second = pod("second", labels=WEB, selector={ARCH: "amd64"}, spreads=[soft])

    assert values_launched(snapshot(pods=[first, second]), ZONE) == [[ZONE_A]]


def test_spreads_that_differ_in_min_domains_are_counted_apart() -> None:
    """Karpenter applies the minDomains of the first spread to both."""
    strict, lenient = spread(ZONE, WEB, min_domains=4), spread(ZONE, WEB)
    nodes = [node(zone, zone=zone, cpu="0") for zone in (ZONE_A, ZONE_B, ZONE_C)]
    old = [pod(f"old-{each.name}", labels=WEB, on=each.name) for each in nodes]
    batch = [pod("a", labels=WEB, spreads=[strict]), pod("b", labels=WEB, spreads=[lenient])]

    assert hosts(snapshot(nodes=nodes, pods=[*old, *batch])) == {"a": "NO_HOST", "b": "default-0"}
