"""A Node registers: it gets what its NodeClaim promises, opens for pods, and is initialized."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes, Count, Remark, about_claim, joined, with_finalizer
from karpy.core.lifecycle.conditions import (
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
    begun,
    is_decided,
    restated,
    with_false,
    with_true,
    with_unknown,
)
from karpy.core.lifecycle.expiration import LAUNCH_TIMEOUT, check_liveness
from karpy.core.lifecycle.initialization import check_consistency, find_unmet_condition, initialize
from karpy.model.constraints import (
    DISRUPTED_TAINT,
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY_TAINT,
    UNREGISTERED_TAINT,
    Taint,
    is_disrupted,
    is_gate,
)
from karpy.model.kinds import NODE_CLAIM
from karpy.model.labels import REGISTERED as REGISTERED_LABEL
from karpy.model.labels import ZONE
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord, Identity, NodeRecord, Owner
from karpy.model.requirements import as_integer
from karpy.model.times import span

DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"
_MISSING: Final = (
    f"Missing {UNREGISTERED_TAINT} taint which prevents registration related race conditions on "
    "Karpenter-managed nodes"
)
HEARING_TIME: Final = timedelta(seconds=0.5)
"""A busy kube-controller-manager takes this long to see that a NoExecute taint is gone."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
TIME_TO_INITIALIZE: Final = timedelta(seconds=10)
"""A busy kube-controller-manager takes this long to see that a new node is ready."""
TIME_TO_BOOT: Final = timedelta(seconds=5)
"""A node that starts normally is ready within this time."""
_PASSING: Final = frozenset({"NodeNotReady", "KnownEphemeralTaintsExist"})
"""Reasons for not being initialized that pass without a change by Karpy."""


def register(
    claim: ClaimRecord,
    nodes: Sequence[NodeRecord],
    now: datetime,
    pending: Sequence[str] = (),
    *,
    is_held: bool = False,
) -> Changes:
    """
    Register the Node of a claim: sync its metadata and taints, and set Registered.

    `nodes` are those with the claim's provider ID. `pending` names the registration hooks that the
    provider still waits for; until then the node keeps its unregistered taint. A node that is
    held stays closed until its pods are nominated to it.
    """
    if is_decided(claim, REGISTERED):
        return Changes(restated(claim, REGISTERED, now))
    if not nodes or not claim.provider_id:
        waits = "Node not registered with cluster"
        return Changes(with_unknown(claim, REGISTERED, "NodeNotFound", waits, now))
    if len(nodes) > 1:
        clash = "Invariant violated, matched multiple nodes"
        return Changes(with_false(claim, REGISTERED, "MultipleNodesFound", clash, now))
    node = nodes[0]
    changes = _alarm(claim, node)
    if pending:
        hooks = ", ".join(pending)
        updated = with_unknown(claim, REGISTERED, "RegistrationHookPending", hooks, now)
        return replace(changes, claim=updated, node=synced(node, claim))
    return replace(
        changes,
        claim=with_true(replace(claim, node_name=node.name), REGISTERED, now),
        node=_registered(synced(node, claim), now, is_held=is_held),
        counts=(
            Count(
                "nodes_created_total",
                {"nodepool": claim.pool, "zone": claim.meta.labels.get(ZONE, "")},
            ),
        ),
        remarks=(
            *changes.remarks,
            Remark(
                "registered nodeclaim",
                {"NodeClaim": claim.name, "provider-id": claim.provider_id, "Node": node.name},
            ),
        ),
        has_registered=True,
    )


def synced(node: NodeRecord, claim: ClaimRecord) -> NodeRecord:
    """Add the finalizer, owner, labels, annotations and taints of its claim to a node."""
    meta = with_finalizer(node.meta)
    meta = replace(
        meta,
        owners=_owners(meta, claim),
        labels={**meta.labels, **claim.meta.labels},
        annotations={**meta.annotations, **claim.meta.annotations},
    )
    taints = node.taints
    if node.meta.labels.get(DO_NOT_SYNC_TAINTS) != "true":
        taints = _merged(_merged(taints, claim.taints), claim.startup_taints)
    return replace(node, meta=meta, taints=taints)


def _alarm(claim: ClaimRecord, node: NodeRecord) -> Changes:
    """Warn if pods may have been bound to the node before it registered."""
    if REGISTERED_LABEL in node.meta.labels or any(map(is_unregistered, node.taints)):
        return Changes()
    notice = Notice(
        about_claim(claim),
        "UnregisteredTaintMissing",
        _MISSING,
        is_warning=True,
        same_as=(claim.meta.uid,),
    )
    fields = {"taint": UNREGISTERED_TAINT, "Node": node.name}
    remark = Remark("node has no taint that keeps pods away until registration", fields, True)
    return Changes(notices=(notice,), remarks=(remark,))


