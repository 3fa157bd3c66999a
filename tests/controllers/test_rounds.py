"""Periodic work of controllers."""

import asyncio
from datetime import timedelta

from karpy.adapters.telemetry.health import ProgressCheck
from karpy.controllers.queue import UNOBSERVED, every
from karpy.errors import CloudUnavailable, KarpyError
from karpy.sim.loop import run


def test_rounds_go_on_after_a_failure_and_come_often_at_first() -> None:
    async def story() -> tuple[list[float], list[KarpyError]]:
        times: list[float] = []
        failed: list[KarpyError] = []

        async def work() -> None:
            times.append(asyncio.get_running_loop().time())
            if len(times) == 2:
                raise CloudUnavailable(call="x", problem="y")

        def on_failure(key: str, error: KarpyError) -> None:
            del key
            failed.append(error)

        minute, second = timedelta(minutes=1), timedelta(seconds=1)
        task = asyncio.ensure_future(every(minute, work, on_failure, often=(3, second)))
        await asyncio.sleep(125)
        task.cancel()
        return times, failed

    times, failed = run(story())

    assert times == [0, 1, 2, 3, 63, 123]
    assert len(failed) == 1


def test_a_round_that_does_not_end_is_named_by_the_health_check() -> None:
    async def story() -> list[str]:
        loop, rounds = asyncio.get_running_loop(), 0
        progress = ProgressCheck(loop.time)

        async def work() -> None:
            nonlocal rounds
            rounds += 1
            if rounds > 2:
                await asyncio.Event().wait()

        observer = progress.of("providers.pricing", UNOBSERVED)
        task = asyncio.ensure_future(
            every(timedelta(hours=1), work, lambda *_: None, observer=observer)
        )
        told = []
        for _ in range(2):
            await asyncio.sleep(3590 * 2)
            told.append(progress.check())
        task.cancel()
        return told

    assert run(story()) == [
        "",
        "providers.pricing has finished nothing for 7160 s, with 1 at work or waiting",
    ]
