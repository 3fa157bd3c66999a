"""KWOK's pods do as their annotations say."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from karpy.adapters.controlplane.plane import ControlPlane
from tests.controlplane.waiting import wait_until

pytestmark = pytest.mark.usefixtures("node")
Pod: TypeAlias = dict[str, Any]
Run: TypeAlias = Callable[..., Callable[[], Pod]]


@pytest.fixture
def run(control_plane: ControlPlane, namespace: str) -> Run:
    """Start a pod by its annotations; the answer looks at it."""

    def start(**annotations: str) -> Callable[[], Pod]:
        metadata = {
            "name": "one",
            "namespace": namespace,
            "annotations": {
                f"sim.karpy.dev/{name.replace('_', '-')}": value
                for name, value in annotations.items()
            },
        }
        spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "main"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        control_plane.kubectl("create", "-f", "-", stdin=json.dumps(pod))
        words = ("get", "pod", "one", "-n", namespace, "-o", "json")
        return lambda: json.loads(control_plane.kubectl(*words))

    return start


def is_ready(pod: Pod) -> bool:
    conditions = pod["status"].get("conditions", [])
    return {"Ready": "True"} in [{each["type"]: each["status"]} for each in conditions]


def phase(pod: Pod) -> str:
    return str(pod["status"]["phase"])


def test_a_pod_runs_and_goes_on_running(run: Run) -> None:
    look = run()

    wait_until(lambda: is_ready(look()))

    assert is_ready(look())
    assert phase(look()) == "Running"


def test_a_pod_that_never_gets_ready_runs_nonetheless(run: Run) -> None:
    look = run(ready_seconds="never")

    wait_until(lambda: phase(look()) == "Running")

    assert phase(look()) == "Running"
    assert not is_ready(look())


def test_a_pod_may_take_its_time_to_start_and_to_get_ready(run: Run) -> None:
    look = run(start_seconds="1", ready_seconds="4")
    wait_until(lambda: phase(look()) == "Running")
    early = look()

    wait_until(lambda: is_ready(look()))

    assert phase(early) == "Running"
    assert not is_ready(early)
    assert is_ready(look())


@pytest.mark.parametrize(("code", "expected"), [("0", "Succeeded"), ("3", "Failed")])
def test_a_pod_ends_with_its_exit_code(run: Run, code: str, expected: str) -> None:
    look = run(run_seconds="0.5", exit_code=code)

    wait_until(lambda: phase(look()) not in {"Pending", "Running"})

    status = look()["status"]
    assert status["phase"] == expected
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == int(code)


def test_a_pod_that_stops_slowly_is_there_for_a_while(
    run: Run, control_plane: ControlPlane, namespace: str
) -> None:
    look = run(stop_seconds="5")
    wait_until(lambda: is_ready(look()))
    where = ("-n", namespace)

    control_plane.kubectl("delete", "pod", "one", "--wait=false", *where)

    assert "deletionTimestamp" in look()["metadata"]
    control_plane.kubectl("wait", "--for=delete", "pod/one", "--timeout=30s", *where)
    assert control_plane.try_kubectl("get", "pod", "one", *where).code == 1


def test_a_job_comes_to_its_end(control_plane: ControlPlane, namespace: str) -> None:
    template = {
        "metadata": {"annotations": {"sim.karpy.dev/run-seconds": "0.5"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "main"}]},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sum", "namespace": namespace},
        "spec": {"completions": 2, "parallelism": 2, "template": template},
    }
    where = ("-n", namespace)
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(job))

    control_plane.kubectl("wait", "--for=condition=Complete", "job/sum", "--timeout=60s", *where)

    found = json.loads(control_plane.kubectl("get", "job", "sum", *where, "-o", "json"))
    assert found["status"]["succeeded"] == 2
