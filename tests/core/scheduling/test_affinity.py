"""Section 5: pod affinity."""

import pytest

from karpy.model.constraints import AffinityTerm, LabelSelector
from karpy.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, ZONE
from tests.builders import (
    FAMILY,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    affinity,
    catalog,
    daemon_pod,
    exists,
    instance_type,
    is_in,
    min_values,
    node,
    not_in,
    pod,
    pods,
    pool,
    selecting,
    snapshot,
    spread,
    term,
)
from tests.core.scheduling.answers import hosts, pods_launched, values_launched

WEB = {"app": "web"}
DB = {"app": "db"}
NEAR_WEB = affinity(ZONE, WEB)
TINY = catalog([instance_type("tiny", cpu="1", pods=1)])
BUSY = [node(zone, zone=zone, cpu="0") for zone in (ZONE_A, ZONE_B, ZONE_C)]


# --- following -------------------------------------------------------------------------------


def test_affinity_places_a_pod_in_the_zone_of_the_pods_it_selects() -> None:
    cluster = snapshot(
        nodes=BUSY, pods=[pod("db", labels=DB, on=ZONE_B), pod("p", affinity=[affinity(ZONE, DB)])]
    )

    assert values_launched(cluster, ZONE) == [[ZONE_B]]


def test_affinity_allows_every_zone_with_a_selected_pod() -> None:
    """No single zone is chosen: the launch may still take the cheaper of two."""
    cluster = snapshot(
        nodes=BUSY,
        pods=[
            pod("x", labels=DB, on=ZONE_A),
            pod("y", labels=DB, on=ZONE_C),
            pod("p", affinity=[affinity(ZONE, DB)]),
        ],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_A, ZONE_C]]


def test_affinity_places_a_pod_on_the_host_of_the_pods_it_selects() -> None:
    near = [affinity(HOSTNAME, DB)]
    nodes = [node("a"), node("b", cpu="1")]
    cluster = snapshot(
        nodes=nodes, pods=[pod("db", labels=DB, on="b"), *pods("p", 2, cpu="600m", affinity=near)]
    )

    assert hosts(cluster) == {"p-0": "b", "p-1": "NO_HOST"}


def test_affinity_counts_a_pod_that_is_placed_in_the_same_decision() -> None:
    base = pod("base", cpu="2", labels=DB)
    near = pod("near", affinity=[affinity(HOSTNAME, DB)], selector={FAMILY: "r"})

    assert pods_launched(snapshot(pods=[base, near])) == [["base", "near"]]


def test_all_terms_must_hold() -> None:
    def zones(*terms: AffinityTerm) -> list[list[str]]:
        old = [pod("x", labels=DB, on=ZONE_A), pod("y", labels=DB | WEB, on=ZONE_B)]
        old += [pod("z", labels=WEB, on=ZONE_B)]
        cluster = snapshot(nodes=BUSY, pods=[*old, pod("p", affinity=terms)])
        return values_launched(cluster, ZONE)

    assert zones(affinity(ZONE, DB)) == [[ZONE_A]]
    assert zones(affinity(ZONE, WEB)) == [[ZONE_B]]
    assert zones(affinity(ZONE, DB), affinity(ZONE, WEB)) == []


def test_required_affinity_without_any_selected_pod_refuses_the_pod() -> None:
    nobody = [affinity(ZONE, {"app": "nobody"})]

    assert hosts(snapshot(nodes=[node("n")], pods=[pod("p", affinity=nobody)])) == {"p": "NO_HOST"}


def test_preferred_affinity_without_any_selected_pod_is_dropped() -> None:
    nobody = affinity(HOSTNAME, {"app": "nobody"})

    assert hosts(snapshot(pods=[pod("p", prefers_near=[(1, nobody)])])) == {"p": "default-0"}


def test_preferred_affinity_with_a_selected_pod_is_met() -> None:
    near = [(1, affinity(HOSTNAME, DB))]
    cluster = snapshot(
        nodes=[node("a"), node("b")],
        pods=[pod("db", labels=DB, on="b"), pod("p", prefers_near=near)],
    )

    assert hosts(cluster) == {"p": "b"}


def test_affinity_ignores_pods_in_zones_that_the_pod_cannot_use() -> None:
    near = pod("p", affinity=[affinity(ZONE, DB)], selector=[not_in(ZONE, ZONE_A)])
    cluster = snapshot(nodes=BUSY, pods=[pod("db", labels=DB, on=ZONE_A), near])

    assert hosts(cluster) == {"p": "NO_HOST"}


def test_affinity_and_spread_of_one_key_must_agree() -> None:
    """Two zones have a database; the emptier one of web pods is taken."""
    both = pod("p", labels=WEB, affinity=[affinity(ZONE, DB)], spreads=[spread(ZONE, WEB)])
    cluster = snapshot(
        nodes=BUSY,
        pods=[
            pod("x", labels=DB, on=ZONE_A),
            pod("y", labels=DB, on=ZONE_B),
            pod("w", labels=WEB, on=ZONE_A),
            both,
        ],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_B]]


# --- starting --------------------------------------------------------------------------------


