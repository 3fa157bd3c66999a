"""What runs for as long as the operator does."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from msgspec import Struct

from karpy.controllers.context import ControllerContext


class Part(Struct, frozen=True):
    """Something that runs for as long as the operator does."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]


ContextOf = Callable[[str], ControllerContext]
"""Returns what a controller works with, by the controller's name."""
Parts = Callable[[ContextOf], Iterator[Part]]
"""Builds controllers; they run while the operator leads."""


def no_parts(context_of: ContextOf) -> Iterator[Part]:
    """Build none."""
    del context_of
    yield from ()
