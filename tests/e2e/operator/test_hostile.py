"""Objects that a user of one namespace can create harm only that namespace."""

import json

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, NODE_POOL
from tests.e2e.operator.stage import Stage
from tests.scenarios.manifests import deployment, one_of, pod_spec, pool

SMALL = one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux")
LEVELS = 4_900
PODS = "/api/v1/namespaces/default/pods"
WHY_KEPT = {
    "Pod cannot be read (Pod=default/odd)",
    'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/odder)',
}
ABOVE_ABC = {"key": "foo", "operator": "Gt", "values": ["abc"]}


def create(stage: Stage, body: str) -> None:
    """Create a pod exactly as written; kubectl would change it."""
    stage.plane.kubectl("create", "--raw", PODS, "-f", "-", stdin=body)


def a_pod(name: str, spec: JsonObject, **meta: object) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **meta},
        "spec": spec,
    }


def deep(pod: JsonObject) -> str:
    """Write a pod of 40 KB whose managedFields are nested deeper than any decoder's stack."""
    entry = {
        "manager": "deep",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": "HERE",
    }
    whole = {**pod, "metadata": {**pod["metadata"], "managedFields": [entry]}}
    fields = '{"f:a":' * LEVELS + "{}" + "}" * LEVELS
    return json.dumps(whole).replace('"HERE"', fields)


def test_managed_fields_nested_too_deep_end_nothing_now_or_at_a_restart(stage: Stage) -> None:
    stage.apply(NODE_POOL, pool(requirements=[SMALL]))
    stage.apply(DEPLOYMENT, deployment("web", 1))
    stage.wait_for_pods("web", 1)

    create(stage, deep(a_pod("deep", pod_spec(), labels={"app": "deep"})))
    stored = stage.plane.kubectl("get", "--raw", f"{PODS}/deep")
    stage.scale("web", 6)
    stage.wait_for_pods("web", 6)
    is_running = stage.operator.is_running
    stage.operator.stop()
    stage.operator.start()
    stage.scale("web", 9)
    stage.wait_for_pods("web", 9)
    stage.wait(lambda: stage.running("deep"))

    assert stored.count('{"f:a":') == LEVELS
    assert (is_running, stage.operator.is_running) == (True, True)


def test_running_pods_that_cannot_be_read_keep_their_nodes(stage: Stage) -> None:
    everything = {"consolidateAfter": "1s", "budgets": [{"nodes": "100%"}]}
    stage.apply(NODE_POOL, pool(requirements=[SMALL], disruption=everything))
    stage.apply(DEPLOYMENT, deployment("web", 9))
    stage.wait_for_pods("web", 9)
    nodes = [each["metadata"]["name"] for each in stage.all("nodes")]

    create(stage, json.dumps(unreadable("odd", nodes[0])))
    protected = {"karpenter.sh/do-not-disrupt": "true"}
    create(stage, json.dumps(unreadable("odder", nodes[1], annotations=protected)))
    stage.scale("web", 0)
    stage.wait_for_nodes(2)
    stage.wait(lambda: set(stage.events("DisruptionBlocked")) >= WHY_KEPT)
    # An empty node would be gone by then.
    stage.wait_for_passes(3)

    assert [each["metadata"]["name"] for each in stage.all("nodes")] == nodes[:2]
    assert stage.running("odd")
    assert stage.running("odder")


def unreadable(name: str, node: str, **meta: object) -> JsonObject:
    """Write a bound pod with an affinity that the API server accepts and Karpy cannot read."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": [ABOVE_ABC]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    bound = pod_spec(cpu="100m", nodeName=node, affinity=affinity)
    return a_pod(name, bound, labels={"app": name}, **meta)
