"""An embedded cluster behind its API server, for each test that needs one."""

from collections.abc import AsyncIterator

import pytest

from karpy.sim.kubelets.timing import AT_ONCE
from karpy.sim.world import World, WorldSettings
from karpy.wiring.embedded import ServedCluster, embedded_world, serve
from tests.adapters.apiserver.stranger import Stranger


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A cluster without delays, so that tests need not wait."""
    async with embedded_world(WorldSettings(timing=AT_ONCE, history=50)) as world:
        yield world


@pytest.fixture
async def served(world: World) -> AsyncIterator[ServedCluster]:
    mistakes: list[BaseException] = []
    async with serve(world, report=mistakes.append) as served:
        yield served
    assert mistakes == []


@pytest.fixture
async def client(served: ServedCluster) -> AsyncIterator[Stranger]:
    async with Stranger(served.url, served.authority, served.token) as client:
        yield client
