"""
The provider of docs/guides/writing-a-provider.md: a cloud whose machines are Nodes.

A real provider calls the API of its cloud instead of creating Nodes; the rest is as shown here.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from karpy.codec.claims import write_resources
from karpy.codec.fields import JsonObject
from karpy.codec.unreadable import node_record
from karpy.errors import (
    AlreadyExists,
    MachineNotFound,
    NoCapacity,
    NodeClassNotReady,
    NotFound,
    RebootUnsupported,
)
from karpy.model.constraints import NO_EXECUTE, UNREGISTERED_TAINT
from karpy.model.instances import Catalog, InstanceType, Offering
from karpy.model.kinds import KWOK_NODE_CLASS, NODE
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpy.model.nodes import RepairPolicy
from karpy.model.records import ClaimRecord
from karpy.ports.clock import Clock
from karpy.ports.cloud import LaunchSpec, Machine
from karpy.ports.objects import Objects

CLAIM: Final = "example.com/claim"
"""The label of this provider's machines."""
READY: Final = {"type": "Ready", "status": "True", "reason": "Example", "message": ""}


class ExampleProvider:
    """A CloudProvider; the name of a Node follows from its claim, so that no launch makes two."""

    name: Final = "example"
    repair_policies: tuple[RepairPolicy, ...] = ()

    def __init__(self, objects: Objects, clock: Clock, catalog: Catalog) -> None:
        self._objects = objects
        self._clock = clock
        self._catalog = catalog

    def start(self) -> None:
        """Do nothing: this provider has no background work."""

    async def close(self) -> None:
        """Do nothing: there is no background work to stop."""

    def catalog(self) -> Catalog:
        """Return all instance types, the same object each time."""
        return self._catalog

    async def launch(self, spec: LaunchSpec) -> Machine:
        """Create a Node for the cheapest available option."""
        await self._check(spec.node_class)
        options = sorted(spec.options, key=lambda each: each.price)
        sold = [found for each in options if (found := self._find(spec.pool, each.instance_type))]
        if not sold:
            raise NoCapacity(claim=spec.claim, options=len(spec.options))
        type_ = sold[0]
        option = next(each for each in options if each.instance_type == type_.name)
        place = {
            **spec.labels,
            CLAIM: spec.claim,
            INSTANCE_TYPE: type_.name,
            ZONE: option.zone,
            CAPACITY_TYPE: option.capacity_type,
        }
        try:
            made = await self._objects.create(NODE, _node(spec, type_, place))
        except AlreadyExists:
            made = await self._objects.get(NODE, _name(spec.claim))
        return self._machine(made)

    async def terminate(self, provider_id: str) -> None:
        """Delete the Node; the machine counts as gone once the deletion has begun."""
        machine = await self.machine(provider_id)
        await self._objects.delete(NODE, _name(machine.claim))

    async def machine(self, provider_id: str) -> Machine:
        """Return one machine; raise MachineNotFound if it is gone."""
        async for each in self._machines():
            if each.provider_id == provider_id and provider_id:
                return each
        raise MachineNotFound(provider_id=provider_id)

    async def machines(self) -> Sequence[Machine]:
        """List all machines."""
        return [each async for each in self._machines()]

    async def drift(self, claim: ClaimRecord) -> str:
        """Return nothing: machines never differ from their node class."""
        del claim
        return ""

    async def reboot(self, provider_id: str, operation: str) -> None:
        """Refuse: machines are replaced instead."""
        del provider_id, operation
        raise RebootUnsupported(provider=self.name)

    async def _check(self, node_class: str) -> None:
        try:
            found = await self._objects.get(KWOK_NODE_CLASS, node_class)
        except NotFound as error:
            raise NodeClassNotReady(name=node_class, problem="it does not exist") from error
        for each in found.get("status", {}).get("conditions", ()):
            if each["type"] == "Ready" and each["status"] == "False":
                raise NodeClassNotReady(name=node_class, problem=each["message"])

    def _find(self, pool: str, name: str) -> InstanceType | None:
        types = self._catalog.types_for(pool)
        return next((each for each in types if each.name == name and _sold(each)), None)

    async def _machines(self) -> AsyncIterator[Machine]:
        for each in (await self._objects.list(NODE)).items:
            is_deleting = "deletionTimestamp" in each["metadata"]
            if CLAIM in each["metadata"].get("labels", {}) and not is_deleting:
                yield self._machine(each)

    def _machine(self, obj: JsonObject) -> Machine:
        node = node_record(obj)
        labels = node.meta.labels
        return Machine(
            provider_id=node.provider_id,
            claim=labels[CLAIM],
            instance_type=labels[INSTANCE_TYPE],
            zone=labels[ZONE],
            capacity_type=labels[CAPACITY_TYPE],
            created=node.meta.created or self._clock.now(),
            labels=labels,
            capacity=node.capacity,
            allocatable=node.allocatable,
        )


def _sold(type_: InstanceType) -> list[Offering]:
    return [each for each in type_.offerings if each.is_launchable]


def _name(claim: str) -> str:
    return f"example-{claim}"


def _node(spec: LaunchSpec, type_: InstanceType, labels: dict[str, str]) -> JsonObject:
    """Return a Node with the taint that keeps pods off until it is registered."""
    name = _name(spec.claim)
    return {
        "apiVersion": NODE.api_version,
        "kind": NODE.name,
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "providerID": f"example://{name}",
            "taints": [{"key": UNREGISTERED_TAINT, "effect": NO_EXECUTE}],
        },
        "status": {
            "capacity": write_resources(type_.capacity),
            "allocatable": write_resources(type_.allocatable),
            "conditions": [READY],
        },
    }
