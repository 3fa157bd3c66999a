"""Whatever goes wrong with one object, or in one part, stops the work on that one alone."""

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import TypeVar

import pytest

from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.controllers.queue import WorkQueue
from karpy.core.scheduling.decide import CULPRITS_MAX, decide, decide_guarded
from karpy.core.scheduling.effort import KeepGoing
from karpy.errors import CredentialsRefused, LeadershipLost, Unexpected
from karpy.model.kinds import NAMESPACE, NODE_CLAIM, POD, Kind
from karpy.model.pods import Pod
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Reason, Verdict
from karpy.ports.objects import EVERYTHING, Change, Query, Reader, Synced
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.world import World
from karpy.wiring.operator import supervise
from karpy.wiring.surface import OperatorTask
from tests.builders import pod as waiting
from tests.builders import snapshot
from tests.hostile.ears import Telemetry, operated, pod
from tests.sim.stories import on_virtual_time

T = TypeVar("T")

ERRORS = "controller_runtime_reconcile_errors_total"
PANICS = "controller_runtime_reconcile_panics_total"
REFUSED = CredentialsRefused(source="aws", problem="it failed once", hint="try again")


def _nodes_of(world: World) -> dict[str, bool]:
    """Say of each pod whether it has a node."""
    found = world.store.list(POD)
    return {each["metadata"]["name"]: "nodeName" in each["spec"] for each in found}


def _furnish(world: World, *pods: JsonObject) -> None:
    world.store.create(NAMESPACE, {"metadata": {"name": "shop"}})
    for each in pods:
        world.store.create(POD, each)


# --- parts -------------------------------------------------------------------------------------


def _failing(times: int, error: Exception, starts: list[float]) -> OperatorTask:
    """Make a part that fails so often, then goes on for ever."""

    async def run() -> None:
        starts.append(asyncio.get_running_loop().time())
        if len(starts) <= times:
            raise error
        await asyncio.Event().wait()

    return OperatorTask("bad", run)


@on_virtual_time
async def test_a_part_that_fails_is_started_again_later_each_time_and_others_go_on() -> None:
    telemetry, starts, ticks = Telemetry(), list[float](), list[float]()

    async def tick() -> None:
        for _ in range(5):
            await asyncio.sleep(2)
            ticks.append(asyncio.get_running_loop().time())
        await asyncio.Event().wait()

    parts = [_failing(3, ValueError("slipped"), starts), OperatorTask("good", tick)]
    task = asyncio.create_task(supervise(parts, telemetry.voice))
    await asyncio.sleep(20)
    task.cancel()
    await asyncio.wait((task,))

    assert starts == [0, 1, 3, 7]
    assert ticks == [2, 4, 6, 8, 10]
    assert telemetry.failures == [("bad", "", "ValueError: slipped")] * 3
    assert (telemetry.counted(PANICS, "bad"), telemetry.counted(ERRORS, "bad")) == (3, 3)


@on_virtual_time
async def test_a_coded_error_is_logged_without_a_stack_trace_and_is_no_panic() -> None:
    telemetry = Telemetry()

    task = asyncio.create_task(supervise([_failing(1, REFUSED, [])], telemetry.voice))
    await asyncio.sleep(5)
    task.cancel()
    await asyncio.wait((task,))

    (line,) = telemetry.lines
    assert (line["level"], line["controller"], line["code"]) == ("ERROR", "bad", "KP1008")
    assert (telemetry.counted(PANICS, "bad"), telemetry.counted(ERRORS, "bad")) == (0, 1)


@on_virtual_time
async def test_a_lost_lease_ends_all_parts() -> None:
    telemetry, queue = Telemetry(), WorkQueue()
    queue.add("claim")

    async def write(_: str) -> None:
        raise LeadershipLost("another one leads")

    parts = [OperatorTask("writing", lambda: queue.run(write)), _failing(0, REFUSED, [])]
    with pytest.raises(LeadershipLost):
        await supervise(parts, telemetry.voice)

    assert telemetry.lines == []


# --- an operator -------------------------------------------------------------------------------


