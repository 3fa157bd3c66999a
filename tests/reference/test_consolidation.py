"""The reference for consolidation: golden values of Karpenter, and one case for each rule."""

from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction

import pytest
from msgspec.structs import replace

from karpy.model.conditions import TRUE, Condition, Conditions
from karpy.model.instances import InstanceType
from karpy.model.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, ON_DEMAND, SPOT
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, DisruptionBudget, Pod, PodDisruption
from karpy.model.pools import ConsolidationPolicy, DisruptionPolicy, DisruptionReason, NodePool
from karpy.model.records import ClaimRecord, Identity, NodeRecord
from karpy.model.requirements import one_of
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from tests.builders import (
    catalog,
    daemon,
    instance_type,
    is_in,
    node,
    owner,
    pod,
    pods,
    pool,
    snapshot,
)
from tests.builders.pods import NOON
from tests.reference.consolidation import (
    Candidate,
    Command,
    best_first,
    by_turns,
    consolidate,
    empty_nodes,
    eviction_cost,
    find_candidates,
    is_approved,
    moving_cost,
    score,
    several_nodes,
    single_node,
    why_not_node,
    why_not_pods,
)

EMPTY, USED = DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED
SMALL = instance_type("small", cpu="2", dollars=1)
MIDDLE = instance_type("middle", cpu="4", dollars=2)
LARGE = instance_type("large", cpu="8", dollars=4)
ON_DEMAND_ONLY = [is_in(CAPACITY_TYPE, ON_DEMAND)]
PLENTY = {"default": 99}
DOLLAR = 1_000_000


def asks(said: PodDisruption) -> Pod:
    """Build a running pod that says something about its disruption."""
    return replace(pod("p", on="n"), disruption=said)


def running(
    name: str, kind: InstanceType = MIDDLE, *, capacity_type: str = ON_DEMAND, pool: str = "default"
) -> Node:
    """Build a node of a type that has been consolidatable for an hour."""
    hour_ago = NOON - timedelta(hours=1)
    made = node(
        name,
        type=kind.name,
        cpu=f"{kind.capacity['cpu'] // 1000}",
        capacity_type=capacity_type,
        pool=pool,
    )
    conditions = Conditions(
        tuple(Condition(each, TRUE, hour_ago) for each in ("Initialized", "Consolidatable"))
    )
    meta = Identity(made.name, labels=made.labels, created=hour_ago)
    claim = ClaimRecord(meta, conditions=conditions)
    return replace(made, node_record=NodeRecord(meta), claim_record=claim)


def cluster(
    nodes: Sequence[Node],
    some: Sequence[Pod],
    types: Sequence[InstanceType] = (SMALL, MIDDLE, LARGE),
    pools: Sequence[NodePool] | None = None,
) -> Snapshot:
    """Build a cluster whose NodePools make on-demand nodes, unless others are given."""
    chosen = [pool(requirements=ON_DEMAND_ONLY)] if pools is None else pools
    return snapshot(nodes=nodes, pods=some, pools=chosen, catalog=catalog([*types]))


def with_policy(policy: DisruptionPolicy, name: str = "default") -> NodePool:
    return replace(pool(name, requirements=ON_DEMAND_ONLY), policy=policy)


def chosen(given: Snapshot, *names: str) -> list[Candidate]:
    return [each for each in find_candidates(given) if each.name in names]


def names(candidates: Sequence[Candidate]) -> list[str]:
    return [each.name for each in candidates]


# --- cost --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "cost"),
    [
        (PodDisruption(), 1),
        (PodDisruption(deletion_cost="2147483647"), 10),
        (PodDisruption(deletion_cost="-2147483647"), -10),
        (PodDisruption(deletion_cost="134217728"), 2),
        (PodDisruption(priority=10**9), 10),
        (PodDisruption(priority=-(2**31)), -10),
        (PodDisruption(priority=2**25), 2),
        (PodDisruption(disruption_cost="134217728", deletion_cost="0"), 2),
        (PodDisruption(disruption_cost="much", deletion_cost="134217728"), 1),
        (PodDisruption(deletion_cost="2147483648"), 1),
        (PodDisruption(deletion_cost="1.5"), 1),
        (PodDisruption(deletion_cost="+-1"), 1),
    ],
)
def test_a_pod_costs_what_it_says_within_bounds(said: PodDisruption, cost: int) -> None:
    assert eviction_cost(asks(said)) == cost


