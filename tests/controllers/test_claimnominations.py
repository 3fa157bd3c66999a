"""Pods on their way to a node that was made for them, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from karpy.controllers.nominations import ClaimNominations
from karpy.model.kinds import NODE_CLAIM, POD
from karpy.model.verdicts import Launch
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import Heard, claim, is_ready, operator, until
from tests.controllers.test_provisioning import pod

LAUNCH = Launch("1", "web", ("default/a",), {}, {}, ())


@asynccontextmanager
async def expecting(world: World, lost: list[str]) -> AsyncIterator[ClaimNominations]:
    """Have an operator that has just made a claim for a pod."""
    world.start()
    async with operator(world, Heard()) as context:
        expectations = ClaimNominations(context.records, world.clock, lost.append)
        expectations.note("web-1", LAUNCH)
        yield expectations
    world.stop()


def test_pods_are_on_their_way_until_their_node_was_ready_for_a_while() -> None:
    async def story() -> list[dict[str, str]]:
        world = World()
        world.store.create(POD, pod("a", "300"))
        async with expecting(world, []) as expectations:
            seen = [dict(expectations.places())]
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(1)
            seen.append(dict(expectations.places()))
            await until(lambda: is_ready(world))
            seen.append(dict(expectations.places()))
            await asyncio.sleep(11)
            return [*seen, dict(expectations.places())]

    there = {"default/a": "web-1"}
    assert run(story()) == [there, there, there, {}]


def test_when_a_claim_goes_its_pods_need_another_one() -> None:
    async def story() -> tuple[list[str], dict[str, str], str]:
        world, lost = World(), list[str]()
        world.store.create(POD, pod("a", "300"))
        async with expecting(world, lost) as expectations:
            world.store.create(NODE_CLAIM, claim())
            await until(lambda: is_ready(world))
            world.store.delete(NODE_CLAIM, "web-1")
            await until(lambda: not world.store.list(NODE_CLAIM))
            await asyncio.sleep(1)
            uid = world.store.get(POD, "a", "default")["metadata"]["uid"]
            return lost, dict(expectations.places()), uid

    lost, places, uid = run(story())

    assert lost == [uid]
    assert places == {}


def test_who_finds_room_beside_others_is_expected_as_well() -> None:
    async def story() -> dict[str, str]:
        world = World()
        for name in "abc":
            world.store.create(POD, pod(name, "300"))
        async with expecting(world, []) as expectations:
            await asyncio.sleep(1)
            expectations.add("web-1", ("default/b",))
            expectations.add("web-2", ("default/c",))
            return dict(expectations.places())

    assert run(story()) == {"default/a": "web-1", "default/b": "web-1"}


def test_a_node_is_awaited_until_its_pods_are_there() -> None:
    async def story() -> list[bool]:
        world = World()
        world.store.create(POD, pod("a", "300"))
        async with expecting(world, []) as expectations:
            seen = [expectations.awaits("web-1"), expectations.awaits("web-2")]
            world.store.create(NODE_CLAIM, claim())
            await until(lambda: is_ready(world))
            seen.append(expectations.awaits("web-1"))
            await asyncio.sleep(11)
            return [*seen, expectations.awaits("web-1")]

    assert run(story()) == [True, False, True, False]


def test_there_is_much_to_do_while_pods_are_on_their_way() -> None:
    async def story() -> list[bool]:
        world = World()
        world.store.create(POD, pod("a", "300"))
        async with expecting(world, []) as expectations:
            seen = [expectations.is_busy()]
            world.store.create(NODE_CLAIM, claim())
            await until(lambda: is_ready(world))
            await asyncio.sleep(21)
            return [*seen, expectations.is_busy()]

    assert run(story()) == [True, False]


def test_claims_of_one_decision_settle_together() -> None:
    """Their nodes take long: nobody waits for them for ever."""

    async def story() -> list[frozenset[str]]:
        world = World()
        async with expecting(world, []) as expectations:
            expectations.note("web-2", LAUNCH)
            seen = [expectations.settling()]
            world.store.create(NODE_CLAIM, claim())
            world.store.create(NODE_CLAIM, claim("web-2"))
            await asyncio.sleep(1)
            seen.append(expectations.settling())
            await asyncio.sleep(10)
            return [*seen, expectations.settling()]

    assert run(story()) == [frozenset(), frozenset({"web-1", "web-2"}), frozenset()]
