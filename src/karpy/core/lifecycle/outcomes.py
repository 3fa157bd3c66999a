"""What a look at an object comes to: how it should be, what to tell, when to look again."""

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct

from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord, NodeRecord, PoolRecord


class Count(Struct, frozen=True):
    """Something that happened and is counted, or a span that is measured, as a metric."""

    metric: str
    """Without its prefix: `nodeclaims_disrupted_total`."""
    labels: Mapping[str, str] = {}
    value: float = 1.0


class Remark(Struct, frozen=True):
    """A line for the log."""

    event: str
    """Constant words: `launched nodeclaim`."""
    fields: Mapping[str, str] = {}
    is_error: bool = False


class Outcome(Struct, frozen=True):
    """
    How records should be; a record that is None stays as it is.

    Whoever acts writes the difference, deletes what is to be deleted, tells, counts, and looks
    again after the given time at the latest.
    """

    claim: ClaimRecord | None = None
    node: NodeRecord | None = None
    pool: PoolRecord | None = None
    deletes_claim: bool = False
    deletes_node: bool = False
    notices: tuple[Notice, ...] = ()
    counts: tuple[Count, ...] = ()
    remarks: tuple[Remark, ...] = ()
    look_again: timedelta | None = None
    has_registered: bool | None = None
    """Whether a node of the pool has come, or has failed to; None if that is not known yet."""
