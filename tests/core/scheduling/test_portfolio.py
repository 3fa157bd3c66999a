"""Section 11: other orders, and the cheapest of the plans that they give."""

import pytest
from msgspec.structs import replace

from karpy.codec.verdicts import verdict_to_json
from karpy.core.check.plan import check_plan
from karpy.core.check.scene import placed_pods
from karpy.core.scheduling.decide import decide
from karpy.core.scheduling.packers.portfolio import (
    Draft,
    better,
    is_worth_another_look,
    other_orders,
)
from karpy.core.scheduling.pending import Batch
from karpy.model.constraints import AffinityTerm
from karpy.model.labels import HOSTNAME, WELL_KNOWN, ZONE
from karpy.model.pods import Pod
from karpy.model.settings import Packing, Settings
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, LaunchOption, Reason, Refusal, Verdict
from tests.builders import (
    affinity,
    catalog,
    instance_type,
    is_in,
    pod,
    pods,
    pool,
    snapshot,
    spread,
)
from tests.core.scheduling.answers import decide_checked, for_looks
from tests.determinism.verdicts import named_snapshot

DB = {"app": "db"}
WORKLOADS = ["diverse-50", "real-300", "mixed-20", "adv-prefs-60", "adv-distinct-100"]
SEEDS = ["1006", "1057", "1184", "1187", "10094", "10223"]
"""Clusters for which another order gives another plan."""

# In Karpenter's order pods with much CPU fill nodes of their own; in other orders they share.
LOPSIDED = snapshot(
    catalog=catalog([instance_type("four", cpu="4", memory="16Gi")]),
    pods=[
        *pods("cpu", 2, cpu="2", memory="1Gi"),
        *pods("even", 2, cpu="1500m", memory="6Gi"),
        *pods("memory", 2, cpu="1", memory="12Gi"),
    ],
)


def _packed(cluster: Snapshot, packing: Packing) -> Snapshot:
    return replace(cluster, settings=replace(cluster.settings, packing=packing))


def _batch(*some: Pod) -> Batch:
    return Batch(some, {}, ())


def _orders(*some: Pod) -> list[list[str]]:
    return [[each.name for each in other.pods] for other in other_orders(_batch(*some), WELL_KNOWN)]


def _draft(*prices: int, left_out: tuple[str, ...] = (), **fields: object) -> Draft:
    launches = tuple(
        Launch(f"n-{i}", "default", (), {}, {}, (LaunchOption("any", price, "a", "spot"),))
        for i, price in enumerate(prices)
    )
    refusals = (Refusal(Reason.NO_HOST, left_out),) if left_out else ()
    return Draft(replace(Verdict(launches, refusals=refusals), **fields))


def _worth(verdict: Verdict) -> tuple[int, int]:
    return sum(len(each.pods) for each in verdict.refusals), verdict.price


# --- orders ----------------------------------------------------------------------------------


def test_pods_are_ordered_by_both_resources_then_by_how_far_these_differ() -> None:
    cpu, even, memory = (
        pod("cpu", cpu="5", memory="1Gi"),
        pod("even", cpu="4", memory="4Gi"),
        pod("memory", cpu="1", memory="5Gi"),
    )

    assert _orders(cpu, even, memory) == [["even", "cpu", "memory"], ["cpu", "memory", "even"]]


@pytest.mark.parametrize(
    "loner",
    [
        pod("loner", cpu="1", memory="2Gi", anti_affinity=[affinity(HOSTNAME, DB)]),
        pod("loner", cpu="1", memory="2Gi", spreads=[spread(HOSTNAME, DB)]),
    ],
    ids=["anti-affine", "spread"],
)
def test_pods_that_keep_away_from_each_other_come_first_once(loner: Pod) -> None:
    large, small = pod("large", cpu="4", memory="4Gi"), pod("small", cpu="1", memory="1Gi")

    assert _orders(large, small, loner)[0] == ["loner", "large", "small"]


