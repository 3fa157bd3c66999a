"""Section 5: pod anti-affinity, and its inverse: the anti-affinity of other pods."""

from karpy.model.constraints import AffinityTerm
from karpy.model.labels import HOSTNAME, ZONE
from tests.builders import (
    FAMILY,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    ZONES,
    anti_affinity,
    catalog,
    daemon_pod,
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
    term,
)
from tests.core.scheduling.answers import hosts, pods_launched, values_launched

WEB = {"app": "web"}
DB = {"app": "db"}
AWAY_FROM_WEB = anti_affinity(ZONE, WEB)
BUSY = [node(zone, zone=zone, cpu="0") for zone in (ZONE_A, ZONE_B, ZONE_C)]


# --- keeping away ----------------------------------------------------------------------------


def test_pods_with_anti_affinity_to_each_other_get_a_host_each() -> None:
    batch = pods("web", 3, labels=WEB, anti_affinity=[anti_affinity(HOSTNAME, WEB)])

    assert pods_launched(snapshot(pods=batch)) == [["web-0"], ["web-1"], ["web-2"]]


def test_two_workloads_with_anti_affinity_each_to_itself_share_nodes() -> None:
    """Pods of both take turns: each joins the claim of the pod of the other workload before it."""
    batch = [
        pod(f"{app}-{i}", uid=f"{i}-{app}", labels={"app": app}, anti_affinity=[each])
        for app in ("web", "db")
        for each in [anti_affinity(HOSTNAME, {"app": app})]
        for i in range(3)
    ]

    assert pods_launched(snapshot(pods=batch)) == [
        ["db-0", "web-0"],
        ["db-1", "web-1"],
        ["db-2", "web-2"],
    ]


def test_pods_with_anti_affinity_to_each_other_keep_preferences_that_can_be_met() -> None:
    """The preference for zone-b is met for every pod, the preference for a rack for none."""
    batch = pods(
        "web",
        3,
        labels=WEB,
        anti_affinity=[anti_affinity(HOSTNAME, WEB)],
        prefers=[(9, term(is_in("rack", "1"))), (1, term(is_in(ZONE, ZONE_B)))],
    )

    assert values_launched(snapshot(pods=batch), ZONE) == [[ZONE_B]] * 3


def test_anti_affinity_excludes_a_host_with_selected_pods() -> None:
    away = pod("p", anti_affinity=[anti_affinity(HOSTNAME, DB)])
    cluster = snapshot(nodes=[node("a"), node("b")], pods=[pod("db", labels=DB, on="a"), away])

    assert hosts(cluster) == {"p": "b"}


def test_anti_affinity_allows_every_zone_without_selected_pods() -> None:
    cluster = snapshot(
        nodes=BUSY,
        pods=[pod("db", labels=DB, on=ZONE_B), pod("p", anti_affinity=[anti_affinity(ZONE, DB)])],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_A, ZONE_C]]


def test_anti_affinity_refuses_a_pod_if_every_zone_has_selected_pods() -> None:
    old = [pod(f"db-{zone}", labels=DB, on=zone) for zone in (ZONE_A, ZONE_B, ZONE_C)]
    shy = pod("shy", anti_affinity=[anti_affinity(ZONE, DB)])
    wishful = pod("wishful", prefers_away=[(1, anti_affinity(ZONE, DB))])

    assert hosts(snapshot(nodes=BUSY, pods=[*old, shy, wishful])) == {
        "shy": "NO_HOST",
        "wishful": "default-0",
    }


def test_anti_affinity_counts_a_placed_pod_in_every_zone_that_its_claim_allows() -> None:
    """The claim of the first pod may be in any zone, so that no zone is left for the second."""
    away = [anti_affinity(ZONE, WEB)]

    assert hosts(snapshot(pods=pods("web", 2, labels=WEB, anti_affinity=away))) == {
        "web-0": "default-0",
        "web-1": "NO_HOST",
    }


def test_pods_that_are_spread_besides_get_a_zone_each() -> None:
    batch = pods("web", 4, labels=WEB, anti_affinity=[AWAY_FROM_WEB], spreads=[spread(ZONE, WEB)])

    cluster = snapshot(pods=batch)

    assert values_launched(cluster, ZONE) == [[ZONE_A], [ZONE_B], [ZONE_C]]
    assert hosts(cluster)["web-3"] == "NO_HOST"


def test_a_claim_that_is_narrowed_later_frees_the_other_zones() -> None:
    """The second pod narrows the claim to zone-a; the third pod may then go to another zone."""
    shy = pod("shy", cpu="2", labels=DB, selector={FAMILY: "m"}, anti_affinity=[AWAY_FROM_WEB])
    narrows = pod("narrows", cpu="1", selector={ZONE: ZONE_A})
    web = pod("web", labels=WEB, selector={FAMILY: "c"})

    assert hosts(snapshot(pods=[shy, web])) == {"shy": "default-0", "web": "NO_HOST"}
    assert values_launched(snapshot(pods=[shy, narrows, web]), ZONE) == [[ZONE_A], [ZONE_B, ZONE_C]]


