from datetime import UTC, datetime

import msgspec
import pytest

from karpy.codec.fields import FieldInvalid
from karpy.codec.podjson import PodJsonReader
from tests.codec.plain import Json, Value, container, plain_pod

RUNNING: Json = {
    "phase": "Running",
    "conditions": [{"type": "PodScheduled", "status": "True"}],
}
GIVEN_UP: Json = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
}
AFFINITY: Json = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
        ]
    }
}


def served(name: str, **spec: Value) -> Json:
    """Return a pod the way an API server sends it."""
    meta = {
        "namespace": "shop",
        "uid": f"uid-{name}",
        "labels": {"app": "web"},
        "creationTimestamp": f"2026-01-01T00:00:{len(name):02}Z",
        "managedFields": [{"manager": "kubelet"}],
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": "u",
                "controller": True,
            }
        ],
    }
    spec.setdefault("status", RUNNING)
    spec.setdefault("containers", [container(requests={"cpu": "100m"})])
    return plain_pod(name, meta=meta, **spec)


KINDS: dict[str, Json] = {
    "plain": {},
    "bound": {"nodeName": "n1"},
    "ready": {
        "nodeName": "n1",
        "containers": [container(requests={"cpu": "1"}, limits={"cpu": "2"})],
        "status": {
            "phase": "Running",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "True",
                    "lastTransitionTime": "2026-01-01T00:01:00Z",
                },
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:02:00Z"},
            ],
        },
    },
    "not ready": {
        "nodeName": "n1",
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": None}],
        },
    },
    "given up": {"status": GIVEN_UP},
    "affine": {"affinity": AFFINITY, "nodeSelector": {"zone": "a"}},
    "with a token": {"volumes": [{"name": "kube-api-access-x7f", "projected": {}}]},
    "with a volume": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
    "with a sidecar": {
        "initContainers": [{**container(requests={"cpu": "1"}), "restartPolicy": "Always"}]
    },
    "resized": {
        "status": {
            **RUNNING,
            "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
        }
    },
    "with nothing but a phase": {"status": {"phase": "Pending"}},
    "without a status": {"status": {}},
    "with overhead": {"overhead": {"cpu": "10m"}},
    "with nulls": {"affinity": None, "nodeName": None, "volumes": None},
}


@pytest.mark.parametrize("spec", KINDS.values(), ids=KINDS.keys())
def test_bytes_and_objects_give_the_same_pods(spec: Json) -> None:
    """The second of two equal pods is built from the cached parts of the first."""
    objs = [served(name, **spec) for name in ("web-1", "web-22")]
    reader = PodJsonReader()

    read = [reader.from_bytes(msgspec.json.encode(obj)) for obj in objs]

    assert read == [PodJsonReader().from_object(obj) for obj in objs]


def test_pods_of_every_kind_do_not_mix_up() -> None:
    objs = [served(f"web-{number}", **spec) for number, spec in enumerate(KINDS.values())]
    reader = PodJsonReader()

    read = [reader.from_bytes(msgspec.json.encode(obj)) for obj in objs + objs]

    assert read == [PodJsonReader().from_object(obj) for obj in objs + objs]


def test_a_reader_with_full_caches_reads_the_same_pods() -> None:
    objs = [served(f"web-{number}", **spec) for number, spec in enumerate(KINDS.values())]
    reader = PodJsonReader(most=1)

    read = [reader.from_bytes(msgspec.json.encode(obj)) for obj in objs + objs]

    assert read == [PodJsonReader().from_object(obj) for obj in objs + objs]


def test_a_pod_has_the_times_it_was_bound_and_ready_and_its_limits() -> None:
    obj = served("web-1", **KINDS["ready"])
    reader = PodJsonReader()

    first, second = (reader.from_bytes(msgspec.json.encode(obj)) for _ in range(2))

    assert first == second
    assert (first.limits, first.bound, first.ready) == (
        {"cpu": 2000},
        datetime(2026, 1, 1, 0, 1, tzinfo=UTC),
        datetime(2026, 1, 1, 0, 2, tzinfo=UTC),
    )
    assert first.limits is second.limits


def test_pods_of_one_workload_share_its_template() -> None:
    reader = PodJsonReader()

    first, second = (
        reader.from_bytes(msgspec.json.encode(served(name))) for name in ("web-1", "web-2")
    )

    assert first.rules is second.rules
    assert first.labels is second.labels
    assert first.requests is second.requests
    assert first.owners is second.owners


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"containers": [container(requests={"cpu": "-1"})]}, "spec.containers[0]"),
        ({"nodeName": 5}, ""),
        ({"tolerations": "all"}, "spec.tolerations"),
    ],
)
def test_an_unreadable_field_is_named(change: Json, path: str) -> None:
    with pytest.raises(FieldInvalid) as raised:
        PodJsonReader().from_bytes(msgspec.json.encode(served("web-1", **change)))

    assert raised.value.path.startswith(path)


def test_json_that_is_no_object_is_refused() -> None:
    with pytest.raises(FieldInvalid):
        PodJsonReader().from_bytes(b"[]")


@pytest.mark.parametrize(
    ("change", "is_untried"),
    [
        ({}, True),
        ({"spec": {"schedulerName": "default-scheduler"}}, True),
        ({"spec": {"schedulerName": "batch"}}, False),
        ({"spec": {"nodeName": "n1"}}, False),
        ({"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}, False),
        ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, True),
    ],
    ids=["fresh", "usual", "other scheduler", "bound", "looked at", "another condition"],
)
def test_a_pod_that_kube_scheduler_has_not_tried_is_untried(
    change: dict[str, dict[str, object]], *, is_untried: bool
) -> None:
    obj = {
        "metadata": {"name": "a", "creationTimestamp": "2026-01-01T12:00:00Z", "uid": "u"},
        "spec": {"containers": [{"name": "c"}], **change.get("spec", {})},
        "status": {"phase": "Pending", **change.get("status", {})},
    }
    reader = PodJsonReader()
    data = msgspec.json.encode(obj)

    first, second = reader.from_bytes(data), reader.from_bytes(data)

    assert reader.from_object(obj).is_untried is is_untried
    assert (first.is_untried, second.is_untried) == (is_untried, is_untried)


@pytest.mark.parametrize(
    ("node", "message", "found"),
    [
        (None, "0/1 nodes are available.", "0/1 nodes are available."),
        (None, "x" * 600, "x" * 500),
        (None, None, ""),
        (None, 5, ""),
        ("n1", "0/1 nodes are available.", ""),
    ],
)
def test_the_message_of_kube_scheduler_is_kept_while_a_pod_is_unschedulable(
    node: str | None, message: Value, found: str
) -> None:
    condition = {"type": "PodScheduled", "reason": "Unschedulable", "message": message}
    obj = served("p", nodeName=node, status={"phase": "Pending", "conditions": [condition]})
    reader = PodJsonReader()
    # The first pod of a workload is read as an object, the second from its bytes.
    read = [reader.from_bytes(msgspec.json.encode(obj)) for _ in range(2)]

    assert [each.scheduler_message for each in (*read, reader.from_object(obj))] == [found] * 3