def test_deletion_costs_count_only_while_nothing_else_writes_them() -> None:
    written = asks(PodDisruption(deletion_cost="134217728"))

    assert eviction_cost(written, reads_deletion_cost=False) == 1


@pytest.mark.parametrize(
    ("some", "cost"),
    [
        ([], 1),
        (pods("p", 4, on="n"), 5),
        ([asks(PodDisruption(deletion_cost="-2147483647"))], 1),
        ([pod("d", on="n", owners=[owner(DAEMON_SET)])], 1),
        ([pod("p", on="n", phase="Succeeded")], 1),
        ([pod("p", on="n", deleting=True)], 1),
    ],
    ids=["none", "four", "cheap", "daemon", "terminal", "deleting"],
)
def test_a_node_costs_one_and_what_its_pods_cost(some: list[Pod], cost: int) -> None:
    assert moving_cost(some) == cost


@pytest.mark.parametrize(
    ("savings", "cost", "total", "expected"),
    [
        ("7.26", 3, "58.08", "10/3"),
        ("4.84", 4, "58.08", "5/3"),
        ("2.42", 8, "58.08", "5/12"),
        ("0", 3, "58.08", "0"),
        ("2.42", 8, "48.40", "1/2"),
        ("1", 1, "0", "0"),
    ],
)
def test_scores_are_karpenters(savings: str, cost: int, total: str, expected: str) -> None:
    found = score(Fraction(savings), Fraction(cost), Fraction(total), Fraction(80))

    assert found == Fraction(expected)


# --- candidates --------------------------------------------------------------------------------


def test_a_node_with_nothing_against_it_is_a_candidate_with_its_price() -> None:
    given = cluster([running("n")], [pod("p", on="n")])

    (found,) = find_candidates(given)

    assert (found.name, found.price, found.cost) == ("n", 2 * DOLLAR, Fraction(2))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (replace(running("n"), claim=""), "it is not managed"),
        (replace(running("n"), is_deleting=True), "it is being deleted"),
        (replace(running("n"), is_initialized=False), "it is not initialized"),
        (
            replace(running("n"), nominated_until=NOON + timedelta(seconds=1)),
            "pending pods are expected there",
        ),
        (
            replace(
                running("n"),
                claim_record=None,
                node_record=NodeRecord(Identity("n", annotations={DO_NOT_DISRUPT: "true"})),
            ),
            "its annotation forbids it",
        ),
        (running("n", pool="other"), "its NodePool is not there"),
        (running("n"), None),
    ],
)
def test_a_node_may_forbid_its_disruption(changed: Node, why: str | None) -> None:
    assert why_not_node(changed, cluster([changed], [])) == why


def test_a_pods_annotation_holds_for_good_or_for_a_time() -> None:
    forever = asks(PodDisruption(do_not_disrupt="true"))
    hour = asks(PodDisruption(do_not_disrupt="1h"))
    young = replace(hour, started=NOON - timedelta(minutes=59))
    old = replace(hour, started=NOON - timedelta(hours=1))
    nonsense = asks(PodDisruption(do_not_disrupt="please"))
    blocked = "a pod's annotation forbids it"

    found = [
        why_not_pods(running("n"), cluster([running("n")], [each]))
        for each in (forever, hour, young, old, nonsense)
    ]

    assert found == [blocked, blocked, blocked, None, None]


def test_a_budget_that_lets_no_pod_go_holds_the_node() -> None:
    label = {"app": "a"}
    spent = DisruptionBudget("b", "default", (one_of("app", "a"),), disruptions_allowed=0)
    free = replace(spent, disruptions_allowed=1)
    lenient = replace(spent, allows_unready=True)
    given = cluster([running("n")], [pod("p", on="n", labels=label)])
    unready = replace(given, pods=(replace(given.pods[0], is_unready=True),))

    found = [
        why_not_pods(given.nodes[0], replace(given, budgets=(spent,))),
        why_not_pods(given.nodes[0], replace(given, budgets=(free,))),
        why_not_pods(given.nodes[0], replace(given, budgets=(free, replace(free, name="c")))),
        why_not_pods(given.nodes[0], replace(given, budgets=(lenient,))),
        why_not_pods(given.nodes[0], replace(unready, budgets=(lenient,))),
    ]

    held = "a budget lets no pod go"
    assert found == [held, None, "several budgets cover a pod", held, None]


def test_candidates_with_the_highest_savings_per_moving_cost_come_first() -> None:
    given = cluster(
        [running("a"), running("b"), running("c", LARGE)],
        [pod("p", on="a"), pod("q", on="b"), *pods("r", 4, on="c")],
    )

    assert names(best_first(find_candidates(given))) == ["a", "b", "c"]


