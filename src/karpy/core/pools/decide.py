"""Answer a question about the size of a NodePool, from what was seen to a verdict."""

from karpy.core.pools.staticcapacity import Adjustment, fill_up, template_launch, thin_out
from karpy.model.questions import FillUpQuestion, PoolQuestion
from karpy.model.verdicts import Launch, PoolVerdict


def decide_pool(question: PoolQuestion) -> PoolVerdict:
    """Decide which nodes come and go; the same question has the same verdict, always."""
    return verdict_of_adjustment(question, adjust(question))


def adjust(question: PoolQuestion) -> Adjustment:
    """Bring a pool to its size, and say what is told about it."""
    if isinstance(question, FillUpQuestion):
        return fill_up(question.pool, question.heads, is_synced=question.is_synced)
    return thin_out(question.pool, question.heads, question.nodes, question.now)


def verdict_of_adjustment(question: PoolQuestion, adjustment: Adjustment) -> PoolVerdict:
    """Say what a pool gets and gives up, and why not what it lacks."""
    return PoolVerdict(
        question.pool.name,
        adjustment.creates,
        _launch(question) if adjustment.creates else None,
        adjustment.withheld,
        adjustment.deletes,
        adjustment.refusals,
    )


def is_news(verdict: PoolVerdict, before: PoolVerdict | None) -> bool:
    """Say whether a verdict is worth telling after another: it does something, or has changed."""
    known = PoolVerdict(verdict.pool) if before is None else before
    return bool(verdict.creates or verdict.deletes) or verdict != known


def _launch(question: PoolQuestion) -> Launch | None:
    if isinstance(question, FillUpQuestion) and question.template is not None:
        return template_launch(question.template)
    return None
