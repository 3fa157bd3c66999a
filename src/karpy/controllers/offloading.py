"""Decisions are made in a thread of their own: whatever they cost, the loop goes on."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

KeepGoing = Callable[[], bool]

_THREAD: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decisions")
"""One for all: decisions are made one after the other, and none needs a lock."""


async def decide_aside(decide: Callable[[], T]) -> T:
    """Decide on values that never change, off the loop."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, decide)


async def decide_in_time(decide: Callable[[KeepGoing], T], seconds: float) -> T:
    """Do the same; `decide` is given what says whether time is left, and gives what it has."""
    loop = asyncio.get_running_loop()
    is_wanted = True
    deadline: float | None = None

    def keep_going() -> bool:
        return is_wanted and (deadline is None or loop.time() < deadline)

    def begin() -> T:
        # Waiting for the decision before this one does not count.
        nonlocal deadline
        deadline = loop.time() + seconds
        return decide(keep_going)

    try:
        return await decide_aside(begin)
    finally:
        # A caller that no longer waits for the answer must not keep the thread busy.
        is_wanted = False
