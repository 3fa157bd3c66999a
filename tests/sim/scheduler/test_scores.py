"""Which of several nodes a pod gets."""

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.labels import HOSTNAME, ZONE
from tests.sim.scheduler.stage import JsonValue, expression, node, placed, play, pod

WEB = {"app": "web"}
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web",
    "uid": "1",
    "controller": True,
}
REPLICA_SET: JsonObject = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": WEB},
        "template": {
            "metadata": {"labels": WEB},
            "spec": {"containers": [{"name": "main", "image": "app"}]},
        },
    },
}


def _wish(side: str, key: str = ZONE) -> JsonObject:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": WEB}}
    preference = [{"weight": 100, "podAffinityTerm": term}]
    return {side: {"preferredDuringSchedulingIgnoredDuringExecution": preference}}


def test_the_emptier_node_is_better() -> None:
    stage = play(node("n1"), node("n2"), placed("old", "n1", cpu="2"), pod("a", cpu="1"))

    assert stage.node_of("a") == "n2"


def test_a_pod_without_requests_counts_for_something() -> None:
    stage = play(node("n1"), node("n2"), placed("old", "n1"), pod("a"))

    assert stage.node_of("a") == "n2"


def test_cpu_and_memory_should_be_used_evenly() -> None:
    """Both nodes are as full as each other; on the first one CPU would be left without memory."""
    hungry = placed("old", "n1")
    hungry["spec"]["containers"][0]["resources"] = {"requests": {"memory": "4Gi", "cpu": "1m"}}
    busy = placed("other", "n2", cpu="2")
    busy["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Mi", "cpu": "2"}}
    new = pod("a")
    new["spec"]["containers"][0]["resources"] = {"requests": {"memory": "2Gi", "cpu": "1m"}}

    stage = play(node("n1"), node("n2"), hungry, busy, new)

    assert stage.node_of("a") == "n2"


def test_equal_nodes_are_taken_by_name() -> None:
    stage = play(node("n2"), node("n1"), node("n3"), pod("a"))

    assert stage.node_of("a") == "n1"


def test_a_soft_taint_is_avoided() -> None:
    taint = {"key": "team", "effect": "PreferNoSchedule"}

    stage = play(
        node("n1", cpu="16", spec={"taints": [taint]}),
        node("n2"),
        placed("old", "n2", cpu="1"),
        pod("a"),
    )

    assert stage.node_of("a") == "n2"


def test_a_preferred_node_is_better() -> None:
    rule = {"matchExpressions": [expression("disk", "In", "ssd")]}
    preference = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "preference": rule}]
    }

    stage = play(
        node("n1"),
        node("n2", labels={"disk": "ssd"}),
        placed("old", "n2", cpu="1"),
        pod("a", affinity={"nodeAffinity": preference}),
    )

    assert stage.node_of("a") == "n2"


@pytest.mark.parametrize(("side", "where"), [("podAffinity", "n2"), ("podAntiAffinity", "n1")])
def test_preferred_pod_affinity_counts(side: str, where: str) -> None:
    stage = play(
        node("n1", zone="a"),
        node("n2", zone="b"),
        placed("web", "n2", labels=WEB),
        placed("other", "n1"),
        pod("a", affinity=_wish(side)),
    )

    assert stage.node_of("a") == where


@pytest.mark.parametrize(("side", "where"), [("podAffinity", "n2"), ("podAntiAffinity", "n1")])
def test_preferred_pod_affinity_of_existing_pods_counts(side: str, where: str) -> None:
    stage = play(
        node("n1", zone="a"),
        node("n2", zone="b"),
        placed("other", "n2", affinity=_wish(side)),
        placed("filler", "n1"),
        pod("a", labels=WEB),
    )

    assert stage.node_of("a") == where


def _soft(**changes: JsonValue) -> list[JsonObject]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": WEB},
    }
    return [{**constraint, **changes}]


@pytest.mark.parametrize("key", [ZONE, HOSTNAME])
def test_a_soft_spread_counts(key: str) -> None:
    stage = play(
        node("n1", zone="a", cpu="6"),
        node("n2", zone="b"),
        placed("old", "n1", labels=WEB),
        placed("other", "n2", cpu="100m"),
        pod("a", labels=WEB, topologySpreadConstraints=_soft(topologyKey=key)),
    )

    assert stage.node_of("a") == "n2"


def test_pods_of_one_owner_are_spread_by_default() -> None:
    stage = play(
        REPLICA_SET,
        node("n1", zone="a", cpu="6"),
        node("n2", zone="b"),
        placed("old", "n1", labels=WEB),
        placed("other", "n2", cpu="100m"),
        pod("a", labels=WEB, owner=OWNER),
    )

    assert stage.node_of("a") == "n2"


def test_pods_of_one_service_are_spread_by_default() -> None:
    service: JsonObject = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": WEB, "ports": [{"port": 80}]},
    }

    stage = play(
        node("n1", zone="a", cpu="6"),
        node("n2", zone="b"),
        placed("old", "n1", labels=WEB),
        placed("other", "n2", cpu="100m"),
        service,
        pod("a", labels=WEB),
    )

    assert stage.node_of("a") == "n2"
