import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Karpy

SECONDS = 60


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command in its own process, and wait until it has printed its usage."""
    command = [sys.executable, "-m", "karpy", "cluster", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(kubeconfig: Path, path: str, bearer: str = "") -> tuple[int, bytes]:
    document: dict[str, Any] = json.loads(kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    authority = b64decode(cluster["certificate-authority-data"]).decode()
    trust = ssl.create_default_context(cadata=authority)
    host = cluster["server"].removeprefix("https://")
    connection = HTTPSConnection(host, context=trust, timeout=SECONDS)
    headers = {"Authorization": f"Bearer {bearer or user['token']}"}
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    answer = response.status, response.read()
    connection.close()
    return answer


def wait_for(kubeconfig: Path, path: str, part: bytes) -> bytes:
    """Ask until an answer contains a part; return that answer."""
    for _ in range(10 * SECONDS):
        _, answer = ask(kubeconfig, path)
        if part in answer:
            return answer
        time.sleep(0.1)
    raise TimeoutError(path)


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in log.read_text().splitlines()]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_runs_until_it_is_ended(tmp_path: Path, end: signal.Signals) -> None:
    kubeconfig = tmp_path / "cluster.yaml"

    with running("--kubeconfig", str(kubeconfig), "--nodes", "2") as process:
        assert process.stdout is not None
        first, _, third = (process.stdout.readline() for _ in range(3))
        status, body = ask(kubeconfig, "/api/v1/nodes")
        process.send_signal(end)
        _, problems = process.communicate(timeout=SECONDS)

    assert first.startswith("A Kubernetes cluster is up at https://127.0.0.1:")
    assert third == f"  export KUBECONFIG={kubeconfig}\n"
    assert (status, b'"node-2"' in body) == (200, True)
    assert kubeconfig.stat().st_mode & 0o777 == 0o600
    assert (process.returncode, problems) == (0, "")


def test_port_and_token_can_be_chosen(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "cluster.yaml"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])

    words = ("--kubeconfig", str(kubeconfig), "--port", port, "--token", "mine")
    with running(*words) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        status, _ = ask(kubeconfig, "/api", bearer="mine")

    assert first == f"A Kubernetes cluster is up at https://127.0.0.1:{port}\n"
    assert status == 200


def test_a_kubeconfig_of_ours_may_be_replaced(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "cluster.yaml"
    kubeconfig.write_text('{"contexts": [{"name": "karpy-cluster"}]}')

    with running("--kubeconfig", str(kubeconfig)) as process:
        assert process.stdout is not None
        process.stdout.readline()

    assert '"token"' in kubeconfig.read_text()


def test_a_cluster_with_the_autoscaler_gives_pods_nodes(tmp_path: Path) -> None:
    kubeconfig, log = tmp_path / "cluster.yaml", tmp_path / "operator.log"

    words = ("--kubeconfig", str(kubeconfig), "--operator", "--examples", "--log", str(log))
    with running(*words) as process:
        assert process.stdout is not None
        told = [process.stdout.readline().strip() for _ in range(9)]
        nodes = wait_for(kubeconfig, "/api/v1/nodes", b'"karpenter.sh/registered":"true"')
        wait_for(kubeconfig, "/apis/events.k8s.io/v1/events", b'"reason":"Nominated"')
        process.send_signal(signal.SIGINT)
        _, problems = process.communicate(timeout=SECONDS)

    assert told[0].startswith("A Kubernetes cluster with Karpy in it is up at https://127.0.0.1:")
    assert "kubectl scale deployment inflate --replicas=20" in told
    assert f"The autoscaler logs to {log}" in told
    assert b'"karpenter.sh/nodepool":"default"' in nodes
    assert "launched nodeclaim" in [each["message"] for each in lines(log)]
    assert (process.returncode, problems) == (0, "")


def test_without_the_autoscaler_examples_wait(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "cluster.yaml"

    with running("--kubeconfig", str(kubeconfig), "--examples") as process:
        assert process.stdout is not None
        process.stdout.readline()
        _, pools = ask(kubeconfig, "/apis/karpenter.sh/v1/nodepools")
        _, claims = ask(kubeconfig, "/apis/karpenter.sh/v1/nodeclaims")

    assert b'"name":"default"' in pools
    assert b'"items":[]' in claims


def test_a_log_that_cannot_be_written_is_an_error(karpy: Karpy, tmp_path: Path) -> None:
    run = karpy("cluster", "--operator", "--log", str(tmp_path / "nowhere" / "log"))

    assert (run.code, run.out) == (1, "")
    assert "(KP1006)" in run.err


@pytest.mark.parametrize("text", ['{"contexts": [{"name": "production"}]}', "", "a: ["])
def test_another_kubeconfig_is_left_alone(karpy: Karpy, tmp_path: Path, text: str) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(text)

    run = karpy("cluster", "--kubeconfig", str(kubeconfig))

    assert (run.code, kubeconfig.read_text()) == (1, text)
    assert "it is there already and is not one of ours (KP1006)" in run.err


@pytest.mark.parametrize("port", ["70000", "-1", "http"])
def test_an_invalid_port_is_misuse(karpy: Karpy, port: str) -> None:
    run = karpy("cluster", "--port", port)

    assert (run.code, "--port" in run.err) == (2, True)


def test_a_port_that_is_taken_is_an_error(karpy: Karpy) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        run = karpy("cluster", "--port", port)

    assert run.code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in run.err
    assert "hint: choose another port" in run.err


def test_what_is_not_installed_is_named(karpy: Karpy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "karpy.cli.residence", None)

    run = karpy("cluster")

    assert run.code == 1
    assert "(KP1009)" in run.err
    assert "hint: install what it needs: pip install 'karpy[embedded]'" in run.err
