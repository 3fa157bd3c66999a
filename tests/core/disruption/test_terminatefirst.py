from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.terminatefirst import (
    AT_LIMIT,
    FULL,
    NOT_READY,
    StaticPlan,
    are_reservations_full,
    headcount_of,
    plan_static,
    relocate_with_credit,
    reservation_of,
    why_shrinking,
    with_credit,
)
from karpy.model.instances import InstanceType
from karpy.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED
from karpy.model.pools import Headcount, NodePool
from karpy.model.requirements import Requirement
from tests.builders import catalog, instance_type, is_in, offering
from tests.core.disruption.scenes import (
    TYPES,
    candidate,
    cluster,
    node,
    pod,
    pool,
)

FULL_TYPE = instance_type("m.xlarge", offerings=[offering(reservation="r1")])
LEFT_TYPE = instance_type("m.large", offerings=[offering(reservation="r2", left=3)])
STATIC = pool(replicas=2)
BARE = replace(STATIC, record=None)


def test_a_credit_is_one_machine_more_of_one_reservation() -> None:
    plain = catalog([FULL_TYPE, LEFT_TYPE, TYPES[0]], {"web": [FULL_TYPE, LEFT_TYPE]})

    credited = with_credit(plain, "r1")

    more = instance_type("m.xlarge", offerings=[offering(reservation="r1", left=1)])
    assert credited == catalog([more, LEFT_TYPE, TYPES[0]], {"web": [more, LEFT_TYPE]})
    assert credited.types[2] is TYPES[0]


@pytest.mark.parametrize(
    ("reservation", "types", "expected"),
    [
        ("r1", [FULL_TYPE], "r1"),
        ("", [FULL_TYPE], ""),
        ("r1", [LEFT_TYPE], ""),
        (
            "r1",
            [instance_type("m.xlarge", offerings=[offering(reservation="r1", available=False)])],
            "",
        ),
    ],
    ids=["reserved", "on demand", "unknown", "ended"],
)
def test_a_node_uses_a_reservation_as_long_as_that_is_offered(
    reservation: str, types: Sequence[InstanceType], expected: str
) -> None:
    snapshot = cluster(node("a", reservation=reservation, type="m.xlarge"), types=types)

    assert reservation_of(candidate(snapshot, "a"), Evaluation(snapshot)) == expected


def test_a_reservation_alone_makes_no_reserved_node() -> None:
    labels = {"example.com/reservation-id": "r1"}
    snapshot = cluster(node("a", labels=labels, type="m.xlarge"), types=[FULL_TYPE])

    assert reservation_of(candidate(snapshot, "a"), Evaluation(snapshot)) == ""


@pytest.mark.parametrize(
    ("cpus", "is_placed"), [(["3"], True), (["3", "3"], False), (["300"], False)]
)
def test_pods_move_into_what_the_node_itself_occupies(
    cpus: Sequence[str], *, is_placed: bool
) -> None:
    pods = [pod(f"x{number}", on="a", cpu=cpu) for number, cpu in enumerate(cpus)]
    only_reserved = pool(requirements=[is_in(CAPACITY_TYPE, RESERVED)])
    on_reservation = node("a", reservation="r1", type=FULL_TYPE)
    snapshot = cluster(on_reservation, pods=pods, pools=[only_reserved], types=[FULL_TYPE])

    found = relocate_with_credit(candidate(snapshot, "a"), Evaluation(snapshot))

    assert (found is not None) is is_placed
    assert found is None or (found.launches, found.unplaced) == ((), ())


def test_a_node_on_demand_has_nothing_to_give_back() -> None:
    snapshot = cluster(node("a"), pods=[pod("x", on="a")])

    assert relocate_with_credit(candidate(snapshot, "a"), Evaluation(snapshot)) is None


@pytest.mark.parametrize(
    ("requirements", "types", "expected"),
    [
        ([], [FULL_TYPE], True),
        ([], [FULL_TYPE, LEFT_TYPE], False),
        ([is_in("example.com/reservation-id", "r1")], [FULL_TYPE, LEFT_TYPE], True),
        ([], [FULL_TYPE, TYPES[0]], False),
        ([is_in(CAPACITY_TYPE, RESERVED)], [FULL_TYPE, TYPES[0]], True),
        ([is_in(CAPACITY_TYPE, ON_DEMAND)], [FULL_TYPE], False),
        ([], [], False),
    ],
    ids=[
        "full",
        "another has machines left",
        "the other is not allowed",
        "on demand",
        "on demand is not allowed",
        "nothing is allowed",
        "no types",
    ],
)
def test_reservations_are_full_if_all_that_a_template_allows_is(
    requirements: Sequence[Requirement], types: Sequence[InstanceType], *, expected: bool
) -> None:
    static = pool(replicas=1, requirements=requirements)

    assert are_reservations_full(static, catalog(types)) is expected


@pytest.mark.parametrize(
    ("static", "is_enabled", "expected"),
    [
        (STATIC, False, StaticPlan(2)),
        (pool(replicas=2, limits={"nodes": "3"}), False, StaticPlan(1)),
        (pool(replicas=2, limits={"nodes": "3"}), True, StaticPlan(1)),
        (pool(replicas=2, limits={"nodes": "2"}), False, StaticPlan(0)),
        (
            pool(replicas=2, limits={"nodes": "2"}),
            True,
            StaticPlan(0, terminates_first="static-at-limit"),
        ),
        (pool(replicas=2, ready=False), True, StaticPlan(why_not=NOT_READY)),
        (pool(replicas=2, deleting=True), True, StaticPlan(why_not=NOT_READY)),
        (BARE, True, StaticPlan(why_not=NOT_READY)),
    ],
)
def test_nodes_of_a_static_pool_are_replaced_as_far_as_its_limit_goes(
    static: NodePool, expected: StaticPlan, *, is_enabled: bool
) -> None:
    snapshot = cluster(node("a"), node("b"), pools=[static])

    plan = plan_static(
        static, Headcount(2), Evaluation(snapshot), wanted=2, may_terminate_first=is_enabled
    )

    assert plan == expected


@pytest.mark.parametrize(
    ("is_enabled", "expected"),
    [
        (False, StaticPlan(1, why_not=AT_LIMIT)),
        (True, StaticPlan(0, True, "no-reserved-capacity", FULL)),
    ],
)
def test_a_pool_whose_reservations_are_full_launches_nothing_behind_the_gate(
    expected: StaticPlan, *, is_enabled: bool
) -> None:
    """Without the feature gate a replacement is launched, and waits for capacity."""
    static = pool(replicas=1, requirements=[])
    snapshot = cluster(node("a"), pools=[static], types=[FULL_TYPE])

    plan = plan_static(
        static, Headcount(1), Evaluation(snapshot), wanted=1, may_terminate_first=is_enabled
    )

    assert plan == expected


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (Headcount(2), ""),
        (Headcount(1, 1, 5), ""),
        (Headcount(3), "3 nodes, 2 wanted"),
        (Headcount(2, 1), "3 nodes, 2 wanted"),
    ],
)
def test_a_pool_shrinks_if_it_has_more_nodes_than_it_should(
    heads: Headcount, expected: str
) -> None:
    assert why_shrinking(STATIC, heads) == expected


def test_nodes_are_counted_by_what_becomes_of_them() -> None:
    nodes = [
        node("a"),
        node("b", replaced=True),
        node("c", deleting=True),
        node("d", pool="batch"),
    ]
    snapshot = cluster(*nodes, pools=[STATIC], in_command=frozenset({"b-claim"}))

    assert headcount_of(STATIC, Evaluation(snapshot)) == Headcount(1, 1, 1)
