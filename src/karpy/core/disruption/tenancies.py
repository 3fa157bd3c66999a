"""
Who lives on a node, as far as it was looked up, and for how long that can be relied on.

Watches tell where pods are, but not what is written on each. That is asked for, and asked for again
only where the answer could have changed what is decided.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.cost import eviction_cost
from karpy.core.lifecycle.changes import is_reschedulable
from karpy.model.leaving import LeavingPod
from karpy.model.pods import Pod
from karpy.model.tenants import Tenant

RELIED_ON: Final = timedelta(minutes=5)
"""For so long nobody looks whether somebody has written something else on a pod."""
LOOKUPS_MAX: Final = 100
"""How many nodes with pods that probably keep them are looked up at once."""
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Tenancy(Struct, frozen=True, gc=False):
    """What is remembered of the pods on a node."""

    looked_up: datetime
    tenants: tuple[Tenant, ...] = ()
    """All of them; of a node that is far from empty only one that keeps it so."""
    is_partial: bool = False
    seen: frozenset[tuple[str, str, bool]] = frozenset()
    """UID, phase, and whether it is going, of those that watches told of then."""


def remember(
    tenants: Sequence[Tenant],
    pods: Collection[Pod],
    now: datetime,
    *,
    reads_deletion_cost: bool = True,
) -> Tenancy:
    """Keep what was looked up; `pods` are those that watches tell of."""
    # One pod that must move decides, and a million of them need not be kept.
    for each in sorted(tenants, key=lambda each: (not each.pod.unreadable, each.pod.key)):
        cost = eviction_cost(each, reads_deletion_cost=reads_deletion_cost)
        if each.pod.is_active and each.is_reschedulable and cost > 0:
            return Tenancy(now, (each,), is_partial=True)
    return Tenancy(now, tuple(tenants), seen=_seen(pods))


def assume(pods: Collection[Pod]) -> Tenancy | None:
    """Take it that pods keep their node, as they mostly do; None if there are none that could."""
    movable = [pod for pod in pods if is_reschedulable(pod)]
    if not movable:
        return None
    keeper = min(movable, key=lambda pod: (not pod.unreadable, pod.key))
    pod = LeavingPod(
        keeper.name,
        keeper.namespace,
        keeper.uid,
        keeper.node_name,
        keeper.phase,
        unreadable=keeper.unreadable,
    )
    return Tenancy(_NEVER, (Tenant(pod, keeper.labels),), is_partial=True)


def doubted(tenants: Sequence[Tenant], pods: Collection[Pod]) -> tuple[Tenant, ...]:
    """Add to tenants which of them watches tell of and cannot be read."""
    problems = {pod.uid: pod.unreadable for pod in pods if pod.unreadable}
    return tuple(
        replace(each, pod=replace(each.pod, unreadable=problems[each.pod.uid]))
        if each.pod.uid in problems
        else each
        for each in tenants
    )


def choose_lookups(
    assumed: Mapping[str, Tenancy | None], looked_up: Mapping[str, Tenancy]
) -> frozenset[str]:
    """
    Choose the nodes to look up now: all that may be empty, of the others some in turn.

    `assumed` is what is taken for granted of each, `looked_up` what is remembered.
    """
    doubtful = [node for node, each in assumed.items() if each is not None]
    doubtful.sort(key=lambda node: (_age(looked_up.get(node)), node))
    certain = (node for node, each in assumed.items() if each is None)
    return frozenset((*certain, *doubtful[:LOOKUPS_MAX]))


def is_reliable(tenancy: Tenancy, pods: Collection[Pod], now: datetime) -> bool:
    """Say whether a second look would lead to the same decision, going by what watches tell."""
    if now - tenancy.looked_up >= RELIED_ON:
        return False
    if not tenancy.is_partial:
        return tenancy.seen == _seen(pods)
    keepers = {each.pod.uid for each in tenancy.tenants}
    return any(pod.uid in keepers and pod.is_active for pod in pods)


def _age(tenancy: Tenancy | None) -> datetime:
    return _NEVER if tenancy is None else tenancy.looked_up


def _seen(pods: Collection[Pod]) -> frozenset[tuple[str, str, bool]]:
    return frozenset((pod.uid, pod.phase, pod.is_deleting) for pod in pods)
