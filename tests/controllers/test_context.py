"""Decisions do not block the event loop, and end when they are cancelled."""

import asyncio
from collections.abc import Callable
from threading import Event, current_thread

import pytest

from karpy.controllers.context import decide_aside, decide_in_time

HOUR = 3600.0


async def test_every_decision_is_made_in_the_same_thread_and_not_on_the_loop() -> None:
    threads = [await decide_aside(current_thread), await decide_aside(current_thread)]

    assert threads[0] is threads[1]
    assert threads[0] is not current_thread()


async def test_the_loop_goes_on_while_a_decision_is_made() -> None:
    may_end = Event()

    decision = asyncio.create_task(decide_aside(may_end.wait))
    await asyncio.sleep(0.01)
    is_done = decision.done()
    may_end.set()

    assert (is_done, await decision) == (False, True)


def _answer(keep_going: Callable[[], bool]) -> bool:
    return keep_going()


@pytest.mark.parametrize(("seconds", "goes_on"), [(HOUR, True), (0.0, False)])
async def test_a_decision_goes_on_until_its_deadline(seconds: float, *, goes_on: bool) -> None:
    assert await decide_in_time(_answer, seconds) is goes_on


async def test_the_time_that_another_decision_takes_does_not_count() -> None:
    may_end = Event()
    first = asyncio.create_task(decide_aside(may_end.wait))
    second = asyncio.create_task(decide_in_time(_answer, 0.5))
    await asyncio.sleep(1)
    may_end.set()

    assert (await first, await second) == (True, True)


async def test_a_decision_that_no_part_waits_for_ends() -> None:
    has_begun, has_ended = Event(), Event()

    def decide(keep_going: Callable[[], bool]) -> None:
        has_begun.set()
        while keep_going():
            pass
        has_ended.set()

    decision = asyncio.create_task(decide_in_time(decide, HOUR))
    await asyncio.to_thread(has_begun.wait)
    decision.cancel()
    await asyncio.wait((decision,))

    assert await asyncio.to_thread(has_ended.wait, 10)
