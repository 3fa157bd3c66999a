"""The laws that must hold in every story."""

from dataclasses import dataclass
from enum import Enum


class Law(Enum):
    """A law, with its sentence."""

    DEATH = "an operator dies only if it is killed"
    INVALID = "nothing is written that an API server refuses as wrong"
    ONE_LEADER = "at most one operator acts, and in the end one does"
    LIMIT = "no NodePool grows beyond its limits"
    ONE_MACHINE = "no NodeClaim gets two machines"
    BUDGET = "no pod is deleted where a disruption budget forbids its eviction"
    DRAIN = "no machine ends under pods that were not asked to leave"
    DISRUPTION = "no more nodes of a NodePool are disrupted at once than its budgets allow"
    PLACE = "a disrupted node's pods have a place on other nodes, which are initialized"
    DEARER = "no consolidation makes the cluster dearer"
    ORPHAN = "no machine and no node is left without a NodeClaim"
    UNFINISHED = "every NodeClaim becomes a node, or goes"
    QUIET = "where all is well there are no writes"
    RUNAWAY = "a pod that gets to none of its nodes is launched for ever more rarely"
    FEASIBLE = "every pod that can run does"
    MIRROR = "what an operator has seen is what there is"


@dataclass(frozen=True)
class Finding:
    """A law that was broken."""

    law: Law
    text: str
    second: float = 0.0

    def __str__(self) -> str:
        """Return the time, the name of the law, and what happened."""
        return f"{self.second:.0f} s {self.law.name}: {self.text}"