def _registered(node: NodeRecord, now: datetime, *, is_held: bool) -> NodeRecord:
    labels = {**node.meta.labels, REGISTERED_LABEL: "true"}
    return with_gate(replace(node, meta=replace(node.meta, labels=labels)), now, is_held=is_held)


def _owners(meta: Identity, claim: ClaimRecord) -> tuple[Owner, ...]:
    if any(each.uid == claim.meta.uid for each in meta.owners):
        return meta.owners
    owner = Owner(NODE_CLAIM.api_version, NODE_CLAIM.name, claim.name, claim.meta.uid, True)
    return (*meta.owners, owner)


def _merged(present: tuple[Taint, ...], wanted: tuple[Taint, ...]) -> tuple[Taint, ...]:
    known = {(each.key, each.effect) for each in present}
    return (*present, *(each for each in wanted if (each.key, each.effect) not in known))


class GatePolicy(Enum):
    """When the gate of a registered node is removed."""

    FREE = "Free"
    """As soon as no pod can be evicted by a taint that kube-controller-manager still sees."""
    HELD = "Held"
    """Not yet: its pods are not nominated to it yet."""
    CALLED = "Called"
    """At once: its pods are nominated to it."""


# Differs: registration of a node: Karpenter removes the NoExecute taint, and
# kube-controller-manager evicts pods that it sees before it sees the removal; Karpy first replaces
# the taint by NoSchedule, then removes it, so that no pod is evicted.
def with_gate(node: NodeRecord, now: datetime, *, is_held: bool = False) -> NodeRecord:
    """Replace the unregistered NoExecute taint by a gate, a NoSchedule taint."""
    taints = tuple(each for each in node.taints if not is_unregistered(each))
    if len(taints) == len(node.taints):
        return node
    if is_held and not any(map(is_disrupted, taints)):
        return replace(node, taints=(*taints, gate(now)))
    if any(map(_is_unready, taints)) or any(map(is_disrupted, taints)):
        # Closed anyway, and kube-controller-manager hears of both changes in their order.
        return replace(node, taints=taints)
    return replace(node, taints=(*taints, short_gate(now)))


def with_gate_opened(
    node: NodeRecord, door: GatePolicy, now: datetime
) -> tuple[NodeRecord, timedelta | None]:
    """
    Remove the gate from a node if it may open; also return how long it must stay otherwise.

    None is an unknown time. The node opens once kube-controller-manager has removed the not-ready
    taint, which takes a busy one seconds; with GatePolicy.CALLED it does not wait for that.
    """
    since = _gated_since(node)
    if since is None:
        return node, timedelta()
    if door is GatePolicy.CALLED:
        node = without_not_ready_taint(node)
    if door is GatePolicy.HELD or any(map(_is_unready, node.taints)):
        return node, None
    left = since + HEARING_TIME - now
    # A moment far ahead comes from the clock of a former leader.
    if timedelta() < left <= 2 * HEARING_TIME:
        return node, min(left, HEARING_TIME)
    return _without_gate(node), timedelta()


def is_ready_but_gated(claim: ClaimRecord, node: NodeRecord) -> bool | None:
    """Say whether only the gate keeps pods off a node; None if that may change in a moment."""
    if any(map(is_unregistered, node.taints)):
        return None
    if _gated_since(node) is None:
        return False
    if not node.is_ready:
        return None
    return find_unmet_condition(claim, _without_gate(without_not_ready_taint(node))) is None


def without_not_ready_taint(node: NodeRecord) -> NodeRecord:
    """Remove the not-ready taint from a node that is ready."""
    if not node.is_ready:
        return node
    return replace(node, taints=tuple(each for each in node.taints if not _is_unready(each)))


def gate(now: datetime) -> Taint:
    """Return the taint that keeps pods off a node after registration; its value is when, in ms."""
    return Taint(DISRUPTED_TAINT, NO_SCHEDULE, _stamp(now))


def short_gate(now: datetime) -> Taint:
    """Return the gate that kube-controller-manager removes, too, as soon as it sees it."""
    return Taint(NOT_READY_TAINT, NO_SCHEDULE, _stamp(now))


def _stamp(now: datetime) -> str:
    return str(round(now.timestamp() * 1000))


def is_unregistered(taint: Taint) -> bool:
    """Say whether a taint is the NoExecute taint that a node has until it registers."""
    return taint.key == UNREGISTERED_TAINT and taint.effect == NO_EXECUTE


