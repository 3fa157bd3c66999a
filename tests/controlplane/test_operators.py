import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from karpy.adapters.controlplane.guard import Guard, Process
from karpy.adapters.controlplane.operators import OperatorProcess
from karpy.errors import ControlPlaneMissing
from tests.controlplane.waiting import is_alive

SERVER = """
import http.server, os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: (print("bye", flush=True), os._exit(0)))
print(" ".join(f"{key}={os.environ[key]}" for key in sorted(os.environ)), flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *words):
        pass
port = int(os.environ["HEALTH_PROBE_PORT"])
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
READY = [sys.executable, "-c", SERVER]


class EmptyPlane:
    """A control plane without programs."""

    def __init__(self, home: Path, guard: Guard) -> None:
        self.home = home
        self.kubeconfig = home / "admin.kubeconfig"
        self._guard = guard

    def log(self, program: str) -> Path:
        return self.home / f"{program}.log"

    def spawn(
        self, name: str, argv: Sequence[str | Path], environ: Mapping[str, str] | None = None
    ) -> Process:
        return self._guard.spawn(argv, log=self.log(name), environ=environ)


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[EmptyPlane]:
    with Guard() as guard:
        yield EmptyPlane(tmp_path, guard)


def test_an_operator_is_ready_once_it_is_entered_and_ends_in_peace(plane: EmptyPlane) -> None:
    with OperatorProcess(plane, READY) as operator:
        was_running = operator.is_running

    assert was_running
    assert not operator.is_running
    assert not is_alive(operator.pid)
    assert operator.log.read_text().endswith("bye\n")


def test_an_operator_gets_karpenters_variables_and_no_other(
    plane: EmptyPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCH_IDLE_DURATION", "1h")

    with OperatorProcess(plane, READY, settings={"LOG_LEVEL": "debug"}) as operator:
        said = operator.log.read_text().split()

    assert f"KUBECONFIG={plane.kubeconfig}" in said
    assert f"METRICS_PORT={operator.metrics_port}" in said
    assert "DISABLE_LEADER_ELECTION=true" in said
    assert "LOG_LEVEL=debug" in said
    assert [word for word in said if word.startswith("BATCH")] == []


def test_another_kubeconfig_gives_another_identity(plane: EmptyPlane, tmp_path: Path) -> None:
    with OperatorProcess(plane, READY, kubeconfig=tmp_path / "other") as operator:
        said = operator.log.read_text()

    assert f"KUBECONFIG={tmp_path / 'other'}" in said


def test_an_operator_can_crash_and_come_back(plane: EmptyPlane) -> None:
    with OperatorProcess(plane, READY, name="karpy") as operator:
        first = operator.pid
        operator.stop(is_killed=True)
        operator.start()
        second = operator.pid

    assert first != second
    assert operator.log.read_text().count("KUBECONFIG=") == 2


def test_an_operator_that_ends_at_once_is_reported_with_its_log(plane: EmptyPlane) -> None:
    with (
        pytest.raises(ControlPlaneMissing) as caught,
        OperatorProcess(plane, ["/bin/sh", "-c", "echo no CRDs; exit 3"], name="karpenter"),
    ):
        pass

    assert caught.value.message == (
        f"no karpenter: `/bin/sh` ended with code 3; the end of {plane.log('karpenter')}:\nno CRDs"
    )


def test_an_operator_that_never_gets_ready_is_given_up(
    plane: EmptyPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karpy.adapters.controlplane.operators._SECONDS_TO_START", 0.3)
    operator = OperatorProcess(plane, ["/bin/sleep", "600"])

    with pytest.raises(ControlPlaneMissing, match="is not ready after 0 s"):
        operator.start()

    assert not is_alive(operator.pid)
