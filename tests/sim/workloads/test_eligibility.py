import pytest

from karpy.codec.fields import JsonObject
from karpy.sim.workloads.eligibility import (
    HERE,
    LEFT_ALONE,
    NOWHERE,
    Eligibility,
    Stay,
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
        ({}, _node(), HERE),
        ({}, _node("a:PreferNoSchedule"), HERE),
        ({}, _node("a:NoSchedule"), LEFT_ALONE),
        ({}, _node("a:NoExecute"), NOWHERE),
        ({}, _node("a:NoSchedule", "a:NoExecute"), NOWHERE),
        ({}, _node("node.kubernetes.io/not-ready:NoExecute"), HERE),
        ({}, _node("node.kubernetes.io/not-ready:NoSchedule"), LEFT_ALONE),
        ({}, _node("node.kubernetes.io/unschedulable:NoSchedule"), HERE),
        ({}, _node("node.kubernetes.io/network-unavailable:NoSchedule"), LEFT_ALONE),
        (
            {"hostNetwork": True},
            _node("node.kubernetes.io/network-unavailable:NoSchedule"),
            HERE,
        ),
        ({"tolerations": [{"operator": "Exists"}]}, _node("a:NoExecute"), HERE),
        ({"nodeSelector": {"disk": "ssd"}}, _node(), NOWHERE),
        ({"nodeSelector": {"disk": "ssd"}}, _node(disk="ssd"), HERE),
        ({"nodeName": "n1"}, _node(), HERE),
        ({"nodeName": "n2"}, _node(), NOWHERE),
        (_affinity(), _node(), NOWHERE),
        (_affinity({}), _node(), NOWHERE),
        (
            _affinity({"matchExpressions": [{"key": "cpus", "operator": "Gt", "values": ["4"]}]}),
            _node(cpus="8"),
            HERE,
        ),
        (
            _affinity({"matchExpressions": [{"key": "disk", "operator": "Exists"}]}),
            _node(),
            NOWHERE,
        ),
        (aimed_at({}, "n1"), _node(), HERE),
        (aimed_at({}, "n2"), _node(), NOWHERE),
    ],
)
def test_a_node_is_meant_or_not(spec: JsonObject, node: JsonObject, expected: Stay) -> None:
    assert Eligibility(spec).of(node) == expected


def test_other_affinities_are_kept_when_a_pod_is_aimed_at_a_node() -> None:
    spec = {"affinity": {"podAntiAffinity": {"x": 1}, "nodeAffinity": {"preferred": 2}}}

    aimed = aimed_at(spec, "n1")

    assert aimed["affinity"]["podAntiAffinity"] == {"x": 1}
    assert aimed["affinity"]["nodeAffinity"]["preferred"] == 2
    assert target_of({"spec": aimed}) == "n1"


@pytest.mark.parametrize("spec", [{}, _affinity({"matchFields": []})])
def test_a_pod_that_is_aimed_at_nothing_has_no_target(spec: JsonObject) -> None:
    assert target_of({"spec": spec}) == ""
