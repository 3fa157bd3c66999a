"""Affinity and anti-affinity between pods, both ways."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import NAMESPACE
from karpy.model.labels import HOSTNAME, ZONE
from tests.sim.scheduler.stage import JsonValue, Stage, node, placed, play, pod

WEB = {"app": "web"}
DB = {"app": "db"}
UNMET = "node(s) didn't match pod affinity rules"
BROKEN = "node(s) didn't match pod anti-affinity rules"
AVERSE = "node(s) didn't satisfy existing pods anti-affinity rules"
TEAM: JsonObject = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "shop", "labels": {"team": "shop"}},
}


def _term(labels: JsonObject, **changes: JsonValue) -> JsonObject:
    return {"topologyKey": ZONE, "labelSelector": {"matchLabels": labels}, **changes}


def _near(*terms: JsonObject) -> JsonObject:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def _away(*terms: JsonObject) -> JsonObject:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def _refused(stage: Stage, reason: str, nodes: int = 1) -> bool:
    return stage.message("new").startswith(f"0/{nodes} nodes are available: {nodes} {reason}. ")


def test_affinity_places_a_pod_in_the_zone_of_the_selected_pod() -> None:
    stage = play(
        node("n1", zone="a", cpu="16"),
        node("n2", zone="b"),
        placed("db", "n2", labels=DB),
        pod("new", affinity=_near(_term(DB))),
    )

    assert stage.node_of("new") == "n2"


def test_affinity_to_no_existing_pod_leaves_a_pod_pending() -> None:
    stage = play(node("n1"), pod("new", affinity=_near(_term(DB))))

    assert _refused(stage, UNMET)


def test_the_first_pod_with_affinity_to_itself_goes_anywhere() -> None:
    stage = play(node("n1"), pod("new", labels=WEB, affinity=_near(_term(WEB))))

    assert stage.node_of("new") == "n1"


def test_the_first_pod_with_affinity_to_itself_needs_the_topology_key() -> None:
    stage = play(node("n1", zone=""), pod("new", labels=WEB, affinity=_near(_term(WEB))))

    assert _refused(stage, UNMET)


def test_one_and_the_same_pod_must_meet_all_terms() -> None:
    stage = play(
        node("n1"),
        placed("web", "n1", labels=WEB),
        placed("db", "n1", labels=DB),
        pod("new", affinity=_near(_term(WEB), _term(DB))),
    )

    assert _refused(stage, UNMET)


def test_a_pod_that_meets_all_terms_is_enough() -> None:
    stage = play(
        node("n1"),
        placed("both", "n1", labels={**WEB, "tier": "front"}),
        pod("new", affinity=_near(_term(WEB), _term({"tier": "front"}))),
    )

    assert stage.node_of("new") == "n1"


def test_anti_affinity_keeps_a_pod_away_from_selected_pods() -> None:
    stage = play(
        node("n1", zone="a", cpu="16"),
        node("n2", zone="b"),
        placed("db", "n1", labels=DB),
        pod("new", affinity=_away(_term(DB))),
    )

    assert stage.node_of("new") == "n2"


def test_anti_affinity_to_pods_in_all_zones_leaves_a_pod_pending() -> None:
    stage = play(node("n1"), placed("db", "n1", labels=DB), pod("new", affinity=_away(_term(DB))))

    assert _refused(stage, BROKEN)


def test_anti_affinity_of_existing_pods_keeps_a_pod_away() -> None:
    stage = play(node("n1"), placed("db", "n1", affinity=_away(_term(WEB))), pod("new", labels=WEB))

    assert _refused(stage, AVERSE)


def test_a_node_without_the_key_is_in_no_domain() -> None:
    stage = play(
        node("n1", zone=""),
        placed("db", "n1", labels=DB),
        pod("new", affinity=_away(_term(DB))),
    )

    assert stage.node_of("new") == "n1"


def test_anti_affinity_to_itself_gives_each_pod_a_host() -> None:
    alone = _away(_term(WEB, topologyKey=HOSTNAME))

    stage = play(
        node("n1"),
        node("n2"),
        *(pod(f"web-{each}", labels=WEB, affinity=alone) for each in range(3)),
    )

    assert sorted(str(where) for where in stage.nodes().values()) == ["None", "n1", "n2"]


def test_a_term_means_its_own_namespace() -> None:
    other = placed("db", "n1", labels=DB, namespace="kube-system")

    stage = play(node("n1"), other, pod("new", affinity=_away(_term(DB))))

    assert stage.node_of("new") == "n1"


@pytest.mark.parametrize(
    "where",
    [
        {"namespaces": ["shop"]},
        {"namespaceSelector": {"matchLabels": {"team": "shop"}}},
        {"namespaceSelector": {}},
        {"namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}},
    ],
    ids=["name", "labels", "all", "without"],
)
def test_a_term_may_mean_other_namespaces(where: JsonObject) -> None:
    stage = play(
        TEAM,
        node("n1"),
        placed("db", "n1", labels=DB, namespace="shop"),
        pod("new", affinity=_away(_term(DB, **where))),
    )

    assert _refused(stage, BROKEN)


def test_anti_affinity_of_existing_pods_may_select_namespaces_by_labels() -> None:
    shuns = _term(WEB, namespaceSelector={"matchLabels": {"team": "shop"}})

    stage = play(
        TEAM,
        node("n1"),
        placed("db", "n1", affinity=_away(shuns)),
        pod("new", labels=WEB, namespace="shop"),
        pod("free", labels=WEB),
    )

    assert stage.nodes() == {"db": "n1", "free": "n1", "new": None}


def test_a_namespace_that_gets_other_labels_is_looked_at_again() -> None:
    shuns = _term(WEB, namespaceSelector={"matchLabels": {"team": "shop"}})

    def rename(stage: Stage) -> None:
        stage.change(NAMESPACE, "shop", metadata={"labels": {"team": "other"}})

    stage = play(
        TEAM,
        node("n1"),
        placed("db", "n1", affinity=_away(shuns)),
        pod("new", labels=WEB, namespace="shop"),
        2.0,
        rename,
    )

    assert stage.nodes()["new"] == "n1"


@pytest.mark.parametrize(
    ("keys", "where"), [({"matchLabelKeys": ["rev"]}, "n1"), ({"mismatchLabelKeys": ["rev"]}, None)]
)
def test_label_keys_narrow_a_term(keys: JsonObject, where: str | None) -> None:
    old = placed("old", "n1", labels={**WEB, "rev": "1"})
    new = pod("new", labels={**WEB, "rev": "2"}, affinity=_away(_term(WEB, **keys)))

    stage = play(node("n1"), old, new)

    assert stage.node_of("new") == where
