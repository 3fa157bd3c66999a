from msgspec.structs import replace

from karpy.core.lifecycle.outcomes import Count
from karpy.core.pools.costs import Costs
from karpy.core.pools.gauges import pool_gauges
from tests.core.pools.records import pool


def test_a_pool_is_told_by_its_limits_its_usage_and_its_cost() -> None:
    web = replace(
        pool(limits={"cpu": 10_500, "nodes": 3}),
        resources={"ephemeral-storage": 1024, "cpu": 4000},
    )

    gauges = pool_gauges([web, pool("batch")], Costs({"web": 2_500_000}))

    assert gauges == (
        Count("nodepools_cost_total", {"nodepool": "web"}, 2.5),
        Count("nodepools_limit", {"resource_type": "cpu", "nodepool": "web"}, 10.5),
        Count("nodepools_limit", {"resource_type": "nodes", "nodepool": "web"}, 3.0),
        Count("nodepools_usage", {"resource_type": "cpu", "nodepool": "web"}, 4.0),
        Count("nodepools_usage", {"resource_type": "ephemeral_storage", "nodepool": "web"}, 1024.0),
        Count("nodepools_cost_total", {"nodepool": "batch"}, 0.0),
    )
