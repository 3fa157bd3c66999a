"""Work continues after crashes of the API server, the operator or the leader."""

import signal
from collections.abc import Iterator
from http.client import HTTPConnection
from os import kill
from pathlib import Path
from typing import Any

import pytest

from karpy.adapters.controlplane.operators import NAMESPACE, OperatorProcess
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.model.kinds import DEPLOYMENT, NODE_POOL
from tests.e2e.operator.stage import Stage, start_karpy
from tests.scenarios.manifests import deployment, one_of, pool

SMALL = one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux")
LEASE = "karpenter-leader-election"


@pytest.fixture
def grown(stage: Stage) -> Stage:
    """A cluster of one node with two pods."""
    stage.apply(NODE_POOL, pool(requirements=[SMALL]))
    stage.apply(DEPLOYMENT, deployment("web", 2))
    stage.wait_for_pods("web", 2)
    return stage


def test_after_a_restart_of_the_api_server_pods_get_nodes_again(grown: Stage) -> None:
    grown.plane.restart()

    grown.scale("web", 6)

    grown.wait_for_pods("web", 6)
    assert grown.operator.is_running


def test_an_operator_killed_amid_a_launch_is_continued(grown: Stage) -> None:
    """Each claim gets one node, however often the operator restarts."""
    grown.scale("web", 20)
    grown.wait(lambda: len(grown.all("nodeclaims")) > 1)

    grown.operator.stop(is_killed=True)
    grown.operator.start()
    grown.wait_for_pods("web", 20)
    grown.wait(lambda: len(grown.all("nodes")) == len(grown.all("nodeclaims")))

    claims = {each["status"]["providerID"] for each in grown.all("nodeclaims")}
    nodes = {each["spec"]["providerID"] for each in grown.all("nodes")}
    assert claims == nodes


@pytest.fixture
def replicas(stage: Stage, kubeconfig: Path) -> Iterator[list[OperatorProcess]]:
    """Two operators with leader election; the operator of the other tests is stopped."""
    stage.operator.stop()
    replicas = [_candidate(stage.plane, kubeconfig) for _ in range(2)]
    for each in replicas:
        each.start()
    yield replicas
    for each in replicas:
        each.stop()
    stage.operator.start()


def _candidate(plane: ControlPlane, kubeconfig: Path) -> OperatorProcess:
    return start_karpy(plane, kubeconfig, DISABLE_LEADER_ELECTION="false")


def _lease(stage: Stage) -> dict[str, Any]:
    found = stage.all("leases", "-n", NAMESPACE)
    spec: dict[str, Any] = {}
    for each in found:
        spec |= each["spec"]
    return spec


def test_a_standby_takes_over_when_the_leader_dies(
    replicas: list[OperatorProcess], stage: Stage
) -> None:
    stage.wait(lambda: _lease(stage).get("holderIdentity"))
    before = _lease(stage)
    stage.apply(NODE_POOL, pool(requirements=[SMALL]))
    stage.apply(DEPLOYMENT, deployment("web", 2))
    stage.wait_for_pods("web", 2)

    (leader,) = (each for each in replicas if _leads(each))
    kill(leader.pid, signal.SIGKILL)
    stage.scale("web", 6)
    stage.wait_for_pods("web", 6)

    after = _lease(stage)
    assert after["holderIdentity"] != before["holderIdentity"]
    assert after["leaseTransitions"] == before["leaseTransitions"] + 1


def _leads(operator: OperatorProcess) -> bool:
    connection = HTTPConnection("127.0.0.1", operator.metrics_port, timeout=10)
    connection.request("GET", "/metrics")
    said = connection.getresponse().read().decode()
    connection.close()
    return f'leader_election_master_status{{name="{LEASE}"}} 1.0' in said
