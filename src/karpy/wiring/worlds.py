"""The embedded cluster, alive in real time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from karpy.sim.kubelets.timing import Timing
from karpy.sim.world import World, WorldSettings

_LIVE: Final = WorldSettings(timing=Timing(beat_seconds=10), taints_nodes=True)
"""People look at leases, and see whether they are renewed."""


@asynccontextmanager
async def embedded_world(
    settings: WorldSettings | None = None, *, seed: int = 0
) -> AsyncIterator[World]:
    """Let a cluster live on the running loop, from now on and in real time."""
    # Objects keep whole seconds: a world that begins within one would round differently each time.
    world = World(settings or _LIVE, seed=seed, start=datetime.now(UTC).replace(microsecond=0))
    world.start()
    try:
        yield world
    finally:
        world.stop()