def test_pods_that_select_themselves_start_in_one_zone_and_stay_there() -> None:
    """Karpenter leaves two zones open to the first pod; later pods may break the affinity."""
    batch = pods("web", 3, labels=WEB, affinity=[NEAR_WEB])

    assert values_launched(snapshot(pods=batch, catalog=TINY), ZONE) == [[ZONE_A]] * 3


def test_pods_that_select_themselves_start_on_one_host_and_stay_there() -> None:
    batch = pods("web", 3, cpu="2", labels=WEB, affinity=[affinity(HOSTNAME, WEB)])
    eight = catalog([instance_type("eight", cpu="8")])

    assert pods_launched(snapshot(pods=batch, catalog=eight)) == [["web-0", "web-1", "web-2"]]
    assert hosts(snapshot(pods=[*batch, *pods("x", 2, cpu="1", labels=WEB)], catalog=eight)) == {
        "web-0": "default-0",
        "web-1": "default-0",
        "web-2": "default-0",
        "x-0": "default-0",
        "x-1": "default-0",
    }


def test_a_host_that_is_full_ends_the_group() -> None:
    batch = pods("web", 3, cpu="2", labels=WEB, affinity=[affinity(HOSTNAME, WEB)])
    four = catalog([instance_type("four", cpu="4")])

    assert hosts(snapshot(pods=batch, catalog=four)) == {
        "web-0": "default-0",
        "web-1": "default-0",
        "web-2": "NO_HOST",
    }


def test_the_next_zone_is_tried_when_the_first_has_no_type() -> None:
    types = [
        instance_type("small", cpu="1", zones=[ZONE_A]),
        instance_type("large", cpu="8", zones=[ZONE_B]),
    ]
    big = pod("big", cpu="4", labels=WEB, affinity=[NEAR_WEB])

    assert values_launched(snapshot(pods=[big], catalog=catalog(types)), ZONE) == [[ZONE_B]]


def test_a_pod_starts_a_group_within_its_node_selector() -> None:
    batch = pods("web", 2, labels=WEB, affinity=[NEAR_WEB], terms=[term(is_in(ZONE, ZONE_C))])

    assert values_launched(snapshot(pods=batch, catalog=TINY), ZONE) == [[ZONE_C], [ZONE_C]]


def test_a_pod_starts_a_group_on_an_existing_node_if_possible() -> None:
    batch = pods("web", 2, labels=WEB, affinity=[NEAR_WEB])

    assert hosts(snapshot(nodes=[node("n", zone=ZONE_C, pods=1)], pods=batch, catalog=TINY)) == {
        "web-0": "n",
        "web-1": "default-0",
    }


def test_a_pod_starts_a_group_on_an_existing_host_if_possible() -> None:
    batch = pods("web", 2, labels=WEB, affinity=[affinity(HOSTNAME, WEB)])

    assert hosts(snapshot(nodes=[node("a"), node("b")], pods=batch)) == {"web-0": "a", "web-1": "a"}


def test_a_pod_starts_no_group_while_a_selected_pod_runs_where_it_cannot_go() -> None:
    """kube-scheduler does not bind the pod; Karpenter launches a node in vain."""
    late = pod("web", labels=WEB, affinity=[NEAR_WEB], selector={ZONE: ZONE_C})
    cluster = snapshot(nodes=BUSY, pods=[pod("old", labels=WEB, on=ZONE_B), late])

    assert hosts(cluster) == {"web": "NO_HOST"}


def test_a_pod_starts_no_group_while_an_equal_pod_stays_on_a_deleting_node() -> None:
    """Until the node is gone, kube-scheduler counts the daemon and requires its host."""
    near_host = pod("p", labels=WEB, affinity=[affinity(HOSTNAME, WEB)])
    cluster = snapshot(
        nodes=[node("old", deleting=True), node("new")],
        pods=[daemon_pod("d", labels=WEB, on="old"), near_host],
    )

    assert hosts(cluster) == {"p": "NO_HOST"}


def test_a_pod_starts_no_group_while_an_equal_pod_is_in_a_domain_of_a_deleting_node() -> None:
    near_team = pod("p", labels=WEB, affinity=[affinity("team", WEB)])
    cluster = snapshot(
        nodes=[
            node("old", labels={"team": "blue"}, deleting=True),
            node("new", labels={"team": "green"}),
        ],
        pods=[daemon_pod("d", labels=WEB, on="old"), near_team],
    )

    assert hosts(cluster) == {"p": "NO_HOST"}


def test_a_pod_that_does_not_select_itself_starts_no_group() -> None:
    batch = [pod("p", labels=DB, affinity=[NEAR_WEB])]

    assert hosts(snapshot(pods=batch)) == {"p": "NO_HOST"}


# --- pods that other pods must be near -------------------------------------------------------


def test_a_pod_that_other_pods_must_be_near_gets_one_domain() -> None:
    """Karpenter leaves the zone open, does not count the pod, and refuses the other pods."""
    base = pod("base", cpu="4", labels=DB, selector={FAMILY: "m"})
    near = pod("near", affinity=[affinity(ZONE, DB)], selector={FAMILY: "c"})

    assert values_launched(snapshot(pods=[base, near]), ZONE) == [[ZONE_A], [ZONE_A]]


