from datetime import UTC, datetime

import pytest

from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.pods import PodReader
from karpy.codec.uids import derived_uid
from karpy.codec.workloads import (
    HASH_LABEL,
    REPLICAS_MAX,
    Workload,
    claims_for,
    expand,
    read_workload_object,
    replica_set,
)
from karpy.model.pods import Owner, Pod, PodController, PodRules, PodVolume
from karpy.model.requirements import Requirement
from karpy.model.storage import PersistentVolumeClaim
from tests.codec.plain import Json, workload

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def read(obj: Json) -> Workload:
    return read_workload_object(Fields(obj), obj["kind"], PodReader(created=NOON))


def expanded(obj: Json) -> list[Pod]:
    return list(expand(read(obj)))


def fault(obj: Json) -> tuple[str, str]:
    with pytest.raises(FieldInvalid) as raised:
        read(obj)
    return raised.value.path, raised.value.problem


def test_a_deployment_makes_pods_through_a_replica_set() -> None:
    made = read(workload("Deployment", replicas=2, meta={"namespace": "shop"}))
    digest = made.pod.labels[HASH_LABEL]
    owner = Owner(
        "apps/v1",
        "ReplicaSet",
        f"web-{digest}",
        derived_uid("ReplicaSet", "shop", "web", digest),
        True,
    )
    first = Pod(
        name="web-0",
        namespace="shop",
        uid=derived_uid("Deployment", "shop", "web", "0"),
        created=NOON,
        labels={"app": "web", HASH_LABEL: digest},
        requests={"cpu": 1000, "pods": 1},
        rules=PodRules(),
        is_unschedulable=True,
        owners=(owner,),
    )

    pods = list(expand(made))

    assert pods[0] == first
    assert [(each.name, each.uid) for each in pods[1:]] == [
        ("web-1", derived_uid("Deployment", "shop", "web", "1"))
    ]
    assert replica_set(made) == PodController(
        "apps/v1",
        "ReplicaSet",
        owner.name,
        "shop",
        owner.uid,
        (
            Requirement("app", frozenset({"web"})),
            Requirement(HASH_LABEL, frozenset({digest})),
        ),
    )


def test_another_template_is_another_revision() -> None:
    first = read(workload("Deployment")).pod.labels[HASH_LABEL]
    second = read(workload("Deployment", pod={"nodeSelector": {"a": "b"}})).pod.labels[HASH_LABEL]

    assert first != second


def test_copies_share_rules_labels_and_requests() -> None:
    first, second = expanded(workload("Deployment", replicas=2))

    assert first.rules is second.rules
    assert first.labels is second.labels
    assert first.requests is second.requests


def test_pods_are_as_old_as_their_workload() -> None:
    pods = expanded(workload("ReplicaSet", meta={"creationTimestamp": "2026-01-01T00:00:00Z"}))

    assert [each.created for each in pods] == [datetime(2026, 1, 1, tzinfo=UTC)]


def test_a_stateful_set_numbers_its_pods_and_gives_each_its_own_volumes() -> None:
    made = read(
        workload(
            "StatefulSet",
            "db",
            replicas=2,
            ordinals={"start": 5},
            volumeClaimTemplates=[
                {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}},
                {"metadata": {"name": "log"}},
            ],
            pod={
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "replaced"}},
                    {"name": "kept", "persistentVolumeClaim": {"claimName": "shared"}},
                ]
            },
        )
    )

    pods = list(expand(made))

    assert [(each.name, each.labels, each.rules.volumes) for each in pods] == [
        (
            f"db-{number}",
            {
                "app": "db",
                "statefulset.kubernetes.io/pod-name": f"db-{number}",
                "apps.kubernetes.io/pod-index": f"{number}",
            },
            (
                PodVolume("data", f"data-db-{number}"),
                PodVolume("log", f"log-db-{number}"),
                PodVolume("kept", "shared"),
            ),
        )
        for number in (5, 6)
    ]
    assert claims_for(made, pods[0]) == [
        PersistentVolumeClaim("data-db-5", "default", storage_class="fast"),
        PersistentVolumeClaim("log-db-5", "default"),
    ]
    assert [(owner.api_version, owner.kind, owner.name) for owner in pods[0].owners] == [
        ("apps/v1", "StatefulSet", "db")
    ]


def test_an_ephemeral_volume_comes_with_its_claim() -> None:
    template = {"spec": {"storageClassName": "fast"}}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    made = read(workload("Deployment", pod={"volumes": [volume]}))

    (pod,) = expand(made)

    assert pod.rules.volumes == (PodVolume("scratch"),)
    assert claims_for(made, pod) == [
        PersistentVolumeClaim("web-0-scratch", "default", storage_class="fast")
    ]


@pytest.mark.parametrize(
    ("obj", "count"),
    [
        (workload("Job"), 1),
        (workload("Job", parallelism=3), 3),
        (workload("Job", parallelism=3, completions=2), 2),
        (workload("Job", parallelism=3, completions=5, status={"succeeded": 4}), 1),
        (workload("Job", completions=2, status={"succeeded": 9}), 0),
        (workload("Job", suspend=True), 0),
        (workload("Job", status={"conditions": [{"type": "Complete", "status": "True"}]}), 0),
        (workload("Job", status={"conditions": [{"type": "Complete", "status": "False"}]}), 1),
        (workload("ReplicationController", replicas=2), 2),
        (workload("ReplicaSet", replicas=0), 0),
        (workload("Deployment", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}), 0),
    ],
)
def test_a_workload_creates_the_pods_that_it_still_needs(obj: Json, count: int) -> None:
    assert len(expanded(obj)) == count


def test_pods_of_a_job_are_labelled_after_it() -> None:
    (pod,) = expanded(workload("Job", "once"))

    assert pod.labels == {
        "app": "once",
        "job-name": "once",
        "batch.kubernetes.io/job-name": "once",
    }
    assert pod.owners[0].api_version == "batch/v1"


def test_only_a_deployment_needs_a_replica_set() -> None:
    assert replica_set(read(workload("StatefulSet"))) is None


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (workload("Deployment", replicas=-1), ("spec.replicas", "is -1")),
        (
            workload("Deployment", replicas=REPLICAS_MAX + 1),
            ("spec.replicas", f"is {REPLICAS_MAX + 1}, more than Karpy looks at"),
        ),
        (
            workload("Job", parallelism="x"),
            ("spec.parallelism", "is the text `x`, not a whole number"),
        ),
        (
            workload("Deployment", pod={"containers": []}),
            ("spec.template.spec.containers", "is empty"),
        ),
        (
            workload("Deployment", meta={"creationTimestamp": "x"}),
            ("metadata.creationTimestamp", "is `x`, not a time"),
        ),
        (
            workload("StatefulSet", volumeClaimTemplates=[{}]),
            ("spec.volumeClaimTemplates[0].metadata.name", "is missing"),
        ),
    ],
)
def test_a_fault_of_a_workload_is_reported_with_its_path(
    obj: Json, expected: tuple[str, str]
) -> None:
    assert fault(obj) == expected


def test_a_uid_depends_on_nothing_but_the_names() -> None:
    assert derived_uid("Deployment", "shop", "web", "0") == "2608abf3-8dee-4622-0149-65710f9edcb7"
