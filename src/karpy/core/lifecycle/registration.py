"""Registration of a Node: sync it with its NodeClaim, remove its gate, and initialize it."""

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
    is_decided,
    restated,
    with_false,
    with_initial_conditions,
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
from karpy.model.records import ClaimRecord, Identity, NodeRecord, OwnerReference
from karpy.model.requirements import as_integer
from karpy.model.times import span

DO_NOT_SYNC_TAINTS: Final = "karpenter.sh/do-not-sync-taints"
_MISSING: Final = (
    f"Missing {UNREGISTERED_TAINT} taint which prevents registration related race conditions on "
    "Karpenter-managed nodes"
)
TAINT_REMOVAL_LAG: Final = timedelta(seconds=0.5)
"""Time in which a busy kube-controller-manager observes the removal of a NoExecute taint."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
TIME_TO_INITIALIZE: Final = timedelta(seconds=10)
"""Time in which a busy kube-controller-manager removes the not-ready taint of a new node."""
TIME_TO_READY: Final = timedelta(seconds=5)
"""Time after its creation in which a Node becomes ready, if it starts normally."""
_TRANSIENT: Final = frozenset({"NodeNotReady", "KnownEphemeralTaintsExist"})
"""Reasons of Initialized that end without a change by Karpy."""


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

    `nodes` are the nodes with the claim's provider ID. `pending` names the registration hooks of
    the provider that have not finished; until then the node keeps its unregistered taint. With
    `is_held` the node gets a gate that stays until pods are nominated to the node.
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
    changes = _missing_taint_warning(claim, node)
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


def _missing_taint_warning(claim: ClaimRecord, node: NodeRecord) -> Changes:
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


def _owners(meta: Identity, claim: ClaimRecord) -> tuple[OwnerReference, ...]:
    if any(each.uid == claim.meta.uid for each in meta.owners):
        return meta.owners
    owner = OwnerReference(
        NODE_CLAIM.api_version, NODE_CLAIM.name, claim.name, claim.meta.uid, True
    )
    return (*meta.owners, owner)


def _merged(present: tuple[Taint, ...], wanted: tuple[Taint, ...]) -> tuple[Taint, ...]:
    known = {(each.key, each.effect) for each in present}
    return (*present, *(each for each in wanted if (each.key, each.effect) not in known))


class GatePolicy(Enum):
    """When the gate of a registered node is removed."""

    FREE = "Free"
    """Once kube-controller-manager has surely observed the removal of the NoExecute taint."""
    HELD = "Held"
    """Not now: its pods have not been nominated to the node."""
    NOMINATED = "Nominated"
    """At once: its pods have been nominated to the node."""


# Differs: registration of a node: Karpenter removes the NoExecute taint, and
# kube-controller-manager evicts pods that are bound before it observes the removal; Karpy first
# replaces the taint by NoSchedule, then removes it, so that no pod is evicted.
def with_gate(node: NodeRecord, now: datetime, *, is_held: bool = False) -> NodeRecord:
    """Replace the unregistered NoExecute taint by a gate, a NoSchedule taint."""
    taints = tuple(each for each in node.taints if not is_unregistered(each))
    if len(taints) == len(node.taints):
        return node
    if is_held and not any(map(is_disrupted, taints)):
        return replace(node, taints=(*taints, gate(now)))
    if any(map(_is_unready, taints)) or any(map(is_disrupted, taints)):
        # Another NoSchedule taint keeps pods off. kube-controller-manager observes the removal of
        # the NoExecute taint before the removal of that taint.
        return replace(node, taints=taints)
    return replace(node, taints=(*taints, short_gate(now)))


def with_gate_opened(
    node: NodeRecord, policy: GatePolicy, now: datetime
) -> tuple[NodeRecord, timedelta | None]:
    """
    Remove the gate from a node if that is due; also return how long the gate must stay otherwise.

    None is an unknown time. The gate stays until kube-controller-manager has removed the not-ready
    taint, which may take seconds; with GatePolicy.NOMINATED this removes the taint itself.
    """
    since = _gated_since(node)
    if since is None:
        return node, timedelta()
    if policy is GatePolicy.NOMINATED:
        node = without_not_ready_taint(node)
    if policy is GatePolicy.HELD or any(map(_is_unready, node.taints)):
        return node, None
    left = since + TAINT_REMOVAL_LAG - now
    # A moment far in the future was written by a former leader with another clock.
    if timedelta() < left <= 2 * TAINT_REMOVAL_LAG:
        return node, min(left, TAINT_REMOVAL_LAG)
    return _without_gate(node), timedelta()


def is_ready_but_gated(claim: ClaimRecord, node: NodeRecord) -> bool | None:
    """Say whether only the gate keeps pods off a node; None if that is not settled yet."""
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
    """Return the gate; its value is the time of registration in milliseconds since the epoch."""
    return Taint(DISRUPTED_TAINT, NO_SCHEDULE, _stamp(now))


def short_gate(now: datetime) -> Taint:
    """Return a gate with the not-ready key, which kube-controller-manager removes as well."""
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
    """The inputs of `advance` besides the claim."""

    nodes: tuple[NodeRecord, ...] = ()
    """The nodes with the claim's provider ID."""
    pending_hooks: tuple[str, ...] = ()
    """Registration hooks of the provider that have not finished."""
    unpublished_drivers: tuple[str, ...] = ()
    """Device drivers that have not published all their devices."""
    launch_timeout: timedelta = LAUNCH_TIMEOUT
    gate_policy: GatePolicy = GatePolicy.FREE


