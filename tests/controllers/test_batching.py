import asyncio

from karpy.controllers.provisioning import Batcher
from karpy.sim.loop import run


async def waited(batcher: Batcher) -> tuple[frozenset[str], float]:
    loop = asyncio.get_running_loop()
    began = loop.time()
    return await batcher.wait(), loop.time() - began


def test_one_trigger_waits_for_company() -> None:
    async def story() -> tuple[frozenset[str], float]:
        batcher = Batcher()
        batcher.trigger("a")
        return await waited(batcher)

    assert run(story()) == (frozenset({"a"}), 1.0)


def test_each_newcomer_prolongs_the_wait_up_to_an_end() -> None:
    async def story() -> tuple[frozenset[str], float]:
        batcher, loop = Batcher(), asyncio.get_running_loop()
        for number in range(20):
            loop.call_later(number * 0.9, batcher.trigger, f"pod-{number}")
        await asyncio.sleep(0)
        return await waited(batcher)

    batch, seconds = run(story())

    assert seconds == 10.0
    assert len(batch) == 12


def test_a_trigger_that_comes_twice_prolongs_nothing() -> None:
    async def story() -> tuple[frozenset[str], float]:
        batcher, loop = Batcher(), asyncio.get_running_loop()
        batcher.trigger("a")
        loop.call_later(0.5, batcher.trigger, "a")
        return await waited(batcher)

    assert run(story()) == (frozenset({"a"}), 1.0)


def test_a_window_forgets_who_triggered_it() -> None:
    async def story() -> list[frozenset[str]]:
        batcher = Batcher()
        batcher.trigger("a")
        first = await batcher.wait()
        batcher.trigger("a")
        return [first, await batcher.wait()]

    assert run(story()) == [frozenset({"a"}), frozenset({"a"})]


def test_without_a_trigger_nothing_happens() -> None:
    async def story() -> tuple[frozenset[str], float]:
        batcher, loop = Batcher(), asyncio.get_running_loop()
        loop.call_later(100.0, batcher.trigger, "late")
        return await waited(batcher)

    assert run(story()) == (frozenset({"late"}), 101.0)


def test_who_rides_along_prolongs_a_window_and_opens_none() -> None:
    async def story() -> tuple[frozenset[str], float]:
        batcher, loop = Batcher(), asyncio.get_running_loop()
        batcher.prolong("early")
        loop.call_later(1.0, batcher.trigger, "a")
        loop.call_later(1.8, batcher.prolong, "rides")
        return await waited(batcher)

    batch, seconds = run(story())

    assert batch == frozenset({"a", "rides"})
    assert round(seconds, 6) == 2.8
