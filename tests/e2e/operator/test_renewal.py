"""Nodes are replaced by repair, expiry, drift and consolidation; buffers are refilled."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.peer.measuring import price_of
from karpy.codec.fields import JsonObject
from karpy.model.kinds import CAPACITY_BUFFER, DEPLOYMENT, NODE_POOL, POD_TEMPLATE
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME
from tests.e2e.claimlog import ClaimLog
from tests.e2e.operator.stage import GATES, Stage, start_karpy
from tests.scenarios.manifests import deployment, one_of, pod_spec, pool

SMALL = one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux")
FREELY: JsonObject = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
NEVER: JsonObject = {"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]}
NOTHING: JsonObject = {"consolidateAfter": "Never", "budgets": [{"nodes": "0"}]}
AT_LIMIT = {"terminate_first_reason": "static-at-limit"}
FEWEST_SPOT_TYPES = 15


def change(stage: Stage, **spec: object) -> None:
    """Change the spec of the NodePool."""
    body = json.dumps({"spec": spec})
    stage.plane.kubectl("patch", "nodepool", "default", "--type=merge", "-p", body)


def relabel(stage: Stage) -> None:
    """Change the template of the NodePool so that all its nodes drift."""
    change(stage, template={"metadata": {"labels": {"team": "shop"}}})


def teams(stage: Stage) -> list[str]:
    return [each["metadata"]["labels"].get("team", "") for each in stage.all("nodes")]


def names(stage: Stage) -> set[str]:
    return {each["metadata"]["name"] for each in stage.all("nodeclaims")}


def made_for(stage: Stage, reason: str) -> float:
    return stage.counted("karpenter_nodeclaims_created_total", reason=reason)


def large_pod() -> JsonObject:
    """A pod that needs a node of four CPUs for itself."""
    return pod_spec("3")


def room(stage: Stage) -> str:
    """Return the reason of the buffer's condition Provisioning."""
    (buffer,) = stage.all("capacitybuffers")
    conditions = (buffer.get("status") or {}).get("conditions") or ()
    return str(next((each["reason"] for each in conditions if each["type"] == "Provisioning"), ""))


def has_room(stage: Stage, nodes: int) -> bool:
    return room(stage) == "FitsExistingCapacity" and len(stage.all("nodes")) == nodes


@pytest.mark.usefixtures("log")
def test_the_room_of_a_buffer_is_refilled_and_replaced(stage: Stage) -> None:
    stage.apply(NODE_POOL, pool(requirements=[SMALL], disruption=FREELY))
    meta = {"name": "room", "namespace": "default"}
    template = {"metadata": {"labels": {"app": "room"}}, "spec": large_pod()}
    stage.apply(POD_TEMPLATE, {"metadata": meta, "template": template})
    spec = {"podTemplateRef": {"name": "room"}, "replicas": 2}
    stage.apply(CAPACITY_BUFFER, {"metadata": meta, "spec": spec})
    stage.wait(lambda: has_room(stage, 2))
    first = names(stage)

    stage.apply(DEPLOYMENT, deployment("web", 2, pod=large_pod()))
    stage.wait_for_pods("web", 2)
    hosts = {each["spec"]["nodeName"] for each in stage.running("web")}
    taken = {
        each["metadata"]["name"]
        for each in stage.all("nodeclaims")
        if each["status"]["nodeName"] in hosts
    }
    stage.wait(lambda: has_room(stage, 4))

    before = made_for(stage, "drifted"), made_for(stage, "provisioned")
    relabel(stage)
    stage.wait(lambda: teams(stage) == ["shop"] * 4 and len(names(stage)) == 4)
    stage.wait(lambda: has_room(stage, 4))
    after = made_for(stage, "drifted"), made_for(stage, "provisioned")

    assert taken == first
    # Each replacement was ready before its node was deleted, and nothing was launched twice.
    assert (after[0] - before[0], after[1] - before[1]) == (4, 0)
    assert len(stage.running("web")) == 2


def fail(stage: Stage, node: str, status: str) -> None:
    """Set an unhealthy condition of a repair policy of KWOK, older than its toleration."""
    long_ago = datetime.now(UTC) - timedelta(minutes=5)
    condition = {
        "type": "KWOKUnhealthy",
        "status": status,
        "reason": "Test",
        "lastTransitionTime": f"{long_ago:%Y-%m-%dT%H:%M:%SZ}",
    }
    body = json.dumps({"status": {"conditions": [condition]}})
    words = ("patch", "node", node, "--subresource=status", "--type=strategic", "-p", body)
    stage.plane.kubectl(*words)


