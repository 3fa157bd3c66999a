"""Work that is done again and again, whatever becomes of one round."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

from karpy.barriers import Barrier
from karpy.errors import KarpyError

OnFailure = Callable[[str, KarpyError], None]
"""Hears what could not be worked on, and why; it is tried again."""


async def every(
    period: timedelta,
    work: Callable[[], Awaitable[None]],
    on_failure: OnFailure,
    *,
    often: tuple[int, timedelta] = (0, timedelta()),
) -> None:
    """Do some work now and then, until cancelled; `often` is for the first rounds that succeed."""
    count, short = often
    while True:
        failed: list[KarpyError] = []
        with Barrier(failed.append):
            await work()
        for each in failed:
            on_failure("", each)
        count -= not failed
        await asyncio.sleep((short if count > 0 else period).total_seconds())


def quiet(on_failure: OnFailure, key: str) -> Barrier:
    """Return what keeps a failure with one object from the others."""
    return Barrier(partial(on_failure, key))