def test_node_pools_have_their_turns() -> None:
    pools = [pool("one"), pool("two")]
    nodes = [running("a", LARGE, pool="one"), running("b", LARGE, pool="one")]
    given = cluster([*nodes, running("c", SMALL, pool="two")], [], pools=pools)

    assert names(by_turns(find_candidates(given))) == ["a", "c", "b"]


# --- one command -------------------------------------------------------------------------------


def test_a_node_whose_pods_fit_elsewhere_is_deleted() -> None:
    given = cluster([running("a"), running("b")], [pod("p", on="a", cpu="1")])

    assert consolidate(given, chosen(given, "a")) == Command(USED, ("a",), savings=2 * DOLLAR)


def test_a_node_that_is_too_large_is_replaced_by_cheaper_types() -> None:
    given = cluster([running("a", LARGE)], [pod("p", on="a", cpu="1")])

    found = consolidate(given, chosen(given, "a"))

    assert found is not None
    assert (found.pool, found.types, found.savings) == ("default", ("small", "middle"), 3 * DOLLAR)


def test_a_replacement_that_costs_as_much_is_none() -> None:
    given = cluster([running("a", SMALL)], [pod("p", on="a", cpu="1")])

    assert consolidate(given, chosen(given, "a")) is None


def test_one_node_is_never_replaced_by_two() -> None:
    given = cluster(
        [running("a", LARGE)],
        pods("p", 2, on="a", cpu="1500m"),
        types=[SMALL, replace(LARGE, offerings=())],
    )

    assert consolidate(given, chosen(given, "a")) is None


def test_pods_that_have_to_move_do_not_go_to_a_node_that_is_booting() -> None:
    booting = replace(running("b"), is_initialized=False)
    given = cluster([running("a"), booting], [pod("p", on="a", cpu="1")], types=[MIDDLE])

    assert consolidate(given, chosen(given, "a")) is None


def test_pods_that_have_to_move_do_not_go_where_pods_came_and_went_lately() -> None:
    policy = DisruptionPolicy(consolidate_after=timedelta(minutes=10))
    here, there = running("a"), running("b")
    assert there.claim_record is not None
    lately = replace(there.claim_record, last_pod_event=NOON - timedelta(minutes=1))
    busy = replace(there, claim_record=lately)
    bound = [pod("p", on="a", cpu="1")]
    quiet = cluster([here, there], bound, types=[MIDDLE], pools=[with_policy(policy)])
    unquiet = cluster([here, busy], bound, types=[MIDDLE], pools=[with_policy(policy)])

    found = [consolidate(each, chosen(each, "a")) for each in (quiet, unquiet)]

    assert found == [Command(USED, ("a",), savings=2 * DOLLAR), None]


def test_an_on_demand_node_may_become_a_spot_node_and_nothing_else_then() -> None:
    sold = instance_type("both", cpu="4", dollars=2, spot_dollars=1)
    given = cluster([running("a", sold)], [pod("p", on="a")], types=[sold], pools=[pool()])

    found = consolidate(given, chosen(given, "a"))

    assert found is not None
    assert (found.types, found.savings) == (("both",), DOLLAR)
    assert found.requirements[CAPACITY_TYPE].values == {SPOT}


@pytest.mark.parametrize(
    ("count", "is_open", "expected"),
    [(15, True, 15), (14, True, 0), (20, True, 15), (15, False, 0)],
)
def test_a_spot_node_becomes_another_only_with_many_cheaper_types(
    count: int, *, is_open: bool, expected: int
) -> None:
    own = instance_type("own", cpu="4", dollars=90, spot_dollars=50)
    cheaper = [
        instance_type(f"t{number:02}", cpu="4", dollars=90, spot_dollars=number + 1)
        for number in range(count)
    ]
    here = running("a", own, capacity_type=SPOT)
    given = cluster([here], [pod("p", on="a")], types=[own, *cheaper], pools=[pool()])
    given = replace(given, settings=Settings(spot_to_spot_consolidation=is_open))

    found = consolidate(given, chosen(given, "a"))

    assert len(found.types if found else ()) == expected


def test_pods_that_wait_take_the_room_first() -> None:
    """A node is not deleted into room that pending pods need."""
    given = cluster(
        [running("a"), running("b")],
        [pod("p", on="a", cpu="3"), pod("waits", cpu="3500m")],
        types=[MIDDLE],
    )

    assert consolidate(given, chosen(given, "a")) is None


