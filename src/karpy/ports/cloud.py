"""The port of a cloud: catalog, machines, and announcements about machines."""

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
    """A machine to launch: as any of the options, of which the first is the cheapest."""

    claim: str
    """Name of the NodeClaim; becomes part of the machine's tags."""
    token: str
    """UID of the NodeClaim; within a process, one token never starts a second machine."""
    pool: str
    node_class: str
    options: tuple[LaunchOption, ...]
    labels: Mapping[str, str] = {}
    """Labels of the NodeClaim."""
    reservations: tuple[str, ...] = ()
    requirements: Requirements = {}
    """
    Requirements of the NodeClaim, including reservation, tenancy and partition.

    Types of the options may be launched in any place that the requirements allow. Without
    requirements, only the places of the options are allowed.
    """
    requests: Resources = {}
    """The sum of the requests of the pods that are placed on the machine."""
    annotations: Mapping[str, str] = {}
    """Annotations of the NodeClaim."""
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()


class Machine(Struct, frozen=True):
    """A machine that a cloud runs for this cluster."""

    provider_id: str
    claim: str
    """
    Name of the NodeClaim that it was launched for.

    Clouds that tag a machine with the name only after its node has registered leave it empty until
    then.
    """
    instance_type: str
    zone: str
    capacity_type: str
    created: datetime
    labels: Mapping[str, str] = {}
    """Labels of the node that follow from the choice of the machine."""
    annotations: Mapping[str, str] = {}
    """Annotations of the node from its creation on."""
    capacity: Resources = {}
    allocatable: Resources = {}
    image: str = ""
    is_terminating: bool = False


class CloudProvider(Protocol):
    """
    The calls of the autoscaler to a cloud; each call is safe to repeat.

    Raise only subclasses of CloudError. Their type decides whether a controller retries, gives up
    or tries another launch; any other exception counts as a bug in the provider. tests/contract
    holds every provider to this text.

    Within a process, two launches with one token start one machine. After a crash a second machine
    may run until garbage collection terminates the one that no NodeClaim names: every two minutes;
    at first every ten seconds for a provider that cannot find machines by token.
    """

    @property
    def name(self) -> str:
        """The name of the provider in metrics and logs."""

    def start(self) -> None:
        """Start the background work of the provider; only the leader calls this."""

    async def close(self) -> None:
        """End the background work, after all launches have stopped; `start` may follow again."""

    def catalog(self) -> Catalog:
        """
        Return all instance types, including those that are sold out.

        The same object is returned until something changes. A NodePool whose node class changes its
        instance types has an entry in `by_pool`.
        """

    async def launch(self, spec: LaunchSpec) -> Machine:
        """Start one machine; raise NoCapacity if every option is sold out."""

    async def terminate(self, provider_id: str) -> None:
        """Request the termination of a machine; raise MachineNotFound once it is gone."""

    async def machine(self, provider_id: str) -> Machine:
        """Return one machine; raise MachineNotFound if it is gone."""

    async def machines(self) -> Sequence[Machine]:
        """List the machines that carry this cluster's tag."""

    async def drift(self, claim: ClaimRecord) -> str:
        """Return the reason why a claim's machine differs from its node class; empty if not."""

    @property
    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """The conditions that call for repair; constant. Without policies no node is repaired."""

    async def reboot(self, provider_id: str, operation: str) -> None:
        """
        Reboot a machine; calls with the same `operation` reboot it once.

        Return once the cloud has accepted the reboot; the boot ID of the node changes later. Raise
        MachineNotFound if the machine is gone, RebootUnsupported if the cloud cannot reboot.
        """


class RegistrationHook(Struct, frozen=True):
    """
    A step of a provider that must be done before a Node is registered.

    While it is pending, the Node keeps its unregistered taint, and the condition Registered of its
    NodeClaim has the reason `RegistrationHookPending` and the name of the hook. It is evaluated
    again when the NodeClaim changes.
    """

    name: str
    is_pending: Callable[[ClaimRecord], bool]
    """Returns whether the Node of a claim has to wait; must return at once and call no API."""


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
        """Whether it leads to an event only: the machine is kept."""
        return self is MachineFate.REBALANCE_RECOMMENDED

    @property
    def is_forceful(self) -> bool:
        """Whether the machine has failed, so that the drain does not wait for its pods."""
        return self in {MachineFate.INSTANCE_STATUS, MachineFate.SYSTEM_STATUS}


class MachineEvent(Struct, frozen=True):
    """An announcement of a cloud about machines."""

    fate: MachineFate
    machines: tuple[str, ...]
    """Their IDs in the cloud: the last part of their provider IDs."""
    announced: datetime | None = None
    token: str = ""
    """The ID by which `acknowledge` finds the announcement; empty if fate and machines suffice."""


class EventfulCloud(Protocol):
    """A cloud that announces interruptions and failures of machines."""

    def machine_events(self) -> AsyncIterator[MachineEvent]:
        """Yield announcements until cancelled; the iterator has no end."""

    async def acknowledge(self, event: MachineEvent) -> None:
        """Mark an event as handled; an event without this is announced again."""
