"""Balanced NodePools: whether a move saves enough for the pods that it disrupts."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

from karpy.core.disruption.candidates import Candidate
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.notices import subjects_of
from karpy.core.lifecycle.changes import Count
from karpy.model.commands import Command
from karpy.model.kinds import NODE_POOL
from karpy.model.notices import Notice, Subject
from karpy.model.pools import ConsolidationPolicy

K: Final = 2
"""How much more of the pods a move may disrupt than it saves of the price."""
THRESHOLD: Final = Fraction(1, K)


class Balance:
    """Scores moves by what each NodePool costs, and what moving all of its pods would."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._totals: dict[str, tuple[int, int]] = {}

    def scores(self, candidates: Sequence[Candidate], savings: int) -> Mapping[str, Fraction]:
        """Score a move in each Balanced NodePool of its candidates."""
        scores = {}
        for pool in _pools_of(candidates):
            if self._is_balanced(pool):
                own = [each for each in candidates if each.pool.name == pool]
                total_price, total_cost = self._total(pool)
                cost = sum(each.moving_cost for each in own)
                saved = savings * _share(own, candidates)
                scores[pool] = _score(saved, cost, total_price, total_cost)
        return scores

    def is_approved(self, score: Fraction) -> bool:
        """Say whether a score is high enough."""
        return score >= THRESHOLD

    def counts(
        self, candidates: Sequence[Candidate], scores: Mapping[str, Fraction]
    ) -> Iterator[Count]:
        """Count a move for each of its NodePools; with its score where that is balanced."""
        for pool in _pools_of(candidates):
            score = scores.get(pool)
            is_approved = score is None or self.is_approved(score)
            labels = {
                "decision": "approved" if is_approved else "rejected",
                "nodepool": pool,
                "policy": self._evaluation.pools[pool].policy.consolidation.value,
            }
            yield Count("consolidation_moves_total", labels)
            if score is not None:
                yield Count("consolidation_score", labels, float(score))

    def notices(self, command: Command, candidates: Sequence[Candidate]) -> Iterator[Notice]:
        """Return the events on an approved move: on a single node, or on NodePools."""
        for pool, score in self.scores(candidates, command.savings).items():
            note = self._note(pool, score, candidates, command.savings)
            for subject in self._subjects(pool, candidates):
                yield Notice(subject, "ConsolidationApproved", note, same_as=(subject.uid,))

    def _note(
        self, pool: str, score: Fraction, candidates: Sequence[Candidate], savings: int
    ) -> str:
        total_price, total_cost = self._total(pool)
        own = [each for each in candidates if each.pool.name == pool]
        cost = sum(each.moving_cost for each in own)
        saved = savings * _share(own, candidates) / total_price
        return (
            f"score {float(score):.2f} >= threshold {float(THRESHOLD):.2f} (k: {K}, savings"
            f" {float(saved):.1%}, disruption {cost / total_cost:.1%})"
        )

    def _subjects(self, pool: str, candidates: Sequence[Candidate]) -> list[Subject]:
        if len(candidates) == 1:
            return subjects_of(candidates[0].node)
        record = self._evaluation.pools[pool].record
        return [Subject(NODE_POOL, pool, uid="" if record is None else record.meta.uid)]

    def _is_balanced(self, pool: str) -> bool:
        policy = self._evaluation.pools[pool].policy
        return policy.consolidation is ConsolidationPolicy.BALANCED

    def _total(self, pool: str) -> tuple[int, int]:
        """Return what all nodes of a pool cost, and what moving all their pods would."""
        if pool not in self._totals:
            evaluation = self._evaluation
            nodes = [each for each in evaluation.snapshot.nodes if each.pool == pool and each.claim]
            cost = sum(evaluation.movers(node)[1] for node in nodes)
            self._totals[pool] = evaluation.prices.total(nodes), cost
        return self._totals[pool]


def _pools_of(candidates: Sequence[Candidate]) -> list[str]:
    return sorted({each.pool.name for each in candidates})


def _share(own: Sequence[Candidate], candidates: Sequence[Candidate]) -> Fraction:
    """Return which share of the price of candidates is that of some of them."""
    price = sum(each.price for each in candidates)
    return Fraction(sum(each.price for each in own), price) if price else Fraction(0)


def _score(savings: Fraction, cost: int, total_price: int, total_cost: int) -> Fraction:
    """Divide the share of the price that is saved by the share of the cost of moving all pods."""
    if savings <= 0 or not total_price or not total_cost:
        return Fraction(0)
    return (savings / total_price) / Fraction(cost, total_cost)