def _is_unready(taint: Taint) -> bool:
    about = taint.key, taint.effect
    return about == (NOT_READY_TAINT, NO_SCHEDULE) and not is_gate(taint)


def _gated_since(node: NodeRecord) -> datetime | None:
    for taint in node.taints:
        if is_gate(taint):
            return _EPOCH + span((as_integer(taint.value) or 0) / 1000)
    return None


def _without_gate(node: NodeRecord) -> NodeRecord:
    return replace(node, taints=tuple(each for each in node.taints if not is_gate(each)))


class ClaimInputs(Struct, frozen=True, gc=False):
    """What the steps of a claim read besides the claim itself."""

    nodes: tuple[NodeRecord, ...] = ()
    """Those with the claim's provider ID."""
    pending_hooks: tuple[str, ...] = ()
    """Hooks of the provider that must finish before the node may register."""
    unpublished_drivers: tuple[str, ...] = ()
    """Device drivers that have not published all their devices yet."""
    launch_timeout: timedelta = LAUNCH_TIMEOUT
    door: GatePolicy = GatePolicy.FREE


def advance(claim: ClaimRecord, inputs: ClaimInputs, now: datetime) -> Changes:
    """Take every step after the launch: a claim advances as far as it can in one reconcile."""
    claim = begun(claim, now)
    if is_decided(claim, LAUNCHED):
        claim = restated(claim, LAUNCHED, now)
    changes = register(
        claim,
        _registrable(inputs, now),
        now,
        inputs.pending_hooks,
        is_held=inputs.door is not GatePolicy.FREE,
    )
    changes = joined(changes, _opened(changes, inputs, now))
    changes = joined(changes, _initialized(changes.claim or claim, changes.node, inputs, now))
    patience = TIME_TO_INITIALIZE if inputs.door is GatePolicy.FREE else 2 * TIME_TO_INITIALIZE
    if changes.has_registered and (pause := pause_after(changes, now, patience)):
        again = min(pause, changes.requeue_after or pause)
        changes = Changes(claim, changes.node, notices=changes.notices, requeue_after=again)
    return joined(changes, check_liveness(changes.claim or claim, now, inputs.launch_timeout))


def _registrable(inputs: ClaimInputs, now: datetime) -> tuple[NodeRecord, ...]:
    """Return the nodes to register now; a gated node that is ready in a moment waits for that."""
    if inputs.door is not GatePolicy.HELD or len(inputs.nodes) != 1 or inputs.nodes[0].is_ready:
        return inputs.nodes
    made = inputs.nodes[0].meta.created
    return inputs.nodes if made is None or now >= made + TIME_TO_BOOT else ()


def _opened(changes: Changes, inputs: ClaimInputs, now: datetime) -> Changes:
    """Remove the gate of a registered node, if it may open."""
    if changes.claim is None or not changes.claim.conditions.is_true(REGISTERED):
        return Changes()
    if len(inputs.nodes) != 1:
        return Changes()
    # The node is written anyway: remove the not-ready taint in the same patch.
    given = (
        without_not_ready_taint(changes.node)
        if changes.node and inputs.door is GatePolicy.HELD
        else changes.node
    )
    node, left = with_gate_opened(given or inputs.nodes[0], inputs.door, now)
    is_changed = node != inputs.nodes[0]
    return Changes(node=node if is_changed else None, requeue_after=left or None)


def _initialized(
    claim: ClaimRecord, node: NodeRecord | None, inputs: ClaimInputs, now: datetime
) -> Changes:
    nodes = inputs.nodes if node is None else (node,)
    changes = initialize(claim, nodes, now, inputs.unpublished_drivers)
    after = changes.claim or claim
    if claim.conditions.is_true(INITIALIZED) or not after.conditions.is_true(INITIALIZED):
        return changes
    # Consistency is checked again later; the first check joins this write.
    found = check_consistency(after, nodes[0], now)
    return joined(changes, replace(found, requeue_after=None))


# Differs: the conditions Registered and Initialized of a NodeClaim: Karpenter writes the second one
# a moment after the first; Karpy writes both at once if the node is initialized soon, because each
# write on a NodeClaim is expensive.
def pause_after(
    changes: Changes, now: datetime, patience: timedelta = TIME_TO_INITIALIZE
) -> timedelta:
    """Return how long to delay the write of Registered on a claim."""
    node, claim = changes.node, changes.claim
    lack = claim.conditions.get(INITIALIZED) if claim is not None else None
    if node is None or node.meta.created is None or lack is None or lack.reason not in _PASSING:
        return timedelta()
    return max(node.meta.created + patience - now, timedelta())
