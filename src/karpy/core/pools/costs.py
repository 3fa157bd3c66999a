"""What the nodes of each NodePool cost per hour."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from karpy.core.lifecycle.outcomes import Count, Outcome, Remark
from karpy.model.instances import Catalog
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE
from karpy.model.records import ClaimRecord

ERRORS: Final = "nodepools_cost_tracker_errors_total"
_POOL: Final = "NodePool"

_Prices: TypeAlias = dict[tuple[str, str, str], int]


class Costs(Struct, frozen=True, gc=False):
    """Micro-dollars per hour by pool; a claim whose price is not known costs nothing."""

    by_pool: Mapping[str, int]
    remarks: tuple[Remark, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.by_pool.values())


def add_up_costs(claims: Iterable[ClaimRecord], catalog: Catalog) -> Costs:
    """Price every claim that knows what and where its machine is."""
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
    return Costs(totals, tuple(_unpriced(*each) for each in unknown))


def cost_news(costs: Costs, before: Costs) -> Outcome:
    """Tell which prices are unknown that were known, or not asked for, before."""
    news = tuple(each for each in costs.remarks if each not in before.remarks)
    counts = (Count(ERRORS, {"nodepool": each.fields[_POOL]}) for each in news)
    return Outcome(counts=tuple(counts), remarks=news)


def _prices(catalog: Catalog, pool: str) -> _Prices:
    prices: _Prices = {}
    for each in catalog.types_for(pool):
        for offering in each.offerings:
            # Of several offerings that a label cannot tell apart the first one counts.
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
