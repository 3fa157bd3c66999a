from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from karpy.codec.buffers import buffer_writes, read_buffer_record, read_pod_source
from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.patches.merge import merge
from karpy.codec.pods import PodReader
from karpy.codec.records import Writes
from karpy.model.buffers import ACTIVE_CAPACITY, BufferRecord, PodSource, ScalableRef
from karpy.model.conditions import Condition, Conditions
from karpy.model.records import Identity
from tests.codec.plain import Json, container, workload

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
READY = Condition("ReadyForProvisioning", "True", NOON, "Resolved", "fine", 3)
BUFFER: Json = {
    "metadata": {
        "name": "spare",
        "namespace": "shop",
        "uid": "u1",
        "resourceVersion": "7",
        "generation": 3,
    },
    "spec": {
        "scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"},
        "replicas": 2,
        "percentage": 20,
        "limits": {"cpu": "4"},
    },
    "status": {
        "provisioningStrategy": ACTIVE_CAPACITY,
        "podTemplateRef": {"name": "old"},
        "podTemplateGeneration": 1,
        "replicas": 1,
        "conditions": [
            {
                "type": "ReadyForProvisioning",
                "status": "True",
                "lastTransitionTime": "2026-01-01T12:00:00Z",
                "reason": "Resolved",
                "message": "fine",
                "observedGeneration": 3,
            }
        ],
    },
}


def test_a_buffer_is_read_in_full() -> None:
    record = read_buffer_record(Fields(BUFFER))

    assert record == BufferRecord(
        meta=Identity("spare", "u1", "7", 3),
        namespace="shop",
        scalable=ScalableRef("Deployment", "web", "apps"),
        replicas=2,
        percentage=20,
        limits={"cpu": 4000},
        settled_strategy=ACTIVE_CAPACITY,
        settled_template="old",
        settled_generation=1,
        settled_replicas=1,
        conditions=Conditions((READY,)),
    )


@pytest.mark.parametrize(
    ("spec", "source"),
    [
        ({"podTemplateRef": {"name": "t"}, "replicas": 1}, ("PodTemplate", "shop/t")),
        ({"scalableRef": {"kind": "ReplicaSet", "name": "w"}}, ("ReplicaSet", "shop/w")),
        ({}, ("", "")),
    ],
)
def test_a_buffer_names_its_source(spec: Json, source: tuple[str, str]) -> None:
    record = read_buffer_record(Fields({**BUFFER, "spec": spec}))

    assert record.source == source


def test_missing_fields_have_their_defaults() -> None:
    record = read_buffer_record(Fields({"metadata": {"name": "spare"}}))

    assert record == BufferRecord(Identity("spare"), "default", strategy=ACTIVE_CAPACITY)


def test_a_reference_without_a_name_is_a_fault() -> None:
    broken = {**BUFFER, "spec": {"scalableRef": {"kind": "Deployment"}}}

    with pytest.raises(FieldInvalid, match=r"`spec.scalableRef.name` is missing"):
        read_buffer_record(Fields(broken))


def test_a_status_is_written_where_it_differs() -> None:
    before = read_buffer_record(Fields(BUFFER))
    after = replace(before, settled_template="", settled_generation=None, settled_replicas=2)

    writes = buffer_writes(before, after)

    status = {"podTemplateRef": None, "podTemplateGeneration": None, "replicas": 2}
    assert writes == Writes(status={"status": status})
    assert read_buffer_record(Fields(merge(BUFFER, writes.status or {}))) == after


def test_conditions_are_written_over_what_was_read_only() -> None:
    before = read_buffer_record(Fields(BUFFER))
    conditions = Conditions((replace(READY, status="False"),))

    writes = buffer_writes(before, replace(before, conditions=conditions))

    assert writes.status is not None
    assert writes.status["metadata"] == {"resourceVersion": "7"}
    assert read_buffer_record(Fields(merge(BUFFER, writes.status or {}))).conditions == conditions


def test_unchanged_fields_are_not_written() -> None:
    record = read_buffer_record(Fields(BUFFER))

    assert buffer_writes(record, record) == Writes()


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [({"replicas": 3}, 3), ({"replicas": 0}, 0), ({}, 1)],
)
def test_a_workload_is_read_as_a_source_of_pods(spec: Json, replicas: int) -> None:
    obj = workload("Deployment", meta={"namespace": "shop", "uid": "u2", "generation": 4}, **spec)

    source = read_pod_source(Fields(obj), "Deployment", PodReader())

    assert (source.replicas, source.generation) == (replicas, 4)
    assert (source.pod.key, source.pod.labels) == ("shop/web", {"app": "web"})
    assert source.pod.requests == {"cpu": 1000, "pods": 1}


def test_a_pod_template_is_read_as_a_source_of_pods() -> None:
    spec = {"containers": [container(limits={"cpu": "2"})]}
    obj = {
        "metadata": {"name": "t", "namespace": "shop", "uid": "u3", "generation": 2},
        "template": {"metadata": {"labels": {"app": "t"}}, "spec": spec},
    }

    source = read_pod_source(Fields(obj), "PodTemplate", PodReader())

    assert source == PodSource(source.pod, 0, 2)
    assert source.pod.requests == {"cpu": 2000, "pods": 1}


@pytest.mark.parametrize(
    ("kind", "path"), [("PodTemplate", "template.spec"), ("StatefulSet", "spec.template.spec")]
)
def test_a_template_without_containers_is_a_fault(kind: str, path: str) -> None:
    template: Json = {"template": {"spec": {"containers": []}}}
    obj = {"metadata": {"name": "t"}, **template, "spec": template}

    with pytest.raises(FieldInvalid) as raised:
        read_pod_source(Fields(obj), kind, PodReader())

    assert raised.value.path == f"{path}.containers"
