"""What the nodes of a NodePool add up to."""

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from karpy.core.lifecycle.outcomes import Outcome
from karpy.model.nodes import Node
from karpy.model.records import PoolRecord
from karpy.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, NODES, PODS, Resources, add

PERIOD: Final = timedelta(seconds=5)
UNSYNCED_PERIOD: Final = timedelta(seconds=1)
_ALWAYS_TOLD: Final[Resources] = dict.fromkeys((CPU, MEMORY, PODS, EPHEMERAL_STORAGE, NODES), 0)


def usage_by_pool(nodes: Iterable[Node], marked: Collection[str] = ()) -> dict[str, Resources]:
    """
    Add up the capacity of each pool's nodes, their number among it.

    Nodes that are going do not count, nor do those marked for it (by claim), nor claims that have
    no machine yet.
    """
    totals: dict[str, Resources] = {}
    for node in nodes:
        if node.pool and not node.is_deleting and node.claim not in marked and _has_machine(node):
            totals[node.pool] = add(totals.get(node.pool, {}), node.capacity)
    return totals


def judge_usage(pool: PoolRecord, usage: Mapping[str, Resources] | None) -> Outcome:
    """Write on a pool what its nodes add up to; None is not known yet."""
    if usage is None:
        # Too low a figure would let the pool grow beyond its limits.
        return Outcome(look_again=UNSYNCED_PERIOD)
    resources = {**_ALWAYS_TOLD, **usage.get(pool.name, {})}
    return Outcome(
        pool=replace(pool, resources=resources, nodes=resources[NODES]), look_again=PERIOD
    )


def _has_machine(node: Node) -> bool:
    return any(name != NODES for name in node.capacity)
