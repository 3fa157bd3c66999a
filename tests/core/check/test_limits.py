from typing import Final

import pytest
from msgspec.structs import replace

from karpy.core.check.breaches import Breach, Rule
from karpy.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED
from karpy.model.requirements import Requirement, one_of
from karpy.model.settings import Settings
from tests.core.check.builders import (
    LARGE,
    MEDIUM,
    RESERVATION,
    RESERVED_IN_A,
    SMALL,
    World,
    amounts,
    catalog,
    instance_type,
    launch,
    node,
    offering,
    option,
    pod,
    pool,
    world,
)

ONE: Final = pod("one")
TWO: Final = pod("two")


def limited(**limits: str) -> World:
    """Two launches of at most 8 and 4 cores beside a node of 8."""
    return world(
        launch("l1", [ONE], options=[MEDIUM, LARGE]),
        launch("l2", [TWO], options=[SMALL, MEDIUM]),
        pods=[ONE, TWO],
        pools=(pool(limits=amounts(**limits)),),
        nodes=(node("n1"), node("gone", is_deleting=True)),
    )


def test_a_limit_holds_even_if_the_largest_options_are_picked() -> None:
    assert limited(cpu="20").rules() == set()
    assert limited(cpu="19").breaches() == (
        Breach(Rule.LIMIT, "web", detail="cpu: 8 there, 12 more, at most 19"),
    )


def test_nodes_are_counted_one_by_one() -> None:
    assert limited(nodes="3").rules() == set()
    assert limited(nodes="2").breaches() == (
        Breach(Rule.LIMIT, "web", detail="nodes: 1 there, 2 more, at most 2"),
    )


def test_a_resource_nobody_adds_is_not_oversold() -> None:
    assert limited(gpu="0").rules() == set()


def test_a_pool_that_is_over_its_limit_already_is_no_breach() -> None:
    plan = world(pools=(pool(limits=amounts(cpu="1")),), nodes=(node("n1"),))

    assert plan.rules() == set()


def test_the_capacity_of_an_offering_counts_as_what_it_really_is() -> None:
    large = instance_type("medium", 4, [offering("a", 400, capacity_override=amounts(cpu="16"))])
    plan = world(
        launch("l1", [ONE], options=[large]),
        pods=[ONE],
        pools=(pool(limits=amounts(cpu="8")),),
        catalog=catalog(large),
    )

    assert plan.rules() == {Rule.LIMIT}


# --- reservations --------------------------------------------------------------------------------

BOOKED: Final = instance_type("medium", 4, [RESERVED_IN_A, offering("a", 400)])
IS_RESERVED: Final = one_of(CAPACITY_TYPE, RESERVED)
HAS_ID: Final = one_of(RESERVATION, "r-1")


def holding(*requirements: Requirement, held: tuple[str, ...] = ("r-1",)) -> World:
    its = launch(
        "l1",
        [ONE],
        *requirements,
        options=[option(BOOKED, capacity_type=RESERVED)],
        reservations=held,
    )
    return world(its, pods=[ONE], catalog=catalog(BOOKED))


def test_a_launch_insists_on_the_reservations_it_holds() -> None:
    assert holding(IS_RESERVED, HAS_ID).rules() == set()
    assert holding(HAS_ID).breaches() == (
        Breach(Rule.RESERVATION, "l1", detail=f"does not insist on {CAPACITY_TYPE}"),
    )
    assert holding(IS_RESERVED).breaches() == (
        Breach(Rule.RESERVATION, "l1", detail=f"does not insist on {RESERVATION}"),
    )


@pytest.mark.parametrize(
    "vague",
    [one_of(CAPACITY_TYPE, RESERVED, ON_DEMAND), Requirement(CAPACITY_TYPE, complement=True)],
)
def test_a_launch_that_would_take_something_else_does_not_insist(vague: Requirement) -> None:
    assert holding(vague, HAS_ID).rules() == {Rule.RESERVATION}


def test_a_reservation_is_not_used_beyond_its_capacity() -> None:
    plan = holding(IS_RESERVED, HAS_ID)
    other = replace(plan.verdict.launches[0], name="l2", pods=(TWO.key,))
    pods = replace(plan.snapshot, pods=(ONE, TWO))
    verdict = replace(plan.verdict, launches=(*plan.verdict.launches, other))

    assert World(pods, verdict).breaches() == (
        Breach(Rule.RESERVATION, "r-1", detail="2 launches, room for 1"),
    )


def test_the_capacity_of_a_reservation_is_the_least_that_is_said() -> None:
    full = replace(RESERVED_IN_A, reservation_capacity=0)
    plan = holding(IS_RESERVED, HAS_ID)
    shop = catalog(BOOKED, instance_type("other", 4, [full]))

    plan = plan._replace(snapshot=replace(plan.snapshot, catalog=shop))

    assert plan.rules() == {Rule.RESERVATION}


def test_nobody_holds_what_does_not_exist_or_is_switched_off() -> None:
    off = Settings(reserved_capacity=False)
    plan = holding(IS_RESERVED, HAS_ID)

    assert holding(IS_RESERVED, one_of(RESERVATION, "r-9"), held=("r-9",)).rules() == {
        Rule.RESERVATION,
        Rule.OPTION_TYPE,
    }
    assert plan._replace(snapshot=replace(plan.snapshot, settings=off)).rules() == {
        Rule.RESERVATION
    }
