"""Static NodePools: how many nodes they have, lack, and may launch."""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Final

from msgspec import Struct

from karpy.core.lifecycle.changes import Remark
from karpy.core.scheduling.templates import SIMULATED, template_requirements
from karpy.model.conditions import READY
from karpy.model.pools import Headcount, NodePool
from karpy.model.records import ClaimRecord, PoolRecord
from karpy.model.resources import NODES
from karpy.model.verdicts import Constraint, Exclusion, Launch, NodeRefusal

PERIOD: Final = timedelta(minutes=1)
LIMITED_PERIOD: Final = timedelta(seconds=30)
UNSYNCED_PERIOD: Final = timedelta(seconds=1)
CREATES_MAX: Final = 1000
"""The most NodeClaims to create at a time; more are created once these exist."""


class Adjustment(Struct, frozen=True, gc=False):
    """The launches or deletions that bring a pool to its number of replicas."""

    creates: int = 0
    """How many NodeClaims to create from the template."""
    withheld: Exclusion | None = None
    """How many missing NodeClaims cannot be created, and why."""
    deletes: tuple[str, ...] = ()
    """Names of NodeClaims to delete."""
    refusals: tuple[NodeRefusal, ...] = ()
    """Why the other nodes are kept, if nodes are deleted."""
    remarks: tuple[Remark, ...] = ()
    requeue_after: timedelta | None = None


def count_claims(
    pool: str, claims: Iterable[ClaimRecord], disrupting: Collection[str] = ()
) -> Headcount:
    """Count the NodeClaims of a pool; `disrupting` names the NodeClaims of disruption commands."""
    counts = {"active": 0, "disrupting": 0, "deleting": 0}
    for claim in claims:
        if claim.pool == pool:
            if claim.meta.is_deleting:
                counts["deleting"] += 1
            else:
                counts["disrupting" if claim.name in disrupting else "active"] += 1
    return Headcount(**counts)


def grant(pool: PoolRecord, heads: Headcount, wanted: int, reserved: int = 0) -> int:
    """Return how many wanted nodes the node limit allows; `reserved` nodes are being launched."""
    limit = pool.limits.get(NODES)
    if limit is None:
        return max(0, wanted)
    return max(0, min(wanted, limit - heads.total - reserved))


def fill_up(
    pool: PoolRecord, heads: Headcount, *, is_synced: bool, reserved: int = 0
) -> Adjustment:
    """Return how many missing NodeClaims to create in a pool."""
    replicas = pool.replicas
    if replicas is None or pool.meta.is_deleting:
        return Adjustment()
    lacking = shortage(pool, heads)
    if not pool.conditions.is_true(READY):
        return Adjustment(withheld=_withheld(Constraint.POOL_NOT_READY, lacking))
    if not is_synced:
        # A NodeClaim that the cache does not have yet would be created twice.
        return Adjustment(requeue_after=UNSYNCED_PERIOD)
    if not lacking:
        return Adjustment(requeue_after=PERIOD)
    wanted = replicas - heads.active
    count = grant(pool, heads, wanted, reserved)
    withheld = _withheld(Constraint.NODE_LIMIT, wanted - count)
    if not count:
        remark = Remark("nodepool node limit reached", {"NodePool": pool.name})
        return Adjustment(withheld=withheld, remarks=(remark,), requeue_after=LIMITED_PERIOD)
    remark = remark_of(pool, heads, "provision", "provisioning", count)
    count = min(count, CREATES_MAX)
    return Adjustment(creates=count, withheld=withheld, remarks=(remark,), requeue_after=PERIOD)


def template_launch(pool: NodePool) -> Launch:
    """Return a launch from the template of a pool, without pods and instance types."""
    requirements = template_requirements(pool)
    kept = {key: each for key, each in requirements.items() if key not in SIMULATED}
    return Launch(pool.name, pool.name, (), kept, {}, ())


def shortage(pool: PoolRecord, heads: Headcount) -> int:
    """Return how many nodes a pool lacks."""
    if pool.replicas is None or pool.meta.is_deleting:
        return 0
    return max(0, pool.replicas - heads.active - heads.disrupting)


def surplus(pool: PoolRecord, heads: Headcount) -> int:
    """Return how many nodes a pool has beyond `replicas`."""
    if pool.replicas is None or pool.meta.is_deleting:
        return 0
    return max(0, heads.active - pool.replicas)


def _withheld(why: Constraint, nodes: int) -> Exclusion | None:
    return Exclusion(why, "", nodes) if nodes else None


def remark_of(pool: PoolRecord, heads: Headcount, verb: str, doing: str, count: int) -> Remark:
    """Return the log line about nodes that are launched or deleted."""
    fields = {
        "NodePool": pool.name,
        "current": str(heads.active),
        "desired": str(pool.replicas),
        f"{verb}-count": str(count),
    }
    return Remark(f"{doing} nodeclaims to satisfy replica count", fields)
