"""Machine events are acted on in time, even hundreds at once."""

import asyncio
from collections.abc import AsyncIterator

from karpy.controllers.interruption import InterruptionController
from karpy.errors import CloudUnavailable
from karpy.ports.cloud import MachineEvent, MachineFate
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import Heard, context_of

HUNDRED = [
    MachineEvent(MachineFate.SPOT_INTERRUPTED, (f"i-{each}",), token=str(each))
    for each in range(100)
]


class Busy:
    """An EventfulCloud that acknowledges an event within a second, and fails for one of them."""

    def __init__(self) -> None:
        self.acknowledged: set[str] = set()

    async def machine_events(self) -> AsyncIterator[MachineEvent]:
        for each in HUNDRED:
            yield each

    async def acknowledge(self, event: MachineEvent) -> None:
        await asyncio.sleep(1)
        if event is HUNDRED[7]:
            raise CloudUnavailable(call="sqs:DeleteMessage", problem="there is too much to do")
        self.acknowledged.add(event.token)


def test_a_hundred_interruptions_take_seconds_and_one_that_fails_holds_up_no_other() -> None:
    async def story() -> tuple[float, int, int]:
        cloud, heard = Busy(), Heard()
        async with context_of(World(), heard) as context:
            loop = asyncio.get_running_loop()
            began = loop.time()
            await InterruptionController(context, cloud).run()
            return loop.time() - began, len(cloud.acknowledged), len(heard.failures)

    seconds, acknowledged, failed = run(story())

    assert (acknowledged, failed) == (99, 1)
    assert seconds <= 11