def test_a_pod_refused_is_tried_again_after_a_claim_was_narrowed() -> None:
    shy = pod("shy", cpu="2", labels=DB, selector={FAMILY: "m"}, anti_affinity=[AWAY_FROM_WEB])
    web = pod("web", cpu="1", labels=WEB, selector={FAMILY: "c"})
    narrows = pod("narrows", selector={ZONE: ZONE_A})

    assert values_launched(snapshot(pods=[shy, web, narrows]), ZONE) == [[ZONE_A], [ZONE_B, ZONE_C]]


def test_anti_affinity_counts_a_claim_without_a_zone_requirement_in_no_zone() -> None:
    """Preferred anti-affinity ignores such a claim; required anti-affinity refuses the pod."""
    web = pod("web", cpu="2", labels=WEB, selector={FAMILY: "m"})
    wishful = pod("p", selector={FAMILY: "c"}, prefers_away=[(1, AWAY_FROM_WEB)])
    shy = pod("p", selector={FAMILY: "c"}, anti_affinity=[AWAY_FROM_WEB])

    assert values_launched(snapshot(pods=[web, wishful]), ZONE) == [[], [*ZONES]]
    assert values_launched(snapshot(pods=[web, shy]), ZONE) == [[*ZONES]]


def test_zones_the_pod_cannot_use_are_not_open_either() -> None:
    cluster = snapshot(
        nodes=BUSY,
        pods=[
            pod("db", labels=DB, on=ZONE_B),
            pod(
                "p",
                anti_affinity=[anti_affinity(ZONE, DB)],
                terms=[term(is_in(ZONE, ZONE_B, ZONE_C))],
            ),
        ],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_C]]


# --- anti-affinity of other pods -------------------------------------------------------------


def test_anti_affinity_of_running_pods_excludes_their_zone() -> None:
    shy = pod("shy", on=ZONE_A, anti_affinity=[AWAY_FROM_WEB])

    assert values_launched(snapshot(nodes=BUSY, pods=[shy, pod("web", labels=WEB)]), ZONE) == [
        [ZONE_B, ZONE_C]
    ]


def test_anti_affinity_of_running_pods_excludes_their_host() -> None:
    shy = pod("shy", on="a", anti_affinity=[anti_affinity(HOSTNAME, WEB)])
    cluster = snapshot(nodes=[node("a"), node("b")], pods=[shy, pod("web", labels=WEB), pod("db")])

    assert hosts(cluster) == {"db": "a", "web": "b"}


def test_anti_affinity_of_terminal_and_deleting_pods_excludes_nothing() -> None:
    away = [anti_affinity(HOSTNAME, WEB)]
    cluster = snapshot(
        nodes=[node("n")],
        pods=[
            pod("done", on="n", phase="Succeeded", anti_affinity=away),
            pod("leaving", on="n", deleting=True, anti_affinity=away),
            pod("web", labels=WEB),
        ],
    )

    assert hosts(cluster) == {"web": "n"}


def test_anti_affinity_of_a_daemon_on_a_deleting_node_excludes_its_zone() -> None:
    shy = daemon_pod("d", on="old", anti_affinity=[AWAY_FROM_WEB])
    cluster = snapshot(
        nodes=[node("old", zone=ZONE_A, deleting=True)], pods=[shy, pod("web", labels=WEB)]
    )

    assert values_launched(cluster, ZONE) == [[ZONE_B, ZONE_C]]


def test_anti_affinity_of_a_moved_pod_excludes_its_new_host() -> None:
    moves = pod("moves", cpu="2", on="old", anti_affinity=[anti_affinity(HOSTNAME, WEB)])
    nodes = [node("old", deleting=True), node("a"), node("b")]

    assert hosts(snapshot(nodes=nodes, pods=[moves, pod("web", labels=WEB)])) == {
        "moves": "a",
        "web": "b",
    }


def test_anti_affinity_of_placed_pods_excludes_their_claim() -> None:
    shy = pod("shy", cpu="2", anti_affinity=[anti_affinity(HOSTNAME, WEB)])

    assert hosts(snapshot(pods=[shy, pod("web", labels=WEB)])) == {
        "shy": "default-0",
        "web": "default-1",
    }


def test_a_claim_with_pods_gets_no_label_on_which_their_anti_affinity_is() -> None:
    """`web` and `shy` share a node without a rack; the third pod must not give it one."""
    shy = pod("shy", cpu="1", anti_affinity=[anti_affinity("rack", WEB)])
    third = pod("third", cpu="500m", terms=[term(is_in("rack", "r1", "r2"))])
    cluster = snapshot(
        pools=[pool(requirements=[not_in("rack", "r3")])],
        pods=[pod("web", cpu="2", labels=WEB), shy, third],
    )

    assert pods_launched(cluster) == [["web", "shy"], ["third"]]