def test_an_order_that_was_tried_is_not_tried_again() -> None:
    assert _orders(*pods("same", 3)) == []
    assert _orders(pod("large", cpu="4", memory="4Gi"), pod("small", cpu="1", memory="1Gi")) == []


@pytest.mark.parametrize(("cpu", "memory"), [("0", "1Gi"), ("1", "0"), ("0", "0")])
def test_pods_without_requests_have_an_order_too(cpu: str, memory: str) -> None:
    assert _orders(pod("a", cpu=cpu, memory=memory), pod("b", cpu=cpu, memory=memory)) == []


@pytest.mark.parametrize(("key", "count"), [("team", 0), (ZONE, 1), (HOSTNAME, 1)])
def test_domains_that_get_their_names_as_pods_come_leave_no_other_order(
    key: str, count: int
) -> None:
    away = pod("away", cpu="1", memory="6Gi", anti_affinity=[affinity(key, DB)])

    assert len(_orders(pod("cpu", cpu="2", memory="1Gi"), away)) == count


def test_pods_that_exist_come_first_in_every_order() -> None:
    small = pod("small", cpu="2", memory="1Gi")
    memory = pod("memory", cpu="1", memory="9Gi")
    virtual = replace(pod("virtual", cpu="9", memory="9Gi"), is_virtual=True)

    orders = _orders(small, memory, virtual)

    assert [order[-1] for order in orders] == ["virtual"] * len(orders)
    assert ["memory", "small", "virtual"] in orders


def test_pods_that_must_be_near_others_keep_their_turn() -> None:
    near = [affinity(HOSTNAME, DB)]
    cpu, memory = pod("cpu", cpu="3", memory="1Gi"), pod("memory", cpu="1", memory="9Gi")
    seeker = pod("seeker", cpu="2", memory="3Gi", affinity=near)

    orders = _orders(cpu, seeker, memory)

    assert {order[1] for order in orders} == {"seeker"}
    assert ["memory", "seeker", "cpu"] in orders


# --- which plan is better --------------------------------------------------------------------


@pytest.mark.parametrize(
    "draft",
    [_draft(1), _draft(), _draft(1, 1, is_complete=False)],
    ids=["one node", "no node", "out of time"],
)
def test_another_order_is_not_always_worth_while(draft: Draft) -> None:
    assert is_worth_another_look(_draft(1, 1))
    assert not is_worth_another_look(draft)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_draft(5, 5), _draft(3, 3, 3)),
        (_draft(1000), _draft(990)),
        (_draft(5, left_out=("default/a", "default/b")), _draft(9, left_out=("default/c",))),
        (_draft(5, is_complete=False), _draft(9)),
        (_draft(5)._replace(steps_down=2), _draft(4)._replace(steps_down=2)),
    ],
    ids=[
        "cheaper",
        "just cheaper",
        "fewer left out",
        "complete",
        "cheaper with the same preferences",
    ],
)
def test_the_better_plan_is_taken(first: Draft, second: Draft) -> None:
    assert better(first, second, _batch()) is second


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_draft(5, 5), _draft(10)),
        (_draft(5, 5), _draft(11)),
        (_draft(1000), _draft(991)),
        (_draft(5), _draft(1, left_out=("default/a",))),
        (_draft(5), _draft(1, is_complete=False)),
        (_draft(5, left_out=("default/small",)), _draft(1, left_out=("default/large",))),
        (_draft(5), _draft(4)._replace(steps_down=1)),
    ],
    ids=[
        "as dear",
        "dearer",
        "hardly cheaper",
        "one left out",
        "out of time",
        "another left out",
        "preferences",
    ],
)
def test_the_first_plan_stays_unless_the_other_is_better(first: Draft, second: Draft) -> None:
    assert better(first, second, _batch()) is first


