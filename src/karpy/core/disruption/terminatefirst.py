"""Terminate-first: nodes whose replacement needs their own reservation or slot of the limit."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.budgets import Allowance
from karpy.core.disruption.candidates import Candidate
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.nodepool.staticcapacity import count_claims, grant
from karpy.core.scheduling.templates import template_requirements
from karpy.core.scheduling.whatif import Relocation
from karpy.model.conditions import READY
from karpy.model.instances import Catalog, InstanceType
from karpy.model.labels import CAPACITY_TYPE, RESERVED
from karpy.model.pods import Pod
from karpy.model.pools import Headcount, NodePool
from karpy.model.requirements import why_incompatible
from karpy.model.resources import NODES
from karpy.model.settings import ReservedMode

NO_RESERVED_CAPACITY: Final = "no-reserved-capacity"
STATIC_AT_LIMIT: Final = "static-at-limit"
AT_LIMIT: Final = "static NodePool is at its node limit and cannot stage a replacement"
FULL: Final = "static NodePool's capacity reservations are full and cannot stage a replacement"
NOT_READY: Final = "static NodePool is not ready and cannot stage a replacement"


class StaticPlan(Struct, frozen=True, gc=False):
    """How drifted or broken nodes of a static NodePool can be replaced."""

    slots: int = 0
    """How many replacements may be launched before the old nodes are deleted."""
    is_full: bool = False
    """Whether the pool can only use reservations, and no machine is left of these."""
    terminates_first: str = ""
    """Why nodes may be deleted before their replacement is launched; empty if they may not."""
    why_not: str = AT_LIMIT
    """Why a node that gets no slot and may not be deleted first is refused."""


def with_credit(catalog: Catalog, reservation: str) -> Catalog:
    """Return a catalog with one more machine in a reservation: that of a disrupted node."""

    def credited(types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
        return tuple(
            replace(
                each,
                offerings=tuple(
                    replace(offering, reservation_capacity=offering.reservation_capacity + 1)
                    if offering.reservation_id == reservation
                    else offering
                    for offering in each.offerings
                ),
            )
            if any(offering.reservation_id == reservation for offering in each.offerings)
            else each
            for each in types
        )

    by_pool = {pool: credited(types) for pool, types in catalog.by_pool.items()}
    return replace(catalog, types=credited(catalog.types), by_pool=by_pool)


def relocate_with_credit(
    candidate: Candidate, evaluation: Evaluation, moved: Sequence[Pod] | None = None
) -> Relocation | None:
    """
    Find places for a candidate's pods, with the candidate's own reserved machine as free capacity.

    Returns None if the candidate uses no reservation, or if a pod still has no place.
    """
    reservation = reservation_of(candidate, evaluation)
    if not reservation:
        return None
    found = evaluation.what_if.ask(
        {candidate.name},
        moved=moved,
        catalog=with_credit(evaluation.snapshot.catalog, reservation),
        reserved_mode=ReservedMode.STRICT,
        stops_early=False,
    )
    return None if found.unplaced else replace(found, launches=())


def reservation_of(candidate: Candidate, evaluation: Evaluation) -> str:
    """Return the reservation that a node uses; empty if there is none, or none any more."""
    labels, catalog = candidate.node.labels, evaluation.snapshot.catalog
    name = labels.get(catalog.reservation_label, "")
    if labels.get(CAPACITY_TYPE) != RESERVED or not name:
        return ""
    is_offered = any(
        offering.reservation_id == name and offering.is_available
        for each in catalog.types_for(candidate.pool.name)
        for offering in each.offerings
    )
    return name if is_offered else ""


def headcount_of(pool: NodePool, evaluation: Evaluation) -> Headcount:
    """Count the NodeClaims of a pool; those of a command count as disrupting."""
    snapshot = evaluation.snapshot
    claims = [each.claim_record for each in snapshot.nodes if each.claim_record is not None]
    return count_claims(pool.name, claims, snapshot.in_command)


def why_shrinking(pool: NodePool, heads: Headcount) -> str:
    """Return the text `5 nodes, 3 wanted` if a static pool has too many nodes; otherwise empty."""
    replicas = 0 if pool.record is None else pool.record.replicas or 0
    nodes = heads.active + heads.disrupting
    return f"{nodes} nodes, {replicas} wanted" if nodes > replicas else ""


# Differs: terminate-first drift while the replacement of an earlier node is not initialized:
# Karpenter does not count the missing node against budgets, and may delete all nodes of a NodePool
# before the first replacement is ready; Karpy counts the missing node.
def with_missing_nodes(allowance: Allowance, pool: NodePool, evaluation: Evaluation) -> Allowance:
    """Return the allowance with the nodes that the pool lacks counted as consumed."""
    of_pool = [each for each in evaluation.snapshot.nodes if each.claim and each.pool == pool.name]
    remaining = [each for each in of_pool if not each.is_deleting]
    record = pool.record
    if record is None or record.replicas is None:
        missing = sum(not each.is_initialized for each in remaining)
        return replace(allowance, consumed=allowance.consumed + missing)
    wanted = min(record.replicas, record.limits.get(NODES, record.replicas))
    working = sum(each.is_initialized for each in remaining)
    return replace(allowance, consumed=max(allowance.consumed, wanted - working))


def plan_static(
    pool: NodePool,
    heads: Headcount,
    evaluation: Evaluation,
    *,
    wanted: int,
    may_terminate_first: bool,
) -> StaticPlan:
    """Return how `wanted` nodes of a static pool can be replaced."""
    record = pool.record
    # Differs: static drift in a NodePool that is not ready: Karpenter launches replacements that
    # get no machine, again and again; Karpy waits until the NodePool is ready.
    if record is None or not record.conditions.is_true(READY) or pool.is_deleting:
        return StaticPlan(why_not=NOT_READY)
    if may_terminate_first and are_reservations_full(pool, evaluation.snapshot.catalog):
        return StaticPlan(0, True, NO_RESERVED_CAPACITY, FULL)
    slots = grant(record, heads, wanted)
    return StaticPlan(
        slots, terminates_first=STATIC_AT_LIMIT if may_terminate_first and not slots else ""
    )


def are_reservations_full(pool: NodePool, catalog: Catalog) -> bool:
    """Say whether a pool can only use reservations, and no machine is left of these."""
    wanted = template_requirements(pool)
    may_lack = catalog.well_known | {catalog.reservation_label}
    offerings = [
        offering
        for each in catalog.types_for(pool.name)
        if why_incompatible(wanted, each.requirements, may_lack) is None
        for offering in each.offerings
        if why_incompatible(wanted, offering.requirements, may_lack) is None
    ]
    # Differs: terminate-first drift in a static NodePool without a compatible offering: Karpenter
    # treats the reservations as full and deletes the nodes first; Karpy launches the replacement
    # first, as for any NodePool.
    return bool(offerings) and all(
        each.is_reserved and not each.is_launchable for each in offerings
    )
