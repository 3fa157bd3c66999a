"""Look at a proposal again: pods have come and gone since it was made."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.budgets import find_allowances
from karpy.core.disruption.candidates import Candidate
from karpy.core.disruption.emptiness import REASON, find_empty
from karpy.model.questions import SecondLookQuestion
from karpy.model.refusals import NodeRefusal, Obstacle
from karpy.model.surroundings import Surroundings


class SecondLook(Struct, frozen=True, gc=False):
    """Which proposed nodes may still go, and a refusal for every other one."""

    candidates: tuple[Candidate, ...] = ()
    """In the order in which they were proposed."""
    changed: tuple[NodeRefusal, ...] = ()
    """Those that are not what they were."""
    spent: tuple[NodeRefusal, ...] = ()
    """Those that might go, if budgets let them."""

    @property
    def refusals(self) -> tuple[NodeRefusal, ...]:
        return (*self.changed, *self.spent)


def requeue_after(question: SecondLookQuestion) -> SecondLook:
    """Find the proposed nodes that may still go, until each pool's budget is spent."""
    surroundings = question.surroundings
    there = {each.claim.name: each for each in surroundings.nodes if each.claim is not None}
    gone = tuple(
        NodeRefusal(Obstacle.GONE, each.node)
        for each in question.proposed
        if each.claim not in there
    )
    nodes = tuple(there[each.claim] for each in question.proposed if each.claim in there)
    eligible, kept = find_empty(replace(surroundings, nodes=nodes))
    by_claim = {each.claim.name: each for each in eligible}
    still = [by_claim[each.claim] for each in question.proposed if each.claim in by_claim]
    valid, spent = _within_budget(still, surroundings)
    return SecondLook(valid, (*gone, *kept.refusals), spent)


def _within_budget(
    candidates: Sequence[Candidate], surroundings: Surroundings
) -> tuple[tuple[Candidate, ...], tuple[NodeRefusal, ...]]:
    remaining = find_allowances(surroundings, REASON).remaining()
    valid, spent = [], []
    for each in candidates:
        if remaining[each.pool.name]:
            remaining[each.pool.name] -= 1
            valid.append(each)
        else:
            spent.append(NodeRefusal(Obstacle.BUDGET_SPENT, each.name, each.pool.name))
    return tuple(valid), tuple(spent)