def test_daemon_pods_need_no_other_node() -> None:
    bound = pod("d", on="a", cpu="1", owners=[owner(DAEMON_SET)])
    given = replace(cluster([running("a")], [bound]), daemons=(daemon("d", cpu="1"),))

    assert consolidate(given, chosen(given, "a")) == Command(USED, ("a",), savings=2 * DOLLAR)


# --- methods -----------------------------------------------------------------------------------


def test_empty_nodes_go_together_within_the_budget() -> None:
    nodes = [running("a"), running("b", LARGE), running("c"), running("d")]
    given = cluster(nodes, [pod("p", on="d")])

    found = empty_nodes(given, {"default": 2})

    assert found == Command(EMPTY, ("b", "a"), savings=6 * DOLLAR)


def test_an_empty_node_with_buffer_pods_stays() -> None:
    given = cluster([replace(running("a"), buffer_pods=1)], [])

    assert empty_nodes(given, PLENTY) is None


def test_as_many_nodes_as_possible_are_deleted_together() -> None:
    nodes = [running(name) for name in "abcd"]
    bound = [pod(f"p-{name}", on=name, cpu="1") for name in "abcd"]
    given = cluster(nodes, bound, types=[MIDDLE, LARGE])

    found = several_nodes(given, PLENTY)

    assert found == Command(USED, ("a", "b", "c"), savings=6 * DOLLAR)


def test_a_replacement_of_the_same_type_must_be_cheaper_than_the_cheapest_of_that_type() -> None:
    nodes = [running("a"), running("b")]
    bound = [pod("p", on="a", cpu="1"), pod("q", on="b", cpu="1")]
    cheap = instance_type("cheap", cpu="4", dollars=1.9)
    only_same = cluster(nodes, bound, types=[MIDDLE])
    one_more = cluster(nodes, bound, types=[MIDDLE, cheap])

    found = [several_nodes(each, PLENTY) for each in (only_same, one_more)]

    assert found[0] is None
    assert found[1] is not None
    assert (found[1].nodes, found[1].types) == (("a", "b"), ("cheap",))


def test_one_node_is_deleted_if_no_two_can_be() -> None:
    given = cluster([running("a"), running("b")], [pod("p", on="a"), pod("q", on="b", cpu="3")])

    assert single_node(given, PLENTY) == Command(USED, ("a",), savings=2 * DOLLAR)


def test_without_a_budget_no_node_is_deleted() -> None:
    given = cluster([running("a"), running("b")], [pod("p", on="a")])

    found = [method(given, {"default": 0}) for method in (empty_nodes, several_nodes, single_node)]

    assert found == [None, None, None]


@pytest.mark.parametrize(
    "policy",
    [
        DisruptionPolicy(consolidation=ConsolidationPolicy.WHEN_EMPTY),
        DisruptionPolicy(consolidate_after=None),
    ],
    ids=["empty-only", "never"],
)
def test_a_policy_may_leave_nodes_in_use_alone(policy: DisruptionPolicy) -> None:
    given = cluster([running("a"), running("b")], [pod("p", on="a")], pools=[with_policy(policy)])

    assert single_node(given, PLENTY) is None


@pytest.mark.parametrize(("pods_there", "pays"), [(1, True), (8, False)])
def test_a_balanced_pool_asks_for_much_saved_at_little_cost(pods_there: int, *, pays: bool) -> None:
    """A fifth of the price for two ninths of the cost pays, for nine sixteenths it does not."""
    policy = DisruptionPolicy(consolidation=ConsolidationPolicy.BALANCED)
    bound = [*pods("p", pods_there, on="a"), *pods("q", 6, on="b")]
    nodes = [running("a", SMALL), running("b", LARGE)]
    given = cluster(nodes, bound, pools=[with_policy(policy)])

    assert is_approved(given, chosen(given, "a"), DOLLAR) == pays


def test_a_balanced_pool_keeps_a_node_that_another_policy_lets_go() -> None:
    usual, balanced = (
        DisruptionPolicy(consolidation=each)
        for each in (ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED, ConsolidationPolicy.BALANCED)
    )
    nodes = [running("a", SMALL), running("b", LARGE)]
    bound = [*pods("p", 8, on="a", cpu="100m"), pod("q", on="b", cpu="6")]

    found = [
        single_node(cluster(nodes, bound, [SMALL, LARGE], [with_policy(each)]), PLENTY)
        for each in (usual, balanced)
    ]

    assert found == [Command(USED, ("a",), savings=DOLLAR), None]
