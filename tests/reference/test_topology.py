"""Section 5: spreads, affinity, anti-affinity."""

from typing import Unpack

from karpy.model.constraints import LabelSelector
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE
from karpy.model.pods import Pod
from tests.builders import (
    FAMILY,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    PodFields,
    SpreadFields,
    TermFields,
    affinity,
    anti_affinity,
    catalog,
    instance_type,
    is_in,
    node,
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
from tests.reference.answers import hosts, values_launched
from tests.reference.solver import solve

WEB = {"app": "web"}
TINY = catalog([instance_type("tiny", cpu="1", pods=1)])


def _webs(count: int, **fields: Unpack[PodFields]) -> list[Pod]:
    fields["labels"] = WEB
    return pods("web", count, **fields)


# --- spreads ---------------------------------------------------------------------------------


def test_a_spread_over_zones_fills_the_emptiest_zone_then_the_first_by_name() -> None:
    cluster = snapshot(
        nodes=[node("n", zone=ZONE_A, cpu="100m")],
        pods=[pod("old", labels=WEB, on="n"), *_webs(5, spreads=[spread(ZONE, WEB)])],
        catalog=TINY,
    )

    assert values_launched(cluster, ZONE) == [[ZONE_B], [ZONE_C], [ZONE_A], [ZONE_B], [ZONE_C]]


def test_a_spread_over_hosts_allows_each_host_its_skew() -> None:
    cluster = snapshot(pods=_webs(5, spreads=[spread(HOSTNAME, WEB, max_skew=2)]))

    assert [len(launch.pods) for launch in solve(cluster).launches] == [2, 2, 1]


def test_the_minimum_is_taken_over_the_domains_the_pod_can_use() -> None:
    only = [term(is_in(ZONE, ZONE_A, ZONE_B))]
    cluster = snapshot(pods=_webs(4, spreads=[spread(ZONE, WEB)], terms=only), catalog=TINY)

    assert values_launched(cluster, ZONE) == [[ZONE_A], [ZONE_B], [ZONE_A], [ZONE_B]]


def test_too_few_domains_make_the_minimum_zero() -> None:
    rule = spread(ZONE, WEB, min_domains=4)

    assert hosts(snapshot(pods=_webs(4, spreads=[rule]), catalog=TINY)) == {
        "web-0": "default#0",
        "web-1": "default#1",
        "web-2": "default#2",
        "web-3": "NO_HOST",
    }


def test_a_spread_pins_even_pods_it_does_not_select() -> None:
    rule = spread(ZONE, {"app": "other"})

    assert values_launched(snapshot(pods=_webs(1, spreads=[rule])), ZONE) == [[ZONE_A]]


def test_a_rule_without_a_selector_selects_nothing() -> None:
    lonely = pod("lonely", affinity=[affinity(ZONE, None)])
    spread_out = pod("spread", spreads=[spread(ZONE, None)])
    away = pod("away", anti_affinity=[anti_affinity(HOSTNAME, None)])

    assert hosts(snapshot(pods=[lonely, spread_out, away])) == {
        "away": "default#0",
        "lonely": "NO_HOST",
        "spread": "default#0",
    }


def test_match_label_keys_spread_each_revision_on_its_own() -> None:
    rule = spread(HOSTNAME, WEB, match_label_keys=["hash", "absent"])
    batch = [
        pod("a", labels={**WEB, "hash": "1"}, spreads=[rule]),
        pod("b", labels={**WEB, "hash": "2"}, spreads=[rule]),
    ]

    assert hosts(snapshot(pods=batch)) == {"a": "default#0", "b": "default#0"}


def test_pods_on_nodes_the_pod_cannot_use_are_counted_only_if_affinity_is_ignored() -> None:
    nodes = [node("n", zone=ZONE_A, labels={"team": "blue"}, cpu="0")]
    old = pod("old", labels=WEB, on="n")

    def zones(*, honors: bool) -> list[list[str]]:
        rule = spread(ZONE, WEB, honors_affinity=honors)
        batch = [old, *_webs(1, spreads=[rule], selector={"team": "red"})]
        pools = [pool(labels={"team": "red"})]
        return values_launched(snapshot(pods=batch, nodes=nodes, pools=pools), ZONE)

    assert zones(honors=True) == [[ZONE_A]]
    assert zones(honors=False) == [[ZONE_B]]


def test_tainted_domains_count_unless_taints_are_honoured() -> None:
    pools = [
        pool("open", requirements=[is_in(ZONE, ZONE_A)]),
        pool("closed", requirements=[is_in(ZONE, ZONE_B, ZONE_C)], taints=[taint("closed")]),
    ]

    def placed(**fields: Unpack[SpreadFields]) -> int:
        rule = spread(ZONE, WEB, **fields)
        cluster = snapshot(pods=_webs(3, spreads=[rule]), pools=pools)
        return sum(len(launch.pods) for launch in solve(cluster).launches)

    assert placed() == 1
    assert placed(honors_taints=True) == 3


def test_domains_come_from_types_even_if_the_template_excludes_them() -> None:
    """A zone that only the pool's excluded types are sold in is still a domain to be balanced."""
    types = [instance_type("x", zones=[ZONE_A]), instance_type("big", zones=[ZONE_B])]
    only_x = pool(requirements=[is_in("node.kubernetes.io/instance-type", "x")])
    batch = _webs(2, spreads=[spread(ZONE, WEB)])

    assert hosts(snapshot(pods=batch, pools=[only_x], catalog=catalog(types))) == {
        "web-0": "default#0",
        "web-1": "NO_HOST",
    }


def test_a_zone_the_pool_excludes_is_no_domain() -> None:
    only_a = pool(requirements=[is_in(ZONE, ZONE_A)])
    cluster = snapshot(pods=_webs(3, spreads=[spread(ZONE, WEB)]), pools=[only_a])

    assert [len(launch.pods) for launch in solve(cluster).launches] == [3]


def test_the_next_domain_is_tried_when_no_type_is_left_in_the_first() -> None:
    types = [
        instance_type("small", cpu="1", zones=[ZONE_A]),
        instance_type("large", cpu="8", zones=[ZONE_B]),
    ]
    big = pod("big", cpu="4", labels=WEB, spreads=[spread(ZONE, WEB)])

    assert values_launched(snapshot(pods=[big], catalog=catalog(types)), ZONE) == [[ZONE_B]]


def test_combinations_of_two_keys_vary_the_second_key_first() -> None:
    types = [
        instance_type("spot-a", zones=[ZONE_A], dollars=1, spot_dollars=1),
        instance_type("spot-b", zones=[ZONE_B], dollars=1, spot_dollars=1),
    ]
    rules = [spread(ZONE, WEB), spread(CAPACITY_TYPE, WEB)]
    cluster = snapshot(pods=_webs(2, spreads=rules), catalog=catalog(types))

    assert values_launched(cluster, CAPACITY_TYPE) == [[ON_DEMAND], [SPOT]]
    assert values_launched(cluster, ZONE) == [[ZONE_A], [ZONE_B]]


def test_spreads_of_one_key_must_agree() -> None:
    """One group would like zone-a, the other one zone-b; zone-c is what both allow."""
    nodes = [node("a", zone=ZONE_A, cpu="0"), node("b", zone=ZONE_B, cpu="0")]
    batch = [
        pod("x", labels={"x": "1"}, on="a"),
        pod("y", labels={"y": "1"}, on="b"),
        pod(
            "p",
            labels={"x": "1", "y": "1"},
            spreads=[spread(ZONE, {"x": "1"}), spread(ZONE, {"y": "1"})],
        ),
    ]

    assert values_launched(snapshot(pods=batch, nodes=nodes), ZONE) == [[ZONE_C]]


def test_an_undefined_custom_key_offers_no_domain() -> None:
    cluster = snapshot(pods=_webs(1, spreads=[spread("rack", WEB)]))

    assert hosts(cluster) == {"web-0": "NO_HOST"}


def test_a_custom_key_spreads_over_the_values_of_pools() -> None:
    pools = [pool("a", labels={"rack": "1"}), pool("b", requirements=[is_in("rack", "2", "3")])]
    cluster = snapshot(pods=_webs(3, spreads=[spread("rack", WEB)]), pools=pools)

    assert sorted(values_launched(cluster, "rack")) == [["1"], ["2"], ["3"]]


def test_counted_are_active_bound_pods_outside_the_batch() -> None:
    cluster = snapshot(
        nodes=[node("old", zone=ZONE_A, deleting=True), node("n", zone=ZONE_B, cpu="0")],
        pods=[
            pod("moves", labels=WEB, on="old", spreads=[spread(ZONE, WEB)]),
            pod("leaves", labels=WEB, on="n", deleting=True),
            pod("done", labels=WEB, on="n", phase="Succeeded"),
        ],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_A]]


