"""What a user of one namespace can make harms nothing but itself."""

import json
from time import sleep

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DEPLOYMENT, NODE_POOL
from tests.e2e.operator.stage import Stage
from tests.scenarios.manifests import deployment, one_of, pod_spec, pool

SMALL = one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux")
LEVELS = 4_900
PODS = "/api/v1/namespaces/default/pods"
_LONG_ENOUGH = 40.0
"""An empty node would be gone by then."""
ABOVE_ABC = {"key": "foo", "operator": "Gt", "values": ["abc"]}


def create(stage: Stage, body: str) -> None:
    """Create a pod as it is written, as kubectl by itself would not."""
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


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        (
            {"karpenter.sh/do-not-disrupt": "true"},
            'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/odd)',
        ),
        ({}, "Pod cannot be read (Pod=default/odd)"),
    ],
)
def test_a_running_pod_that_cannot_be_read_keeps_its_node(
    stage: Stage, annotations: dict[str, str], why: str
) -> None:
    everything = {"consolidateAfter": "5s", "budgets": [{"nodes": "100%"}]}
    stage.apply(NODE_POOL, pool(requirements=[SMALL], disruption=everything))
    stage.apply(DEPLOYMENT, deployment("web", 6))
    stage.wait_for_pods("web", 6)
    nodes = [each["metadata"]["name"] for each in stage.all("nodes")]

    terms = {"nodeSelectorTerms": [{"matchExpressions": [ABOVE_ABC]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    bound = pod_spec(cpu="100m", nodeName=nodes[0], affinity=affinity)
    odd = a_pod("odd", bound, labels={"app": "odd"}, annotations=annotations)
    create(stage, json.dumps(odd))
    stage.scale("web", 0)
    stage.wait_for_nodes(1)
    stage.wait(lambda: why in stage.events("DisruptionBlocked"))
    sleep(_LONG_ENOUGH)

    assert [each["metadata"]["name"] for each in stage.all("nodes")] == nodes[:1]
    assert stage.running("odd")
