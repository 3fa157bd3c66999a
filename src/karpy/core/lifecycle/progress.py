"""How far a NodeClaim has come: launched, registered, initialized, or too late."""

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
from karpy.core.lifecycle.registration import Door, opened, register, relieved
from karpy.model.records import ClaimRecord, NodeRecord

TIME_TO_INITIALIZE: Final = timedelta(seconds=10)
"""A busy kube-controller-manager takes this long to see that a new node is ready."""
TIME_TO_BOOT: Final = timedelta(seconds=5)
"""Within that a node that comes ready is ready."""
_PASSING: Final = frozenset({"NodeNotReady", "KnownEphemeralTaintsExist"})
"""What a node lacks that will be there by itself."""


class Scene(Struct, frozen=True, gc=False):
    """What there is of a claim besides itself."""

    nodes: tuple[NodeRecord, ...] = ()
    """Those with the claim's provider ID."""
    pending_hooks: tuple[str, ...] = ()
    """What the provider waits for before the node may register."""
    unpublished_drivers: tuple[str, ...] = ()
    """Device drivers that have not told all their devices yet."""
    launch_timeout: timedelta = LAUNCH_TIMEOUT
    door: Door = Door.FREE


def advance(claim: ClaimRecord, scene: Scene, now: datetime) -> Changes:
    """Bring a claim as far as it can be, its launch having been tried; always all steps."""
    claim = begun(claim, now)
    if is_decided(claim, LAUNCHED):
        claim = restated(claim, LAUNCHED, now)
    outcome = register(claim, _registrable(scene, now), now, scene.pending_hooks)
    outcome = joined(outcome, _opened(outcome, scene, now))
    outcome = joined(outcome, _initialized(outcome.claim or claim, outcome.node, scene, now))
    patience = TIME_TO_INITIALIZE if scene.door is Door.FREE else 2 * TIME_TO_INITIALIZE
    if outcome.has_registered and (pause := pause_after(outcome, now, patience)):
        again = min(pause, outcome.requeue_after or pause)
        outcome = Changes(claim, outcome.node, notices=outcome.notices, requeue_after=again)
    return joined(outcome, check_liveness(outcome.claim or claim, now, scene.launch_timeout))


def _registrable(scene: Scene, now: datetime) -> tuple[NodeRecord, ...]:
    """Return the nodes of a claim, but none that is held anyway and will be ready in a moment."""
    if scene.door is not Door.HELD or len(scene.nodes) != 1 or scene.nodes[0].is_ready:
        return scene.nodes
    made = scene.nodes[0].meta.created
    return scene.nodes if made is None or now >= made + TIME_TO_BOOT else ()


def _opened(outcome: Changes, scene: Scene, now: datetime) -> Changes:
    """Let pods onto a registered node, if it may open."""
    if outcome.claim is None or not outcome.claim.conditions.is_true(REGISTERED):
        return Changes()
    if len(scene.nodes) != 1:
        return Changes()
    # What is written anyway may as well take off what others would have to.
    given = relieved(outcome.node) if outcome.node and scene.door is Door.HELD else outcome.node
    node, left = opened(given or scene.nodes[0], scene.door, now)
    is_changed = node != scene.nodes[0]
    return Changes(node=node if is_changed else None, requeue_after=left or None)


def _initialized(
    claim: ClaimRecord, node: NodeRecord | None, scene: Scene, now: datetime
) -> Changes:
    nodes = scene.nodes if node is None else (node,)
    outcome = initialize(claim, nodes, now, scene.unpublished_drivers)
    after = outcome.claim or claim
    if claim.conditions.is_true(INITIALIZED) or not after.conditions.is_true(INITIALIZED):
        return outcome
    # Upkeep checks this again and again; the first time needs no write of its own.
    found = check_consistency(after, nodes[0], now)
    return joined(outcome, replace(found, requeue_after=None))


# Differs: Karpenter writes on a claim that its node is registered, and in a moment that it is
# initialized. What takes no longer than that is said at once: every write on a claim is dear.
def pause_after(
    outcome: Changes, now: datetime, patience: timedelta = TIME_TO_INITIALIZE
) -> timedelta:
    """Say how long a claim may keep silent on a node that has just registered."""
    node, claim = outcome.node, outcome.claim
    lack = claim.conditions.get(INITIALIZED) if claim is not None else None
    if node is None or node.meta.created is None or lack is None or lack.reason not in _PASSING:
        return timedelta()
    return max(node.meta.created + patience - now, timedelta())
