"""CapacityBuffers among manifests: their virtual pods are planned, shown and explained."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest
from syrupy.assertion import SnapshotAssertion

from karpy.wiring.embedded import embedded_world, serve
from tests.cli.conftest import Karpy, Run
from tests.cli.manifests import NODE, POOL, pod, stream
from tests.cli.nodemanifests import claim, node, pool
from tests.cli.test_explain_nodes import apply_with_status

NOW: Final = ("--now", "2026-03-01T12:00:00Z", "--feature-gates", "CapacityBuffer=true")
NAMESPACE: Final = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
TEMPLATE: Final = """\
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: main
          image: registry.example/main:1
          resources: {requests: {cpu: "1", memory: 1Gi}}
"""


def workload(kind: str, name: str = "web", replicas: int = 2) -> str:
    return (
        f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: shop}}\n"
        f"spec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: web}}}}\n{TEMPLATE}"
    )


def pod_template(volumes: str = "[]") -> str:
    return (
        "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: web, namespace: shop}\n"
        "template:\n  metadata: {labels: {app: web}}\n"
        "  spec:\n    containers:\n      - name: main\n        image: registry.example/main:1\n"
        f'        resources: {{requests: {{cpu: "1", memory: 1Gi}}}}\n    volumes: {volumes}\n'
    )


def buffer(spec: str, name: str = "spare") -> str:
    return (
        "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\n"
        f"metadata: {{name: {name}, namespace: shop}}\nspec: {{{spec}}}\n"
    )


def ref(kind: str = "Deployment", group: str = "apps") -> str:
    return f"scalableRef: {{apiGroup: {group}, kind: {kind}, name: web}}"


OF_TEMPLATE: Final = "podTemplateRef: {name: web}"


def solved(karpy: Karpy, *documents: str) -> tuple[Run, dict[str, Any]]:
    run = karpy("solve", "-", *NOW, "--output", "json", stdin=stream(POOL, *documents))
    return run, json.loads(run.out)


def said(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return severity, code and message of the findings about buffers."""
    return [
        (each["severity"], each["code"], each["message"])
        for each in answer["findings"]
        if "CapacityBuffer" in each["object"] or each["code"].startswith("BUFFER")
    ]


def test_virtual_pods_are_planned_beside_the_others(
    karpy: Karpy, snapshot: SnapshotAssertion
) -> None:
    spare = buffer(f"{ref()}, percentage: 100")

    run = karpy("solve", "-", *NOW, stdin=stream(POOL, NODE, workload("Deployment"), spare))

    assert run == snapshot


@pytest.mark.parametrize(
    ("source", "spec", "count"),
    [
        (workload("Deployment", replicas=10), f"{ref()}, percentage: 25", 3),
        (workload("StatefulSet", replicas=10), f"{ref('StatefulSet')}, replicas: 2", 2),
        (workload("ReplicaSet", replicas=4), f"{ref('ReplicaSet')}, percentage: 50", 2),
        (workload("Deployment", replicas=4), f"{ref(group='')}, replicas: 3, percentage: 1", 3),
        (pod_template(), f"{OF_TEMPLATE}, replicas: 3", 3),
        (pod_template(), f'{OF_TEMPLATE}, limits: {{cpu: "5"}}', 5),
        (pod_template(), f"{OF_TEMPLATE}, replicas: 9, limits: {{memory: 4Gi}}", 4),
    ],
)
def test_a_buffer_is_as_large_as_for_the_operator(
    karpy: Karpy, source: str, spec: str, count: int
) -> None:
    run, answer = solved(karpy, source, buffer(spec))

    virtual = [f"shop/capacity-buffer-spare-{number}" for number in range(1, count + 1)]
    launched = [key for each in answer["launches"] for key in each["pods"]]
    assert run.code == 0
    assert answer["buffers"] == [
        {
            "name": "shop/spare",
            "virtualPods": virtual,
            "podsOnNewNodes": count,
            "podsOnExistingNodes": 0,
            "podsPending": 0,
        }
    ]
    assert set(virtual) <= set(launched)
    assert said(answer) == []