def test_a_pod_that_exists_is_worth_more_than_room_for_some_that_do_not() -> None:
    rooms = [replace(pod(name), is_virtual=True) for name in ("v", "w")]
    real, virtual = (
        _draft(9, left_out=("default/v", "default/w")),
        _draft(9, left_out=("default/a",)),
    )

    assert better(virtual, real, _batch(pod("a"), *rooms)) is real


def test_min_values_are_not_given_up_for_a_better_price() -> None:
    dear, cheap = _draft(5), _draft(4)
    relaxed = tuple(replace(each, is_min_values_relaxed=True) for each in cheap.verdict.launches)
    other = cheap._replace(verdict=replace(cheap.verdict, launches=relaxed))

    assert better(dear, other, _batch()) is dear


# --- decisions -------------------------------------------------------------------------------


def test_pods_that_need_different_things_share_nodes() -> None:
    usual = decide_checked(_packed(LOPSIDED, Packing.KARPENTER))
    cheapest = decide_checked(_packed(LOPSIDED, Packing.CHEAPEST))

    assert len(placed_pods(cheapest)) == len(placed_pods(usual)) == 6
    assert (len(usual.launches), len(cheapest.launches)) == (4, 3)
    assert cheapest.price < usual.price


def test_karpenters_plan_is_the_usual_one() -> None:
    assert Settings().packing is Packing.KARPENTER
    assert decide(LOPSIDED) == decide(_packed(LOPSIDED, Packing.KARPENTER))


def test_without_time_for_another_order_the_first_plan_stands() -> None:
    usual = decide(LOPSIDED)

    hurried = decide(_packed(LOPSIDED, Packing.CHEAPEST), keep_going=for_looks(1))

    assert hurried == usual


def _with_a_shop(*wishes: tuple[int, AffinityTerm]) -> Snapshot:
    """Add a web server that Karpenter places after its database, and other orders before."""
    shop = [
        pod("db", cpu="200m", memory="64Mi", labels=DB),
        pod("web", cpu="100m", memory="3Gi", prefers_near=wishes),
    ]
    return replace(LOPSIDED, pods=(*LOPSIDED.pods, *shop))


def test_a_preference_is_not_given_up_for_a_better_price() -> None:
    free, wishing = _with_a_shop(), _with_a_shop((1, affinity(HOSTNAME, DB)))

    kept = decide_checked(_packed(wishing, Packing.CHEAPEST))

    assert kept == decide(wishing)
    assert decide_checked(_packed(free, Packing.CHEAPEST)).price < decide(free).price


def test_a_weighty_pool_stays_the_first() -> None:
    pools = [pool("first", weight=10), pool("second", requirements=[is_in("team", "a")])]
    cluster = replace(LOPSIDED, pools=tuple(pools))

    verdict = decide_checked(_packed(cluster, Packing.CHEAPEST))

    assert {each.pool for each in verdict.launches} == {"first"}


@pytest.mark.parametrize("name", [*WORKLOADS, *SEEDS])
def test_the_cheapest_plan_is_sound_and_never_worse(name: str) -> None:
    cluster = _packed(named_snapshot(name), Packing.CHEAPEST)

    cheapest = decide(cluster)

    assert [str(breach) for breach in check_plan(cluster, cheapest)] == []
    assert _worth(cheapest) <= _worth(decide(_packed(cluster, Packing.KARPENTER)))


@pytest.mark.parametrize("name", [*WORKLOADS, *SEEDS])
def test_the_cheapest_plan_is_always_the_same(name: str) -> None:
    cluster = _packed(named_snapshot(name), Packing.CHEAPEST)
    turned = replace(cluster, pods=cluster.pods[::-1], nodes=cluster.nodes[::-1])

    first, second, other = decide(cluster), decide(cluster), decide(turned)

    assert verdict_to_json(first) == verdict_to_json(second)
    assert (first.launches, first.nominations) == (other.launches, other.nominations)
