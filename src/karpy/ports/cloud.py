"""What a cloud does for the autoscaler."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from msgspec import Struct

from karpy.model.instances import Catalog
from karpy.model.repairs import RepairPolicy
from karpy.model.requirements import Requirements
from karpy.model.resources import Resources
from karpy.model.verdicts import LaunchOption


class LaunchSpec(Struct, frozen=True):
    """One machine wanted: any of the options will do, the first is the cheapest."""

    claim: str
    """Name of the NodeClaim; becomes part of the machine's tags."""
    token: str
    """UID of the NodeClaim: the same token never starts a second machine."""
    pool: str
    node_class: str
    options: tuple[LaunchOption, ...]
    labels: Mapping[str, str] = {}
    """Labels of the NodeClaim."""
    reservations: tuple[str, ...] = ()
    requirements: Requirements = {}
    """
    What the NodeClaim asks for. Where its types are sold in more places than the options name, any
    place that these allow will do; without any, only the options do.
    """
    requests: Resources = {}
    """What the pods expected there need."""
    annotations: Mapping[str, str] = {}
    """Annotations of the NodeClaim."""


class Machine(Struct, frozen=True):
    """A machine that a cloud runs for us."""

    provider_id: str
    claim: str
    """Name of the NodeClaim it was launched for."""
    instance_type: str
    zone: str
    capacity_type: str
    created: datetime
    labels: Mapping[str, str] = {}
    """What is certain of the node now that the machine is chosen."""
    annotations: Mapping[str, str] = {}
    """What the node carries from the start."""
    capacity: Resources = {}
    allocatable: Resources = {}
    image: str = ""
    is_ending: bool = False


class CloudProvider(Protocol):
    """
    What the autoscaler asks of a cloud: five calls, each safe to repeat.

    Raise only subclasses of CloudError. Controllers retry, give up or try elsewhere by their type;
    anything else counts as a bug in the provider. tests/contract holds every provider to this text.
    """

    async def catalog(self, pool: str) -> Catalog:
        """List all instance types for a pool, also those that are sold out now."""

    async def launch(self, spec: LaunchSpec) -> Machine:
        """Start one machine; raise NoCapacity if every option is sold out."""

    async def terminate(self, provider_id: str) -> None:
        """Ask for the end of a machine; raise MachineNotFound once it is gone."""

    async def machine(self, provider_id: str) -> Machine:
        """Return one machine; raise MachineNotFound if it is gone."""

    async def machines(self) -> Sequence[Machine]:
        """List the machines that carry this cluster's tag."""

    async def drift(self, claim: str) -> str | None:
        """Say how a claim's machine differs from its node class, or None if it does not."""


@runtime_checkable
class RepairCloud(Protocol):
    """What a cloud does about broken machines, if it is one that does."""

    @property
    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """Which nodes are called broken; complete, and always the same."""

    async def reboot(self, provider_id: str, operation: str) -> None:
        """
        Switch a machine off and on again; the same operation never does it twice.

        Return once the cloud has accepted it; the node's boot ID changes in the end. Raise
        MachineNotFound if it is gone.
        """