# --- affinity --------------------------------------------------------------------------------


def test_affinity_follows_the_pods_it_selects() -> None:
    cluster = snapshot(
        nodes=[node("n", zone=ZONE_B, cpu="0")],
        pods=[
            pod("db", labels={"app": "db"}, on="n"),
            pod("p", affinity=[affinity(ZONE, {"app": "db"})]),
        ],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_B]]


def test_pods_that_select_themselves_begin_in_one_domain_and_stay_there() -> None:
    cluster = snapshot(pods=_webs(3, affinity=[affinity(ZONE, WEB)]), catalog=TINY)

    assert values_launched(cluster, ZONE) == [[ZONE_A]] * 3


def test_a_pod_begins_only_where_no_other_has() -> None:
    """kube-scheduler lets it begin only if there is no pod to be near to, not even out of reach."""
    nodes = [node("n", zone=ZONE_B, cpu="0")]
    batch = [pod("old", labels=WEB, on="n"), *_webs(1, affinity=[affinity(ZONE, WEB)])]
    elsewhere = _webs(1, affinity=[affinity(ZONE, WEB)], selector={ZONE: ZONE_C})

    assert values_launched(snapshot(pods=batch, nodes=nodes), ZONE) == [[ZONE_B]]
    assert hosts(snapshot(pods=[batch[0], *elsewhere], nodes=nodes)) == {"web-0": "NO_HOST"}


