import asyncio
from datetime import UTC, datetime, timedelta

from karpy.sim.clock import LoopClock
from karpy.sim.loop import run
from tests.sim.stories import on_virtual_time

START = datetime(2026, 1, 5, tzinfo=UTC)


def test_a_clock_stands_still_without_a_loop() -> None:
    assert LoopClock(START).now() == START


@on_virtual_time
async def test_a_clock_jumps_with_its_loop() -> None:
    clock = LoopClock(START)
    before = clock.now()

    await asyncio.sleep(90.5)

    assert (before, clock.now()) == (START, START + timedelta(seconds=90.5))


def test_a_clock_begins_when_it_is_first_asked() -> None:
    clock = LoopClock(START)

    async def ask_late() -> datetime:
        await asyncio.sleep(100)
        return clock.now()

    assert run(ask_late()) == START


async def test_a_clock_runs_on_a_real_loop() -> None:
    clock = LoopClock(START)
    before = clock.now()

    await asyncio.sleep(0.01)

    assert timedelta(seconds=0.005) < clock.now() - before < timedelta(seconds=60)