def test_room_that_cannot_be_made_is_a_no(karpy: Karpy) -> None:
    large = pod_template().replace('cpu: "1"', 'cpu: "9000"')

    run, answer = solved(karpy, large, buffer(f"{OF_TEMPLATE}, replicas: 2"))

    assert run.code == 3
    assert answer["buffers"][0]["podsPending"] == 2


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        (ref(), "spec.scalableRef", 'keeps no room: deployments.apps "web" not found'),
        (
            f"{OF_TEMPLATE}, replicas: 1",
            "spec.podTemplateRef",
            'keeps no room: podtemplates "web" not found',
        ),
    ],
)
def test_a_reference_that_is_missing_is_named(
    karpy: Karpy, spec: str, path: str, message: str
) -> None:
    run, answer = solved(karpy, buffer(spec))

    (finding,) = (each for each in answer["findings"] if each["path"] == path)
    assert run.code == 1
    assert answer["buffers"] == []
    assert (finding["code"], finding["message"]) == ("KP1023", message)
    assert finding["object"] == "CapacityBuffer shop/spare"
    assert finding["isLeftOut"]


@pytest.mark.parametrize(
    ("documents", "code", "expected"),
    [
        (
            (buffer(ref("Job", "batch")),),
            0,
            (
                "warning",
                "KP1023",
                (
                    "keeps no room: scalableRef is a Job of `batch`; "
                    "it can be one of Deployment, StatefulSet, ReplicaSet of apps"
                ),
            ),
        ),
        (
            (workload("Deployment"), buffer(ref())),
            0,
            (
                "note",
                "BUFFER_EMPTY",
                "asks for no pods by replicas, percentage and limits, and keeps no room",
            ),
        ),
        (
            (pod_template(), buffer(f"{OF_TEMPLATE}, replicas: 2000000000")),
            0,
            (
                "note",
                "BUFFER_LIMIT",
                (
                    "room is kept for 5000 of 2000000000 pods: at most 5000 for one CapacityBuffer,"
                    " and 10000 for all together"
                ),
            ),
        ),
        (
            (pod_template(), buffer(f"{OF_TEMPLATE}, replicas: 1, provisioningStrategy: other")),
            0,
            (
                "note",
                "BUFFER_STRATEGY",
                "is `other`, which counts as `buffer.x-k8s.io/active-capacity`",
            ),
        ),
        (
            (
                pod_template("[{name: d, persistentVolumeClaim: {claimName: d}}]"),
                buffer(f"{OF_TEMPLATE}, replicas: 1"),
            ),
            0,
            (
                "note",
                "BUFFER_VOLUMES",
                "keeps room for pods without the volumes of its template",
            ),
        ),
    ],
    ids=["kind", "empty", "limit", "strategy", "volumes"],
)
def test_what_the_answer_does_not_count_is_said(
    karpy: Karpy, documents: tuple[str, ...], code: int, expected: tuple[str, str, str]
) -> None:
    run, answer = solved(karpy, *documents)

    assert run.code == code
    assert said(answer) == [expected]


def test_a_closed_feature_gate_is_mentioned(karpy: Karpy) -> None:
    documents = stream(POOL, pod_template(), buffer(f"{OF_TEMPLATE}, replicas: 1"))

    run = karpy("solve", "-", stdin=documents)

    assert run.code == 0
    assert "heeds them only with `--feature-gates CapacityBuffer=true`" in run.err
    assert "1 new node for 1 pod; 1 of the pods is virtual" in run.out


def test_a_gate_that_is_open_to_judge_by_the_status_is_not_mentioned(karpy: Karpy) -> None:
    settled = (
        "status: {conditions: [{type: ReadyForProvisioning, status: 'True', reason: Resolved,"
        " lastTransitionTime: 2026-03-01T12:00:00Z}]}\n"
    )
    spare = buffer(f"{OF_TEMPLATE}, replicas: 1") + settled

    run = karpy("solve", "-", stdin=stream(POOL, pod_template(), spare))

    assert (run.code, run.err) == (0, "")


