import asyncio
import re

import pytest

from karpy.errors import LimitPassed, SimulationStalled
from karpy.sim.loop import VirtualLoop, run
from tests.sim.stories import on_virtual_time


@on_virtual_time
async def test_a_week_passes_at_once() -> None:
    loop = asyncio.get_running_loop()

    await asyncio.sleep(7 * 24 * 3600)

    assert loop.time() == 7 * 24 * 3600


@on_virtual_time
async def test_timers_fire_in_the_order_of_their_times() -> None:
    rung: list[str] = []

    async def ring(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        rung.append(name)

    await asyncio.gather(ring("late", 3), ring("soon", 1), ring("twin", 1), ring("next", 2))

    assert rung == ["soon", "twin", "next", "late"]


@on_virtual_time
async def test_a_timeout_takes_no_time_either() -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), timeout=600)

    assert asyncio.get_running_loop().time() == 600


async def _wait_for_nobody() -> None:
    await asyncio.Event().wait()


async def _work_and_wait() -> None:
    waiting = asyncio.create_task(_wait_for_nobody(), name="waiter")
    await asyncio.sleep(5)
    await waiting


def test_a_stalled_loop_names_the_tasks_and_where_they_wait() -> None:
    with pytest.raises(SimulationStalled) as caught:
        run(_work_and_wait())

    lines = caught.value.message.splitlines()
    assert lines[0] == "time stands still: every task waits and no timer is set"
    assert re.fullmatch(r"  `Task-\d+` in `_work_and_wait` \(test_loop.py:\d+\)", lines[1])
    assert re.fullmatch(r"  `waiter` in `_wait_for_nobody` \(test_loop.py:\d+\)", lines[2])


def test_a_loop_without_progress_of_time_is_stopped() -> None:
    async def turn() -> None:
        await asyncio.sleep(0)
        await asyncio.create_task(turn())

    with pytest.raises(LimitPassed, match="100 steps at one instant"):
        run(turn(), steps_max=100)


def test_a_loop_that_only_ticks_is_stopped_after_a_while() -> None:
    """Watches send bookmarks for ever, so that a world with one of them never stalls."""

    async def tick() -> None:
        await asyncio.sleep(60)
        await asyncio.create_task(tick())

    with pytest.raises(LimitPassed, match="600 s have passed; these tasks are not done:\n  `Task"):
        run(tick(), seconds_max=600)


def test_an_error_in_a_callback_ends_the_loop() -> None:
    async def schedule_a_slip() -> None:
        asyncio.get_running_loop().call_later(5, [].pop)
        await asyncio.sleep(10)

    with pytest.raises(IndexError, match="pop from empty list"):
        run(schedule_a_slip())


@on_virtual_time
async def test_work_for_another_thread_is_done_on_this_one() -> None:
    def add(left: int, right: int) -> int:
        return left + right

    answer = await asyncio.to_thread(add, 1, 2)

    assert answer == 3


@on_virtual_time
async def test_an_error_in_a_thread_is_raised_by_its_await() -> None:
    def slip() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await asyncio.to_thread(slip)


def test_a_run_returns_what_its_coroutine_returns() -> None:
    async def answer() -> str:
        await asyncio.sleep(3600)
        return "done"

    assert run(answer()) == "done"


def test_two_loops_have_times_of_their_own() -> None:
    first, second = VirtualLoop(), VirtualLoop()

    first.run_until_complete(asyncio.sleep(60))

    assert (first.time(), second.time()) == (60, 0)
    first.close()
    second.close()
