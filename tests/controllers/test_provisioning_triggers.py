"""Triggers of decisions about pods, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from karpy.adapters.mirror.records import IndexedShelf, RecordBook
from karpy.controllers.provisioning import Batcher, Triggers
from karpy.model.constraints import DISRUPTED_TAINT, NO_SCHEDULE, Taint
from karpy.model.pods import Pod
from karpy.model.records import Identity, NodeRecord
from karpy.ports.records import Kept
from karpy.sim.loop import run
from tests.builders.pods import pod


class Stage:
    """Pods, nodes and a batcher, and the pods that triggered."""

    def __init__(self) -> None:
        self.pods: IndexedShelf[Pod] = IndexedShelf(lambda each: each.node_name)
        self.records = RecordBook(self.pods)
        self.batcher = Batcher()
        self.acked: list[str] = []

    def put(self, each: Pod) -> None:
        self.pods.put(each.key, each)

    async def batch(self, seconds: float = 3.0) -> set[str]:
        """Return the next batch; empty if none comes within some time."""
        try:
            return {*await asyncio.wait_for(self.batcher.wait(), seconds)}
        except TimeoutError:
            return set()


@asynccontextmanager
async def triggers(stage: Stage) -> AsyncIterator[Stage]:
    asking = Triggers(
        stage.records, stage.batcher, on_new_pod=lambda each: stage.acked.append(each.name)
    )
    task = asyncio.create_task(asking.run())
    yield stage
    task.cancel()


def test_a_pod_asks_at_once_and_again_while_it_waits() -> None:
    async def story() -> tuple[list[set[str]], list[str]]:
        async with triggers(Stage()) as stage:
            stage.put(pod("a"))
            seen = [await stage.batch(), await stage.batch(), await stage.batch(12)]
            stage.put(pod("a", on="n1"))
            return [*seen, await stage.batch(12)], stage.acked

    batches, acked = run(story())

    assert batches == [{"uid-default-a"}, set(), {"uid-default-a"}, set()]
    assert acked == ["a"]


def test_a_new_message_of_kube_scheduler_triggers_no_decision() -> None:
    async def story() -> list[set[str]]:
        async with triggers(Stage()) as stage:
            stage.put(pod("a"))
            first = await stage.batch()
            stage.put(replace(pod("a"), scheduler_message="0/1 nodes are available"))
            second = await stage.batch()
            stage.put(replace(pod("a"), labels={"app": "web"}))
            return [first, second, await stage.batch()]

    assert run(story()) == [{"uid-default-a"}, set(), {"uid-default-a"}]


def test_an_untried_pod_asks_for_nothing_and_rides_along() -> None:
    async def story() -> list[set[str]]:
        untried = replace(pod("b", unschedulable=False), is_untried=True)
        async with triggers(Stage()) as stage:
            stage.put(untried)
            alone = await stage.batch()
            stage.put(pod("a"))
            stage.put(replace(untried, name="c", uid="uid-c"))
            return [alone, await stage.batch()]

    assert run(story()) == [set(), {"uid-default-a", "uid-c"}]


def test_when_one_pod_gets_a_place_those_who_wait_are_decided_about() -> None:
    async def story() -> list[set[str]]:
        async with triggers(Stage()) as stage:
            stage.put(pod("a"))
            stage.put(pod("b"))
            first = await stage.batch()
            stage.put(pod("b", on="n1"))
            return [first, await stage.batch()]

    assert run(story()) == [{"uid-default-a", "uid-default-b"}, {"uid-default-a"}]


def test_a_node_that_is_being_disrupted_asks_and_one_that_is_about_to_open_does_not() -> None:
    async def story() -> set[str]:
        async with triggers(Stage()) as stage:
            for name, value in (("n1", ""), ("n2", "1772452740000")):
                taint = Taint(DISRUPTED_TAINT, NO_SCHEDULE, value)
                node = NodeRecord(Identity(name, uid=name.replace("n", "u")), taints=(taint,))
                stage.records.nodes.put(name, Kept(node, {}))
            return await stage.batch()

    assert run(story()) == {"u1"}
