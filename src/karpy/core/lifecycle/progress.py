"""How far a NodeClaim has come: launched, registered, initialized, or too late."""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.conditions import (
    INITIALIZED,
    LAUNCHED,
    begun,
    is_decided,
    restated,
)
from karpy.core.lifecycle.consistency import check_consistency
from karpy.core.lifecycle.deadlines import LAUNCH_TIMEOUT, check_liveness
from karpy.core.lifecycle.initialization import initialize
from karpy.core.lifecycle.outcomes import Outcome, joined
from karpy.core.lifecycle.registration import register
from karpy.model.records import ClaimRecord, NodeRecord


class Scene(Struct, frozen=True, gc=False):
    """What there is of a claim besides itself."""

    nodes: tuple[NodeRecord, ...] = ()
    """Those with the claim's provider ID."""
    pending_hooks: tuple[str, ...] = ()
    """What the provider waits for before the node may register."""
    unpublished_drivers: tuple[str, ...] = ()
    """Device drivers that have not told all their devices yet."""
    launch_timeout: timedelta = LAUNCH_TIMEOUT


def advance(claim: ClaimRecord, scene: Scene, now: datetime) -> Outcome:
    """Bring a claim as far as it can be, its launch having been tried; always all three steps."""
    claim = begun(claim, now)
    if is_decided(claim, LAUNCHED):
        claim = restated(claim, LAUNCHED, now)
    outcome = register(claim, scene.nodes, now, scene.pending_hooks)
    claim = outcome.claim or claim
    nodes = scene.nodes if outcome.node is None else (outcome.node,)
    is_new = not claim.conditions.is_true(INITIALIZED)
    outcome = joined(outcome, initialize(claim, nodes, now, scene.unpublished_drivers))
    claim = outcome.claim or claim
    if is_new and claim.conditions.is_true(INITIALIZED):
        # Upkeep checks this again and again; the first time needs no write of its own.
        found = check_consistency(claim, nodes[0], now)
        outcome = joined(outcome, replace(found, look_again=None))
    return joined(outcome, check_liveness(outcome.claim or claim, now, scene.launch_timeout))
