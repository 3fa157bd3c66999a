from datetime import timedelta

from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes, Count, Remark
from karpy.core.nodepool.usage import (
    PoolCosts,
    add_up_costs,
    judge_usage,
    new_cost_errors,
    pool_gauges,
    usage_by_pool,
)
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpy.model.records import ClaimRecord
from tests.builders import catalog, instance_type, node, offering
from tests.core.nodepool.records import claim, pool

GIB = 2**30
TYPES = [
    instance_type("m.large", dollars=2.0, spot_dollars=0.5),
    instance_type("c.large", offerings=[offering("zone-a", dollars=1.0, available=False)]),
]


def test_a_pool_uses_what_its_nodes_have() -> None:
    nodes = [
        node("a", pool="web", cpu="2", memory="4Gi", pods=10),
        node("b", pool="web", cpu="4", memory="8Gi", pods=20, capacity={"gpu": "1"}),
        node("c", pool="batch", cpu="8", memory="8Gi", pods=30),
        node("d", pool=""),
    ]

    usage = usage_by_pool(nodes)

    assert usage == {
        "web": {"cpu": 6000, "memory": 12 * GIB, "pods": 30, "gpu": 1, "nodes": 2},
        "batch": {"cpu": 8000, "memory": 8 * GIB, "pods": 30, "nodes": 1},
    }


def test_the_capacity_of_a_deleting_node_does_not_count() -> None:
    nodes = [node("a", deleting=True), node("b"), node("c")]

    usage = usage_by_pool(nodes, in_command={"b-claim"})

    assert usage["default"]["nodes"] == 1


def test_a_claim_without_a_machine_is_not_used_yet() -> None:
    in_flight = replace(node("a"), capacity={"nodes": 1})

    assert usage_by_pool([in_flight]) == {}


def test_a_pool_without_nodes_says_so_of_every_common_resource() -> None:
    changes = judge_usage(pool(), {})

    nothing = {"cpu": 0, "memory": 0, "pods": 0, "ephemeral-storage": 0, "nodes": 0}
    assert changes == Changes(
        pool=replace(pool(), resources=nothing, nodes=0), requeue_after=timedelta(seconds=5)
    )


def test_what_is_not_known_yet_is_not_written() -> None:
    changes = judge_usage(replace(pool(), nodes=5), None)

    assert changes == Changes(requeue_after=timedelta(seconds=1))


def running(
    name: str, type_: str, capacity_type: str = ON_DEMAND, pool: str = "web"
) -> ClaimRecord:
    labels = {INSTANCE_TYPE: type_, CAPACITY_TYPE: capacity_type, ZONE: "zone-a"}
    return claim(name, pool=pool, labels=labels)


def test_a_pool_costs_what_its_machines_do() -> None:
    claims = [
        running("a", "m.large"),
        running("b", "m.large", SPOT),
        running("c", "m.large", pool="batch"),
    ]

    costs = add_up_costs(claims, catalog(TYPES))

    assert costs == PoolCosts({"web": 2_500_000, "batch": 2_000_000})
    assert costs.total == 4_500_000


def test_a_machine_costs_as_much_when_its_type_is_sold_out() -> None:
    costs = add_up_costs([running("a", "c.large")], catalog(TYPES))

    assert costs == PoolCosts({"web": 1_000_000})


def test_a_claim_without_the_labels_of_its_machine_costs_nothing() -> None:
    costs = add_up_costs([claim("a", labels={INSTANCE_TYPE: "m.large"})], catalog(TYPES))

    assert costs == PoolCosts({})


def test_an_unknown_price_is_remarked_once() -> None:
    costs = add_up_costs([running("a", "x.large"), running("b", "x.large")], catalog(TYPES))

    fields = {
        "NodePool": "web",
        "instance-type": "x.large",
        "zone": "zone-a",
        "capacity-type": ON_DEMAND,
    }
    remark = Remark("offering price unknown, its nodes count as free", fields, is_error=True)
    assert costs == PoolCosts({"web": 0}, (remark,))


def test_an_unknown_price_is_news_only_once() -> None:
    before = add_up_costs([running("a", "x.large")], catalog(TYPES))
    after = add_up_costs([running("a", "x.large"), running("b", "y.large")], catalog(TYPES))

    news = new_cost_errors(after, before)

    count = Count("nodepools_cost_tracker_errors_total", {"nodepool": "web"})
    assert news == Changes(counts=(count,), remarks=after.remarks[1:])


def test_a_pool_may_see_prices_of_its_own() -> None:
    own = catalog(TYPES, by_pool={"web": [instance_type("m.large", dollars=3.0)]})

    costs = add_up_costs([running("a", "m.large"), running("b", "m.large", pool="batch")], own)

    assert costs.by_pool == {"web": 3_000_000, "batch": 2_000_000}


def test_the_gauges_of_a_pool_are_its_limits_its_usage_and_its_cost() -> None:
    web = replace(
        pool(limits={"cpu": 10_500, "nodes": 3}),
        resources={"ephemeral-storage": 1024, "cpu": 4000},
    )

    gauges = pool_gauges([web, pool("batch")], PoolCosts({"web": 2_500_000}))

    assert gauges == (
        Count("nodepools_cost_total", {"nodepool": "web"}, 2.5),
        Count("nodepools_limit", {"resource_type": "cpu", "nodepool": "web"}, 10.5),
        Count("nodepools_limit", {"resource_type": "nodes", "nodepool": "web"}, 3.0),
        Count("nodepools_usage", {"resource_type": "cpu", "nodepool": "web"}, 4.0),
        Count("nodepools_usage", {"resource_type": "ephemeral_storage", "nodepool": "web"}, 1024.0),
        Count("nodepools_cost_total", {"nodepool": "batch"}, 0.0),
    )
