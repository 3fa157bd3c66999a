"""
Karpy takes a cluster over from the real Karpenter, works in it, and gives it back.

One run is checked from several sides: Karpenter makes 30 nodes with every kind
of field in use and stops. Karpy takes over, scales up and down, and stops. Karpenter takes over
again, and does the same.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Final

import msgspec
import pytest
from msgspec import Struct

from karpy.adapters.controlplane.operators import OperatorProcess
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.codec.fields import JsonObject
from karpy.core.lifecycle.registration import gate
from tests.e2e.peer.operators import KARPENTER, KARPY, prepare, require_peer, start_operator
from tests.e2e.peer.pools import (
    NODE_CLASS,
    NODES,
    PLAIN,
    POOL,
    POOLS,
    RUNNING,
    STARTUP_TAINT,
    WORKLOADS,
    lonely,
)
from tests.e2e.peer.portraits import Difference, Portrait, differences, look, portray, shape

SECONDS_TO_WATCH: Final = float(os.environ.get("TAKEOVER_SECONDS", "300"))
"""Seconds without changes after Karpy has taken over."""
SECONDS_TO_WATCH_THEM: Final = min(SECONDS_TO_WATCH, 120.0)
"""The same for Karpenter, which finds and replaces drifted nodes much sooner."""
_SECONDS_TO_GET_THERE: Final = 240.0
_SECONDS_BETWEEN_LOOKS: Final = 2.0
_SUCCESSOR: Final = os.environ.get("TAKEOVER_SUCCESSOR", KARPY)
"""The operator that takes over; `karpenter` shows what Karpenter itself changes after a restart."""
_HASH: Final = "karpenter.sh/nodepool-hash"


class Phase(Struct, frozen=True):
    """The results of one operator that took over a cluster."""

    changes: list[str]
    """Changes while there was nothing to do."""
    grown: list[JsonObject]
    """All objects after it has scaled up."""
    shrunk: list[JsonObject]
    """All objects after it has scaled down."""


class Story(Struct, frozen=True):
    """The portraits and objects of the whole run."""

    built: list[JsonObject]
    """All objects as Karpenter left them."""
    ours: Phase
    theirs: Phase


@pytest.fixture(scope="module")
def story(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Run all three phases once, on a separate control plane."""
    require_peer()
    with ControlPlane(programs, tmp_path_factory.mktemp("takeover")) as plane:
        prepare(plane, NODE_CLASS, *POOLS, *WORKLOADS)
        with start_operator(plane, KARPENTER) as operator:
            _build(plane, operator)
        built = look(plane)
        with start_operator(plane, _SUCCESSOR) as operator:
            ours = _run_phase(plane, operator, SECONDS_TO_WATCH)
        with start_operator(plane, KARPENTER) as operator:
            theirs = _run_phase(plane, operator, SECONDS_TO_WATCH_THEM)
        story = Story(built, ours, theirs)
        # Kept beside the logs, to analyse a failure.
        (plane.home / "story.json").write_bytes(msgspec.json.encode(story))
    return story


def _build(plane: ControlPlane, operator: OperatorProcess) -> None:
    """Wait for all nodes; remove the startup taint from all of them but one."""
    _wait(plane, operator, lambda found: len(_of(found, "Node")) == NODES)
    _wait(plane, operator, lambda found: len(_with(found, "NodeClaim", "Registered")) == NODES)
    waiting = [each["metadata"]["name"] for each in _of(look(plane), "Node", "rich")]
    plane.kubectl("taint", "nodes", *sorted(waiting)[1:], f"{STARTUP_TAINT}-")
    _wait(plane, operator, lambda found: len(_with(found, "NodeClaim", "Initialized")) == NODES - 1)
    _wait(plane, operator, lambda found: _running(found) == RUNNING)
    # The condition Consolidatable follows with a delay; no node is really consolidated.
    _wait(plane, operator, lambda found: len(_with(found, "NodeClaim", "Consolidatable")) == 8)


