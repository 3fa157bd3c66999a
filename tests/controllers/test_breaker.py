"""Launches in vain, on virtual time."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.adapters.mirror.records import IndexedShelf, RecordBook
from karpy.controllers import breaker as module
from karpy.controllers.breaker import Breaker
from karpy.model.pods import Pod
from karpy.model.snapshot import VainCause, VainLaunches
from karpy.model.verdicts import Launch
from karpy.ports.records import Kept
from karpy.sim.clock import LoopClock
from karpy.sim.world import START
from tests.builders import node, owner, pod, snapshot
from tests.controllers.operators import Heard
from tests.core.lifecycle.scenes import claim
from tests.core.lifecycle.scenes import node as node_record
from tests.sim.stories import on_virtual_time

SAID = "0/3 nodes are available: 3 node(s) had a bad day."
OWNED = owner(("apps/v1", "ReplicaSet"))


class Scene:
    """Pods, claims and nodes, and the breaker that follows them."""

    def __init__(self) -> None:
        pods: IndexedShelf[Pod] = IndexedShelf(lambda pod: pod.node_name)
        self.records = RecordBook(pods)
        self.clock = LoopClock(START)
        self.heard = Heard()
        self.retried: list[tuple[str, float]] = []
        self.breaker = Breaker(
            self.records,
            self.clock,
            self.heard,
            lambda group: self.retried.append((group, asyncio.get_running_loop().time())),
        )

    def put(self, *pods: Pod) -> None:
        for each in pods:
            self.records.pods.put(each.key, each)

    def drop(self, *pods: Pod) -> None:
        for each in pods:
            self.records.pods.put(each.key, None)

    def launch(self, name: str, *pods: Pod, provider_id: str = "kwok://1") -> None:
        """Create a NodeClaim for pods by a new decision."""
        self.breaker.begin()
        self.add_claim(name, *pods, provider_id=provider_id)

    def add_claim(self, name: str, *pods: Pod, provider_id: str = "kwok://1") -> None:
        """Create a NodeClaim for pods by the same decision as the last one."""
        made = claim(provider_id=provider_id)
        made = replace(made, meta=replace(made.meta, name=name))
        self.records.claims.put(name, Kept(made, {}))
        self.breaker.note(name, Launch(name, "web", tuple(each.key for each in pods), {}, {}, ()))

    def decide(self, *waiting: Pod) -> tuple[VainLaunches, ...]:
        """Return the launches in vain that a decision about pods gets."""
        given = snapshot(pods=waiting, nodes=[node("n1")])
        return self.breaker.vain_launches(replace(given, now=self.clock.now()))

    def count(self, *waiting: Pod) -> int:
        """Return how many launches were in vain for the pods of a decision."""
        return sum(each.count for each in self.decide(*waiting))


A, B = pod("a"), pod("b")
ONE, TWO = pod("web-1", owners=[OWNED]), pod("web-2", owners=[OWNED])


def on_node(each: Pod, **changes: object) -> Pod:
    return replace(each, node_name="n1", is_unschedulable=False, **changes)


@on_virtual_time
async def test_a_pod_that_is_decided_on_again_was_launched_for_in_vain() -> None:
    scene, waiting = Scene(), replace(A, scheduler_message=SAID)
    scene.put(waiting, B)
    scene.launch("c1", waiting)
    await asyncio.sleep(5)

    (found,) = scene.decide(waiting, B)

    now = scene.clock.now()
    expected = VainLaunches(
        "default/a", 1, now, now + timedelta(seconds=1), VainCause.LEFT_OUT, SAID
    )
    assert found == expected
    assert scene.heard.counted("karpy_launches_in_vain_total") == 1
    assert [each.event for each in scene.heard.remarks] == ["launched nodes in vain"]


@on_virtual_time
async def test_without_a_message_of_kube_scheduler_the_launch_is_in_vain_all_the_same() -> None:
    scene = Scene()
    scene.put(A)
    scene.launch("c1", A)

    assert [each.message for each in scene.decide(A)] == [""]


@on_virtual_time
async def test_as_long_as_a_pod_is_on_its_way_nothing_is_in_vain() -> None:
    scene = Scene()
    scene.put(A, B)
    scene.launch("c1", A)

    assert scene.decide(B) == ()


@on_virtual_time
async def test_claims_of_one_decision_count_once() -> None:
    scene = Scene()
    scene.put(ONE, TWO)
    scene.launch("c1", ONE)
    scene.add_claim("c2", TWO)

    assert scene.count(ONE, TWO) == 1


@on_virtual_time
async def test_launches_that_were_made_before_the_last_was_in_vain_do_not_count_again() -> None:
    scene = Scene()
    scene.put(ONE, TWO)
    scene.launch("c1", ONE)
    await asyncio.sleep(0.1)
    scene.launch("c2", TWO)
    await asyncio.sleep(0.1)
    first = scene.count(ONE)

    assert (first, scene.count(ONE, TWO)) == (1, 1)


@on_virtual_time
async def test_where_one_pod_of_a_launch_gets_a_place_the_launch_was_not_in_vain() -> None:
    scene = Scene()
    scene.put(ONE, TWO)
    scene.launch("c1", ONE, TWO)
    scene.put(on_node(ONE))

    assert scene.decide(TWO) == ()


@on_virtual_time
async def test_a_cloud_that_is_sold_out_launches_nothing_in_vain() -> None:
    scene = Scene()
    scene.put(A)
    scene.launch("c1", A, provider_id="")
    scene.records.claims.put("c1", None)

    assert scene.decide(A) == ()


@on_virtual_time
async def test_a_machine_that_is_gone_before_its_pods_came_was_launched_in_vain() -> None:
    scene = Scene()
    scene.put(A)
    scene.launch("c1", A)
    scene.records.claims.put("c1", None)

    assert [each.why for each in scene.decide(A)] == [VainCause.NODE_GONE]


@contextmanager
def pushed_out_after(scene: Scene, seconds: float) -> Iterator[Callable[[], None]]:
    """Have a pod of an owner that gets a node, and another one in its place later."""
    scene.put(ONE)
    scene.records.nodes.put("n1", Kept(node_record(name="n1"), {}))
    scene.launch("c1", ONE)
    scene.put(on_node(ONE))

    def push() -> None:
        scene.put(on_node(ONE, is_deleting=True))
        scene.drop(ONE)
        scene.put(TWO)

    asyncio.get_running_loop().call_later(seconds, push)
    yield push


@pytest.mark.parametrize(("seconds", "found"), [(3.0, [VainCause.PUSHED_OUT]), (70.0, [])])
@on_virtual_time
async def test_a_pod_that_is_pushed_out_soon_was_launched_for_in_vain(
    seconds: float, found: list[VainCause]
) -> None:
    scene = Scene()
    with pushed_out_after(scene, seconds):
        await asyncio.sleep(seconds + 1)

    assert [each.why for each in scene.decide(TWO)] == found


@on_virtual_time
async def test_a_pod_that_leaves_with_its_node_was_not_pushed_out() -> None:
    """A recreated pod of a StatefulSet has the same name."""
    scene = Scene()
    with pushed_out_after(scene, 3.0):
        going = node_record(name="n1", deleted=timedelta())
        scene.records.nodes.put("n1", Kept(going, {}))
        await asyncio.sleep(4)
    scene.put(ONE)

    assert scene.decide(ONE, TWO) == ()


@on_virtual_time
async def test_a_pod_that_runs_for_a_minute_is_success_and_ends_the_pauses() -> None:
    scene = Scene()
    scene.put(ONE, TWO)
    scene.launch("c1", ONE)
    first = scene.count(ONE)
    await asyncio.sleep(2)
    scene.launch("c2", ONE)
    scene.put(on_node(ONE))
    await asyncio.sleep(61)
    scene.launch("c3", TWO)
    scene.decide(pod("other"))
    scene.put(TWO)

    assert (first, scene.count(TWO)) == (1, 1)


@on_virtual_time
async def test_each_time_the_pause_is_longer_and_at_its_end_the_pods_are_decided_on() -> None:
    scene = Scene()
    scene.put(A)
    task = asyncio.create_task(scene.breaker.run())
    for name in ("c1", "c2", "c3"):
        await asyncio.sleep(10)
        scene.launch(name, A)
        await asyncio.sleep(1)
        scene.decide(A)
    await asyncio.sleep(10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert scene.retried == [("default/a", 12.0), ("default/a", 24.0), ("default/a", 37.0)]


@on_virtual_time
async def test_after_an_hour_all_is_forgotten() -> None:
    scene = Scene()
    scene.put(A)
    scene.launch("c1", A)
    scene.decide(A)
    await asyncio.sleep(3600)
    scene.launch("c2", A)

    assert scene.count(A) == 1


@on_virtual_time
async def test_so_many_groups_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUPS_MAX", 2)
    scene, pods = Scene(), [pod(name) for name in "abc"]
    scene.put(*pods)
    scene.launch("c1", *pods)

    assert {each.group for each in scene.decide(*pods)} == {"default/b", "default/c"}
