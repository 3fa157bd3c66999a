"""NodePools that keep a fixed number of nodes: how many to make, which to give up."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.core.disruption.cost import disruption_cost
from karpy.core.lifecycle.outcomes import Remark
from karpy.core.lifecycle.protection import protection_of
from karpy.core.scheduling.templates import SIMULATED, template_requirements
from karpy.model.conditions import READY
from karpy.model.pools import Headcount, NodePool
from karpy.model.records import ClaimRecord, PoolRecord
from karpy.model.refusals import Constraint, Exclusion, NodeRefusal, Obstacle
from karpy.model.resources import NODES
from karpy.model.surroundings import NodeState
from karpy.model.verdicts import Launch

PERIOD: Final = timedelta(minutes=1)
LIMITED_PERIOD: Final = timedelta(seconds=30)
UNSYNCED_PERIOD: Final = timedelta(seconds=1)
CREATES_MAX: Final = 1000
"""At a time; once these claims are there the others have their turn."""


class Adjustment(Struct, frozen=True, gc=False):
    """What brings a pool to its number of nodes."""

    creates: int = 0
    """How many claims to make from the template."""
    withheld: Exclusion | None = None
    """How many claims are lacking that cannot be made, and why."""
    deletes: tuple[str, ...] = ()
    """Claims to give up."""
    refusals: tuple[NodeRefusal, ...] = ()
    """Why the other nodes stay, if some are given up."""
    remarks: tuple[Remark, ...] = ()
    look_again: timedelta | None = None


def count_claims(
    pool: str, claims: Iterable[ClaimRecord], disrupting: Collection[str] = ()
) -> Headcount:
    """Count the claims of a pool; `disrupting` are those that a rollout is about."""
    counts = {"active": 0, "disrupting": 0, "deleting": 0}
    for claim in claims:
        if claim.pool == pool:
            if claim.meta.is_deleting:
                counts["deleting"] += 1
            else:
                counts["disrupting" if claim.name in disrupting else "active"] += 1
    return Headcount(**counts)


def grant(pool: PoolRecord, heads: Headcount, wanted: int, reserved: int = 0) -> int:
    """Say how many of the wanted nodes the pool's limit allows; `reserved` are on their way."""
    limit = pool.limits.get(NODES)
    if limit is None:
        return max(0, wanted)
    return max(0, min(wanted, limit - heads.total - reserved))


def fill_up(
    pool: PoolRecord, heads: Headcount, *, is_synced: bool, reserved: int = 0
) -> Adjustment:
    """Make the nodes that a pool lacks."""
    replicas = pool.replicas
    if replicas is None or pool.meta.is_deleting:
        return Adjustment()
    lacking = shortage(pool, heads)
    if not pool.conditions.is_true(READY):
        return Adjustment(withheld=_withheld(Constraint.POOL_NOT_READY, lacking))
    if not is_synced:
        # What is there but was not seen yet would be made again.
        return Adjustment(look_again=UNSYNCED_PERIOD)
    if not lacking:
        return Adjustment(look_again=PERIOD)
    wanted = replicas - heads.active
    count = grant(pool, heads, wanted, reserved)
    withheld = _withheld(Constraint.NODE_LIMIT, wanted - count)
    if not count:
        remark = Remark("nodepool node limit reached", {"NodePool": pool.name})
        return Adjustment(withheld=withheld, remarks=(remark,), look_again=LIMITED_PERIOD)
    remark = _remark(pool, heads, "provision", "provisioning", count)
    count = min(count, CREATES_MAX)
    return Adjustment(creates=count, withheld=withheld, remarks=(remark,), look_again=PERIOD)


def template_launch(pool: NodePool) -> Launch:
    """Return a claim made from a pool's template alone: for no pod, and of no type yet."""
    requirements = template_requirements(pool)
    kept = {key: each for key, each in requirements.items() if key not in SIMULATED}
    return Launch(pool.name, pool.name, (), kept, {}, ())


def shortage(pool: PoolRecord, heads: Headcount) -> int:
    """Say how many nodes a pool has too few of."""
    if pool.replicas is None or pool.meta.is_deleting:
        return 0
    return max(0, pool.replicas - heads.active - heads.disrupting)


def surplus(pool: PoolRecord, heads: Headcount) -> int:
    """Say how many nodes a pool has too many of."""
    if pool.replicas is None or pool.meta.is_deleting:
        return 0
    return max(0, heads.active - pool.replicas)


def thin_out(
    pool: PoolRecord, heads: Headcount, nodes: Sequence[NodeState], now: datetime
) -> Adjustment:
    """Give up the nodes that a pool has too many of, those first that nobody misses."""
    if pool.replicas is None or pool.meta.is_deleting:
        return Adjustment()
    excess = surplus(pool, heads)
    if not excess:
        return Adjustment(look_again=PERIOD)
    remark = _remark(pool, heads, "deprovision", "deprovisioning", excess)
    chosen = tuple(_least_missed(pool.name, nodes, now)[:excess])
    refusals = _staying(pool.name, nodes, chosen)
    return Adjustment(deletes=chosen, refusals=refusals, remarks=(remark,), look_again=PERIOD)


def _least_missed(pool: str, nodes: Sequence[NodeState], now: datetime) -> list[str]:
    """Return the claims of a pool: those without a machine, the empty ones, the cheap ones."""
    ranked = []
    for state in nodes:
        claim = state.claim
        if claim is None or claim.pool != pool or state.is_leaving:
            continue
        cost = disruption_cost(state.tenants, claim, now)
        if not claim.provider_id:
            rank, cost = 0, cost * 0
        elif _is_empty(state, now):
            rank, cost = 1, cost * 0
        else:
            rank = 3 if _is_protected(state, now) else 2
        ranked.append((rank, cost, claim.name))
    return [name for _, _, name in sorted(ranked)]


def _staying(
    pool: str, nodes: Sequence[NodeState], chosen: Collection[str]
) -> tuple[NodeRefusal, ...]:
    """Say why the other nodes of a pool are not given up."""
    return tuple(
        NodeRefusal(Obstacle.LEAVING if each.is_leaving else Obstacle.POOL_SIZE, each.name)
        for each in sorted(nodes, key=lambda each: each.name)
        if each.claim is not None and each.claim.pool == pool and each.claim.name not in chosen
    )


def _withheld(why: Constraint, nodes: int) -> Exclusion | None:
    return Exclusion(why, "", nodes) if nodes else None


def _is_empty(state: NodeState, now: datetime) -> bool:
    return all(each.pod.is_daemon for each in state.tenants) and not _is_protected(state, now)


def _is_protected(state: NodeState, now: datetime) -> bool:
    return any(protection_of(each.pod, now).is_active for each in state.tenants)


def _remark(pool: PoolRecord, heads: Headcount, verb: str, doing: str, count: int) -> Remark:
    fields = {
        "NodePool": pool.name,
        "current": str(heads.active),
        "desired": str(pool.replicas),
        f"{verb}-count": str(count),
    }
    return Remark(f"{doing} nodeclaims to satisfy replica count", fields)
