"""Nodes whose pods cannot be read, or are not known yet, on virtual time."""

import asyncio
from collections.abc import Callable

import pytest

from karpy.codec.fields import JsonObject
from karpy.model.kinds import NODE, NODE_CLAIM, POD
from karpy.sim.faults import Faults, InjectedFault, unreachable
from karpy.sim.faultyports import FaultyFeed, FaultyObjects
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.disruptions import (
    claims_in,
    disrupting,
    leaving,
    make_nodes,
    make_pool,
    tainted,
)
from tests.controllers.operators import Heard, is_empty, node_of, until
from tests.controllers.test_nodetermination import PROTECTED, pod
from tests.hostile.stumbling import Stumbling
from tests.hostile.test_unreadable import ABOVE_ABC

STALLED = InjectedFault(calls=("event",), kind=POD, delay_seconds=7200)


def odd(name: str, node: str, **meta: object) -> JsonObject:
    """Build a pod whose node affinity the API server takes, and Karpy does not read."""
    plain = pod(name, node, **meta)
    return {**plain, "spec": {**plain["spec"], **ABOVE_ABC}}


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        (
            {"annotations": PROTECTED},
            'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/odd)',
        ),
        ({}, "Pod cannot be read (Pod=default/odd)"),
    ],
)
def test_an_unreadable_pod_keeps_its_node_and_no_other(meta: JsonObject, why: str) -> None:
    heard = Heard()

    async def story() -> list[str]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, heard):
            await make_nodes(world, "web-1", "web-2")
            world.store.create(POD, odd("odd", node_of(world, "web-1"), **meta))
            await asyncio.sleep(600)
            found = claims_in(world)
        world.stop()
        return found

    assert run(story()) == ["web-1"]
    assert why in heard.told("DisruptionBlocked")


def test_a_node_that_is_deleted_sends_off_its_unreadable_pod_first() -> None:
    heard = Heard()

    async def story() -> tuple[bool, bool]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, heard):
            await make_nodes(world, "web-1")
            world.store.create(POD, odd("odd", node_of(world)))
            world.store.delete(NODE, node_of(world))
            await until(lambda: is_empty(world))
            found = is_empty(world), world.store.find(POD, "odd", "default") is None
        world.stop()
        return found

    assert run(story()) == (True, True)
    assert heard.counted("pods_drained_total") == 1
    assert heard.failures == []


def test_a_pod_that_its_reader_stumbles_over_keeps_its_node_and_ends_nothing() -> None:
    async def story() -> list[str]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard(), feed=Stumbling(world.objects, "deep")):
            await make_nodes(world, "web-1", "web-2")
            world.store.create(POD, pod("deep", node_of(world, "web-1")))
            await asyncio.sleep(600)
            found = claims_in(world)
        world.stop()
        return found

    assert run(story()) == ["web-1"]


@pytest.mark.parametrize("seconds", [0, 15, 30, 40])
def test_a_pod_that_no_watch_delivers_keeps_its_node(seconds: int) -> None:
    """Whenever it comes, until a moment after its node is closed to pods, before it is deleted."""
    heard, faults = Heard(), Faults()

    async def story() -> tuple[list[str], list[str], bool]:
        world = World()
        world.start()
        make_pool(world)
        feed = FaultyFeed(world.objects, faults)
        async with disrupting(world, heard, feed=feed):
            await make_nodes(world, "web-1", "web-2")
            faults.add(STALLED)
            await asyncio.sleep(seconds)
            stays = node_of(world, "web-1")
            world.store.create(POD, pod("late", stays))
            await asyncio.sleep(600)
            found = claims_in(world), tainted(world), bool(world.store.find(POD, "late", "default"))
        world.stop()
        return found

    assert run(story()) == (["web-1"], [], True)


async def soon(holds: Callable[[], bool]) -> None:
    """Wait until something holds, and not a moment longer."""
    async with asyncio.timeout(900):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


def test_a_pod_that_comes_between_the_mark_and_the_deletion_has_the_mark_taken_off() -> None:
    heard, faults = Heard(), Faults()

    async def story() -> tuple[list[str], list[str]]:
        world = World()
        world.start()
        make_pool(world)
        feed = FaultyFeed(world.objects, faults)
        async with disrupting(world, heard, feed=feed):
            await make_nodes(world, "web-1", "web-2")
            faults.add(STALLED)
            marked = node_of(world, "web-1")
            await soon(lambda: marked in tainted(world))
            world.store.create(POD, pod("late", marked))
            await until(lambda: claims_in(world) == ["web-1"])
            found = claims_in(world), tainted(world)
        world.stop()
        return found

    assert run(story()) == (["web-1"], [])
    spared, *_ = [each for each in heard.remarks if each.event.startswith("leaving nodes out")]
    assert "(default/late)" in spared.fields["nodes"]
    assert heard.counted("voluntary_disruption_failed_validations_total") >= 1


def test_while_pods_cannot_be_listed_nothing_is_marked_and_later_all_goes_on() -> None:
    heard, faults = Heard(), Faults()

    async def story() -> tuple[list[str], list[str], bool]:
        world = World()
        world.start()
        make_pool(world)
        objects = FaultyObjects(world.objects, faults)
        async with disrupting(world, heard, objects):
            await make_nodes(world, "web-1")
            faults.add(InjectedFault(unreachable, ("list",), POD))
            await asyncio.sleep(300)
            meanwhile = tainted(world), leaving(world)
            faults.clear()
            await until(lambda: is_empty(world))
            found = *meanwhile, is_empty(world)
        world.stop()
        return found

    assert run(story()) == ([], [], True)
    assert {type(each).__name__ for each in heard.failures} == {"Unreachable"}


def test_the_machine_of_a_claim_stays_while_its_node_cannot_be_read() -> None:
    class Blind(Stumbling):
        """A feed that cannot read the Node."""

    async def story() -> tuple[list[str], bool]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard()):
            await make_nodes(world, "web-1")
            node = node_of(world)
        async with disrupting(world, Heard(), feed=Blind(world.objects, node)):
            world.store.delete(NODE_CLAIM, "web-1")
            await asyncio.sleep(900)
            found = claims_in(world), world.store.find(NODE, node) is not None
        world.stop()
        return found

    assert run(story()) == (["web-1"], True)
