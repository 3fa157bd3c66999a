"""A leader that is frozen for longer than its lease writes nothing when it continues."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from os import kill
from pathlib import Path
from time import monotonic, sleep

import pytest
from msgspec import Struct

from karpy.adapters.controlplane.credentials import write_kubeconfig
from karpy.adapters.controlplane.operators import NAMESPACE, OperatorProcess
from karpy.model.kinds import DEPLOYMENT, NODE_POOL
from tests.e2e.operator.recording import Recorder, recording
from tests.e2e.operator.stage import ACCOUNT, Stage, start_karpy
from tests.scenarios.manifests import deployment, one_of, pool

SMALL = one_of("node.kubernetes.io/instance-type", "c-4x-amd64-linux")
SECONDS_FROZEN = 18.0
SECONDS_AFTER = 5.0


class Candidate(Struct, frozen=True):
    """An operator with leader election, and its writes."""

    operator: OperatorProcess
    recorder: Recorder

    def written_since(self, moment: float) -> list[str]:
        written = self.recorder.written
        return [f"{each.method} {each.path}" for each in written if each.at >= moment]


@pytest.fixture
def candidates(stage: Stage, tmp_path: Path) -> Iterator[tuple[Candidate, Candidate]]:
    """A leader and a standby; the operator of the other tests is stopped."""
    stage.operator.stop()
    stage.plane.try_kubectl("delete", "lease", "--all", "--namespace", NAMESPACE)
    with ExitStack() as stack:
        made = []
        for name in ("first", "second"):
            recorder = stack.enter_context(recording(stage.plane))
            kubeconfig = tmp_path / name
            token = stage.plane.service_account_token(ACCOUNT, NAMESPACE)
            authority = stage.plane.authority
            write_kubeconfig(kubeconfig, server=recorder.url, authority=authority, token=token)
            operator = start_karpy(stage.plane, kubeconfig, DISABLE_LEADER_ELECTION="false")
            made.append(Candidate(stack.enter_context(operator), recorder))
            stage.wait(lambda: _holder(stage))
        first, second = made
        yield first, second
    stage.operator.start()


def _holder(stage: Stage) -> str:
    leases = stage.all("leases", "-n", NAMESPACE)
    return "".join(each["spec"].get("holderIdentity", "") for each in leases)


@pytest.mark.parametrize("replicas", [20, 40, 60])
def test_a_leader_that_was_stopped_amid_its_work_writes_nothing_when_it_goes_on(
    stage: Stage, candidates: tuple[Candidate, Candidate], replicas: int
) -> None:
    first, second = candidates
    holder = _holder(stage)
    stage.apply(NODE_POOL, pool(requirements=[SMALL]))
    stage.apply(DEPLOYMENT, deployment("web", replicas))
    stage.wait(lambda: len(stage.all("nodeclaims")) > 1)

    kill(first.operator.pid, signal.SIGSTOP)
    frozen = monotonic()
    stage.wait(lambda: _holder(stage) not in {"", holder})
    stage.wait_for_pods("web", replicas)
    stage.scale("web", 0)
    sleep(max(0.0, frozen + SECONDS_FROZEN - monotonic()))
    thawed = monotonic()
    kill(first.operator.pid, signal.SIGCONT)
    sleep(SECONDS_AFTER)

    assert first.written_since(thawed) == []
    assert second.written_since(frozen) != []
    stage.wait(lambda: not first.operator.is_running)
