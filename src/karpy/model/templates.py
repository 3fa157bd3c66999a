"""What a NodePool writes on its claims and never changes on them."""

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct

from karpy.model.constraints import Taint
from karpy.model.records import NodeClassRef


class PoolTemplate(Struct, frozen=True, gc=False):
    """
    The part of a NodePool that a claim drifts from when it changes.

    None is what nobody wrote. An empty list that somebody did write is not the same: hashes tell
    the two apart.
    """

    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    taints: tuple[Taint, ...] | None = None
    startup_taints: tuple[Taint, ...] | None = None
    node_class: NodeClassRef | None = None
    grace_period: timedelta | None = None
    expire_after: timedelta | None = None
    """None never expires."""