def _run_phase(plane: ControlPlane, operator: OperatorProcess, seconds: float) -> Phase:
    """Check that nothing changes; then scale up, and down below the start."""
    before = look(plane)
    nodes = len(_of(before, "Node"))
    changes = _watch(plane, operator, portray(before), seconds)
    _scale(plane, {"batch": 10, "web": 8, "shop": 9})
    _wait(plane, operator, lambda found: len(_with(found, "Node", "Ready")) == nodes + 5)
    _wait(plane, operator, lambda found: _running(found, "batch") == 10)
    _wait(plane, operator, lambda found: _running(found, "web") == 8)
    ready = len(_with(before, "NodeClaim", "Initialized")) + 4
    _wait(plane, operator, lambda found: len(_with(found, "NodeClaim", "Initialized")) == ready)
    # `lastPodEventTime` of new nodes is written with a delay.
    _wait(plane, operator, lambda found: _know_of_pods(before, found))
    grown = look(plane)
    _scale(plane, {"batch": 8})
    _wait(plane, operator, lambda found: len(_of(found, "Node")) == nodes + 3)
    _wait(plane, operator, lambda found: len(_of(found, "NodeClaim")) == nodes + 3)
    _scale(plane, {"web": 6, "shop": 8})
    for name in _names_of_new(before, look(plane), "NodeClaim"):
        plane.kubectl("delete", "nodeclaim", name, "--wait=false")
    _wait(plane, operator, lambda found: len(_of(found, "Node")) == nodes)
    _wait(plane, operator, lambda found: _running(found) == RUNNING)
    return Phase(changes, grown, look(plane))


def _know_of_pods(before: list[JsonObject], after: list[JsonObject]) -> bool:
    """Say whether all new claims that are ready have `lastPodEventTime`."""
    new = _names_of_new(before, after, "NodeClaim")
    ready = _with(after, "NodeClaim", "Initialized")
    return all(
        "lastPodEventTime" in each["status"] for each in ready if each["metadata"]["name"] in new
    )


def _watch(
    plane: ControlPlane, operator: OperatorProcess, before: Portrait, seconds: float
) -> list[str]:
    """Compare repeatedly, so that a change that is reverted is found, too."""
    seen: dict[str, None] = {}
    deadline = monotonic() + seconds
    while monotonic() < deadline:
        assert operator.is_running, operator.log.read_text()[-2000:]
        found = differences(before, portray(look(plane)))
        seen |= {str(each): None for each in found if not _is_fine(each)}
        sleep(_SECONDS_BETWEEN_LOOKS)
    return list(seen)


def _is_fine(change: Difference) -> bool:
    """Say whether Karpenter itself makes this change after a restart."""
    # After a restart Karpenter counts each existing pod as a new pod.
    if "status.lastPodEventTime" in change.path or "[Consolidatable]" in change.path:
        return True
    # Karpenter checks the consistency of each node at some time within ten minutes.
    return "[ConsistentStateFound]" in change.path and change.before is None


def _wait(
    plane: ControlPlane, operator: OperatorProcess, holds: Callable[[list[JsonObject]], bool]
) -> None:
    deadline = monotonic() + _SECONDS_TO_GET_THERE
    while not holds(look(plane)):
        assert operator.is_running, operator.log.read_text()[-2000:]
        assert monotonic() < deadline, f"{operator.log}: {operator.log.read_text()[-2000:]}"
        sleep(1)


def _scale(plane: ControlPlane, replicas: dict[str, int]) -> None:
    for name, count in replicas.items():
        plane.kubectl("scale", "deployment", name, f"--replicas={count}")


def _of(found: list[JsonObject], kind: str, pool: str = "") -> list[JsonObject]:
    return [
        each
        for each in found
        if each["kind"] == kind and (not pool or each["metadata"]["labels"].get(POOL) == pool)
    ]


def _with(found: list[JsonObject], kind: str, condition: str) -> list[JsonObject]:
    """Return the objects with a condition that is true."""
    return [
        each
        for each in _of(found, kind)
        if any(
            one["type"] == condition and one["status"] == "True"
            for one in each.get("status", {}).get("conditions", [])
        )
    ]


def _running(found: list[JsonObject], app: str = "") -> int:
    return sum(
        each["status"]["phase"] == "Running"
        for each in _of(found, "Pod")
        if not app or each["metadata"]["labels"]["app"] == app
    )


def _names(found: list[JsonObject], kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in _of(found, kind)}