def apart(app: str) -> JsonObject:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_an_unhealthy_node_is_replaced_unless_too_many_are(stage: Stage, log: ClaimLog) -> None:
    stage.apply(NODE_POOL, pool(requirements=[SMALL], disruption=NEVER))
    stage.apply(DEPLOYMENT, deployment("web", 3, pod=pod_spec(affinity=apart("web"))))
    stage.wait_for_pods("web", 3)
    broken, other, _ = (each["metadata"]["name"] for each in stage.all("nodes"))
    fail(stage, broken, "True")
    fail(stage, other, "True")
    stage.wait(lambda: stage.events("NodeRepairBlocked"))
    held = log.deleted
    fail(stage, other, "False")
    stage.wait(lambda: broken not in [each["metadata"]["name"] for each in stage.all("nodes")])
    stage.wait_for_pods("web", 3)

    unhealthy = "karpenter_nodeclaims_unhealthy_disrupted_total"
    assert held == set()
    assert len(log.deleted) == 1
    assert len(log.created) == 4
    assert stage.counted(unhealthy, condition="kwok_unhealthy") >= 1
    # The replacement is initialized before the node is deleted.
    assert min(len(each) for each in log.states()[-20:]) >= 3


def test_an_expired_node_goes_although_its_pod_forbids_that(stage: Stage, log: ClaimLog) -> None:
    template = {"expireAfter": "15s", "terminationGracePeriod": "15s"}
    stage.apply(NODE_POOL, pool(requirements=[SMALL], disruption=NOTHING, template=template))
    made = deployment("web", 1, pod={**pod_spec(), "terminationGracePeriodSeconds": 5})
    forbids = {"karpenter.sh/do-not-disrupt": "true"}
    made["spec"]["template"]["metadata"]["annotations"] = forbids
    stage.apply(DEPLOYMENT, made)
    stage.wait_for_pods("web", 1)
    ((before, claim),) = ((each, names(stage)) for each in stage.running("web"))
    # Later NodeClaims live longer.
    change(stage, template={"spec": {"expireAfter": "Never"}})
    log.wait(lambda claims: any("deletionTimestamp" in c["metadata"] for c in claims.values()), 60)
    (held,) = stage.running("web")
    stage.wait(lambda: names(stage) and names(stage).isdisjoint(claim))
    stage.wait_for_pods("web", 1)

    (after,) = stage.running("web")
    assert held["metadata"]["uid"] == before["metadata"]["uid"] != after["metadata"]["uid"]
    assert any("of its 5 seconds to stop" in each for each in stage.events("Disrupted"))
    assert stage.counted("karpenter_nodeclaims_disrupted_total", reason="expired") >= 1
    assert log.deleted == claim


def test_spot_is_replaced_by_cheaper_spot_of_many_types(stage: Stage, log: ClaimLog) -> None:
    spot = one_of(CAPACITY_TYPE, "spot")
    stage.apply(NODE_POOL, pool(requirements=[spot], disruption=FREELY))
    stage.apply(DEPLOYMENT, deployment("web", 14))
    stage.wait_for_pods("web", 14)
    full = sum(map(price_of, stage.all("nodes")))
    stage.scale("web", 1)
    stage.wait(lambda: sum(map(price_of, stage.all("nodes"))) < full and len(names(stage)) == 1)
    stage.wait_for_pods("web", 1)

    (claim,) = stage.all("nodeclaims")
    (types,) = (
        each["values"]
        for each in claim["spec"]["requirements"]
        if each["key"] == "node.kubernetes.io/instance-type"
    )
    assert claim["metadata"]["labels"][CAPACITY_TYPE] == "spot"
    assert len(types) == FEWEST_SPOT_TYPES
    assert len(log.created) == 2


@pytest.fixture
def terminating_first(stage: Stage, kubeconfig: Path) -> Iterator[Stage]:
    """The stage with another operator that has the feature gate for terminate-first drift."""
    stage.operator.stop()
    gates = f"{GATES},TerminateFirstDrift=true"
    with start_karpy(stage.plane, kubeconfig, FEATURE_GATES=gates) as operator:
        yield Stage(stage.plane, operator)
    stage.operator.start()


def test_nodes_of_a_full_static_pool_are_deleted_first_one_by_one(
    terminating_first: Stage, log: ClaimLog
) -> None:
    stage, starting = terminating_first, {"key": "example.com/starting", "effect": "NoSchedule"}
    one_by_one, limits = {"budgets": [{"nodes": "1"}]}, {"nodes": "2"}
    stage.apply(
        NODE_POOL, pool(requirements=[SMALL], replicas=2, limits=limits, disruption=one_by_one)
    )
    stage.wait_for_nodes(2)
    change(
        stage,
        template={"metadata": {"labels": {"team": "shop"}}, "spec": {"startupTaints": [starting]}},
    )
    stage.wait(lambda: "shop" in teams(stage))
    # The first node counts as replaced only once its replacement is initialized.
    stage.wait_for_passes(2)
    held = sorted(teams(stage))
    stage.plane.kubectl("taint", "nodes", "-l", "team=shop", f"{starting['key']}-")
    stage.wait(lambda: teams(stage) == ["shop"] * 2)

    first = "karpenter_voluntary_disruption_terminate_first_decisions_total"
    assert held == ["", "shop"]
    assert log.most == 2
    assert len(log.created) == 4
    assert stage.counted(first, **AT_LIMIT) == 2
