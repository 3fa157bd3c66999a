"""Deleted nodes are drained within PodDisruptionBudgets, and their objects are removed."""

import json
from collections.abc import Iterator

import pytest

from karpy.adapters.controlplane.operators import NAMESPACE
from karpy.model.kinds import DEPLOYMENT, DISRUPTION_BUDGET, NODE_POOL
from tests.e2e.operator.stage import ACCOUNT, Stage
from tests.scenarios.manifests import budget, deployment, one_of, pod_spec, pool

SMALL = one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux")


@pytest.fixture
def grown(stage: Stage) -> Iterator[Stage]:
    """A cluster of one node with two pods."""
    stage.apply(NODE_POOL, pool(requirements=[SMALL]))
    stage.apply(DEPLOYMENT, deployment("web", 2))
    stage.wait_for_pods("web", 2)
    stage.wait(lambda: _are_ready(stage))
    yield stage
    stage.plane.kubectl("delete", "poddisruptionbudgets", "--all")


def _are_ready(stage: Stage) -> bool:
    return all(
        {"Ready": "True"}.items()
        <= {one["type"]: one["status"] for one in each["status"]["conditions"]}.items()
        for each in stage.all("nodeclaims")
    )


def _names(stage: Stage, what: str) -> list[str]:
    return [each["metadata"]["name"] for each in stage.all(what)]


@pytest.mark.parametrize("what", ["nodes", "nodeclaims"])
def test_what_is_deleted_is_drained_and_replaced(grown: Stage, what: str) -> None:
    (before,) = _names(grown, what)

    grown.plane.kubectl("delete", what, before, "--wait=false")
    grown.wait(lambda: before not in _names(grown, what))
    grown.wait_for_pods("web", 2)
    grown.wait_for_nodes(1)

    assert before not in _names(grown, what)


def test_a_budget_holds_a_drain_up_and_both_say_so(grown: Stage) -> None:
    grown.apply(DISRUPTION_BUDGET, budget("web", minAvailable=2))
    (node,), (claim,) = _names(grown, "nodes"), _names(grown, "nodeclaims")
    pods = {each["metadata"]["uid"] for each in grown.running("web")}

    grown.plane.kubectl("delete", "nodeclaim", claim, "--wait=false")
    grown.wait(lambda: any("default/web" in each for each in grown.events("FailedDraining")))
    held = {each["metadata"]["uid"] for each in grown.running("web")}
    (still,) = (each for each in grown.all("nodes") if each["metadata"]["name"] == node)
    grown.plane.kubectl("delete", "poddisruptionbudget", "web")
    grown.wait(lambda: node not in _names(grown, "nodes"))

    assert pods <= held
    assert "karpenter.sh/disrupted" in {each["key"] for each in still["spec"]["taints"]}
    assert any("web" in each for each in grown.events("FailedDraining"))


def test_when_its_grace_period_is_over_a_node_goes_whatever_budgets_say(stage: Stage) -> None:
    template = {"terminationGracePeriod": "5s"}
    stage.apply(NODE_POOL, pool(requirements=[SMALL], template=template))
    stage.apply(DEPLOYMENT, deployment("web", 2, pod=pod_spec(terminationGracePeriodSeconds=2)))
    stage.wait_for_pods("web", 2)
    stage.apply(DISRUPTION_BUDGET, budget("web", minAvailable=2))
    (claim,) = _names(stage, "nodeclaims")

    stage.plane.kubectl("delete", "nodeclaim", claim, "--wait=false")
    stage.wait(lambda: claim not in _names(stage, "nodeclaims"))

    assert claim not in _names(stage, "nodeclaims")
    stage.plane.kubectl("delete", "poddisruptionbudget", "web")


def test_with_a_pool_its_nodes_go(grown: Stage) -> None:
    grown.plane.kubectl("delete", "nodepool", "default", "--wait=false")

    grown.wait_for_nodes(0)

    assert grown.running("web") == []


def test_a_pool_of_fixed_size_keeps_it(stage: Stage) -> None:
    stage.apply(NODE_POOL, pool("fixed", requirements=[SMALL], replicas=2))
    stage.wait_for_nodes(2)

    stage.plane.kubectl("scale", "nodepool", "fixed", "--replicas=3")
    stage.wait_for_nodes(3)
    stage.plane.kubectl("scale", "nodepool", "fixed", "--replicas=1")
    stage.wait_for_nodes(1)

    (found,) = stage.all("nodepools")
    assert found["spec"]["replicas"] == 1


@pytest.mark.parametrize(
    ("verb", "what"),
    [("create", "nodepools"), ("delete", "namespaces"), ("get", "secrets"), ("update", "pods")],
)
def test_what_the_account_needs_not_it_may_not(stage: Stage, verb: str, what: str) -> None:
    token = stage.plane.service_account_token(ACCOUNT, NAMESPACE)

    answer = stage.plane.try_kubectl("auth", "can-i", verb, what, "--all-namespaces", token=token)

    assert answer.out.strip() == "no"


def test_a_verb_outside_its_role_is_denied(stage: Stage) -> None:
    token = stage.plane.service_account_token(ACCOUNT, NAMESPACE)
    manifest = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", **pool("mine")}

    answer = stage.plane.try_kubectl("create", "-f", "-", stdin=json.dumps(manifest), token=token)

    assert answer.code == 1
    assert 'cannot create resource "nodepools"' in answer.err
