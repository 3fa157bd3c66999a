"""Decisions about many nodes do not keep the loop from its work."""

from threading import current_thread

import pytest

from karpy.controllers.offloading import NODES_ON_THE_LOOP_MAX, decide_aside


@pytest.mark.parametrize(
    ("nodes", "is_aside"),
    [(0, False), (NODES_ON_THE_LOOP_MAX, False), (NODES_ON_THE_LOOP_MAX + 1, True)],
)
async def test_decisions_about_many_nodes_are_made_aside(nodes: int, *, is_aside: bool) -> None:
    thread = await decide_aside(current_thread, nodes)

    assert (thread is not current_thread()) is is_aside
