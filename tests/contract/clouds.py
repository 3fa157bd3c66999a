"""The clouds of the contract tests: a simulated one, KWOK in both worlds, AWS on two fakes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol

from karpy.adapters.clock import WallClock
from karpy.adapters.clouds.kwok.provider import KwokProvider
from karpy.adapters.controlplane.plane import ControlPlane
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.claims import write_resources
from karpy.codec.fields import JsonObject
from karpy.model.kinds import KWOK_NODE_CLASS, NODE, NODE_CLAIM
from karpy.ports.clock import Clock
from karpy.ports.cloud import CloudProvider, Machine
from karpy.ports.objects import Objects, Patch, PatchType
from karpy.sim.cloud.cloud import SimCloud
from karpy.sim.cloud.terms import Terms
from karpy.sim.kubelets.timing import AT_ONCE
from karpy.sim.world import World, WorldSettings
from karpy.wiring.embedded import embedded_world
from tests.contract.awsclouds import aws_stage
from tests.contract.examplecloud import ExampleProvider
from tests.contract.goods import KWOK_GOODS, Goods
from tests.contract.worlds import REAL, open_world

SIMULATED: Final = "simulated"
KWOK_EMBEDDED: Final = "kwok-embedded"
KWOK_REAL: Final = "kwok-real"
EXAMPLE: Final = "example"
"""The provider that docs/guides/writing-a-provider.md shows."""
AWS_MEMORY: Final = "aws-in-memory"
AWS_HTTP: Final = "aws-over-http"
CLOUDS: Final = (SIMULATED, EXAMPLE, KWOK_EMBEDDED, KWOK_REAL, AWS_MEMORY, AWS_HTTP)
_NODE_CLASS: Final = {
    "apiVersion": KWOK_NODE_CLASS.api_version,
    "kind": KWOK_NODE_CLASS.name,
    "metadata": {"name": "default"},
    "spec": {},
}
_HURRIED: Final = WorldSettings(timing=AT_ONCE, terms=Terms(answer_seconds=0, end_seconds=0))


class Stage(Protocol):
    """A cloud and its cluster, with controls for tests."""

    objects: Objects
    goods: Goods
    is_idempotent_for_ever: bool
    """Whether a repeated launch by another process returns the same machine; otherwise garbage
    collection removes one."""
    labels_nodes: bool
    """Whether nodes join with the labels of their machine; otherwise registration adds them."""

    @property
    def cloud(self) -> CloudProvider:
        """The provider of the current operator."""

    async def restart(self) -> None:
        """Replace the operator by a new one without memory."""

    async def spoil_class(self, problem: str) -> str:
        """Make the node class unusable for launches; return the message about it."""

    async def slow_down(self) -> None:
        """Let nodes take time to join, where the provider simulates the join."""


class SimulatedStage:
    """A simulated cloud, whose machines have kubelets."""

    goods = KWOK_GOODS
    is_idempotent_for_ever = True
    labels_nodes = True

    def __init__(self, world: World) -> None:
        self.objects: Objects = world.objects
        self._cloud: SimCloud = world.cloud

    @property
    def cloud(self) -> CloudProvider:
        return self._cloud

    async def restart(self) -> None:
        """Do nothing: the cloud is not part of any operator."""

    async def spoil_class(self, problem: str) -> str:
        self._cloud.refuse("default", problem)
        return problem

    async def slow_down(self) -> None:
        """Do nothing: machines boot without the operator."""


class KwokStage:
    """KWOK, whose machines are the Nodes of the cluster."""

    goods = KWOK_GOODS
    is_idempotent_for_ever = True
    labels_nodes = True

    def __init__(self, objects: Objects, clock: Clock) -> None:
        self.objects = objects
        self._clock = clock
        self._provider = self._started()

    @property
    def cloud(self) -> CloudProvider:
        return self._provider

    async def close(self) -> None:
        await self._provider.close()

    async def restart(self) -> None:
        await self.close()
        self._provider = self._started()

    async def spoil_class(self, problem: str) -> str:
        return await _spoil(self.objects, problem)

    async def slow_down(self) -> None:
        body: JsonObject = {"spec": {"nodeRegistrationDelay": "2s"}}
        await self.objects.patch(KWOK_NODE_CLASS, "default", Patch(PatchType.MERGE, body))

    def _started(self) -> KwokProvider:
        provider = KwokProvider(self.objects, self._clock, kwok_catalog())
        provider.start()
        return provider


class ExampleStage:
    """The example provider, whose machines are Nodes."""

    goods = KWOK_GOODS
    is_idempotent_for_ever = True
    labels_nodes = True

    def __init__(self, objects: Objects, clock: Clock) -> None:
        self.objects = objects
        self._clock = clock
        self._catalog = kwok_catalog()
        self.cloud: CloudProvider = ExampleProvider(objects, clock, self._catalog)

    async def restart(self) -> None:
        self.cloud = ExampleProvider(self.objects, self._clock, self._catalog)

    async def spoil_class(self, problem: str) -> str:
        return await _spoil(self.objects, problem)

    async def slow_down(self) -> None:
        """Do nothing: a Node is there as soon as its machine is."""


async def _spoil(objects: Objects, problem: str) -> str:
    """Set the condition Ready of KWOK's node class to false."""
    found = await objects.get(KWOK_NODE_CLASS, "default")
    ready = {**found["status"]["conditions"][0], "status": "False", "message": problem}
    body: JsonObject = {"status": {"conditions": [ready]}}
    patch = Patch(PatchType.MERGE, body)
    await objects.patch(KWOK_NODE_CLASS, "default", patch, subresource="status")
    return problem


