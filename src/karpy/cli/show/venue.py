"""Where a show takes place: on KWOK, whose nodes are on paper, or in some cloud."""

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
"""A node is kept for two of the longest batches after pods were expected on it: half as long."""

PriceOf = Callable[[Mapping[str, str]], int]
"""Returns what a machine costs an hour, in micro-dollars, by its labels."""


class Place(Struct, frozen=True):
    """A cloud that is there, and what a story needs to know of it."""

    documents: Documents
    options: Options = OPTIONS
    open_cloud: OpenCloud | None = None
    price_of: PriceOf | None = None


class Venue(Struct, frozen=True):
    """What kind of place a show takes place in."""

    nodes: str
    """What its nodes are, in a few words."""
    world: WorldSettings
    enter: Callable[[World], AbstractAsyncContextManager[Place]]
    wall_seconds: float = 50.0
    """A busy machine gets so long, however fast time passes; people were promised a minute."""


@asynccontextmanager
async def _on_paper(world: World) -> AsyncIterator[Place]:
    del world
    yield Place(example_documents(CLUSTER))


ON_PAPER: Final = Venue("on paper", BRISK, _on_paper)
