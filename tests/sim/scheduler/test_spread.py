"""Topology spread constraints that must hold."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import POD
from karpy.model.labels import HOSTNAME, ZONE
from tests.sim.scheduler.stage import (
    JsonValue,
    Stage,
    expression,
    node,
    on_nodes,
    placed,
    play,
    pod,
)

WEB = {"app": "web"}
UNEVEN = "node(s) didn't match pod topology spread constraints"
UNLABELLED = "node(s) didn't match pod topology spread constraints (missing required label)"
TAINT = {"key": "team", "effect": "NoSchedule"}


def _spread(**changes: JsonValue) -> list[JsonObject]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
    }
    return [{**constraint, **changes}]


def _web(name: str = "new", **changes: JsonValue) -> JsonObject:
    return pod(name, labels=WEB, topologySpreadConstraints=_spread(**changes))


def test_a_pod_goes_to_the_zone_with_the_fewest_pods() -> None:
    stage = play(
        node("n1", zone="a"),
        node("n2", zone="b", cpu="1"),
        placed("old", "n1", labels=WEB),
        _web(),
    )

    assert stage.node_of("new") == "n2"


def test_a_zone_must_not_be_too_far_ahead() -> None:
    stage = play(
        node("n1", zone="a"),
        node("n2", zone="b", spec={"taints": [TAINT]}),
        placed("old", "n1", labels=WEB),
        _web(),
    )

    assert stage.message("new").startswith(
        f"0/2 nodes are available: 1 {UNEVEN}, 1 node(s) had untolerated taint(s). "
    )


def test_a_zone_may_be_ahead_by_the_skew() -> None:
    stage = play(
        node("n1", zone="a"),
        node("n2", zone="b", spec={"taints": [TAINT]}),
        placed("old", "n1", labels=WEB),
        _web(maxSkew=2),
    )

    assert stage.node_of("new") == "n1"


def test_a_node_without_the_key_is_out_of_the_question() -> None:
    stage = play(node("n1", zone=""), _web())

    assert stage.message("new").startswith(f"0/1 nodes are available: 1 {UNLABELLED}. ")


def test_too_few_domains_count_as_one_without_pods() -> None:
    stage = play(node("n1", zone="a"), placed("old", "n1", labels=WEB), _web(minDomains=2))

    assert stage.message("new").startswith(f"0/1 nodes are available: 1 {UNEVEN}. ")


def test_enough_domains_are_compared_with_each_other() -> None:
    stage = play(node("n1", zone="a"), placed("old", "n1", labels=WEB), _web(minDomains=1))

    assert stage.node_of("new") == "n1"


@pytest.mark.parametrize(("policy", "where"), [("Ignore", None), ("Honor", "n1")])
def test_tainted_nodes_count_unless_taints_are_honoured(policy: str, where: str | None) -> None:
    stage = play(
        node("n1", zone="a"),
        node("n2", zone="b", spec={"taints": [TAINT]}),
        placed("old", "n1", labels=WEB),
        _web(nodeTaintsPolicy=policy),
    )

    assert stage.node_of("new") == where


@pytest.mark.parametrize(("policy", "where"), [("Ignore", None), ("Honor", "n1")])
def test_nodes_that_affinity_excludes_count_if_affinity_is_ignored(
    policy: str, where: str | None
) -> None:
    new = _web(nodeAffinityPolicy=policy)
    new["spec"]["affinity"] = on_nodes({"matchExpressions": [expression(ZONE, "In", "a")]})

    stage = play(node("n1", zone="a"), node("n2", zone="b"), placed("old", "n1", labels=WEB), new)

    assert stage.node_of("new") == where


def test_label_keys_tell_revisions_apart() -> None:
    old = placed("old", "n1", labels={**WEB, "revision": "1"})
    new = _web(matchLabelKeys=["revision"])
    new["metadata"]["labels"] = {**WEB, "revision": "2"}

    stage = play(node("n1", zone="a"), node("n2", zone="b", spec={"taints": [TAINT]}), old, new)

    assert stage.node_of("new") == "n1"


def test_pods_of_other_namespaces_do_not_count() -> None:
    stage = play(
        node("n1", zone="a"),
        node("n2", zone="b", spec={"taints": [TAINT]}),
        placed("old", "n1", labels=WEB, namespace="kube-system"),
        _web(),
    )

    assert stage.node_of("new") == "n1"


def test_a_deleting_pod_does_not_count() -> None:
    def delete(stage: Stage) -> None:
        stage.store.delete(POD, "old", namespace="default")

    stage = play(
        node("n1", zone="a"),
        node("n2", zone="b", spec={"taints": [TAINT]}),
        placed("old", "n1", labels=WEB),
        delete,
        _web(),
    )

    assert stage.node_of("new") == "n1"


def test_pods_are_spread_over_hosts() -> None:
    stage = play(
        node("n1"),
        node("n2"),
        node("n3"),
        *(_web(f"new-{each}", topologyKey=HOSTNAME) for each in range(3)),
    )

    assert sorted(str(where) for where in stage.nodes().values()) == ["n1", "n2", "n3"]


def test_a_soft_spread_forbids_nothing() -> None:
    stage = play(
        node("n1", zone="a"),
        placed("old", "n1", labels=WEB),
        _web(whenUnsatisfiable="ScheduleAnyway", minDomains=1),
    )

    assert stage.node_of("new") == "n1"
