"""Strategies for static NodePools and the questions about them."""

from typing import Final

from hypothesis import strategies as st

from karpy.model.pools import Headcount
from karpy.model.records import PoolRecord
from karpy.model.snapshot import FillUpQuestion, PoolQuestion, ThinOutQuestion
from tests.builders import is_in
from tests.builders import pool as node_pool
from tests.builders.pods import NOON
from tests.core.disruption.questions import nodes, pods_on
from tests.core.nodepool.test_staticcapacity import static

_COUNTS: Final = st.integers(0, 9)
_TEMPLATE: Final = node_pool("web", static=True, requirements=[is_in("team", "shop")])


@st.composite
def pools(draw: st.DrawFn) -> PoolRecord:
    """Draw a pool with or without a node limit."""
    return static(draw(_COUNTS), draw(st.none() | _COUNTS))


@st.composite
def pool_questions(draw: st.DrawFn) -> PoolQuestion:
    """Draw a question about which nodes a pool launches or deletes."""
    pool, heads = draw(pools()), Headcount(draw(_COUNTS), draw(_COUNTS), draw(_COUNTS))
    if draw(st.booleans()):
        template = draw(st.sampled_from([_TEMPLATE, None]))
        return FillUpQuestion(NOON, pool, heads, template, draw(st.booleans()))
    some = [draw(nodes(f"node-{number}")) for number in range(draw(_COUNTS))]
    pods = tuple(pod for node in some for pod in draw(pods_on(node)))
    return ThinOutQuestion(NOON, pool, heads, tuple(some), pods, draw(st.booleans()))
