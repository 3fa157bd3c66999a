"""Work that is done again and again, whatever becomes of one round."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

from karpy.barriers import Barrier
from karpy.controllers.context import ControllerContext
from karpy.controllers.queue import UNOBSERVED
from karpy.errors import KarpyError
from karpy.ports.observers import Observer, ReconcileResult

OnFailure = Callable[[str, KarpyError], None]
"""Hears what could not be worked on, and why; it is tried again."""


async def every(
    period: timedelta,
    work: Callable[[], Awaitable[None]],
    on_failure: OnFailure,
    *,
    often: tuple[int, timedelta] = (0, timedelta()),
    observer: Observer = UNOBSERVED,
) -> None:
    """Do some work now and then, until cancelled; `often` is for the first rounds that succeed."""
    count, short = often
    observer.employ(1)
    while True:
        failed: list[KarpyError] = []
        observer.take("")
        with Barrier(failed.append):
            await work()
        for each in failed:
            observer.finish("", ReconcileResult.of(each))
            on_failure("", each)
        if not failed:
            observer.finish("", ReconcileResult.AGAIN)
        count -= not failed
        await asyncio.sleep((short if count > 0 else period).total_seconds())


async def observed(
    period: timedelta,
    work: Callable[[], Awaitable[None]],
    context: ControllerContext,
    often: tuple[int, timedelta] = (0, timedelta()),
) -> None:
    """Do the work of a controller now and then, until cancelled; its context hears of it."""
    failure, observer = context.on_failure, context.observer
    await every(period, work, failure, often=often, observer=observer)


def quiet(on_failure: OnFailure, key: str) -> Barrier:
    """Return what keeps a failure with one object from the others."""
    return Barrier(partial(on_failure, key))
