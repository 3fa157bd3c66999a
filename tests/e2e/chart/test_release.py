"""The charts on a real API server, from installation to removal."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import pytest
import yaml

from karpy.adapters.controlplane.operators import NAMESPACE
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.kube.connection import connect
from karpy.cli.options import ANSWERED_NO, DONE
from karpy.codec.fields import JsonObject
from karpy.model.kinds import KWOK_NODE_CLASS
from tests.charts.helm import CHART, Helm
from tests.cli.conftest import Karpy, Run
from tests.e2e.operator.stage import Stage, start_karpy
from tests.scenarios.manifests import node_class
from tests.wiring.everything import SETTINGS, Everything
from tests.wiring.grants import Grant, Use, grants, ungranted, unused

KWOK: Final = ("--set", "settings.provider=kwok")
OURS: Final = "app.kubernetes.io/instance=karpenter"
_SECONDS: Final = 60.0


def _all(plane: ControlPlane, what: str, *words: str) -> list[JsonObject]:
    items: list[JsonObject] = json.loads(plane.kubectl("get", what, "-o", "json", *words))["items"]
    return items


def _until(holds: Callable[[], object]) -> None:
    deadline = monotonic() + _SECONDS
    while not holds():
        assert monotonic() < deadline, "not in time"
        sleep(0.2)


@pytest.fixture
def ground(plane: ControlPlane) -> Iterator[tuple[str, ...]]:
    """Nodes of others in two zones, and a node that Karpy may remove."""
    labels = {
        "ground-a": {"topology.kubernetes.io/zone": "a"},
        "ground-b": {"topology.kubernetes.io/zone": "b"},
        "own": {"topology.kubernetes.io/zone": "c", "karpenter.sh/nodepool": "default"},
    }
    for name, more in labels.items():
        meta = {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name, **more},
        }
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
        node["status"] = {"capacity": amounts, "allocatable": amounts}
        plane.kubectl("create", "-f", "-", stdin=json.dumps(node))
    yield ("ground-a", "ground-b")
    plane.kubectl("delete", "nodes", *labels, "--wait=false")


def test_pods_are_admitted_and_run_on_nodes_that_stay(
    plane: ControlPlane, ground: tuple[str, ...], release: str
) -> None:
    """The namespace enforces the restricted profile of Pod Security Standards."""
    select = ("-n", release, "-l", "app.kubernetes.io/name=karpenter")
    plane.kubectl(
        "wait", "--for=condition=Available", "deployment/karpenter", "-n", release, "--timeout=60s"
    )
    pods = _all(plane, "pods", *select)

    assert {each["spec"]["nodeName"] for each in pods} == set(ground)
    assert [each["status"]["phase"] for each in pods] == ["Running", "Running"]
    assert _all(plane, "poddisruptionbudgets", "-n", release)[0]["status"]["currentHealthy"] == 2


def test_pods_outside_of_the_profile_are_not_admitted(plane: ControlPlane, release: str) -> None:
    """The namespace really refuses pods outside of the restricted profile."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "root", "namespace": release},
        "spec": {"containers": [{"name": "c", "image": "c"}]},
    }

    answer = plane.try_kubectl("create", "-f", "-", stdin=json.dumps(pod))

    assert answer.code != 0
    assert 'violates PodSecurity "restricted' in answer.err


def _granted(helm: Helm, namespace: str) -> list[Grant]:
    """List the rights that the release grants to its account, by the names of deploy/rbac.yaml."""
    text = helm("get", "manifest", "karpenter", "--namespace", namespace)
    objects = [each for each in yaml.safe_load_all(text) if each]
    bound = {
        (each["roleRef"]["kind"], each["roleRef"]["name"])
        for each in objects
        if each["kind"].endswith("Binding")
    }
    roles = [each for each in objects if (each["kind"], each["metadata"]["name"]) in bound]
    assert len(roles) == len(bound) == 3
    return list(grants(roles))


def _use_of(entry: JsonObject) -> Use:
    there = entry["objectRef"]
    resource, part = there["resource"], there.get("subresource", "")
    whole = f"{resource}/{part}" if part else resource
    place = there.get("namespace", ""), there.get("name", "")
    return Use(entry["verb"], there.get("apiGroup", ""), whole, *place)


def test_doctor_finds_a_right_that_is_missing(
    plane: ControlPlane, release: str, karpy: Karpy
) -> None:
    words = ("doctor", f"--kubeconfig={plane.kubeconfig}", "--output=json")
    binding = "clusterrolebinding/karpenter-core"

    # Changes of roles and bindings take effect with a delay.
    whole = _judged(lambda: karpy(*words), "green")
    plane.kubectl("delete", binding)
    lacking = _judged(lambda: karpy(*words), "red")

    assert whole["text"].startswith(f"system:serviceaccount:{release}:karpenter may")
    assert "create pods/eviction" in lacking["objects"]


