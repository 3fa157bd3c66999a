"""Karpy and the real Karpenter side by side: one lease, one leader."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import pytest

from karpy.adapters.controlplane.operators import NAMESPACE
from karpy.adapters.controlplane.plane import ControlPlane
from tests.e2e.peer.operators import KARPENTER, KARPY, prepare, require_peer, start_operator
from tests.e2e.peer.pools import NODE_CLASS, PLAIN, POOL, lonely

LEASE: Final = "karpenter-leader-election"
ELECTED: Final = {"DISABLE_LEADER_ELECTION": "false"}
_SECONDS_MAX: Final = 120.0


@pytest.fixture
def plane(programs: Path, tmp_path: Path) -> Iterator[ControlPlane]:
    require_peer()
    with ControlPlane(programs, tmp_path) as plane:
        prepare(plane, NODE_CLASS, PLAIN, lonely("web", 2, {POOL: "plain"}))
        yield plane


def holder(plane: ControlPlane) -> str:
    """Return the leader; empty if no one holds the lease."""
    found = plane.try_kubectl("get", "lease", LEASE, "-n", NAMESPACE, "-o", "json")
    spec = json.loads(found.out)["spec"] if not found.code else {}
    return str(spec.get("holderIdentity") or "")


def ready_claims(plane: ControlPlane) -> list[str]:
    """Return the NodeClaims whose nodes are ready."""
    found = json.loads(plane.kubectl("get", "nodeclaims", "-o", "json"))["items"]
    return [
        each["metadata"]["name"]
        for each in found
        if {"Ready": "True"}
        in [{one["type"]: one["status"]} for one in each.get("status", {}).get("conditions", [])]
    ]


def wait(holds: Callable[[], object]) -> None:
    deadline = monotonic() + _SECONDS_MAX
    while not holds():
        assert monotonic() < deadline
        sleep(0.5)


@pytest.mark.parametrize(("first", "second"), [(KARPENTER, KARPY), (KARPY, KARPENTER)])
def test_the_second_operator_waits_for_the_lease_and_continues(
    plane: ControlPlane, first: str, second: str
) -> None:
    with ExitStack() as stack:
        leader = stack.enter_context(start_operator(plane, first, **ELECTED))
        wait(lambda: holder(plane))
        leading = holder(plane)
        stack.enter_context(start_operator(plane, second, **ELECTED))
        wait(lambda: len(ready_claims(plane)) == 2)
        still_leading, made = holder(plane), ready_claims(plane)

        leader.stop()

        wait(lambda: holder(plane) not in {"", leading})
        plane.kubectl("scale", "deployment", "web", "--replicas=3")
        wait(lambda: len(ready_claims(plane)) == 3)

    assert still_leading == leading
    assert set(made) < set(ready_claims(plane))
