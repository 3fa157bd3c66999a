"""Long decisions are made off the loop, which must not stand still."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

NODES_ON_THE_LOOP_MAX: Final = 500
"""Looking at so many nodes takes no longer than anybody may wait."""


async def decide_aside(decide: Callable[[], T], nodes: int) -> T:
    """Decide on values that nobody changes: at once, or in a thread if there are many nodes."""
    if nodes > NODES_ON_THE_LOOP_MAX:
        return await asyncio.to_thread(decide)
    return decide()
