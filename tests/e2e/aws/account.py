"""`karpy run --provider aws` on a cluster and a fake AWS, over HTTP and in real time."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from karpy.adapters.clock import WallClock
from karpy.adapters.clouds.awsfake.server import AwsFake, FakeAccount
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.adapters.kube.connection import connect
from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.errors import AlreadyExists, ClusterError
from karpy.model.kinds import CUSTOM_RESOURCE, EC2_NODE_CLASS, NODE, NODE_CLAIM, POD, Kind
from karpy.ports.objects import Objects, Patch, PatchType, Query
from karpy.sim.ec2.joining import JoiningMachines
from karpy.sim.ec2.machines import SimulatedMachines, keep_running
from karpy.sim.kubelets.timing import AT_ONCE
from karpy.sim.world import World, WorldSettings
from karpy.wiring.embedded import embedded_world, serve
from karpy.wiring.options import read_options
from karpy.wiring.process import run_process
from tests.contract.awsclouds import serving

FAMILIES: Final = ("c6a", "m5", "c7g", "g5")
_PATIENCE: Final = 120.0
_LOOKS: Final = 0.3
_NAMESPACE: Final = "default"
_FLAGS: Final = (
    "--provider=aws",
    "--cluster-name=demo",
    "--interruption-queue=demo",
    "--disable-leader-election",
    "--metrics-port=0",
    "--health-probe-port=0",
    "--batch-idle-duration=0.3s",
)


class Site:
    """A cluster, an account and their operator."""

    def __init__(self, objects: Objects, fake: AwsFake) -> None:
        self.objects = objects
        self.fake = fake

    async def apply(self, kind: Kind, obj: JsonObject) -> None:
        whole = {"apiVersion": kind.api_version, "kind": kind.name, **obj}
        await self.objects.create(kind, whole)

    async def delete(self, kind: Kind, name: str) -> None:
        await self.objects.delete(kind, name, namespace=_NAMESPACE if kind.is_namespaced else "")

    async def change(self, kind: Kind, name: str, body: JsonObject) -> None:
        await self.objects.patch(kind, name, Patch(PatchType.MERGE, body))

    async def labels(self, key: str) -> set[str]:
        """Return the values of a label of all nodes."""
        return {each["metadata"]["labels"].get(key, "") for each in await self.all(NODE)}

    async def all(self, kind: Kind) -> list[JsonObject]:
        return list((await self.objects.list(kind)).items)

    async def running(self, app: str) -> list[JsonObject]:
        pods = (await self.objects.list(POD, Query(_NAMESPACE, f"app={app}"))).items
        return [each for each in pods if _runs(each)]

    async def until_running(self, app: str, count: int) -> None:
        async def are_there() -> bool:
            return len(await self.running(app)) == count

        await self.until(are_there)

    async def until_clean(self) -> None:
        """Wait until cluster and account are empty."""

        async def is_clean() -> bool:
            fake = self.fake
            left = [fake.instances(), fake.launch_templates(), fake.instance_profiles()]
            kinds = (NODE, NODE_CLAIM, EC2_NODE_CLASS)
            return not any(left) and not any([await self.all(kind) for kind in kinds])

        await self.until(is_clean)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(_PATIENCE):
            while True:
                if await holds():
                    return
                await asyncio.sleep(_LOOKS)


@asynccontextmanager
async def on_aws(plane: ControlPlane | None = None) -> AsyncIterator[Site]:
    """Enter a cluster on AWS: the embedded one, or a real control plane."""
    async with AsyncExitStack() as stack:
        fake = stack.enter_context(serving(FakeAccount(families=FAMILIES)))
        if plane is None:
            face = await stack.enter_async_context(serve(await _world(stack)))
            kubeconfig = face.kubeconfig
        else:
            kubeconfig = plane.kubeconfig
        connection = await stack.enter_async_context(connect(kubeconfig=str(kubeconfig)))
        if plane is not None:
            await _install(connection.objects)
        joining_machines = JoiningMachines(connection.objects, WallClock())
        stack.callback(joining_machines.close)
        machines = SimulatedMachines(joining_machines, fake.tables.types.values())
        joining = asyncio.create_task(keep_running(machines, fake.instances))
        stack.callback(joining.cancel)
        await stack.enter_async_context(_operating(kubeconfig))
        yield Site(connection.objects, fake)


async def _world(stack: AsyncExitStack) -> World:
    return await stack.enter_async_context(embedded_world(WorldSettings(timing=AT_ONCE)))


@asynccontextmanager
async def _operating(kubeconfig: Path) -> AsyncIterator[None]:
    end = asyncio.Event()
    read = read_options((*_FLAGS, f"--kubeconfig={kubeconfig}"), os.environ)
    operator = asyncio.create_task(run_process(read, os.environ, end))
    try:
        yield
    finally:
        end.set()
        await operator


async def _install(objects: Objects) -> None:
    for kind in CUSTOM_KINDS:
        with suppress(AlreadyExists):
            await objects.create(CUSTOM_RESOURCE, kind.to_json())
    while True:
        with suppress(ClusterError):
            await objects.list(EC2_NODE_CLASS)
            return
        await asyncio.sleep(_LOOKS)


def _runs(pod: JsonObject) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