@on_virtual_time
async def test_a_listener_that_fails_with_one_pod_gets_all_other_pods() -> None:
    telemetry, keys = Telemetry(), list[str]()

    def listen(key: str, _before: Pod | None, _after: Pod | None) -> None:
        keys.append(key)
        if key == "shop/hostile":
            raise KeyError("no such pod")

    async with operated(telemetry, EmbeddedObjects) as (world, operator):
        operator.mirror.pods.listen(listen)
        _furnish(world, pod("hostile"), pod("usual"))
        await asyncio.sleep(60)
        placed = _nodes_of(world)

    assert placed == {"hostile": True, "usual": True}
    assert "shop/usual" in keys
    assert set(telemetry.failures) == {("mirror", "hostile", "KeyError: 'no such pod'")}


def _deciding_badly(names: set[str]) -> Callable[..., Verdict]:
    """Make a decision that fails as soon as one of some pods waits."""

    def make(some: Snapshot, *, keep_going: KeepGoing | None = None) -> Verdict:
        if names & {each.name for each in some.pods if not each.node_name}:
            raise ZeroDivisionError("no even spread")
        return decide(some, keep_going=keep_going)

    return make


@on_virtual_time
async def test_a_pod_with_which_decisions_fail_waits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karpy.core.scheduling.decide.decide", _deciding_badly({"hostile"}))
    telemetry = Telemetry()

    async with operated(telemetry, EmbeddedObjects) as (world, _):
        _furnish(world, pod("usual"), pod("hostile", "100"), pod("other"))
        await asyncio.sleep(60)
        placed = _nodes_of(world)

    notes = {each.note for each in telemetry.notices if each.subject.name == "hostile"}
    assert placed == {"usual": True, "hostile": False, "other": True}
    assert set(telemetry.failures) == {
        ("provisioner", "hostile", "ZeroDivisionError: no even spread")
    }
    assert telemetry.counted(ERRORS, "provisioner") > 0
    assert [note.partition(";")[0] for note in notes] == [
        "Failed to schedule pod, decisions fail with it, by a bug in karpy"
    ]


@on_virtual_time
async def test_a_decision_that_fails_without_any_pod_is_made_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries = count()

    def make(some: Snapshot, *, keep_going: KeepGoing | None = None) -> Verdict:
        if next(tries) < 4:
            raise ZeroDivisionError("no even spread")
        return decide(some, keep_going=keep_going)

    monkeypatch.setattr("karpy.core.scheduling.decide.decide", make)
    telemetry = Telemetry()

    async with operated(telemetry, EmbeddedObjects) as (world, _):
        _furnish(world, pod("usual"))
        await asyncio.sleep(60)
        placed = _nodes_of(world)

    assert placed == {"usual": True}
    assert set(telemetry.failures) == {
        ("provisioner", "decision", "ZeroDivisionError: no even spread")
    }
    assert telemetry.counted(PANICS, "provisioner") == 2


