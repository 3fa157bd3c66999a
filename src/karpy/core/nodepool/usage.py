"""Sums of resources and prices, by node and by NodePool, and their metrics."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes, Count, Remark
from karpy.model.instances import MICROS_PER_DOLLAR, Catalog
from karpy.model.labels import CAPACITY_TYPE, INITIALIZED, INSTANCE_TYPE, NODE_POOL, ZONE
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, Pod
from karpy.model.records import ClaimRecord, NodeRecord, PoolRecord
from karpy.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, NODES, PODS, Resources, add

PERIOD: Final = timedelta(seconds=5)
UNSYNCED_PERIOD: Final = timedelta(seconds=1)
_ALWAYS_REPORTED: Final[Resources] = dict.fromkeys((CPU, MEMORY, PODS, EPHEMERAL_STORAGE, NODES), 0)
ERRORS: Final = "nodepools_cost_tracker_errors_total"
_POOL: Final = "NodePool"

_Prices: TypeAlias = dict[tuple[str, str, str], int]

LIMIT: Final = "nodepools_limit"
USAGE: Final = "nodepools_usage"
COST: Final = "nodepools_cost_total"
GAUGES: Final = (LIMIT, USAGE, COST)
_MILLI: Final = 1000


def usage_by_pool(nodes: Iterable[Node], in_command: Collection[str] = ()) -> dict[str, Resources]:
    """
    Add up the capacity of each pool's nodes; the number of nodes is one of the resources.

    Not counted are deleting nodes, nodes of a command (`in_command`, names of NodeClaims), and
    NodeClaims without a machine.
    """
    totals: dict[str, Resources] = {}
    for node in nodes:
        if node.pool and not node.is_deleting and node.claim not in in_command and node.has_machine:
            totals[node.pool] = add(totals.get(node.pool, {}), node.capacity)
    return totals


def judge_usage(pool: PoolRecord, usage: Mapping[str, Resources] | None) -> Changes:
    """Set resources and the number of nodes in the status of a pool, once `usage` is known."""
    if usage is None:
        # A sum over a part of the nodes would let the pool grow beyond its limits.
        return Changes(requeue_after=UNSYNCED_PERIOD)
    resources = {**_ALWAYS_REPORTED, **usage.get(pool.name, {})}
    return Changes(
        pool=replace(pool, resources=resources, nodes=resources[NODES]), requeue_after=PERIOD
    )


class PoolCosts(Struct, frozen=True, gc=False):
    """Micro-dollars per hour by pool; a NodeClaim with an unknown price counts as 0."""

    by_pool: Mapping[str, int]
    remarks: tuple[Remark, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.by_pool.values())


def add_up_costs(claims: Iterable[ClaimRecord], catalog: Catalog) -> PoolCosts:
    """Add up the prices of NodeClaims by pool, as far as their offering is known."""
    prices: dict[str, _Prices] = {}
    totals: dict[str, int] = {}
    unknown: dict[tuple[str, str, str, str], None] = {}
    for claim in sorted(claims, key=lambda each: each.name):
        labels = claim.meta.labels
        pool = labels.get(NODE_POOL, "")
        offering = tuple(labels.get(key, "") for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE))
        name, zone, capacity_type = offering
        if not (pool and name and zone and capacity_type):
            continue
        if pool not in prices:
            prices[pool] = _prices(catalog, pool)
        price = prices[pool].get((name, zone, capacity_type))
        if price is None:
            unknown[pool, name, zone, capacity_type] = None
        totals[pool] = totals.get(pool, 0) + (price or 0)
    return PoolCosts(totals, tuple(_unpriced(*each) for each in unknown))


def new_cost_errors(costs: PoolCosts, before: PoolCosts) -> Changes:
    """Return metrics and log lines for prices that have become unknown since `before`."""
    news = tuple(each for each in costs.remarks if each not in before.remarks)
    counts = (Count(ERRORS, {"nodepool": each.fields[_POOL]}) for each in news)
    return Changes(counts=tuple(counts), remarks=news)


def _prices(catalog: Catalog, pool: str) -> _Prices:
    prices: _Prices = {}
    for each in catalog.types_for(pool):
        for offering in each.offerings:
            # If several offerings have the same labels, the first one counts.
            prices.setdefault((each.name, offering.zone, offering.capacity_type), offering.price)
    return prices


def _unpriced(pool: str, name: str, zone: str, capacity_type: str) -> Remark:
    fields = {
        _POOL: pool,
        "instance-type": name,
        "zone": zone,
        "capacity-type": capacity_type,
    }
    return Remark("offering price unknown, its nodes count as free", fields, is_error=True)


def pool_gauges(pools: Iterable[PoolRecord], costs: PoolCosts) -> tuple[Count, ...]:
    """Return the limits, usage and cost of pools as gauges: every series of `GAUGES`."""
    return tuple(count for pool in pools for count in _gauges_of(pool, costs))


def _gauges_of(pool: PoolRecord, costs: PoolCosts) -> Iterator[Count]:
    dollars = costs.by_pool.get(pool.name, 0) / MICROS_PER_DOLLAR
    yield Count(COST, {"nodepool": pool.name}, dollars)
    yield from _amounts(LIMIT, pool.name, pool.limits)
    yield from _amounts(USAGE, pool.name, pool.resources)


def _amounts(metric: str, pool: str, amounts: Resources) -> Iterator[Count]:
    for name, amount in sorted(amounts.items()):
        labels = {"resource_type": name.lower().replace("-", "_"), "nodepool": pool}
        yield Count(metric, labels, amount / _MILLI if name == CPU else float(amount))


class NodeSums(Struct, frozen=True, gc=False):
    """The resources of one node; terminal pods do not count."""

    allocatable: Resources = {}
    overhead: Resources = {}
    """Capacity minus allocatable."""
    requests: Resources = {}
    limits: Resources = {}
    daemon_requests: Resources = {}
    daemon_limits: Resources = {}
    expected: Resources = {}
    """Allocatable; taken from the NodeClaim until the node is initialized."""


def sum_up(node: NodeRecord, claim: ClaimRecord | None, pods: Iterable[Pod]) -> NodeSums:
    """Return the sums of one node and its pods."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    daemon_requests: dict[str, int] = {}
    daemon_limits: dict[str, int] = {}
    for pod in pods:
        if pod.is_terminal:
            continue
        _add(requests, pod.requests)
        _add(limits, pod.limits)
        _add(limits, _ITSELF)
        if pod.owners and pod.is_owned_by(DAEMON_SET):
            _add(daemon_requests, pod.requests)
            _add(daemon_limits, pod.limits)
            _add(daemon_limits, _ITSELF)
    allocatable = node.allocatable
    overhead = {name: amount - allocatable.get(name, 0) for name, amount in node.capacity.items()}
    expected = allocatable
    if claim is not None and node.meta.labels.get(INITIALIZED) != "true":
        expected = {
            **claim.allocatable,
            **{name: each for name, each in allocatable.items() if each},
        }
    return NodeSums(
        allocatable, overhead, requests, limits, daemon_requests, daemon_limits, expected
    )


def find_utilization(nodes: Iterable[NodeSums]) -> dict[str, float]:
    """Return the share of all allocatable resources that pods request, in percent by resource."""
    expected: dict[str, int] = {}
    requests: dict[str, int] = {}
    for each in nodes:
        _add(expected, each.expected)
        _add(requests, each.requests)
    return {
        name: 100 * requests.get(name, 0) / amount for name, amount in expected.items() if amount
    }


def in_units(resources: Resources) -> dict[str, float]:
    """Convert resources for metrics: CPU in cores, names in lower case with underscores."""
    return {resource_label(name): _in_units(name, each) for name, each in resources.items()}


def resource_label(name: str) -> str:
    """Write the name of a resource as metrics do: `ephemeral_storage`."""
    return name.lower().replace("-", "_")


def _in_units(name: str, amount: int) -> float:
    if name == CPU:
        return amount / _MILLI
    # Resources such as `requests.cpu` count in thousandths, too, but are reported in whole cores.
    return float(-(-amount // _MILLI)) if name.endswith(".cpu") else float(amount)


_ITSELF: Final[Mapping[str, int]] = {PODS: 1}


def _add(total: dict[str, int], more: Resources) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
