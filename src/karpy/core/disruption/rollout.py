"""
A decision to disrupt nodes, from the proposal to the deletion of the last one.

A rollout is a value. Whoever carries it shows it the cluster from time to time, does what comes
out, and keeps what it has become; nothing sleeps. What a rollout asks for again was not seen done.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.candidates import Candidate
from karpy.core.disruption.emptiness import Proposal
from karpy.model.disruption import DisruptionReason
from karpy.model.instances import MICROS_PER_DOLLAR
from karpy.model.verdicts import Launch

VALIDATION_DELAY: Final = timedelta(seconds=15)
"""How long a proposal must wait before it is looked at again: pods come and go."""
PACE: Final = timedelta(seconds=1)
PATIENCE_LEAST: Final = timedelta(minutes=10)
PATIENCE_MOST: Final = timedelta(hours=1)
_PATIENCE_PER_NODE: Final = timedelta(milliseconds=80)


class Stage(Enum):
    """How far a rollout is."""

    PROPOSED = "it waits to be validated"
    MARKING = "its nodes are being marked, so that no pod comes any more"
    LAUNCHING = "its replacements are being launched"
    WAITING = "its replacements are booting, or its nodes are about to be deleted"
    DONE = "its nodes are being deleted"
    ABANDONED = "it was given up before anything happened"
    FAILED = "it was given up, and its nodes stay"


class Target(Struct, frozen=True, gc=False):
    """A node that is to go."""

    claim: str
    node: str
    pool: str
    price: int = 0
    """Micro-dollars per hour."""
    pods: int = 0
    """How many need another node."""
    fault: str = ""
    """The condition that it is repaired for."""
    bound: timedelta | None = None
    """How long its drain may take at most; None leaves that to its claim."""


class Replacement(Struct, frozen=True, gc=False):
    """A node that must be there before others go."""

    launch: Launch
    claim: str = ""
    """Name of its NodeClaim once that is created."""
    is_initialized: bool = False
    """Once it was, it counts as such for good: pods may have come to it already."""


class Rollout(Struct, frozen=True, gc=False):
    """Nodes that go together, what replaces them, and how far all that is."""

    id: str
    reason: DisruptionReason
    consolidation_type: str
    targets: tuple[Target, ...]
    proposed: datetime
    replacements: tuple[Replacement, ...] = ()
    stage: Stage = Stage.PROPOSED
    begun: datetime | None = None
    """When it was found valid."""
    is_counted: bool = False
    """Whether metrics know of it."""
    goes_first: str = ""
    """Why its nodes go before anything replaces them; empty if that is not so."""

    @property
    def is_over(self) -> bool:
        return self.stage in {Stage.DONE, Stage.ABANDONED, Stage.FAILED}

    @property
    def is_forming(self) -> bool:
        """Whether budgets do not count its nodes yet, so that nothing else may be proposed."""
        return not self.is_over and self.stage is not Stage.WAITING

    @property
    def busy(self) -> frozenset[str]:
        """The claims that no other rollout may be about."""
        return frozenset() if self.is_over else frozenset(each.claim for each in self.targets)

    @property
    def marked(self) -> frozenset[str]:
        """The claims whose pods need another place already: only once replacements are launched."""
        # Otherwise provisioning would launch nodes for the same pods a second time.
        return self.busy if self.stage is Stage.WAITING else frozenset()

    @property
    def decision(self) -> str:
        """What logs and metrics call it."""
        if not self.targets:
            return "no-op"
        if self.goes_first:
            return "terminate-first"
        return "replace" if self.replacements else "delete"

    @property
    def savings(self) -> int:
        """Micro-dollars per hour."""
        now = sum(each.price for each in self.targets)
        return now - sum(each.launch.price for each in self.replacements)

    def __str__(self) -> str:
        """Write it as logs do."""
        pools = ",".join(dict.fromkeys(each.pool for each in self.targets))
        nodes = ", ".join(each.node for each in self.targets)
        count = len(self.replacements)
        arrow = f" -> [{count} replacement{'s' if count > 1 else ''}]" if count else ""
        return (
            f"{self.reason.value}/{self.id}: {self.decision}: nodepools=[{pools}]: [{nodes}]{arrow}"
            f" (savings: ${self.savings / MICROS_PER_DOLLAR:.2f})"
        )


def begin_rollout(
    proposal: Proposal, id_: str, now: datetime, launches: Sequence[Launch] = ()
) -> Rollout | None:
    """Make a rollout of a proposal; None if it comes to nothing."""
    if not proposal.candidates:
        return None
    return Rollout(
        id_,
        proposal.reason,
        proposal.consolidation_type,
        targets=tuple(as_target(each) for each in proposal.candidates),
        proposed=now,
        replacements=tuple(Replacement(each) for each in launches),
    )


def as_target(candidate: Candidate) -> Target:
    """Keep what a rollout needs to know of a node."""
    return Target(
        candidate.claim.name,
        candidate.name,
        candidate.pool.name,
        candidate.price,
        candidate.pods,
    )


def with_launched(rollout: Rollout, claims: Sequence[str]) -> Rollout:
    """Note the names of the replacements' claims, in their order."""
    named = zip(rollout.replacements, claims, strict=True)
    return replace(
        rollout,
        replacements=tuple(replace(each, claim=name) for each, name in named),
        stage=Stage.WAITING,
    )


def patience(nodes: int) -> timedelta:
    """Return for how long a rollout is kept up while so many nodes are in one: clouds get slow."""
    return max(PATIENCE_LEAST, min(nodes * _PATIENCE_PER_NODE, PATIENCE_MOST))
