"""Nodes are sized for the defaults that a LimitRange gives pods, on a real control plane."""

import json
from time import sleep

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DAEMON_SET, DEPLOYMENT, LIMIT_RANGE, NODE_POOL
from tests.e2e.operator.stage import Stage
from tests.scenarios.manifests import asking, daemon_set, deployment, limit_range, pool

QUIET_SECONDS = 12.0
"""The time in which endless launches would create six nodes."""


def is_in_force(stage: Stage) -> bool:
    """Say whether the LimitRange applies to new pods."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": asking({}),
    }
    words = ("create", "--dry-run=server", "-o", "json", "-f", "-")
    admitted = json.loads(stage.plane.kubectl(*words, stdin=json.dumps(pod)))
    return bool(admitted["spec"]["containers"][0]["resources"])


@pytest.mark.parametrize(
    "usual",
    [
        {"default": {"cpu": "2", "memory": "1Gi"}},
        {"defaultRequest": {"cpu": "2", "memory": "1Gi"}},
    ],
    ids=["default", "defaultRequest"],
)
def test_a_limit_range_costs_one_node_for_one_pod(stage: Stage, usual: JsonObject) -> None:
    """The DaemonSet's pods preempt others, and do not state their CPU requests."""
    stage.apply(LIMIT_RANGE, limit_range(**usual))
    stage.wait(lambda: is_in_force(stage))
    stage.apply(NODE_POOL, pool())
    agent = asking({"limits": {"memory": "1Gi"}}, priorityClassName="system-node-critical")
    stage.apply(DAEMON_SET, daemon_set("agent", agent))
    stage.apply(DEPLOYMENT, deployment("web", 1, pod=asking({"requests": {"memory": "4"}})))

    stage.wait_for_pods("web", 1)
    stage.wait_for_pods("agent", 1)
    sleep(QUIET_SECONDS)

    found = (len(stage.all("nodeclaims")), len(stage.running("web")), len(stage.running("agent")))
    assert found == (1, 1, 1)
