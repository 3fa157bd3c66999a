"""Objects that cannot be read, as an API server sends them, harm themselves alone."""

import json
from collections.abc import Iterator

import pytest

from karpy.codec.fields import JsonObject
from karpy.core.lifecycle.changes import is_reschedulable
from karpy.core.scheduling.decide import decide
from karpy.model.pods import Pod
from karpy.model.verdicts import Reason, Refusal
from tests.builders import node, snapshot
from tests.builders import pod as plain_pod
from tests.codec.test_simplifying import nested
from tests.core.scheduling.answers import hosts
from tests.hostile.readings import mirrored, reached

DEEP = nested(4_900)
ODD = "Odd"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(name: str, *, on: str = "n1", version: str = "1", **parts: JsonObject) -> JsonObject:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], **({"nodeName": on} if on else {}), **parts.get("spec", {})}
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "resourceVersion": version,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **parts.get("metadata", {}),
        },
        "spec": spec,
        "status": {"phase": "Running", **parts.get("status", {})},
    }


def deep(obj: JsonObject, fields: str = DEEP) -> str:
    """Write an object with managedFields that no decoder takes."""
    whole = {**obj, "metadata": {**obj["metadata"], "managedFields": "HERE"}}
    return json.dumps(whole).replace('"HERE"', f'[{{"fieldsV1": {fields}}}]')


def asking(expression: JsonObject) -> JsonObject:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {REQUIRED: terms}}}


ABOVE_ABC = asking({"key": "foo", "operator": "Gt", "values": ["abc"]})


@pytest.mark.parametrize("fields", [DEEP, nested(100_000), '{"f:\\ud800": {}}'])
async def test_pods_with_managed_fields_that_no_decoder_takes_are_read(fields: str) -> None:
    listed = {"pods": [json.dumps(pod("a")), deep(pod("b"), fields), json.dumps(pod("c"))]}

    async with mirrored(listed) as (mirror, reports):
        found = sorted(each.key for each in mirror.pods.by_index("n1") if not each.unreadable)

    assert found == ["shop/a", "shop/b", "shop/c"]
    assert reports.unreadable == []


async def test_a_line_of_a_watch_with_deep_managed_fields_is_read() -> None:
    lines = [
        f'{{"type": "ADDED", "object": {deep(pod("a", version="10"))}}}',
        f'{{"type": "ADDED", "object": {json.dumps(pod("b", version="11"))}}}',
    ]

    async with mirrored({}, {"pods": lines}) as (mirror, reports):
        await reached(mirror.pods.values, "shop/b")
        found = sorted(mirror.pods.values)

    assert found == ["shop/a", "shop/b"]
    assert reports.unreadable == []


def odd_values() -> Iterator[tuple[str, JsonObject]]:
    """Give parts of a pod, each with a value that no version knows today."""
    selector = {"matchExpressions": [{"key": "a", "operator": ODD, "values": ["b"]}]}
    term = {"topologyKey": "zone", "labelSelector": selector}
    spread = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    port = {"containerPort": 80, "hostPort": 80, "protocol": ODD}
    container = {"name": "c", "restartPolicy": ODD}
    specs = {
        "node affinity operator": asking({"key": "foo", "operator": ODD, "values": ["1"]}),
        "bound of a node affinity": ABOVE_ABC,
        "pod affinity operator": {"affinity": {"podAffinity": {REQUIRED: [term]}}},
        "pod anti-affinity operator": {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}},
        "toleration operator": {"tolerations": [{"key": "a", "operator": ODD}]},
        "toleration effect": {"tolerations": [{"key": "a", "effect": ODD}]},
        "whenUnsatisfiable": {"topologySpreadConstraints": [{**spread, "whenUnsatisfiable": ODD}]},
        "nodeAffinityPolicy": {
            "topologySpreadConstraints": [{**spread, "nodeAffinityPolicy": ODD}]
        },
        "nodeTaintsPolicy": {"topologySpreadConstraints": [{**spread, "nodeTaintsPolicy": ODD}]},
        "matchLabelKeys": {"topologySpreadConstraints": [{**spread, "matchLabelKeys": [1]}]},
        "protocol": {"containers": [{"name": "c", "ports": [port]}]},
        "restartPolicy": {"restartPolicy": ODD},
        "restartPolicy of a container": {"containers": [container], "initContainers": [container]},
        "quantity": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1Q"}}}]},
        "no containers": {"containers": []},
        "a number that is text": {"priority": "high"},
    }
    yield from ((name, {"spec": spec}) for name, spec in specs.items())
    yield "phase", {"status": {"phase": ODD}}
    yield "condition", {"status": {"conditions": [{"type": ODD, "status": ODD}]}}
    yield "kind of owner", {"metadata": {"ownerReferences": [{"apiVersion": ODD, "kind": ODD}]}}
    yield "owner", {"metadata": {"ownerReferences": [3]}}
    yield "labels", {"metadata": {"labels": {"a": 1}}}
    yield "moment", {"metadata": {"creationTimestamp": "yesterday"}}


