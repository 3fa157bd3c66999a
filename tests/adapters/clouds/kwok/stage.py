"""A world with KWOK for a cloud, on virtual time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from karpy.adapters.clouds.kwok.provider import KwokProvider
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.claims import write_resources
from karpy.codec.fields import Fields, JsonObject
from karpy.codec.records import read_claim_record
from karpy.errors import KarpyError
from karpy.model.kinds import KWOK_NODE_CLASS, NODE, NODE_CLAIM
from karpy.model.records import ClaimRecord
from karpy.model.times import write_moment
from karpy.ports.cloud import LaunchSpec, Machine
from karpy.ports.objects import Objects
from karpy.sim.faults import Faults, InjectedFault
from karpy.sim.faultyports import FaultyObjects
from karpy.sim.world import World
from tests.sim.stories import SMALL, bare_world, option

REF = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


class Stage:
    """A world, a provider in it, and what went wrong so far."""

    def __init__(self, world: World, *faults: InjectedFault) -> None:
        self.world = world
        self.store = world.store
        self.faults = Faults(*faults)
        self.troubles: list[tuple[str, str]] = []
        self.objects: Objects = FaultyObjects(world.objects, self.faults)
        self.provider = self.another()

    def another(self) -> KwokProvider:
        """Have a provider as a new process would."""
        return KwokProvider(
            self.objects, self.world.clock, kwok_catalog(), on_trouble=self._note_trouble
        )

    def nodes(self) -> list[str]:
        """Name all Nodes."""
        return [each["metadata"]["name"] for each in self.store.list(NODE)]

    def claim(self, name: str = "c1", machine: Machine | None = None, **fields: object) -> None:
        """Have a NodeClaim, launched if there is a machine, with more fields of its metadata."""
        made = self.store.create(
            NODE_CLAIM,
            {
                "metadata": {"name": name, **fields},
                "spec": {"nodeClassRef": REF, "requirements": []},
            },
        )
        if machine is not None:
            self.store.replace(
                NODE_CLAIM,
                {**made, "status": self._launched(machine)},
                subresource="status",
            )

    def record(self, name: str = "c1") -> ClaimRecord:
        """Read a NodeClaim."""
        return read_claim_record(Fields(self.store.get(NODE_CLAIM, name)))

    def _launched(self, machine: Machine) -> JsonObject:
        told = {
            "type": "Launched",
            "status": "True",
            "reason": "Launched",
            "message": "",
            "lastTransitionTime": write_moment(self.world.clock.now()),
        }
        return {
            "providerID": machine.provider_id,
            "capacity": write_resources(machine.capacity),
            "allocatable": write_resources(machine.allocatable),
            "conditions": [told],
        }

    def _note_trouble(self, what: str, error: KarpyError) -> None:
        self.troubles.append((what, type(error).__name__))


@asynccontextmanager
async def kwok_stage(
    *faults: InjectedFault, delay: str = "", seed: int = 0
) -> AsyncIterator[Stage]:
    """Have a world with a node class `default`, and a provider that is closed in the end."""
    with bare_world(seed=seed) as world:
        spec = {"nodeRegistrationDelay": delay} if delay else {}
        world.store.create(KWOK_NODE_CLASS, {"metadata": {"name": "default"}, "spec": spec})
        stage = Stage(world, *faults)
        try:
            yield stage
        finally:
            await stage.provider.close()


def spec_of(claim: str = "c1", **fields: object) -> LaunchSpec:
    """Ask for a small machine, on demand in the first zone unless told otherwise."""
    usual = LaunchSpec(
        claim=claim,
        token=f"uid-of-{claim}",
        pool="general",
        node_class="default",
        options=(option(SMALL),),
    )
    return replace(usual, **fields)
