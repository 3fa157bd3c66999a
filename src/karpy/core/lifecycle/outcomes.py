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


def joined(first: Outcome, then: Outcome) -> Outcome:
    """Put together two looks at the same objects; the second one began where the first ended."""
    times = [each for each in (first.look_again, then.look_again) if each is not None]
    return Outcome(
        claim=then.claim or first.claim,
        node=then.node or first.node,
        pool=then.pool or first.pool,
        deletes_claim=first.deletes_claim or then.deletes_claim,
        deletes_node=first.deletes_node or then.deletes_node,
        notices=first.notices + then.notices,
        counts=first.counts + then.counts,
        remarks=first.remarks + then.remarks,
        look_again=min(times, default=None),
        has_registered=then.has_registered
        if first.has_registered is None
        else first.has_registered,
    )