def test_a_pod_that_fits_no_single_domain_keeps_several() -> None:
    """minValues require two zones, so that a pod that must be near waits until the node exists."""
    varied = pool(requirements=[min_values(exists(ZONE), 2)])
    base = pod("base", cpu="4", labels=DB, selector={FAMILY: "m"})
    near = pod("near", affinity=[affinity(ZONE, DB)], selector={FAMILY: "c"})
    cluster = snapshot(pods=[base, near], pools=[varied])

    assert hosts(cluster) == {"base": "default-0", "near": "NO_HOST"}


def test_a_pod_that_other_pods_only_prefer_to_be_near_keeps_all_domains() -> None:
    base = pod("base", cpu="4", labels=DB, selector={FAMILY: "m"})
    near = pod("near", prefers_near=[(1, affinity(ZONE, DB))], selector={FAMILY: "c"})

    assert values_launched(snapshot(pods=[base, near]), ZONE) == [[], []]


def test_a_pod_that_other_pods_must_be_near_by_capacity_type_gets_one() -> None:
    base = pod("base", cpu="4", labels=DB, selector={FAMILY: "m"})
    asked = {FAMILY: "c", CAPACITY_TYPE: ON_DEMAND}
    near = pod("near", affinity=[affinity(CAPACITY_TYPE, DB)], selector=asked)

    assert hosts(snapshot(pods=[base, near]))["near"] == "NO_HOST"
    assert values_launched(snapshot(pods=[base, pod("q", affinity=near.rules.affinity)]), ZONE) == [
        []
    ]


# --- pods that a term selects ----------------------------------------------------------------


PROD = selecting({"kind": "prod"})


@pytest.mark.parametrize(
    ("near", "is_placed"),
    [
        (affinity(ZONE, WEB), False),
        (affinity(ZONE, WEB, namespaces=["shop"]), True),
        (affinity(ZONE, WEB, namespaces=["lab", "shop"]), True),
        (affinity(ZONE, WEB, namespaces=["lab"]), False),
        (affinity(ZONE, WEB, namespace_selector=PROD), True),
        (affinity(ZONE, WEB, namespace_selector=LabelSelector()), True),
        (affinity(ZONE, WEB, namespaces=["lab"], namespace_selector=PROD), True),
        (affinity(ZONE, WEB, namespace_selector=selecting({"kind": "none"})), False),
        (affinity(ZONE, WEB, namespace_selector=selecting({}, exists("kind"))), True),
        (affinity(ZONE, None, namespaces=["shop"]), False),
        (affinity(ZONE, LabelSelector(), namespaces=["shop"]), True),
        (affinity(ZONE, selecting({}, not_in("app", "web")), namespaces=["shop"]), False),
    ],
)
def test_namespaces_are_named_or_selected_or_the_pods_own(
    near: AffinityTerm, *, is_placed: bool
) -> None:
    cluster = snapshot(
        nodes=[node("n")],
        pods=[pod("web", namespace="shop", labels=WEB, on="n"), pod("p", affinity=[near])],
        namespaces={"default": {}, "shop": {"kind": "prod"}, "lab": {"kind": "test"}},
    )

    assert hosts(cluster) == {"p": "n" if is_placed else "NO_HOST"}


def test_match_label_keys_look_for_the_pods_own_values() -> None:
    near = affinity(HOSTNAME, WEB, match_label_keys=["hash", "absent"])
    nodes = [node("a"), node("b")]
    old = [
        pod("x", labels=WEB | {"hash": "1"}, on="a"),
        pod("y", labels=WEB | {"hash": "2"}, on="b"),
    ]
    follower = pod("p", labels=DB | {"hash": "2"}, affinity=[near])

    assert hosts(snapshot(nodes=nodes, pods=[*old, follower])) == {"p": "b"}


def test_mismatch_label_keys_look_for_other_values() -> None:
    near = affinity(HOSTNAME, WEB, mismatch_label_keys=["hash"])
    nodes = [node("a"), node("b")]
    old = [
        pod("x", labels=WEB | {"hash": "1"}, on="a"),
        pod("y", labels=WEB | {"hash": "2"}, on="b"),
    ]
    follower = pod("p", labels=DB | {"hash": "1"}, affinity=[near])

    assert hosts(snapshot(nodes=nodes, pods=[*old, follower])) == {"p": "b"}


def test_affinity_on_a_custom_key_needs_nodes_and_pools_that_define_it() -> None:
    near = pod("p", affinity=[affinity("rack", DB)], selector={ARCH: "amd64"})
    nodes = [node("n", labels={"rack": "1"}, cpu="0"), node("unracked")]
    pools = [pool("plain", weight=9), pool("racked", requirements=[is_in("rack", "1", "2")])]
    cluster = snapshot(nodes=nodes, pods=[pod("db", labels=DB, on="n"), near], pools=pools)

    assert hosts(cluster) == {"p": "racked-0"}
    assert values_launched(cluster, "rack") == [["1"]]