@asynccontextmanager
async def open_cloud(name: str, plane: ControlPlane | None, namespace: str) -> AsyncIterator[Stage]:
    """Enter a cloud; remove its machines and nodes afterwards."""
    if name in {AWS_MEMORY, AWS_HTTP}:
        async with (
            embedded_world(_HURRIED) as embedded,
            aws_stage(embedded, is_over_http=name == AWS_HTTP) as aws,
        ):
            yield aws
    elif plane is None:
        async with embedded_world(_HURRIED) as embedded:
            if name == SIMULATED:
                yield SimulatedStage(embedded)
            elif name == EXAMPLE:
                await embedded.objects.create(KWOK_NODE_CLASS, _NODE_CLASS)
                yield ExampleStage(embedded.objects, embedded.clock)
            else:
                async with _kwok(embedded.objects, embedded.clock) as stage:
                    yield stage
    else:
        async with (
            open_world(REAL, plane, namespace) as world,
            _kwok(world.objects, WallClock()) as stage,
        ):
            yield stage


@asynccontextmanager
async def _kwok(objects: Objects, clock: Clock) -> AsyncIterator[KwokStage]:
    await objects.create(KWOK_NODE_CLASS, _NODE_CLASS)
    stage = KwokStage(objects, clock)
    try:
        yield stage
    finally:
        await stage.close()


async def node_of(stage: Stage, provider_id: str) -> JsonObject | None:
    """Return the Node of a machine, or None if it has not joined."""
    nodes = (await stage.objects.list(NODE)).items
    return next((each for each in nodes if each["spec"].get("providerID") == provider_id), None)


async def remember(stage: Stage, machine: Machine) -> None:
    """Create a NodeClaim with its machine in the status, as after a launch by an operator."""
    ref = {"group": KWOK_NODE_CLASS.group, "kind": KWOK_NODE_CLASS.name, "name": "default"}
    claim: JsonObject = {
        "apiVersion": NODE_CLAIM.api_version,
        "kind": NODE_CLAIM.name,
        "metadata": {"name": machine.claim, "labels": dict(machine.labels)},
        "spec": {"nodeClassRef": ref, "requirements": []},
    }
    status: JsonObject = {
        "providerID": machine.provider_id,
        "capacity": write_resources(machine.capacity),
        "allocatable": write_resources(machine.allocatable),
    }
    await stage.objects.create(NODE_CLAIM, claim)
    patch = Patch(PatchType.MERGE, {"status": status})
    await stage.objects.patch(NODE_CLAIM, machine.claim, patch, subresource="status")