def test_anti_affinity_of_placed_pods_excludes_their_zone() -> None:
    shy = pod("shy", cpu="2", selector={ZONE: ZONE_B}, anti_affinity=[AWAY_FROM_WEB])

    assert values_launched(snapshot(pods=[shy, pod("web", labels=WEB)]), ZONE) == [
        [ZONE_B],
        [ZONE_A, ZONE_C],
    ]


def test_anti_affinity_keeps_a_later_pod_off_the_claim_of_selected_pods() -> None:
    shy = pod("shy", anti_affinity=[anti_affinity(HOSTNAME, WEB)])

    assert hosts(snapshot(pods=[pod("web", cpu="2", labels=WEB), shy])) == {
        "shy": "default-1",
        "web": "default-0",
    }


def test_preferred_anti_affinity_has_no_inverse() -> None:
    shy = pod("shy", on="n", prefers_away=[(1, anti_affinity(HOSTNAME, WEB))])

    assert hosts(snapshot(nodes=[node("n")], pods=[shy, pod("web", labels=WEB)])) == {"web": "n"}


def test_anti_affinity_of_running_pods_selects_namespaces_by_its_own_term() -> None:
    def host(away: AffinityTerm) -> dict[str, str]:
        shy = pod("shy", namespace="shop", on="n", anti_affinity=[away])
        namespaces = {"default": {"kind": "test"}, "shop": {}}
        batch = [shy, pod("web", labels=WEB)]
        return hosts(snapshot(nodes=[node("n")], pods=batch, namespaces=namespaces))

    tests = selecting({"kind": "test"})
    assert host(anti_affinity(HOSTNAME, WEB)) == {"web": "n"}
    assert host(anti_affinity(HOSTNAME, WEB, namespaces=["default"])) == {"web": "default-0"}
    assert host(anti_affinity(HOSTNAME, WEB, namespace_selector=tests)) == {"web": "default-0"}


def test_mismatch_label_keys_keep_a_pod_away_from_other_revisions() -> None:
    away = anti_affinity(HOSTNAME, WEB, mismatch_label_keys=["hash"])
    batch = [
        *pods("a", 2, labels=WEB | {"hash": "1"}, anti_affinity=[away]),
        pod("b", labels=WEB | {"hash": "2"}, anti_affinity=[away]),
    ]

    assert hosts(snapshot(pods=batch)) == {
        "a-0": "default-0",
        "a-1": "default-0",
        "b": "default-1",
    }


def test_match_label_keys_keep_a_pod_away_from_its_own_revision() -> None:
    away = anti_affinity(HOSTNAME, WEB, match_label_keys=["hash"])
    batch = [
        *pods("a", 2, labels=WEB | {"hash": "1"}, anti_affinity=[away]),
        pod("b", labels=WEB | {"hash": "2"}, anti_affinity=[away]),
    ]

    assert hosts(snapshot(pods=batch)) == {
        "a-0": "default-0",
        "a-1": "default-1",
        "b": "default-0",
    }


# --- keys that a node cannot carry -----------------------------------------------------------


def test_anti_affinity_allows_nodes_that_cannot_have_the_label() -> None:
    """Pods cannot share a rack that does not exist; Karpenter refuses the pod."""
    batch = pods("web", 2, labels=WEB, anti_affinity=[anti_affinity("rack", WEB)])

    assert hosts(snapshot(pods=batch)) == {"web-0": "default-0", "web-1": "default-0"}
    assert hosts(snapshot(pods=batch, nodes=[node("n")])) == {"web-0": "n", "web-1": "n"}


def test_anti_affinity_holds_on_nodes_that_have_the_label() -> None:
    batch = pods("web", 3, labels=WEB, anti_affinity=[anti_affinity("rack", WEB)])
    racked = pool("racked", weight=9, requirements=[is_in("rack", "1")])

    assert hosts(snapshot(pods=batch, pools=[racked, pool("plain")])) == {
        "web-0": "racked-0",
        "web-1": "plain-1",
        "web-2": "plain-1",
    }


def test_pods_with_anti_affinity_on_two_keys_are_kept_apart_by_both() -> None:
    away = [anti_affinity(HOSTNAME, WEB), anti_affinity(ZONE, DB)]
    cluster = snapshot(
        nodes=BUSY,
        pods=[pod("db", labels=DB, on=ZONE_A), *pods("web", 2, labels=WEB, anti_affinity=away)],
        catalog=catalog([instance_type("t")]),
    )

    assert values_launched(cluster, ZONE) == [[ZONE_B, ZONE_C], [ZONE_B, ZONE_C]]
