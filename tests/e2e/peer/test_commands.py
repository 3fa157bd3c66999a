"""A disruption command that one operator has started is finished by the other operator."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import pytest

from karpy.adapters.controlplane.operators import OperatorProcess
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.codec.fields import JsonObject
from tests.e2e.claimlog import ClaimLog, Claims, is_true, watching
from tests.e2e.peer.operators import KARPENTER, KARPY, prepare, require_peer, start_operator
from tests.e2e.peer.pools import NODE_CLASS, PLAIN, POOL, lonely

STARTING: Final = "example.com/starting"
_SECONDS_MAX: Final = 180.0


@pytest.fixture
def plane(programs: Path, tmp_path: Path) -> Iterator[ControlPlane]:
    require_peer()
    with ControlPlane(programs, tmp_path) as plane:
        prepare(plane, NODE_CLASS, PLAIN, lonely("web", 2, {POOL: "plain"}))
        yield plane


def relabel(plane: ControlPlane) -> None:
    """Let all nodes drift, one at a time; replacements keep their startup taint."""
    template = {
        "metadata": {"labels": {"team": "shop"}},
        "spec": {"startupTaints": [{"key": STARTING, "effect": "NoSchedule"}]},
    }
    spec = {"template": template, "disruption": {"budgets": [{"nodes": "1"}]}}
    body = json.dumps({"spec": spec})
    plane.kubectl("patch", "nodepool", "plain", "--type=merge", "-p", body)


def start_up(plane: ControlPlane) -> list[JsonObject]:
    """Remove the startup taint of new nodes; return all nodes as they were before."""
    found = nodes(plane)
    for each in found:
        if any(one["key"] == STARTING for one in each["spec"].get("taints", [])):
            plane.try_kubectl("taint", "node", each["metadata"]["name"], f"{STARTING}-")
    return found


def nodes(plane: ControlPlane) -> list[JsonObject]:
    found: list[JsonObject] = json.loads(plane.kubectl("get", "nodes", "-o", "json"))["items"]
    return found


def is_under_way(claims: Claims) -> bool:
    """Say whether a node is disrupted and its replacement registered, but not initialized."""
    fresh = [each for each in claims.values() if each["metadata"]["labels"].get("team")]
    return any(is_true(each, "DisruptionReason") for each in claims.values()) and any(
        is_true(each, "Registered") for each in fresh
    )


def is_done(found: list[JsonObject], log: ClaimLog) -> bool:
    left = log.states()[-1]
    return (
        len(found) == len(left) == 2
        and all(each["metadata"]["labels"].get("team") for each in found)
        and not any(each["spec"].get("taints") for each in found)
        and all(is_true(each, "Initialized") for each in left.values())
    )


def wait(operator: OperatorProcess, holds: Callable[[], object]) -> None:
    deadline = monotonic() + _SECONDS_MAX
    while not holds():
        assert operator.is_running, operator.log.read_text()[-2000:]
        assert monotonic() < deadline, f"{operator.log}: {operator.log.read_text()[-2000:]}"
        sleep(0.5)


@pytest.mark.parametrize(("first", "second"), [(KARPENTER, KARPY), (KARPY, KARPENTER)])
def test_a_command_is_finished_by_the_operator_that_takes_over(
    plane: ControlPlane, first: str, second: str
) -> None:
    with watching(plane) as log:
        with start_operator(plane, first) as operator:
            wait(operator, lambda: _are_ready(log))
            relabel(plane)
            wait(operator, lambda: is_under_way(log.states()[-1]))
            operator.stop(is_killed=True)
        begun = log.created
        with start_operator(plane, second) as operator:
            wait(operator, lambda: not _is_tainted(plane) or log.deleted)
            wait(operator, lambda: is_done(start_up(plane), log))

        assert len(begun) == 3
        # The existing replacement is used: the second command needs only one more node.
        assert len(log.created) == 4
        assert log.most_disrupted == 1


def _are_ready(log: ClaimLog) -> bool:
    states = log.states()
    return bool(states) and sum(is_true(each, "Initialized") for each in states[-1].values()) == 2


def _is_tainted(plane: ControlPlane) -> bool:
    return any(
        taint["key"] == "karpenter.sh/disrupted"
        for each in nodes(plane)
        for taint in each["spec"].get("taints", [])
    )