def test_doctor_run_by_the_operator_itself_leaves_out_what_it_may_not_see(
    plane: ControlPlane, release: str, karpy: Karpy, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    plane.write_kubeconfig(kubeconfig, plane.service_account_token("karpenter", release))

    words = ("doctor", f"--kubeconfig={kubeconfig}", "--output=json")
    _judged(lambda: karpy(*words), "green")

    found = _checks(karpy(*words))
    assert any("leases" in each for each in found["left out"]["objects"])
    assert {"leader", "definitions"}.isdisjoint(found)


def _judged(run: Callable[[], Run], health: str) -> JsonObject:
    """Wait until doctor's check of the rights has a result; return the check."""
    _until(lambda: _checks(run())["rights"]["health"] == health)
    return _checks(run())["rights"]


def _checks(run: Run) -> dict[str, JsonObject]:
    assert run.code in {DONE, ANSWERED_NO}, run.err
    found: dict[str, JsonObject] = {each["check"]: each for each in json.loads(run.out)["checks"]}
    return found


def _there(plane: ControlPlane) -> dict[str, set[str]]:
    """Return the UIDs of all objects of users and of the operator."""
    kinds = ("crd", "nodes", "nodeclaims", "nodepools", "kwoknodeclasses")
    return {kind: {each["metadata"]["uid"] for each in _all(plane, kind)} for kind in kinds}


def _replicas(plane: ControlPlane, namespace: str) -> int:
    (deployment,) = _all(plane, "deployments", "-n", namespace)
    replicas: int = deployment["spec"]["replicas"]
    return replicas


@contextmanager
def _karpy(plane: ControlPlane, namespace: str) -> Iterator[Stage]:
    """`karpy run` with the token of the chart's account."""
    kubeconfig = plane.home / "chart-kubeconfig"
    plane.write_kubeconfig(kubeconfig, plane.service_account_token("karpenter", namespace))
    with start_karpy(plane, kubeconfig, **SETTINGS) as operator:
        yield Stage(plane, operator)


async def test_a_release_has_the_rights_it_uses_and_leaves_behind_what_is_not_its_own(
    plane: ControlPlane, helm: Helm, release: str
) -> None:
    """The audit log of the API server has every request of `karpy run` with the account's token."""
    whole = {"apiVersion": KWOK_NODE_CLASS.api_version, "kind": KWOK_NODE_CLASS.name}
    plane.kubectl("apply", "-f", "-", stdin=json.dumps({**whole, **node_class()}))
    plane.kubectl("delete", "leases", "--all", "-n", release)
    in_release = ("--namespace", release)
    earlier = plane.audit_log.stat().st_size

    with _karpy(plane, release):
        async with connect(kubeconfig=str(plane.kubeconfig)) as admin:
            await Everything(admin.objects).happen()
    entries = [json.loads(line) for line in plane.audit_log.read_bytes()[earlier:].splitlines()]
    known = _granted(helm, release)
    before = _there(plane)

    denied = [each for each in entries if each.get("responseStatus", {}).get("code") == 403]
    uses = [_use_of(each) for each in entries]
    assert denied == []
    assert (ungranted(uses, known), unused(uses, known=known)) == ([], [])
    assert all(before.values())

    helm("upgrade", "karpenter", CHART, *in_release, *KWOK, "--set", "replicas=3")
    assert _replicas(plane, release) == 3
    helm("rollback", "karpenter", *in_release)
    assert _replicas(plane, release) == 2
    assert _there(plane) == before
    helm("uninstall", "karpenter", *in_release)
    assert _all(plane, "deployments,services,serviceaccounts", "-n", release, "-l", OURS) == []
    assert _all(plane, "clusterroles,clusterrolebindings", "-l", OURS) == []
    assert _there(plane) == before

    # Another release adopts the existing objects.
    helm("install", "karpenter", CHART, *in_release, "--skip-crds", *KWOK)
    with _karpy(plane, release) as stage:
        stage.clear()
        plane.kubectl("delete", "kwoknodeclasses", "--all")


def test_a_release_of_karpenter_becomes_one_of_karpy_and_goes_back(
    plane: ControlPlane, helm: Helm, definitions: str, tmp_path: Path
) -> None:
    """Immutable fields are equal: selectors, and the roles of bindings."""
    in_release = ("--namespace", definitions)
    helm("install", "karpenter", _like_karpenters(tmp_path / "karpenter"), *in_release)
    theirs = _unchanging(plane, definitions)

    helm("upgrade", "karpenter", CHART, *in_release, "--skip-crds", *KWOK)
    ours = _unchanging(plane, definitions)
    helm("rollback", "karpenter", *in_release)
    again = _unchanging(plane, definitions)
    helm("uninstall", "karpenter", *in_release)

    assert theirs.items() <= ours.items()
    assert again == theirs


def _unchanging(plane: ControlPlane, namespace: str) -> dict[str, str]:
    """Return the UIDs of the objects with immutable fields."""
    kinds = "deployments,serviceaccounts,rolebindings,clusterrolebindings"
    found = _all(plane, kinds, "-n", namespace, "-l", OURS)
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["uid"] for each in found}


def _like_karpenters(chart: Path) -> Path:
    """Write a chart with only the immutable fields of Karpenter's objects."""
    labels = {"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/instance": "karpenter"}
    subject = {"kind": "ServiceAccount", "name": "karpenter", "namespace": NAMESPACE}
    rbac = "rbac.authorization.k8s.io"
    container = {"name": "controller", "image": "public.ecr.aws/karpenter/controller:1.14.1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    objects: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "karpenter"}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "karpenter"},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
        },
        *(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": f"{kind}Binding",
                "metadata": {"name": name},
                "roleRef": {"apiGroup": rbac, "kind": kind, "name": name},
                "subjects": [subject],
            }
            for kind, name in (
                ("ClusterRole", "karpenter"),
                ("ClusterRole", "karpenter-core"),
                ("Role", "karpenter"),
            )
        ),
    ]
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: karpenter\nversion: 1.14.1\n")
    for each in objects:
        each["metadata"]["labels"] = labels
    (chart / "templates" / "all.yaml").write_text(yaml.safe_dump_all(objects))
    return chart
