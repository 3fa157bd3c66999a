"""Parts that run for as long as the operator does; one that fails is started again."""

import asyncio
from collections.abc import Iterable
from typing import Final

from karpy.barriers import Barrier, lost_lease
from karpy.core.lifecycle.changes import Count
from karpy.errors import Bug, KarpyError
from karpy.model.backoff import Backoff
from karpy.wiring.parts import Part
from karpy.wiring.surface import Voice

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 10.0
"""A fault of the server may last; work goes on soon after its end."""
_PANICS: Final = "controller_runtime_reconcile_panics_total"


async def supervise(parts: Iterable[Part], voice: Voice) -> None:
    """
    Run parts side by side until cancelled, and start again those that fail, later each time.

    A lost lease ends all of them.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(_keep_running(part, voice), name=part.name)
    except ExceptionGroup as errors:
        lost = lost_lease(errors)
        if lost is not None:
            raise lost from errors
        raise


async def _keep_running(part: Part, voice: Voice) -> None:
    loop = asyncio.get_running_loop()
    backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)

    def fail(error: KarpyError) -> None:
        if isinstance(error, Bug):
            voice.count(Count(_PANICS, {"controller": part.name}))
        voice.fail(part.name, "", error)

    while True:
        began = loop.time()
        with Barrier(fail):
            await part.run()
            return
        if loop.time() - began > _LONGEST_PAUSE:
            backoff.reset()
        await asyncio.sleep(backoff.next_pause())