def test_affinity_to_no_pod_is_refused_unless_only_preferred() -> None:
    near = affinity(HOSTNAME, {"app": "nobody"})

    assert hosts(snapshot(pods=[pod("must", affinity=[near])])) == {"must": "NO_HOST"}
    assert hosts(snapshot(pods=[pod("may", prefers_near=[(1, near)])])) == {"may": "default#0"}


def test_namespaces_are_named_selected_or_the_pods_own() -> None:
    namespaces = {"default": {}, "shop": {"kind": "prod"}, "lab": {"kind": "test"}}
    prod = selecting({"kind": "prod"})

    def is_placed(**fields: Unpack[TermFields]) -> bool:
        batch = [
            pod("shop", namespace="shop", labels=WEB, on="n"),
            pod("p", affinity=[affinity(ZONE, WEB, **fields)]),
        ]
        cluster = snapshot(pods=batch, nodes=[node("n")], namespaces=namespaces)
        return not solve(cluster).refused

    assert not is_placed()
    assert is_placed(namespaces=["shop"])
    assert is_placed(namespace_selector=prod)
    assert is_placed(namespace_selector=LabelSelector())
    assert is_placed(namespaces=["lab"], namespace_selector=prod)
    assert not is_placed(namespaces=["lab"])
    assert not is_placed(namespace_selector=selecting({"kind": "none"}))


# --- anti-affinity ---------------------------------------------------------------------------


def test_pods_with_anti_affinity_to_each_other_get_a_host_each() -> None:
    cluster = snapshot(pods=_webs(3, anti_affinity=[anti_affinity(HOSTNAME, WEB)]))

    assert [len(launch.pods) for launch in solve(cluster).launches] == [1, 1, 1]


def test_a_claim_with_zonal_anti_affinity_counts_in_every_zone_it_allows() -> None:
    """The first one could become a node in any zone, so that no other pod is safe."""
    away = [anti_affinity(ZONE, WEB)]
    pinned = _webs(3, anti_affinity=away, spreads=[spread(ZONE, WEB)])

    assert hosts(snapshot(pods=_webs(2, anti_affinity=away))) == {
        "web-0": "default#0",
        "web-1": "NO_HOST",
    }
    assert values_launched(snapshot(pods=pinned), ZONE) == [[ZONE_A], [ZONE_B], [ZONE_C]]


def test_anti_affinity_of_running_pods_keeps_selected_pods_away() -> None:
    shy = pod("shy", on="n", anti_affinity=[anti_affinity(ZONE, WEB)])
    cluster = snapshot(nodes=[node("n", zone=ZONE_A)], pods=[shy, *_webs(1)])

    assert values_launched(cluster, ZONE) == [[ZONE_B, ZONE_C]]


def test_preferred_anti_affinity_has_no_inverse() -> None:
    shy = pod("shy", on="n", prefers_away=[(1, anti_affinity(ZONE, WEB))])

    assert hosts(snapshot(nodes=[node("n")], pods=[shy, *_webs(1)])) == {"web-0": "n"}


