"""What disruption reads off a NodeClaim: Drifted, Consolidatable, and the last pod event."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes
from karpy.core.lifecycle.conditions import (
    CONSOLIDATABLE,
    DRIFTED,
    INITIALIZED,
    LAUNCHED,
    changed,
    with_true,
    with_true_because,
    without,
)
from karpy.model.instances import Catalog
from karpy.model.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
    ON_DEMAND,
    RESERVED,
)
from karpy.model.pods import DAEMON_SET, Pod
from karpy.model.records import ClaimRecord, PoolRecord
from karpy.model.requirements import Requirement, collect, from_labels, one_of, why_incompatible

DRIFT_PERIOD: Final = timedelta(minutes=5)
TYPE_CHECK_AGE: Final = timedelta(hours=1)
TYPE_CHECK_PERIOD: Final = timedelta(minutes=30)
BUSY_TIME: Final = timedelta(seconds=15)
"""A write that may be delayed is delayed by this at most."""
AWAITED_PERIOD: Final = timedelta(seconds=5)
_NEW: Final = timedelta()
PAUSE: Final = timedelta(seconds=10)
"""The least time between two writes; shorter than the wait before a command is validated."""


def is_markable(claim: ClaimRecord) -> bool:
    """Say whether a claim has a NodePool and is not deleting."""
    return not claim.meta.is_deleting and bool(claim.pool)


def is_type_check_due(claim: ClaimRecord, checked: datetime | None, now: datetime) -> bool:
    """Say whether to check that the instance type is still offered: after an hour, every 30 min."""
    created = claim.meta.created
    if created is None or now - created < TYPE_CHECK_AGE:
        return False
    return checked is None or now - checked >= TYPE_CHECK_PERIOD


def find_drift(
    claim: ClaimRecord,
    pool: PoolRecord,
    requirements: Iterable[Requirement],
    catalog: Catalog | None = None,
) -> str:
    """
    Return why a claim has drifted from its pool; empty if it has not.

    Without a catalog the instance type is not checked. The provider is asked for drift only if this
    finds none.
    """
    if not claim.conditions.is_true(LAUNCHED):
        return ""
    if _has_other_hash(claim, pool):
        return "NodePoolDrifted"
    if why_incompatible(from_labels(claim.meta.labels), collect(requirements)) is not None:
        return "RequirementsDrifted"
    if catalog is not None and not _is_sold(claim, catalog):
        return "InstanceTypeNotFound"
    return ""


def mark_drifted(claim: ClaimRecord, reason: str, now: datetime) -> Changes:
    """Set Drifted on a claim, or remove it."""
    if not reason or not claim.conditions.is_true(LAUNCHED):
        return Changes(without(claim, DRIFTED), requeue_after=DRIFT_PERIOD)
    updated = with_true_because(claim, DRIFTED, reason, reason, now)
    return Changes(updated, requeue_after=DRIFT_PERIOD)


def mark_consolidatable(
    claim: ClaimRecord,
    consolidate_after: timedelta | None,
    now: datetime,
    *,
    is_awaited: bool = False,
    is_busy: bool = False,
) -> Changes:
    """
    Set Consolidatable on a claim without a pod event for `consolidate_after`; None is never.

    A node that pods are nominated to (`is_awaited`) is not consolidatable. While pods are being
    bound to other nodes (`is_busy`), the write is delayed to keep the API server free.
    """
    if consolidate_after is None or not claim.conditions.is_true(INITIALIZED):
        return Changes(without(claim, CONSOLIDATABLE))
    if is_awaited:
        return Changes(without(claim, CONSOLIDATABLE), requeue_after=AWAITED_PERIOD)
    quiet_since = claim.last_pod_event or changed(claim, INITIALIZED)
    remaining = quiet_since + consolidate_after - now
    if remaining > _NEW:
        return Changes(without(claim, CONSOLIDATABLE), requeue_after=remaining)
    is_urgent = -remaining >= BUSY_TIME or claim.conditions.is_true(CONSOLIDATABLE)
    if is_busy and not is_urgent:
        return Changes(requeue_after=AWAITED_PERIOD)
    return Changes(with_true(claim, CONSOLIDATABLE, now))


def _has_other_hash(claim: ClaimRecord, pool: PoolRecord) -> bool:
    mine, its = claim.meta.annotations, pool.meta.annotations
    keys = {NODE_POOL_HASH, NODE_POOL_HASH_VERSION}
    if not (keys <= mine.keys() and keys <= its.keys()):
        return False
    # Hashes of different versions say nothing about each other.
    if mine[NODE_POOL_HASH_VERSION] != its[NODE_POOL_HASH_VERSION]:
        return False
    return mine[NODE_POOL_HASH] != its[NODE_POOL_HASH]


def _is_sold(claim: ClaimRecord, catalog: Catalog) -> bool:
    name = claim.meta.labels.get(INSTANCE_TYPE, "")
    found = next((each for each in catalog.types_for(claim.pool) if each.name == name), None)
    if found is None:
        return False
    has = from_labels(claim.meta.labels)
    if claim.meta.labels.get(CAPACITY_TYPE) == RESERVED:
        # A reservation that has ended turns its machines into on-demand ones.
        has[CAPACITY_TYPE] = one_of(CAPACITY_TYPE, RESERVED, ON_DEMAND)
        has.pop(catalog.reservation_label, None)
    may_lack = catalog.well_known | {catalog.reservation_label}
    return any(
        why_incompatible(has, offering.requirements, may_lack) is None
        for offering in found.offerings
    )


class PodEvent(Struct, frozen=True):
    """What has happened to a pod."""

    before: Pod | None
    """The pod as it was last seen; None at first sight."""
    after: Pod
    moment: datetime


def note_pod_event(claim: ClaimRecord, event: PodEvent) -> Changes:
    """Set the time of the last pod event: a pod was bound to the node, ended or is deleting."""
    if not _is_event(claim, event.before, event.after):
        return Changes()
    last = claim.last_pod_event
    if last is not None and event.moment - last < PAUSE:
        return Changes()
    return Changes(replace(claim, last_pod_event=event.moment))


# Differs: the time of the last pod event in the status of a NodeClaim: Karpenter writes it at once
# for each event; Karpy delays the writes for a new node, which no disruption considers yet.
def can_wait(claim: ClaimRecord, since: datetime, now: datetime) -> bool:
    """
    Say whether the write of pod events since a moment may be delayed while many pods are bound.

    It may for the first pods of a new node, which no disruption considers yet.
    """
    return claim.last_pod_event is None and now - since < BUSY_TIME


def _is_event(claim: ClaimRecord, before: Pod | None, after: Pod) -> bool:
    if not after.node_name or after.is_owned_by(DAEMON_SET):
        return False
    if before is None:
        # Differs: the first pods that are seen after a restart: Karpenter takes each for a new pod
        # event, so that consolidation waits; Karpy compares the creation of the pod with the last
        # event.
        return claim.last_pod_event is None or after.created > claim.last_pod_event
    return (
        not before.node_name
        or (after.is_terminal and not before.is_terminal)
        or (after.is_deleting and not before.is_deleting)
    )
