"""The clouds of the demo: KWOK, or another one."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Final

from msgspec import Struct

from karpy.cli.examples import CLUSTER, example_documents
from karpy.cli.show.story import Documents
from karpy.model.settings import Options
from karpy.sim.world import World, WorldSettings
from karpy.wiring.resident import BRISK, OpenCloud

OPTIONS: Final = Options(batch_max=timedelta(seconds=5))
"""Half the default batch, since a nominated node is kept for two of the longest batches."""

PriceOf = Callable[[Mapping[str, str]], int]
"""Returns the price of a machine in micro-dollars per hour, by its labels."""


class RunningCloud(Struct, frozen=True):
    """A running cloud: the story's manifests, and the operator's options, cloud and prices."""

    documents: Documents
    options: Options = OPTIONS
    open_cloud: OpenCloud | None = None
    price_of: PriceOf | None = None


class Venue(Struct, frozen=True):
    """A cloud for the demo, and how to start it."""

    nodes: str
    """A phrase for its nodes."""
    world: WorldSettings
    enter: Callable[[World], AbstractAsyncContextManager[RunningCloud]]
    wall_seconds: float = 50.0
    """Real seconds that the story may take at any speed, for busy machines; less than a minute."""


@asynccontextmanager
async def _on_paper(world: World) -> AsyncIterator[RunningCloud]:
    del world
    yield RunningCloud(example_documents(CLUSTER))


ON_PAPER: Final = Venue("on paper", BRISK, _on_paper)