def test_pods_that_exist_have_their_place_first(karpy: Karpy) -> None:
    limited = POOL + "  limits: {nodes: 1}\n"
    run = karpy(
        *("solve", "-", *NOW, "--output", "json"),
        stdin=stream(
            limited, pod_template(), buffer(f"{OF_TEMPLATE}, replicas: 500"), pod("web-0")
        ),
    )

    answer = json.loads(run.out)
    assert run.code == 3
    assert "shop/web-0" in answer["launches"][0]["pods"]
    assert answer["buffers"][0]["podsPending"] > 0


def test_a_virtual_pod_is_explained_as_such(karpy: Karpy, snapshot: SnapshotAssertion) -> None:
    documents = stream(POOL, pod_template(), buffer(f"{OF_TEMPLATE}, replicas: 1"))

    text = karpy("explain", "capacity-buffer-spare-1", "-", *NOW, stdin=documents)
    answer = karpy(
        *("explain", "shop/capacity-buffer-spare-1", "-", *NOW, "--output", "json"),
        stdin=documents,
    )

    assert json.loads(answer.out)["buffer"] == "shop/spare"
    assert text == snapshot


def test_a_pod_template_that_cannot_be_read_is_named(karpy: Karpy) -> None:
    broken = pod_template().replace('cpu: "1"', "cpu: much")

    run, answer = solved(karpy, broken, buffer(f"{OF_TEMPLATE}, replicas: 1"))

    assert run.code == 1
    assert [each["object"] for each in answer["findings"] if each["severity"] == "error"] == [
        "PodTemplate shop/web"
    ]


def test_buffers_of_one_name_in_two_namespaces_are_two(karpy: Karpy) -> None:
    here = stream(pod_template(), buffer(f"{OF_TEMPLATE}, replicas: 1"))
    there = here.replace("namespace: shop", "namespace: other")

    _, answer = solved(karpy, here, there)

    assert [each["name"] for each in answer["buffers"]] == ["shop/spare", "other/spare"]
    assert sum(len(each["pods"]) for each in answer["launches"]) == 2


# --- live clusters -------------------------------------------------------------------------------


async def seen_live(
    karpy: Karpy, folder: Path, documents: str, *asked: tuple[str, ...]
) -> list[Run]:
    """Ask about a cluster with a pool of 16 CPUs on one node, and with other objects."""
    kubeconfig = folder / "kubeconfig"
    reach = ("--kubeconfig", str(kubeconfig), *NOW[2:])
    objects = stream(pool("general"), node("general-1", 8), claim("general-1", 8), documents)
    async with embedded_world() as world:
        apply_with_status(world, objects)
        async with serve(world, kubeconfig=kubeconfig):
            return [await asyncio.to_thread(karpy, *each, *reach) for each in asked]


async def test_room_on_a_node_of_a_live_cluster_counts(karpy: Karpy, tmp_path: Path) -> None:
    spare = stream(NAMESPACE, workload("Deployment"), buffer(f"{ref()}, percentage: 100"))

    text, top, virtual, kept = await seen_live(
        *(karpy, tmp_path, spare),
        ("top",),
        ("top", "--output", "json"),
        ("explain", "shop/capacity-buffer-spare-1", "--output", "json"),
        ("explain", "node", "general-1"),
    )

    (seen,) = json.loads(top.out)["nodes"]
    explained = json.loads(virtual.out)
    assert (top.code, top.err) == (0, "")
    assert text.out.splitlines()[-1].endswith("  ready, room for 2 virtual pods")
    assert (seen["podsComing"], seen["virtualPods"]) == (0, 2)
    assert (explained["buffer"], explained["node"]) == ("shop/spare", "general-1")
    assert (kept.code, kept.err) == (3, "")
    assert "emptiness     it keeps room for a CapacityBuffer (2 pods)" in kept.out


async def test_a_live_buffer_with_a_reference_to_nothing_keeps_no_room(
    karpy: Karpy, tmp_path: Path
) -> None:
    (top,) = await seen_live(
        *(karpy, tmp_path, stream(NAMESPACE, buffer(ref()))), ("top", "--output", "json")
    )

    (finding,) = json.loads(top.out)["findings"]
    assert top.code == 0
    assert (finding["severity"], finding["object"]) == ("warning", "CapacityBuffer shop/spare")
    assert finding["hint"] == "create the object that it names"
