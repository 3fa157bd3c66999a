"""A scripted API server for each test that needs one."""

from collections.abc import AsyncIterator

import pytest

from karpy.adapters.kube.api import KubeApi
from karpy.adapters.kube.transport import Transport
from tests.adapters.kube.server import ScriptedServer, serving, transport_to


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with serving() as server:
        yield server


@pytest.fixture
async def transport(server: ScriptedServer) -> AsyncIterator[Transport]:
    transport = transport_to(server)
    yield transport
    await transport.close()


@pytest.fixture
def api(transport: Transport) -> KubeApi:
    return KubeApi(transport, idle_seconds=0.8)
