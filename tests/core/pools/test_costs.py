from karpy.core.lifecycle.outcomes import Count, Outcome, Remark
from karpy.core.pools.costs import Costs, add_up_costs, cost_news
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpy.model.records import ClaimRecord
from tests.builders import catalog, instance_type, offering
from tests.core.pools.records import claim

TYPES = [
    instance_type("m.large", dollars=2.0, spot_dollars=0.5),
    instance_type("c.large", offerings=[offering("zone-a", dollars=1.0, available=False)]),
]


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

    assert costs == Costs({"web": 2_500_000, "batch": 2_000_000})
    assert costs.total == 4_500_000


def test_a_machine_costs_as_much_when_its_type_is_sold_out() -> None:
    costs = add_up_costs([running("a", "c.large")], catalog(TYPES))

    assert costs == Costs({"web": 1_000_000})


def test_a_claim_that_does_not_know_its_machine_yet_costs_nothing() -> None:
    costs = add_up_costs([claim("a", labels={INSTANCE_TYPE: "m.large"})], catalog(TYPES))

    assert costs == Costs({})


def test_an_unknown_price_is_remarked_once() -> None:
    costs = add_up_costs([running("a", "x.large"), running("b", "x.large")], catalog(TYPES))

    fields = {
        "NodePool": "web",
        "instance-type": "x.large",
        "zone": "zone-a",
        "capacity-type": ON_DEMAND,
    }
    remark = Remark("offering price unknown, its nodes count as free", fields, is_error=True)
    assert costs == Costs({"web": 0}, (remark,))


def test_an_unknown_price_is_news_only_once() -> None:
    before = add_up_costs([running("a", "x.large")], catalog(TYPES))
    after = add_up_costs([running("a", "x.large"), running("b", "y.large")], catalog(TYPES))

    news = cost_news(after, before)

    count = Count("nodepools_cost_tracker_errors_total", {"nodepool": "web"})
    assert news == Outcome(counts=(count,), remarks=after.remarks[1:])


def test_a_pool_may_see_prices_of_its_own() -> None:
    own = catalog(TYPES, by_pool={"web": [instance_type("m.large", dollars=3.0)]})

    costs = add_up_costs([running("a", "m.large"), running("b", "m.large", pool="batch")], own)

    assert costs.by_pool == {"web": 3_000_000, "batch": 2_000_000}
