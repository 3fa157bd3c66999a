"""The demo on a fake AWS, served over HTTP by this process."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from msgspec.structs import replace

from karpy.adapters.clouds.awsfake.server import AwsFake, FakeAccount
from karpy.cli.examples import aws_documents
from karpy.cli.show.venue import OPTIONS, RunningCloud, Venue
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpy.sim.ec2.machines import SimulatedMachines, keep_running
from karpy.sim.world import World
from karpy.wiring.clouds.aws import open_cloud
from karpy.wiring.resident import BRISK

_FAMILIES: Final = ("c7g", "c7i", "m7g", "m7i", "r7g", "r7i")
_CLUSTER: Final = "demo"
_BOOT_SECONDS: Final = 2.0
_WALL_SECONDS: Final = 70.0
"""Longer than on KWOK, since the fake AWS needs CPU time, too."""


@asynccontextmanager
async def _on_aws(world: World) -> AsyncIterator[RunningCloud]:
    fake = AwsFake(FakeAccount(cluster=_CLUSTER, families=_FAMILIES))
    fake.start()
    os.environ.update(fake.environ)
    machines = SimulatedMachines(world.kubelets, fake.tables.types.values())
    following = asyncio.create_task(keep_running(machines, fake.instances), name="machines")

    def price_of(labels: Mapping[str, str]) -> int:
        market = fake.tables.market
        kind, name = labels.get(CAPACITY_TYPE, ""), labels.get(INSTANCE_TYPE, "")
        return market.price(kind, name, labels.get(ZONE, ""))

    settings = {"cluster_name": _CLUSTER, "interruption_queue": _CLUSTER}
    options = replace(OPTIONS, provider="aws", cloud=settings)
    try:
        yield RunningCloud(aws_documents(), options, open_cloud, price_of)
    finally:
        following.cancel()
        fake.stop()


ON_AWS: Final = Venue(
    "instances of a fake AWS",
    replace(BRISK, timing=replace(BRISK.timing, boot_seconds=_BOOT_SECONDS)),
    _on_aws,
    _WALL_SECONDS,
)
