"""What a cloud does for the autoscaler."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Protocol

from msgspec import Struct

from karpy.model.constraints import Taint
from karpy.model.instances import Catalog
from karpy.model.nodes import RepairPolicy
from karpy.model.records import ClaimRecord
from karpy.model.requirements import Requirements
from karpy.model.resources import Resources
from karpy.model.verdicts import LaunchOption


class LaunchSpec(Struct, frozen=True):
    """One machine wanted: any of the options will do, the first is the cheapest."""

    claim: str
    """Name of the NodeClaim; becomes part of the machine's tags."""
    token: str
    """UID of the NodeClaim: within a process, the same token never starts a second machine."""
    pool: str
    node_class: str
    options: tuple[LaunchOption, ...]
    labels: Mapping[str, str] = {}
    """Labels of the NodeClaim."""
    reservations: tuple[str, ...] = ()
    requirements: Requirements = {}
    """
    What the NodeClaim asks for; reservation, tenancy and partition are among it. Where its types
    are sold in more places than the options name, any place that these allow will do; without any,
    only the options do.
    """
    requests: Resources = {}
    """What the pods expected there need."""
    annotations: Mapping[str, str] = {}
    """Annotations of the NodeClaim."""
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()


class Machine(Struct, frozen=True):
    """A machine that a cloud runs for us."""

    provider_id: str
    claim: str
    """
    Name of the NodeClaim it was launched for.

    Clouds that write it on a machine only after the node has registered leave it empty until then.
    """
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
    is_terminating: bool = False


class CloudProvider(Protocol):
    """
    What the autoscaler asks of a cloud; each call is safe to repeat.

    Raise only subclasses of CloudError. Controllers retry, give up or try elsewhere by their type;
    anything else counts as a bug in the provider. tests/contract holds every provider to this text.

    Two launches with one token start one machine as long as the process lives. After a crash a
    second machine may run until garbage collection terminates the one that no NodeClaim names:
    every two minutes, and of a provider that cannot find machines by token every ten seconds at
    first.
    """

    @property
    def name(self) -> str:
        """What metrics and logs call the provider."""

    def start(self) -> None:
        """Begin what the provider does in the background; it is called by the leader alone."""

    async def close(self) -> None:
        """End what `start` began; launches have stopped before. It may be started again."""

    def catalog(self) -> Catalog:
        """
        Return all instance types, also those that are sold out now.

        The same object is returned until something has changed; a NodePool whose node class
        decides about its types has an entry of its own in `by_pool`.
        """

    async def launch(self, spec: LaunchSpec) -> Machine:
        """Start one machine; raise NoCapacity if every option is sold out."""

    async def terminate(self, provider_id: str) -> None:
        """Ask for the end of a machine; raise MachineNotFound once it is gone."""

    async def machine(self, provider_id: str) -> Machine:
        """Return one machine; raise MachineNotFound if it is gone."""

    async def machines(self) -> Sequence[Machine]:
        """List the machines that carry this cluster's tag."""

    async def drift(self, claim: ClaimRecord) -> str:
        """Return the reason why a claim's machine differs from its node class; empty if not."""

    @property
    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """Which nodes are called broken; complete, and always the same. Without any none is."""

    async def reboot(self, provider_id: str, operation: str) -> None:
        """
        Switch a machine off and on again; the same operation never does it twice.

        Return once the cloud has accepted it; the node's boot ID changes in the end. Raise
        MachineNotFound if it is gone, and RebootUnsupported if the cloud reboots no machines.
        """


class RegistrationHook(Struct, frozen=True):
    """
    What a provider has to do about a machine before its Node registers.

    The Node keeps its unregistered taint meanwhile, and the condition Registered of its NodeClaim
    says `RegistrationHookPending` with the name. The claim is looked at again when it changes.
    """

    name: str
    is_pending: Callable[[ClaimRecord], bool]
    """Says whether the Node of a claim has to wait; it waits for nothing and asks no API."""


class MachineFate(Enum):
    """What a cloud announces about a machine; the values are metric labels."""

    SPOT_INTERRUPTED = "spot_interrupted"
    REBALANCE_RECOMMENDED = "rebalance_recommendation"
    STOPPED = "instance_stopped"
    TERMINATED = "instance_terminated"
    SCHEDULED_CHANGE = "scheduled_change"
    RESERVATION_INTERRUPTED = "capacity_reservation_interrupted"
    INSTANCE_STATUS = "instance_status"
    SYSTEM_STATUS = "system_status"
    EVENT_STATUS = "event_status"

    @property
    def is_advice(self) -> bool:
        """Whether it is worth an event only."""
        return self is MachineFate.REBALANCE_RECOMMENDED

    @property
    def is_forceful(self) -> bool:
        """Whether pods are not waited for: the machine does not work any more."""
        return self in {MachineFate.INSTANCE_STATUS, MachineFate.SYSTEM_STATUS}


class MachineEvent(Struct, frozen=True):
    """Something that a cloud announces about machines."""

    fate: MachineFate
    machines: tuple[str, ...]
    """Their IDs in the cloud: the last part of their provider IDs."""
    announced: datetime | None = None
    token: str = ""
    """By which the cloud knows the announcement; empty if fate and machines tell it."""


class EventfulCloud(Protocol):
    """A cloud that announces what will become of machines."""

    def machine_events(self) -> AsyncIterator[MachineEvent]:
        """Give what the cloud announces, until cancelled; it never ends by itself."""

    async def acknowledge(self, event: MachineEvent) -> None:
        """Say that an event was acted on; one that is not is announced again."""
