"""The status of a NodeClaim that disruption reads: Drifted, Consolidatable, lastPodEventTime."""

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
"""Longest delay of a write while pods are being bound."""
RECHECK_PERIOD: Final = timedelta(seconds=5)
_ZERO: Final = timedelta()
EVENT_PAUSE: Final = timedelta(seconds=10)
"""Shortest time between two writes of lastPodEventTime; shorter than the wait before validation."""


def is_markable(claim: ClaimRecord) -> bool:
    """Say whether a claim has a NodePool and is not deleting."""
    return not claim.meta.is_deleting and bool(claim.pool)


def is_type_check_due(claim: ClaimRecord, checked: datetime | None, now: datetime) -> bool:
    """Say whether to check that the instance type is still offered: after 1 h, every 30 min."""
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

    Without a catalog the instance type is not checked. Drift that the provider detects is not part
    of this.
    """
    if not claim.conditions.is_true(LAUNCHED):
        return ""
    if _has_other_hash(claim, pool):
        return "NodePoolDrifted"
    if why_incompatible(from_labels(claim.meta.labels), collect(requirements)) is not None:
        return "RequirementsDrifted"
    if catalog is not None and not _is_offered(claim, catalog):
        return "InstanceTypeNotFound"
    return ""


def mark_drifted(claim: ClaimRecord, reason: str, now: datetime) -> Changes:
    """Set Drifted on a claim; remove it if `reason` is empty."""
    if not reason or not claim.conditions.is_true(LAUNCHED):
        return Changes(without(claim, DRIFTED), requeue_after=DRIFT_PERIOD)
    updated = with_true_because(claim, DRIFTED, reason, reason, now)
    return Changes(updated, requeue_after=DRIFT_PERIOD)


def mark_consolidatable(
    claim: ClaimRecord,
    consolidate_after: timedelta | None,
    now: datetime,
    *,
    is_nominated: bool = False,
    is_busy: bool = False,
) -> Changes:
    """
    Set Consolidatable on a claim without a pod event for `consolidate_after`; None is never.

    A node that pods are nominated to (`is_nominated`) is not consolidatable. While pods are being
    bound to other nodes (`is_busy`), the write is delayed to spare the API server.
    """
    if consolidate_after is None or not claim.conditions.is_true(INITIALIZED):
        return Changes(without(claim, CONSOLIDATABLE))
    if is_nominated:
        return Changes(without(claim, CONSOLIDATABLE), requeue_after=RECHECK_PERIOD)
    quiet_since = claim.last_pod_event or changed(claim, INITIALIZED)
    remaining = quiet_since + consolidate_after - now
    if remaining > _ZERO:
        return Changes(without(claim, CONSOLIDATABLE), requeue_after=remaining)
    is_urgent = -remaining >= BUSY_TIME or claim.conditions.is_true(CONSOLIDATABLE)
    if is_busy and not is_urgent:
        return Changes(requeue_after=RECHECK_PERIOD)
    return Changes(with_true(claim, CONSOLIDATABLE, now))


def _has_other_hash(claim: ClaimRecord, pool: PoolRecord) -> bool:
    mine, current = claim.meta.annotations, pool.meta.annotations
    keys = {NODE_POOL_HASH, NODE_POOL_HASH_VERSION}
    if not (keys <= mine.keys() and keys <= current.keys()):
        return False
    # Hashes of different versions cannot be compared.
    if mine[NODE_POOL_HASH_VERSION] != current[NODE_POOL_HASH_VERSION]:
        return False
    return mine[NODE_POOL_HASH] != current[NODE_POOL_HASH]


def _is_offered(claim: ClaimRecord, catalog: Catalog) -> bool:
    name = claim.meta.labels.get(INSTANCE_TYPE, "")
    found = next((each for each in catalog.types_for(claim.pool) if each.name == name), None)
    if found is None:
        return False
    has = from_labels(claim.meta.labels)
    if claim.meta.labels.get(CAPACITY_TYPE) == RESERVED:
        # When a reservation ends, its machines become on-demand machines.
        has[CAPACITY_TYPE] = one_of(CAPACITY_TYPE, RESERVED, ON_DEMAND)
        has.pop(catalog.reservation_label, None)
    may_lack = catalog.well_known | {catalog.reservation_label}
    return any(
        why_incompatible(has, offering.requirements, may_lack) is None
        for offering in found.offerings
    )


class PodEvent(Struct, frozen=True):
    """A change of a pod."""

    before: Pod | None
    """The pod before the change; None if it was not known."""
    after: Pod
    moment: datetime


def note_pod_event(claim: ClaimRecord, event: PodEvent) -> Changes:
    """Set the time of the last pod event: a pod was bound, has completed, or is deleting."""
    if not _is_event(claim, event.before, event.after):
        return Changes()
    last = claim.last_pod_event
    if last is not None and event.moment - last < EVENT_PAUSE:
        return Changes()
    return Changes(replace(claim, last_pod_event=event.moment))


# Differs: the time of the last pod event in the status of a NodeClaim: Karpenter writes it at once
# for each event; Karpy delays the writes for a new node, which no disruption considers yet.
def can_wait(claim: ClaimRecord, since: datetime, now: datetime) -> bool:
    """
    Say whether to delay the write of pod events since a moment, while many pods are being bound.

    Only the first write on a claim is delayed: disruption does not consider its new node yet.
    """
    return claim.last_pod_event is None and now - since < BUSY_TIME


def _is_event(claim: ClaimRecord, before: Pod | None, after: Pod) -> bool:
    if not after.node_name or after.is_owned_by(DAEMON_SET):
        return False
    if before is None:
        # Differs: bound pods after a restart of the operator: Karpenter takes each for a new pod
        # event, which delays consolidation; Karpy compares the creation of the pod with the last
        # event.
        return claim.last_pod_event is None or after.created > claim.last_pod_event
    return (
        not before.node_name
        or (after.is_terminal and not before.is_terminal)
        or (after.is_deleting and not before.is_deleting)
    )
