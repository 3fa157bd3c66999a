"""The real control plane is one, and can be halted, restarted and asked by others."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from karpy.adapters.controlplane.plane import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.e2e.planes import STRANGER


def get(plane: ControlPlane, *words: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(plane.kubectl("get", *words, "-o", "json"))
    return answer


def test_client_and_server_say_their_version(control_plane: ControlPlane) -> None:
    versions = json.loads(control_plane.kubectl("version", "-o", "json"))

    assert versions["clientVersion"]["gitVersion"] == "v1.36.3"
    assert versions["serverVersion"]["gitVersion"] == "v1.36.3"


def test_a_node_gets_ready_and_stays_so(control_plane: ControlPlane, node: str) -> None:
    control_plane.kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=30s")

    wait_until(lambda: "taints" not in get(control_plane, "node", node)["spec"])
    found = get(control_plane, "node", node)
    assert "taints" not in found["spec"]
    assert found["status"]["allocatable"]["cpu"] == "32"
    assert get(control_plane, "lease", node, "-n", "kube-node-lease")


@pytest.mark.usefixtures("node")
def test_a_deployment_runs_and_goes_away(control_plane: ControlPlane, namespace: str) -> None:
    """Scheduler, controllers and KWOK work together."""
    where = ("-n", namespace)
    control_plane.kubectl("create", "deployment", "web", "--image=web", "--replicas=3", *where)

    control_plane.kubectl("rollout", "status", "deployment/web", "--timeout=60s", *where)
    control_plane.kubectl("delete", "deployment", "web", *where)

    wait_until(lambda: not get(control_plane, "pods", *where)["items"])
    assert get(control_plane, "pods", *where)["items"] == []


def test_a_pod_may_be_made_in_a_namespace_at_once(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.kubectl("run", "one", "--image=one", "-n", namespace)

    spec = get(control_plane, "pod", "one", "-n", namespace)["spec"]
    assert "volumes" not in spec


def test_a_stranger_may_do_nothing(control_plane: ControlPlane) -> None:
    answer = control_plane.try_kubectl("get", "pods", token=control_plane.token_of(STRANGER))

    assert answer.code == 1
    assert 'User "stranger" cannot list resource "pods"' in answer.err


def test_an_unknown_token_is_refused(control_plane: ControlPlane) -> None:
    answer = control_plane.try_kubectl("get", "pods", token="x" * 32)

    assert answer.code == 1
    assert "You must be logged in to the server" in answer.err


def test_a_service_account_may_do_what_its_role_says(
    control_plane: ControlPlane, namespace: str
) -> None:
    token = control_plane.service_account_token("reader", namespace)
    before = control_plane.try_kubectl("get", "pods", "-n", namespace, token=token)
    control_plane.kubectl(
        *("create", "rolebinding", "reader", "-n", namespace),
        *("--clusterrole=view", f"--serviceaccount={namespace}:reader"),
    )

    after = control_plane.try_kubectl("get", "pods", "-n", namespace, token=token)

    assert before.code == 1
    assert (after.code, after.out) == (0, "")


def test_the_api_server_comes_back_as_it_was(control_plane: ControlPlane, namespace: str) -> None:
    server = control_plane.server
    control_plane.kubectl("create", "configmap", "kept", "-n", namespace)
    control_plane.halt(is_killed=True)
    down = control_plane.try_kubectl("get", "configmap", "kept", "-n", namespace)

    control_plane.resume()

    assert "refused" in down.err
    assert control_plane.server == server
    assert get(control_plane, "configmap", "kept", "-n", namespace)["metadata"]["name"] == "kept"


def test_a_page_after_a_compaction_is_expired(control_plane: ControlPlane, namespace: str) -> None:
    """A continue token from before the compaction gets status 410."""
    path = f"/api/v1/namespaces/{namespace}/configmaps?limit=1"
    control_plane.kubectl("create", "configmap", "one", "-n", namespace)
    control_plane.kubectl("create", "configmap", "two", "-n", namespace)
    first = json.loads(control_plane.kubectl("get", "--raw", path))
    control_plane.kubectl("create", "configmap", "three", "-n", namespace)

    control_plane.compact()

    words = ("get", "--raw", f"{path}&continue={first['metadata']['continue']}")
    wait_until(lambda: control_plane.try_kubectl(*words).code, seconds=60)
    late = control_plane.try_kubectl(*words)
    assert late.code == 1
    assert "too old" in late.err


def test_a_kubeconfig_can_be_written_for_any_token(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"

    control_plane.write_kubeconfig(path, control_plane.token_of(STRANGER))

    assert control_plane.token_of(STRANGER) in path.read_text()
    assert control_plane.token_of() not in path.read_text()


def test_programs_that_ended_by_themselves_are_started_again(
    control_plane: ControlPlane, request: pytest.FixtureRequest
) -> None:
    before = control_plane.pid_of("kwok")

    os.kill(before, signal.SIGKILL)
    wait_until(control_plane.restart_ended)

    assert control_plane.pid_of("kwok") != before
    # A new node: one from before is the dead program's until its lease of it runs out.
    node = request.getfixturevalue("node")
    control_plane.kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=30s")