@pytest.mark.parametrize(("name", "parts"), [*odd_values()])
async def test_a_value_of_the_future_never_makes_a_node_look_empty(
    name: str, parts: JsonObject
) -> None:
    del name
    async with mirrored({"pods": [json.dumps(pod("odd", **parts))]}) as (mirror, _):
        found = [(each.key, is_reschedulable(each)) for each in mirror.pods.by_index("n1")]

    assert found == [("shop/odd", True)]


async def test_a_pod_that_becomes_unreadable_and_readable_again_stays_on_its_node() -> None:
    odd = pod("a", version="10", spec=ABOVE_ABC)
    lines = [
        f'{{"type": "MODIFIED", "object": {json.dumps(each)}}}'
        for each in (odd, pod("a", version="11"), pod("b", version="12"))
    ]

    async with mirrored({"pods": [json.dumps(pod("a"))]}, {"pods": lines}) as (mirror, reports):
        seen: list[tuple[bool, bool]] = []
        mirror.pods.listen(lambda _, before, after: seen.append((reads(before), reads(after))))
        await reached(mirror.pods.values, "shop/b")

    assert seen == [(True, False), (False, True), (False, True)]
    assert reports.unreadable == [("pods shop/a", "FieldInvalid")]


def reads(pod: Pod | None) -> bool:
    return pod is not None and not pod.unreadable


async def test_what_is_there_and_cannot_be_read_any_more_stays_what_it_was() -> None:
    plain = {
        "metadata": {"name": "n1", "resourceVersion": "1"},
        "spec": {"providerID": "kwok://n1"},
    }
    taints = [{"key": "a", "effect": ODD}]
    odd = {"metadata": {"name": "n1", "resourceVersion": "10"}, "spec": {"taints": taints}}
    last = {"metadata": {"name": "n2", "resourceVersion": "11"}}
    lines = [f'{{"type": "MODIFIED", "object": {json.dumps(each)}}}' for each in (odd, last)]

    async with mirrored({"nodes": [json.dumps(plain)]}, {"nodes": lines}) as (mirror, reports):
        await reached(mirror.records.nodes.values, "n2")
        nodes = [each.record.provider_id for each in mirror.records.nodes.all()]
        unreadable = dict(mirror.records.nodes.unreadable)

    assert nodes == ["kwok://n1", ""]
    assert list(unreadable) == ["n1"]
    assert reports.unreadable == [("nodes n1", "FieldInvalid")]


async def test_a_claim_that_cannot_be_read_holds_up_nothing_else() -> None:
    claim = {"metadata": {"name": "c", "resourceVersion": "1"}, "spec": {"requirements": []}}
    odd = {**claim, "metadata": {"name": "c", "resourceVersion": "10", "finalizers": 3}}
    lines = [f'{{"type": "MODIFIED", "object": {json.dumps(odd)}}}']

    async with mirrored({"nodeclaims": [json.dumps(claim)]}, {"nodeclaims": lines}) as (mirror, _):
        await mirror.wait_until_synced()
        unreadable = list(mirror.records.claims.unreadable)

    assert unreadable == ["c"]


async def test_a_pending_pod_that_cannot_be_read_is_refused_with_what_is_wrong() -> None:
    given_up = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    odd = pod("odd", on="", spec=ABOVE_ABC, status={"phase": "Pending", "conditions": [given_up]})

    async with mirrored({"pods": [json.dumps(odd)]}) as (mirror, _):
        verdict = decide(mirror.snapshot())

    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values"
    problem = f"`{path}` is [abc], which is no bound"
    assert verdict.refusals == (Refusal(Reason.UNREADABLE, ("shop/odd",), problem),)


@pytest.mark.parametrize(
    ("parts", "places"),
    [
        ({}, {"web": "n1"}),
        ({"spec": ABOVE_ABC}, {"web": "n1"}),
        ({"spec": {"containers": [{"name": "c", "resources": 3}]}}, {"web": "NO_POOL"}),
    ],
)
async def test_a_node_takes_no_pods_beside_one_whose_requests_cannot_be_read(
    parts: JsonObject, places: dict[str, str]
) -> None:
    async with mirrored({"pods": [json.dumps(pod("odd", **parts))]}) as (mirror, _):
        odd = tuple(mirror.pods.all())
    cluster = snapshot(nodes=[node("n1")], pods=[*odd, plain_pod("web")], pools=[])

    assert hosts(cluster) == places
