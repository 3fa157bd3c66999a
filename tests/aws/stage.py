"""A cluster on EC2 in memory, on virtual time, with an operator that runs as on AWS."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Final

from karpy.adapters.clouds.aws.builtin import known_prices
from karpy.adapters.clouds.awsfake.tables import Tables
from karpy.adapters.clouds.awsfake.typetable import types_of, zones_of
from karpy.adapters.kube.events import EventRecorder
from karpy.codec.fields import JsonObject
from karpy.model.kinds import EC2_NODE_CLASS, EVENT, NODE, NODE_CLAIM, POD, Kind
from karpy.model.settings import Options
from karpy.ports.objects import Patch, PatchType, Query
from karpy.sim.crashes import Life
from karpy.sim.ec2.calls import MemoryCalls
from karpy.sim.ec2.cloud import Ec2Cloud
from karpy.sim.ec2.machines import SimulatedMachines
from karpy.sim.faults import Faults
from karpy.sim.faultyports import FaultyObjects
from karpy.sim.world import World, WorldSettings
from karpy.wiring.clouds.aws import open_with
from karpy.wiring.clouds.registry import ProviderInputs, surface_of
from karpy.wiring.operator import KarpyOperator
from tests.scenarios.stage import NAMESPACE, Quiet

REGION: Final = "us-west-2"
FAMILIES: Final = ("c6a", "c7g", "m5", "g5", "g4ad", "t3")
AUTHORITY: Final = "dGhlIGt1YmVjb25maWc="
"""The certificates of the kubeconfig, as base64."""
_PATIENCE: Final = 1800.0
_LOOKS: Final = 0.5
_SECONDS_TO_DIE: Final = 30.0


@lru_cache(maxsize=4)
def _types(families: tuple[str, ...]) -> dict[str, JsonObject]:
    """Return types up to 4xlarge, so that decisions are quick."""
    small = ("large", "xlarge", "2xlarge", "4xlarge")
    return {name: each for name, each in types_of(families).items() if name.split(".")[1] in small}


class AwsStage:
    """A cluster with everything but nodes, and an account of AWS."""

    def __init__(self, options: Options, families: tuple[str, ...] = FAMILIES) -> None:
        self.world = World(WorldSettings(has_events=False))
        self.store = self.world.store
        types = _types(families)
        self.tables = Tables(REGION, known_prices(REGION), types, zones_of(REGION))
        self.machines = SimulatedMachines(self.world.kubelets, types.values())
        self.ec2 = Ec2Cloud(self.tables, self.world.clock, self.machines)
        self.options = options
        self.faults = Faults()
        self.aws_faults = Faults()
        self.voice = Quiet()
        self._life: tuple[Life, asyncio.Task[bool]] | None = None

    def hire(self, life: Life | None = None) -> Life:
        """Start an operator, as `karpy run --provider aws` does."""
        life = life or Life()
        self._life = life, asyncio.create_task(life.run(self._live()))
        return life

    async def died(self) -> None:
        """Wait until the operator has died of its own."""
        assert self._life is not None
        await asyncio.wait((self._life[1],))

    async def kill(self) -> None:
        """End the operator without a word."""
        if self._life is not None:
            life, task = self._life
            life.end()
            await task
            self._life = None

    async def close(self) -> None:
        await self.kill()
        self.ec2.stop()
        self.world.stop()

    async def _live(self) -> None:
        objects, clock = FaultyObjects(self.world.objects, self.faults), self.world.clock
        recorder = EventRecorder(objects, clock, instance="karpy")
        calls = MemoryCalls(self.ec2, self.aws_faults)
        site = ProviderInputs(
            *(objects, self.world.objects, clock, recorder, self.options),
            authority=AUTHORITY,
            on_remark=self.voice.remark,
        )
        cloud = await open_with(site, calls)
        operator = KarpyOperator(
            surface_of(site, cloud), self.options, notices=recorder, voice=self.voice
        )
        cloud.provider.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(recorder.run())
                group.create_task(operator.run())
        finally:
            await cloud.provider.close()

    # --- what people do, and what can be seen -----------------------------------------------------

    def apply(self, kind: Kind, obj: JsonObject) -> JsonObject:
        return self.store.create(kind, obj)

    def change(self, kind: Kind, name: str, body: JsonObject) -> None:
        namespace = NAMESPACE if kind.is_namespaced else ""
        self.store.patch(kind, name, Patch(PatchType.MERGE, body), namespace=namespace)

    def delete(self, kind: Kind, name: str) -> None:
        self.store.delete(kind, name, namespace=NAMESPACE if kind.is_namespaced else "")

    @property
    def claims(self) -> list[JsonObject]:
        return self.store.list(NODE_CLAIM)

    @property
    def nodes(self) -> list[JsonObject]:
        return self.store.list(NODE)

    def pods(self, app: str) -> list[JsonObject]:
        return self.store.list(POD, Query(NAMESPACE, labels=f"app={app}"))

    def events(self, reason: str) -> list[JsonObject]:
        return [each for each in self.store.list(EVENT) if each["reason"] == reason]

    def node_class(self, name: str = "default") -> JsonObject:
        return self.store.get(EC2_NODE_CLASS, name)

    def labels(self, key: str) -> set[str]:
        """Return the values of a label of all nodes."""
        return {each["metadata"]["labels"].get(key, "") for each in self.nodes}

    def instance_of(self, node: JsonObject) -> str:
        id_: str = node["spec"]["providerID"].rpartition("/")[2]
        return id_

    def is_running(self, app: str, count: int) -> bool:
        pods = self.pods(app)
        return len(pods) == count and all(
            each["status"].get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]
            for each in pods
        )

    async def until(self, holds: Callable[[], bool], seconds: float = _PATIENCE) -> None:
        """Wait until something holds; give up with what there is."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not holds():
            assert loop.time() < end, self.picture()
            await asyncio.sleep(_LOOKS)

    async def until_running(self, app: str, count: int) -> None:
        await self.until(lambda: self.is_running(app, count))

    async def until_ready(self, name: str = "default") -> None:
        await self.until(lambda: condition(self.node_class(name), "Ready") == "True")

    async def until_clean(self) -> None:
        """Wait until nothing is left, in the cluster and in the account."""

        def is_clean() -> bool:
            left = (self.claims, self.nodes, self.ec2.alive(), self.ec2.templates)
            return not any(left) and not self.ec2.profiles

        await self.until(is_clean)

    def picture(self) -> str:
        """Say what there is, for a story that does not go on."""
        lines = [
            f"failure {each.controller} {each.key}: {each.error!r}"
            for each in self.voice.failures[-5:]
        ]
        lines += [
            f"{each['metadata']['name']}: {each.get('status', {}).get('conditions')}"
            for each in (*self.claims, *self.store.list(EC2_NODE_CLASS))
        ]
        lines += [
            f"{each['InstanceId']} {each['InstanceType']} {each['State']}"
            for each in self.ec2.alive()
        ]
        lines += [f"template {each}" for each in self.ec2.templates]
        lines += [f"profile {each}" for each in self.ec2.profiles]
        return "\n".join(lines)


def condition(obj: JsonObject, type_: str) -> str:
    """Return the status of a condition; empty if it is not there."""
    found = (obj.get("status") or {}).get("conditions") or []
    return next((each["status"] for each in found if each["type"] == type_), "")


@asynccontextmanager
async def aws_stage(
    families: tuple[str, ...] = FAMILIES, *, has_operator: bool = True, **cloud: object
) -> AsyncIterator[AwsStage]:
    """Have a cluster on AWS that lives; `cloud` are settings of the provider."""
    settings = {"cluster_name": "demo", "interruption_queue": "demo", **cloud}
    stage = AwsStage(Options(provider="aws", cloud=settings), families)
    stage.world.start()
    if has_operator:
        stage.hire()
    try:
        yield stage
    finally:
        await stage.close()
