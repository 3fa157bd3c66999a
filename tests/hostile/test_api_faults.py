"""The operator survives temporary faults of an API server, and works soon after."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from msgspec import Struct

from karpy.model.kinds import KWOK_NODE_CLASS, NODE_POOL, POD
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.world import World, WorldSettings
from karpy.wiring.embedded import embedded_world, serve
from karpy.wiring.options import read_options
from karpy.wiring.process import run_process
from tests.hostile.faultproxy import FAULTS, FaultProxy, proxied
from tests.wiring.test_process import is_running, pod, pool, until

FAULT_SECONDS = 1.5
READY_SECONDS = 15.0
EACH_FAULT = pytest.mark.parametrize("fault", FAULTS)


class Scene(Struct):
    world: World
    proxy: FaultProxy
    health: int
    end: asyncio.Event
    folder: Path

    @asynccontextmanager
    async def operator(self) -> AsyncIterator["asyncio.Task[None]"]:
        words = (
            f"--kubeconfig={self.proxy.kubeconfig}",
            f"--log-output-paths={self.folder / 'log'}",
            "--metrics-port=0",
            f"--health-probe-port={self.health}",
            "--batch-idle-duration=100ms",
        )
        task = asyncio.create_task(run_process(read_options(words, {}), {}, self.end))
        try:
            yield task
        finally:
            self.end.set()
            await task

    async def spoil(self, fault: str) -> None:
        self.proxy.begin(FAULTS[fault])
        await asyncio.sleep(FAULT_SECONDS)
        self.proxy.end()


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    settings = WorldSettings(timing=KubeletTiming(speed=50))
    async with (
        embedded_world(settings) as world,
        serve(world) as served,
        proxied(served, folder) as proxy,
    ):
        world.store.create(KWOK_NODE_CLASS, {"metadata": {"name": "default"}})
        world.store.create(NODE_POOL, pool())
        yield Scene(world, proxy, free_port(), asyncio.Event(), folder)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def is_ready(session: aiohttp.ClientSession, port: int) -> bool:
    try:
        async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def works_soon(staged: Scene, name: str) -> None:
    """Wait until a pod runs and the operator says that it is ready."""
    async with asyncio.timeout(READY_SECONDS):
        await until(lambda: is_running(staged.world, name))
        await until_ready(staged.health)


async def until_ready(port: int) -> None:
    async with aiohttp.ClientSession() as session:
        for _ in range(300):
            if await is_ready(session, port):
                return
            await asyncio.sleep(0.05)
    raise TimeoutError


@EACH_FAULT
async def test_an_operator_that_starts_amid_a_fault_works_soon_after(
    fault: str, tmp_path: Path
) -> None:
    async with scene(tmp_path) as staged:
        staged.world.store.create(POD, pod("web"))
        staged.proxy.begin(FAULTS[fault])
        async with staged.operator() as task:
            await staged.spoil(fault)

            await works_soon(staged, "web")
            assert not task.done()
    assert staged.proxy.answered


@EACH_FAULT
async def test_an_operator_outlives_a_fault_and_works_soon_after(
    fault: str, tmp_path: Path
) -> None:
    async with scene(tmp_path) as staged, staged.operator() as task:
        staged.world.store.create(POD, pod("before"))
        await works_soon(staged, "before")

        staged.world.store.create(POD, pod("amid"))
        await staged.spoil(fault)
        staged.world.store.create(POD, pod("after"))

        await works_soon(staged, "amid")
        await works_soon(staged, "after")
        assert not task.done()