class RefusingOnce(EmbeddedObjects):
    """Has no credentials for the first call of each sort."""

    async def create(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        self._refuse(f"create {kind}")
        return await super().create(kind, obj, subresource=subresource, dry_run=dry_run)

    async def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject:
        self._refuse(f"get {kind}")
        return await super().get(kind, name, namespace)

    def follow(
        self, kind: Kind, reader: Reader[T], query: Query = EVERYTHING
    ) -> AsyncIterator[Change[T] | Synced]:
        self._refuse(f"follow {kind}")
        return super().follow(kind, reader, query)

    def _refuse(self, call: str) -> None:
        known = self.__dict__.setdefault("refused", set())
        if call not in known:
            known.add(call)
            raise REFUSED


@on_virtual_time
async def test_a_plugin_for_credentials_that_fails_once_ends_nothing() -> None:
    telemetry = Telemetry()

    async with operated(telemetry, RefusingOnce) as (world, _):
        _furnish(world, pod("usual"))
        await asyncio.sleep(90)
        placed = _nodes_of(world)

    assert placed == {"usual": True}
    assert {"mirror.pod", "mirror.nodeclaim"} <= {
        line["controller"]
        for line in telemetry.lines
        if line["level"] == "ERROR" and "code" in line
    }


class ClumsyOnce(EmbeddedObjects):
    """Fails with the first NodeClaim in a way that it should not."""

    async def create(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        if kind == NODE_CLAIM and "has_failed" not in self.__dict__:
            self.__dict__["has_failed"] = True
            raise RuntimeError("out of order")
        return await super().create(kind, obj, subresource=subresource, dry_run=dry_run)


@on_virtual_time
async def test_a_launch_that_fails_by_a_mistake_is_tried_again_and_the_others_are_made() -> None:
    telemetry = Telemetry()

    async with operated(telemetry, ClumsyOnce) as (world, _):
        _furnish(world, *(pod(f"large-{number}", "200") for number in range(3)))
        await asyncio.sleep(2.5)
        at_once = len(world.store.list(NODE_CLAIM))
        await asyncio.sleep(60)
        placed = _nodes_of(world)

    assert (at_once, placed) == (2, {"large-0": True, "large-1": True, "large-2": True})
    assert [(each[0], each[2]) for each in telemetry.failures] == [
        ("provisioner", "RuntimeError: out of order")
    ]


# --- following ---------------------------------------------------------------------------------


@on_virtual_time
async def test_what_vanished_while_following_had_failed_is_known_to_be_gone() -> None:
    world = World()
    world.start()
    mirror = Mirror(world.objects, world.clock, kwok_catalog, Settings())
    for name in ("kept", "gone"):
        world.store.create(NAMESPACE, {"metadata": {"name": name}})
    follow = dict(mirror.follows())["mirror.namespace"]
    first = asyncio.create_task(follow())
    await asyncio.sleep(1)
    first.cancel()
    world.store.delete(NAMESPACE, "gone")
    await asyncio.sleep(10)

    second = asyncio.create_task(follow())
    await asyncio.sleep(1)
    known = set(mirror.shelf(NAMESPACE).values)
    second.cancel()
    world.stop()

    assert ("kept" in known, "gone" in known) == (True, False)


@on_virtual_time
async def test_a_key_whose_work_was_cancelled_is_worked_on_when_the_queue_runs_again() -> None:
    queue, worked = WorkQueue(), list[str]()
    queue.add("key")

    async def hang(_: str) -> None:
        await asyncio.Event().wait()

    async def work(key: str) -> None:
        worked.append(key)

    for each in (hang, work):
        task = asyncio.create_task(queue.run(each))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait((task,))

    assert worked == ["key"]


# --- decisions ---------------------------------------------------------------------------------


def _failing_with(names: set[str]) -> Callable[[Snapshot, KeepGoing], Verdict]:
    make = _deciding_badly(names)
    return lambda some, keep_going: make(some, keep_going=keep_going)


@pytest.mark.parametrize("culprits", [{"p-0"}, {"p-4"}, {"p-9"}, {"p-2", "p-3", "p-8"}])
def test_each_pod_with_which_a_decision_fails_is_found_and_refused(culprits: set[str]) -> None:
    cluster = snapshot(pods=[waiting(f"p-{number}") for number in range(10)])

    verdict, found = decide_guarded(cluster, make=_failing_with(culprits))

    refused = {each.pods[0] for each in verdict.refusals if each.reason is Reason.DECISION_FAILED}
    assert refused == {f"default/{name}" for name in culprits}
    assert {each.pod.name for each in found} == culprits
    assert {type(each.error.__cause__) for each in found} == {ZeroDivisionError}
    assert sum(len(each.pods) for each in verdict.launches) == 10 - len(culprits)


def test_a_decision_that_does_not_fail_is_the_usual_one() -> None:
    cluster = snapshot(pods=[waiting("a"), waiting("b")])

    assert decide_guarded(cluster) == (decide(cluster), ())


def test_where_too_many_pods_are_to_blame_none_is() -> None:
    names = {f"p-{number}" for number in range(CULPRITS_MAX + 1)}
    cluster = snapshot(pods=[waiting(name) for name in sorted(names)])

    with pytest.raises(Unexpected, match="no even spread"):
        decide_guarded(cluster, make=_failing_with(names))


def test_without_time_to_find_the_pod_the_error_is_raised() -> None:
    """A decision without time does not fail, and would have another pod blamed."""
    looks = iter([True])
    cluster = snapshot(pods=[waiting(f"p-{number}") for number in range(10)])

    with pytest.raises(Unexpected, match="no even spread"):
        decide_guarded(cluster, lambda: next(looks, False), make=_failing_with({"p-4"}))
