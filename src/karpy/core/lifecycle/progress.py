"""The steps of a NodeClaim after its launch: registration, initialization, liveness."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes, joined
from karpy.core.lifecycle.conditions import (
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
    begun,
    is_decided,
    restated,
)
from karpy.core.lifecycle.expiration import LAUNCH_TIMEOUT, check_liveness
from karpy.core.lifecycle.initialization import check_consistency, initialize
from karpy.core.lifecycle.registration import (
    GatePolicy,
    register,
    with_gate_opened,
    without_not_ready_taint,
)
from karpy.model.records import ClaimRecord, NodeRecord

TIME_TO_INITIALIZE: Final = timedelta(seconds=10)
"""A busy kube-controller-manager takes this long to see that a new node is ready."""
TIME_TO_BOOT: Final = timedelta(seconds=5)
"""A node that starts normally is ready within this time."""
_PASSING: Final = frozenset({"NodeNotReady", "KnownEphemeralTaintsExist"})
"""Reasons for not being initialized that pass without a change by Karpy."""


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
    changes = register(claim, _registrable(inputs, now), now, inputs.pending_hooks)
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
