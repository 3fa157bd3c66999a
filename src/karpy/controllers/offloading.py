"""Decisions are made in a thread of their own: whatever they cost, the loop goes on."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

KeepGoing = Callable[[], bool]

_THREAD: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decisions")
"""One for all: decisions are made one after the other, and none needs a lock."""
_YIELDS_AFTER: Final = 10.0
"""After so many seconds a decision that can wait ends for one about pods."""


async def decide_aside(decide: Callable[[], T]) -> T:
    """Decide on values that never change, off the loop."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, decide)


class _Urgency:
    """How many decisions about pods wait for the thread, or are being made."""

    def __init__(self) -> None:
        self.count = 0


_URGENCY: Final = _Urgency()


async def decide_in_time(
    decide: Callable[[KeepGoing], T], seconds: float, *, can_wait: bool = False
) -> T:
    """
    Do the same; `decide` is given what says whether time is left, and gives what it has.

    One that `can_wait` has less time while one that cannot waits for it to end.
    """
    loop = asyncio.get_running_loop()
    is_wanted = True
    began: float | None = None

    def keep_going() -> bool:
        most = min(seconds, _YIELDS_AFTER) if can_wait and _URGENCY.count else seconds
        return is_wanted and (began is None or loop.time() - began < most)

    def begin() -> T:
        # Waiting for the decision before this one does not count.
        nonlocal began
        began = loop.time()
        return decide(keep_going)

    _URGENCY.count += not can_wait
    try:
        return await decide_aside(begin)
    finally:
        _URGENCY.count -= not can_wait
        # A caller that no longer waits for the answer must not keep the thread busy.
        is_wanted = False
