"""Where the provider reports what happens: logs, metrics and events."""

from collections.abc import Callable

from msgspec import Struct

from karpy.core.lifecycle.changes import Count
from karpy.errors import KarpyError
from karpy.model.notices import Notice

OnTrouble = Callable[[str, KarpyError], None]
"""Hears what could not be done, and why; it is tried again."""


class Reports(Struct, frozen=True):
    """Listeners to what happens; without any, nothing is reported."""

    trouble: OnTrouble = lambda *_: None
    count: Callable[[Count], None] = lambda _: None
    tell: Callable[[Notice], None] = lambda _: None
