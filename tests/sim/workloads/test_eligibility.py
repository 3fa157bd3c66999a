import pytest

from karpy.codec.fields import JsonObject
from karpy.sim.workloads.eligibility import (
    ALLOWED,
    DENIED,
    NO_NEW_POD,
    DaemonEligibility,
    Permission,
    aimed_at,
    target_of,
)


def _node(*taints: str, **labels: str) -> JsonObject:
    parts = (taint.split(":") for taint in taints)
    return {
        "metadata": {"name": "n1", "labels": labels},
        "spec": {"taints": [{"key": key, "effect": effect} for key, effect in parts]},
    }


def _affinity(*terms: JsonObject) -> JsonObject:
    required = {"nodeSelectorTerms": list(terms)}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


@pytest.mark.parametrize(
    ("spec", "node", "expected"),
    [
        ({}, _node(), ALLOWED),
        ({}, _node("a:PreferNoSchedule"), ALLOWED),
        ({}, _node("a:NoSchedule"), NO_NEW_POD),
        ({}, _node("a:NoExecute"), DENIED),
        ({}, _node("a:NoSchedule", "a:NoExecute"), DENIED),
        ({}, _node("node.kubernetes.io/not-ready:NoExecute"), ALLOWED),
        ({}, _node("node.kubernetes.io/not-ready:NoSchedule"), NO_NEW_POD),
        ({}, _node("node.kubernetes.io/unschedulable:NoSchedule"), ALLOWED),
        ({}, _node("node.kubernetes.io/network-unavailable:NoSchedule"), NO_NEW_POD),
        (
            {"hostNetwork": True},
            _node("node.kubernetes.io/network-unavailable:NoSchedule"),
            ALLOWED,
        ),
        ({"tolerations": [{"operator": "Exists"}]}, _node("a:NoExecute"), ALLOWED),
        ({"nodeSelector": {"disk": "ssd"}}, _node(), DENIED),
        ({"nodeSelector": {"disk": "ssd"}}, _node(disk="ssd"), ALLOWED),
        ({"nodeName": "n1"}, _node(), ALLOWED),
        ({"nodeName": "n2"}, _node(), DENIED),
        (_affinity(), _node(), DENIED),
        (_affinity({}), _node(), DENIED),
        (
            _affinity({"matchExpressions": [{"key": "cpus", "operator": "Gt", "values": ["4"]}]}),
            _node(cpus="8"),
            ALLOWED,
        ),
        (
            _affinity({"matchExpressions": [{"key": "disk", "operator": "Exists"}]}),
            _node(),
            DENIED,
        ),
        (aimed_at({}, "n1"), _node(), ALLOWED),
        (aimed_at({}, "n2"), _node(), DENIED),
    ],
)
def test_a_node_allows_new_pods_running_pods_or_none(
    spec: JsonObject, node: JsonObject, expected: Permission
) -> None:
    assert DaemonEligibility(spec).of(node) == expected


def test_pod_affinity_is_kept_when_a_pod_gets_the_affinity_to_a_node() -> None:
    spec = {"affinity": {"podAntiAffinity": {"x": 1}, "nodeAffinity": {"preferred": 2}}}

    aimed = aimed_at(spec, "n1")

    assert aimed["affinity"]["podAntiAffinity"] == {"x": 1}
    assert aimed["affinity"]["nodeAffinity"]["preferred"] == 2
    assert target_of({"spec": aimed}) == "n1"


@pytest.mark.parametrize("spec", [{}, _affinity({"matchFields": []})])
def test_a_pod_without_affinity_to_a_node_has_no_target(spec: JsonObject) -> None:
    assert target_of({"spec": spec}) == ""