def _names_of_new(before: list[JsonObject], after: list[JsonObject], kind: str) -> list[str]:
    return sorted(_names(after, kind) - _names(before, kind))


def _shapes(found: list[JsonObject], kind: str, pool: str) -> list[dict[str, object]]:
    """Return the distinct shapes of the objects of a NodePool."""
    shapes: list[dict[str, object]] = []
    for each in _of(found, kind, pool):
        one = shape(each)
        shapes += [] if one in shapes else [one]
    return shapes


@pytest.fixture(scope="module")
def made(story: Story) -> list[JsonObject]:
    """The objects that Karpy has created, once all were ready."""
    new = _names_of_new(story.built, story.ours.grown, "NodeClaim") + _names_of_new(
        story.built, story.ours.grown, "Node"
    )
    return [each for each in story.ours.grown if each["metadata"]["name"] in new]


def test_karpenter_has_made_all_nodes(story: Story) -> None:
    pools = [each["metadata"]["labels"][POOL] for each in _of(story.built, "NodeClaim")]

    assert {name: pools.count(name) for name in pools} == {
        "rich": 8,
        "spot": 8,
        "static": 4,
        "plain": 10,
    }


def test_nothing_changes_when_karpy_takes_over(story: Story) -> None:
    assert story.ours.changes == []


def test_nothing_changes_when_karpenter_takes_over_again(story: Story) -> None:
    assert story.theirs.changes == []


@pytest.mark.parametrize("kind", ["NodeClaim", "Node"])
def test_a_takeover_keeps_existing_nodes(story: Story, kind: str) -> None:
    lost = _names(story.built, kind) - _names(story.theirs.shrunk, kind)

    # The ReplicaSet controller chooses which pods to delete, and thus which spot nodes get empty.
    assert len(lost) <= 4


@pytest.mark.parametrize("pool", ["rich", "spot", "plain"])
@pytest.mark.parametrize("kind", ["NodeClaim", "Node"])
def test_what_karpy_makes_looks_like_what_karpenter_made(
    story: Story, made: list[JsonObject], kind: str, pool: str
) -> None:
    ours = _shapes(made, kind, pool)

    assert ours != []
    assert [each for each in ours if each not in _shapes(story.built, kind, pool)] == []


def test_new_claims_have_the_hash_that_karpenter_gave_the_pool(
    story: Story, made: list[JsonObject]
) -> None:
    hashes = {
        each["metadata"]["name"]: each["metadata"]["annotations"][_HASH]
        for each in _of(story.built, "NodePool")
    }

    assert [
        each["metadata"]["name"]
        for each in _of(made, "NodeClaim")
        if each["metadata"]["annotations"][_HASH] != hashes[each["metadata"]["labels"][POOL]]
    ] == []


@pytest.mark.parametrize("kind", ["NodeClaim", "Node"])
def test_both_scale_down_to_what_there_was(story: Story, kind: str) -> None:
    counts = [len(_of(each.shrunk, kind)) for each in (story.ours, story.theirs)]

    assert counts == [NODES, NODES]


def test_a_node_that_karpy_left_half_open_is_opened_by_karpenter(
    programs: Path, tmp_path: Path
) -> None:
    """Karpy was killed in the half second between registration and the first pod."""
    require_peer()
    web = lonely("web", 2, {POOL: "plain"})
    with ControlPlane(programs, tmp_path) as plane:
        prepare(plane, NODE_CLASS, PLAIN, web)
        with start_operator(plane, KARPY) as operator:
            _wait(plane, operator, lambda found: _running(found) == 2)
        nodes = sorted(_names(look(plane), "Node"))
        left = gate(datetime.now(UTC))
        taint = f"{left.key}={left.value}:{left.effect}"
        plane.kubectl("taint", "nodes", *nodes, taint)
        with start_operator(plane, KARPENTER) as operator:
            _wait(plane, operator, lambda found: not _closed(found, nodes))
            is_running = operator.is_running

    assert is_running


def _closed(found: list[JsonObject], nodes: list[str]) -> list[str]:
    """Return the nodes whose taints keep pods off."""
    there = [each for each in _of(found, "Node") if each["metadata"]["name"] in nodes]
    assert len(there) == len(nodes)
    return [each["metadata"]["name"] for each in there if each["spec"].get("taints")]
