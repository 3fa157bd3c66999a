"""AWS on two fakes, in memory and over HTTP; the machines of both have kubelets."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

from karpy.adapters.clock import WallClock
from karpy.adapters.clouds.aws.builtin import known_prices
from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.adapters.clouds.aws.client import connect_aws
from karpy.adapters.clouds.awsfake.server import AwsFake, FakeAccount
from karpy.adapters.clouds.awsfake.tables import Tables
from karpy.adapters.clouds.awsfake.typetable import types_of, zones_of
from karpy.adapters.kube.events import EventRecorder
from karpy.model.kinds import EC2_NODE_CLASS, NODE_POOL
from karpy.model.settings import Options
from karpy.ports.cloud import CloudProvider
from karpy.ports.objects import Objects, Patch, PatchType
from karpy.sim.ec2.calls import MemoryCalls
from karpy.sim.ec2.cloud import Ec2Cloud
from karpy.sim.ec2.machines import SimulatedMachines, keep_running
from karpy.sim.world import World
from karpy.wiring.clouds.aws import open_with
from karpy.wiring.clouds.registry import Cloud, ProviderInputs, surface_of
from karpy.wiring.operator import KarpyOperator
from tests.aws.manifests import ec2_node_class, ec2_pool
from tests.contract.goods import AWS_GOODS
from tests.contract.worlds import until
from tests.scenarios.stage import Quiet

REGION: Final = "us-west-2"
SIZES: Final = ("c6a.large", "c6a.xlarge", "c6a.2xlarge", "c6a.4xlarge")
_OPTIONS: Final = Options(provider="aws", cloud={"cluster_name": "demo"})


class AwsStage:
    """The provider as the operator creates it, in a cluster whose nodes boot by their user data."""

    goods = AWS_GOODS
    is_idempotent_for_ever = False
    labels_nodes = False

    def __init__(self, world: World, calls: AwsCalls) -> None:
        self.objects: Objects = world.objects
        self._world = world
        self._calls = calls
        self._cloud: Cloud | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def cloud(self) -> CloudProvider:
        assert self._cloud is not None
        return self._cloud.provider

    async def restart(self) -> None:
        """Replace the operator by a new one without memory."""
        await self.close()
        world = self._world
        recorder = EventRecorder(world.objects, world.clock, instance="karpy")
        site = ProviderInputs(world.objects, world.objects, WallClock(), recorder, _OPTIONS)
        self._cloud = cloud = await open_with(site, self._calls)
        operator = KarpyOperator(surface_of(site, cloud), _OPTIONS, notices=recorder, voice=Quiet())
        self._task = asyncio.create_task(operator.run())
        await until(self._is_known)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            await self.cloud.close()

    async def spoil_class(self, problem: str) -> str:
        """Remove the subnets of the node class."""
        terms = [{"tags": {"karpenter.sh/discovery": problem}}]
        body = {"spec": {"subnetSelectorTerms": terms}}
        await self.objects.patch(EC2_NODE_CLASS, "default", Patch(PatchType.MERGE, body))
        await until(self._is_spoiled)
        return "SubnetsReady=False"

    async def slow_down(self) -> None:
        """Do nothing: machines boot without the operator."""

    async def _is_known(self) -> bool:
        """Say whether the provider may launch."""
        catalog = self.cloud.catalog()
        return await self._has_status("True") and any(
            each.is_available for kind in catalog.types_for("general") for each in kind.offerings
        )

    async def _is_spoiled(self) -> bool:
        return await self._has_status("False")

    async def _has_status(self, status: str) -> bool:
        found = await self.objects.get(EC2_NODE_CLASS, "default")
        conditions = found.get("status", {}).get("conditions", [])
        return any((each["type"], each["status"]) == ("Ready", status) for each in conditions)


@asynccontextmanager
async def aws_stage(world: World, *, is_over_http: bool) -> AsyncIterator[AwsStage]:
    """Enter an account with a cluster, and remove it afterwards."""
    await world.objects.create(EC2_NODE_CLASS, _whole(EC2_NODE_CLASS.name, ec2_node_class()))
    await world.objects.create(NODE_POOL, _whole(NODE_POOL.name, ec2_pool("general")))
    types = {name: each for name, each in types_of(("c6a",)).items() if name in SIZES}
    machines = SimulatedMachines(world.kubelets, types.values())
    made = _over_http(machines) if is_over_http else _in_memory(machines, types, world)
    async with made as calls:
        stage = AwsStage(world, calls)
        try:
            await stage.restart()
            yield stage
        finally:
            await stage.close()
            await calls.close()


@asynccontextmanager
async def _in_memory(
    machines: SimulatedMachines, types: Mapping[str, dict[str, object]], world: World
) -> AsyncIterator[AwsCalls]:
    tables = Tables(REGION, known_prices(REGION), types, zones_of(REGION))
    cloud = Ec2Cloud(tables, world.clock, machines, end_seconds=0)
    try:
        yield MemoryCalls(cloud)
    finally:
        cloud.stop()


@asynccontextmanager
async def _over_http(machines: SimulatedMachines) -> AsyncIterator[AwsCalls]:
    with serving(FakeAccount(REGION, families=("c6a",))) as fake:
        for each in [name for name in fake.tables.types if name not in SIZES]:
            del fake.tables.types[each], fake.tables.zones[each]
        task = asyncio.create_task(keep_running(machines, fake.instances))
        try:
            yield await connect_aws()
        finally:
            task.cancel()


@contextmanager
def serving(account: FakeAccount) -> Iterator[AwsFake]:
    """Serve a fake AWS, and point the clients of this process to it."""
    fake = AwsFake(account)
    before = {each: os.environ.get(each) for each in fake.environ}
    fake.start()
    os.environ.update(fake.environ)
    try:
        yield fake
    finally:
        fake.stop()
        for key, value in before.items():
            os.environ.pop(key, None)
            if value is not None:
                os.environ[key] = value


def _whole(kind: str, obj: dict[str, object]) -> dict[str, object]:
    api = {"EC2NodeClass": "karpenter.k8s.aws/v1", "NodePool": "karpenter.sh/v1"}
    return {"apiVersion": api[kind], "kind": kind, **obj}