def advance(claim: ClaimRecord, inputs: ClaimInputs, now: datetime) -> Changes:
    """Register and initialize the node of a launched claim, as far as possible in one reconcile."""
    claim = with_initial_conditions(claim, now)
    if is_decided(claim, LAUNCHED):
        claim = restated(claim, LAUNCHED, now)
    changes = register(
        claim,
        _registrable(inputs, now),
        now,
        inputs.pending_hooks,
        is_held=inputs.gate_policy is not GatePolicy.FREE,
    )
    changes = joined(changes, _opened(changes, inputs, now))
    changes = joined(changes, _initialized(changes.claim or claim, changes.node, inputs, now))
    longest = (
        TIME_TO_INITIALIZE if inputs.gate_policy is GatePolicy.FREE else 2 * TIME_TO_INITIALIZE
    )
    if changes.has_registered and (pause := pause_after(changes, now, longest)):
        again = min(pause, changes.requeue_after or pause)
        changes = Changes(claim, changes.node, notices=changes.notices, requeue_after=again)
    return joined(changes, check_liveness(changes.claim or claim, now, inputs.launch_timeout))


def _registrable(inputs: ClaimInputs, now: datetime) -> tuple[NodeRecord, ...]:
    """Return the nodes to register now; a held node that is not ready registers a moment later."""
    if (
        inputs.gate_policy is not GatePolicy.HELD
        or len(inputs.nodes) != 1
        or inputs.nodes[0].is_ready
    ):
        return inputs.nodes
    created = inputs.nodes[0].meta.created
    return inputs.nodes if created is None or now >= created + TIME_TO_READY else ()


def _opened(changes: Changes, inputs: ClaimInputs, now: datetime) -> Changes:
    """Remove the gate of a registered node, if that is due."""
    if changes.claim is None or not changes.claim.conditions.is_true(REGISTERED):
        return Changes()
    if len(inputs.nodes) != 1:
        return Changes()
    # The node is patched anyway: remove the not-ready taint in the same patch.
    given = (
        without_not_ready_taint(changes.node)
        if changes.node and inputs.gate_policy is GatePolicy.HELD
        else changes.node
    )
    node, left = with_gate_opened(given or inputs.nodes[0], inputs.gate_policy, now)
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
    # The first consistency check joins this write.
    found = check_consistency(after, nodes[0], now)
    return joined(changes, replace(found, requeue_after=None))


# Differs: the conditions Registered and Initialized of a NodeClaim: Karpenter writes the second one
# a moment after the first; Karpy writes both in one patch if the node is initialized soon, because
# each write on a NodeClaim is expensive.
def pause_after(
    changes: Changes, now: datetime, longest: timedelta = TIME_TO_INITIALIZE
) -> timedelta:
    """Return how long to delay the write of Registered on a claim."""
    node, claim = changes.node, changes.claim
    unmet = claim.conditions.get(INITIALIZED) if claim is not None else None
    if node is None or node.meta.created is None or unmet is None or unmet.reason not in _TRANSIENT:
        return timedelta()
    return max(node.meta.created + longest - now, timedelta())