def test_anti_affinity_of_placed_pods_of_the_batch_keeps_selected_pods_away() -> None:
    shy = pod("shy", cpu="2", anti_affinity=[anti_affinity(HOSTNAME, WEB)])

    assert hosts(snapshot(pods=[shy, *_webs(1)])) == {"shy": "default#0", "web-0": "default#1"}


def test_a_claim_without_the_key_does_not_count() -> None:
    """It might land in any zone, so that no pod can be near it before it has."""
    near = pod("near", prefers_near=[(1, affinity(ZONE, WEB))], selector={FAMILY: "c"})
    free = pod("web", cpu="4", labels=WEB, selector={FAMILY: "m"})
    pinned = pod("web", cpu="4", labels=WEB, selector={FAMILY: "m", ZONE: ZONE_B})

    assert values_launched(snapshot(pods=[free, near]), ZONE) == [[], []]
    assert values_launched(snapshot(pods=[pinned, near]), ZONE) == [[ZONE_B], [ZONE_B]]


def test_a_pod_that_others_must_be_near_to_is_settled_in_one_domain() -> None:
    """Else it would count nowhere, and they could not follow it."""
    near = pod("near", affinity=[affinity(ZONE, WEB)], selector={FAMILY: "c"})
    web = pod("web", cpu="4", labels=WEB, selector={FAMILY: "m"})

    assert values_launched(snapshot(pods=[web, near]), ZONE) == [[ZONE_A]] * 2


def test_anti_affinity_does_not_apply_where_a_node_cannot_have_the_key() -> None:
    """No pods meet in a rack that does not exist."""
    away = [anti_affinity("rack", WEB)]
    racked = pool("racked", weight=9, labels={"rack": "1"}, limits={"nodes": "1"})

    assert hosts(snapshot(pods=_webs(2, anti_affinity=away), pools=[racked, pool()])) == {
        "web-0": "racked#0",
        "web-1": "default#1",
    }
    assert hosts(snapshot(pods=_webs(1, anti_affinity=away), nodes=[node("n")])) == {"web-0": "n"}


def test_mismatch_label_keys_select_the_other_revisions() -> None:
    rule = anti_affinity(HOSTNAME, WEB, mismatch_label_keys=["hash"])
    batch = [
        pod("a1", labels={**WEB, "hash": "1"}, anti_affinity=[rule]),
        pod("a2", labels={**WEB, "hash": "1"}, anti_affinity=[rule]),
        pod("b1", labels={**WEB, "hash": "2"}, anti_affinity=[rule]),
    ]

    assert hosts(snapshot(pods=batch)) == {"a1": "default#0", "a2": "default#0", "b1": "default#1"}


def test_existing_nodes_obey_topology_too() -> None:
    nodes = [node("a", zone=ZONE_A), node("b", zone=ZONE_B), node("c", zone=ZONE_C)]
    cluster = snapshot(nodes=nodes, pods=_webs(4, spreads=[spread(ZONE, WEB)]))

    assert hosts(cluster) == {"web-0": "a", "web-1": "b", "web-2": "c", "web-3": "a"}


def test_a_claim_counts_for_a_spread_once_it_says_what_that_asks_for() -> None:
    """The claim of `first` may well become spot, but only `asked` says so."""
    second = pod("second", labels=WEB, spreads=[spread(ZONE, WEB)], selector={CAPACITY_TYPE: SPOT})

    def zones(asked: dict[str, str]) -> list[list[str]]:
        first = pod("first", cpu="2", labels=WEB, selector={ZONE: ZONE_A, **asked})
        return values_launched(snapshot(pods=[first, second]), ZONE)

    assert zones({CAPACITY_TYPE: SPOT}) == [[ZONE_A], [ZONE_B]]
    assert zones({}) == [[ZONE_A]]
    assert zones({CAPACITY_TYPE: ON_DEMAND}) == [[ZONE_A], [ZONE_A]]


def test_taint_policy_honours_the_tolerations_of_the_pod() -> None:
    pools = [pool("t", requirements=[is_in(ZONE, ZONE_A)], taints=[taint("t")])]
    rule = spread(ZONE, WEB, honors_taints=True)
    cluster = snapshot(pods=_webs(2, spreads=[rule], tolerations=[tolerate("t")]), pools=pools)

    assert values_launched(cluster, ZONE) == [[ZONE_A]]
