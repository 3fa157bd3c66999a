import asyncio
import time
from datetime import UTC, datetime

import pytest

from karpy.sim.clock import LoopClock
from karpy.sim.timelapse import run_faster

START = datetime(2026, 1, 5, tzinfo=UTC)


def test_a_second_takes_less_than_a_second() -> None:
    began = time.monotonic()

    run_faster(asyncio.sleep(2), speed=20)

    assert 0.1 <= time.monotonic() - began < 1


def test_the_clock_shows_the_seconds_that_were_slept() -> None:
    async def story() -> float:
        clock = LoopClock(START)
        began = clock.now()
        await asyncio.sleep(3)
        return (clock.now() - began).total_seconds()

    assert run_faster(story(), speed=30) == pytest.approx(3, abs=1)


def test_the_shorter_of_two_sleeps_ends_first() -> None:
    woken: list[int] = []

    async def sleep(seconds: int) -> None:
        await asyncio.sleep(seconds)
        woken.append(seconds)

    async def story() -> None:
        await asyncio.gather(*(sleep(each) for each in (5, 1, 3)))

    run_faster(story(), speed=50)

    assert woken == [1, 3, 5]


def test_a_callback_from_another_thread_runs_at_once() -> None:
    async def story() -> str:
        return await asyncio.to_thread(lambda: "heard")

    assert run_faster(story(), speed=10) == "heard"
