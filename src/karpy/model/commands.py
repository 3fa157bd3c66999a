"""Disruption commands: nodes that are disrupted together, their replacements, and the stage."""

from datetime import datetime, timedelta
from enum import Enum

from msgspec import Struct

from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.nodes import RepairAction
from karpy.model.pools import DisruptionReason
from karpy.model.verdicts import Launch, NodeRefusal


class Stage(Enum):
    """The progress of a command."""

    PROPOSED = "it waits for its validation"
    TAINTING = "its nodes are being tainted, so that no pod comes any more"
    LAUNCHING = "its replacements are being launched"
    WAITING = "its replacements are booting, or its nodes are about to be deleted"
    DONE = "its nodes are being deleted"
    ABANDONED = "it was given up before anything happened"
    FAILED = "it was given up, and its nodes stay"


class CommandNode(Struct, frozen=True, gc=False):
    """A node to disrupt."""

    node: str
    claim: str
    pool: str
    price: int = 0
    """Micro-dollars per hour; 0 if it is not known."""
    pods: int = 0
    """How many of its pods need another node."""
    action: RepairAction = RepairAction.REPLACE
    """REBOOT keeps the node, REPLACE deletes it."""
    condition: str = ""
    """Type and reason of the node condition that calls for the repair."""
    drain_bound: timedelta | None = None
    """The longest drain; None takes the terminationGracePeriod of the NodeClaim."""
    is_escalated: bool = False
    """Whether the node is replaced because reboots did not repair it."""


class Replacement(Struct, frozen=True, gc=False):
    """A node that must be initialized before the nodes of a command are deleted."""

    launch: Launch
    claim: str = ""
    """Name of its NodeClaim; empty until the NodeClaim is created."""
    is_initialized: bool = False
    """Never reset: pods may run on the node as soon as it was initialized once."""


class Command(Struct, frozen=True, gc=False):
    """A decision to disrupt nodes together, from its proposal to the deletion of the last one."""

    method: str
    reason: DisruptionReason
    nodes: tuple[CommandNode, ...]
    """In the order in which they were chosen."""
    replacements: tuple[Replacement, ...] = ()
    nominated: tuple[str, ...] = ()
    """Names of existing nodes that take some of the pods."""
    terminates_first: str = ""
    """Why the nodes are deleted before their replacements are launched; empty if they are not."""
    consolidation_type: str = ""
    """The label `consolidation_type` of metrics; empty if the method is not consolidation."""
    proposed: datetime | None = None
    id: str = ""
    stage: Stage = Stage.PROPOSED
    begun: datetime | None = None
    """When its validation succeeded."""
    is_counted: bool = False
    """Whether metrics have counted the command."""

    @property
    def is_over(self) -> bool:
        return self.stage in {Stage.DONE, Stage.ABANDONED, Stage.FAILED}

    @property
    def is_forming(self) -> bool:
        """Whether its nodes are missing from disruption budgets; no other command may start."""
        return not self.is_over and self.stage is not Stage.WAITING

    @property
    def claims(self) -> frozenset[str]:
        """NodeClaims that no other command may disrupt."""
        return frozenset() if self.is_over else frozenset(each.claim for each in self.nodes)

    @property
    def deleting(self) -> frozenset[str]:
        """NodeClaims whose pods need another node now: those of a command that is WAITING."""
        # Earlier, provisioning would launch nodes for the same pods a second time.
        return self.claims if self.stage is Stage.WAITING else frozenset()

    @property
    def is_reboot(self) -> bool:
        return any(each.action is RepairAction.REBOOT for each in self.nodes)

    @property
    def decision(self) -> str:
        """The name of the decision in logs, metrics and events."""
        if not self.nodes:
            return "no-op"
        if self.is_reboot:
            return "reboot"
        if self.terminates_first:
            return "terminate-first"
        return "replace" if self.replacements else "delete"

    @property
    def savings(self) -> int:
        """Micro-dollars per hour; 0 if the price of a replacement is not known."""
        if self.is_reboot or any(not each.launch.options for each in self.replacements):
            return 0
        now = sum(each.price for each in self.nodes)
        return now - sum(each.launch.price for each in self.replacements)

    def __str__(self) -> str:
        """Write the command as log lines have it."""
        pools = ",".join(dict.fromkeys(each.pool for each in self.nodes))
        nodes = ", ".join(each.node for each in self.nodes)
        count = len(self.replacements)
        arrow = f" -> [{count} replacement{'s' if count > 1 else ''}]" if count else ""
        return (
            f"{self.reason.value}/{self.id}: {self.decision}: nodepools=[{pools}]: [{nodes}]{arrow}"
            f" (savings: ${self.savings / MICROS_PER_DOLLAR:.2f})"
        )


class DisruptionVerdict(Struct, frozen=True, gc=False):
    """Nodes to disrupt with their replacements, and a refusal for every other node considered."""

    method: str = ""
    """The method that has a command or was the only one tried; empty if all found none."""
    commands: tuple[Command, ...] = ()
    refusals: tuple[NodeRefusal, ...] = ()
    is_complete: bool = True
    """False if a method ran out of time."""

    @property
    def nodes(self) -> tuple[CommandNode, ...]:
        """The nodes of all commands."""
        return tuple(each for command in self.commands for each in command.nodes)
