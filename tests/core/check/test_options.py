from typing import Final, Unpack

import pytest
from msgspec.structs import replace

from karpy.core.check.breaches import Breach, Rule
from karpy.model.constraints import NodeTerm, WeightedNodeTerm
from karpy.model.instances import LAUNCH_OPTIONS_MAX
from karpy.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from karpy.model.nodes import Node
from karpy.model.pools import NodePool
from karpy.model.records import NodeClassRef
from karpy.model.requirements import Operator, Requirement, one_of, require
from karpy.model.settings import MinValuesPolicy, Settings
from karpy.model.verdicts import Launch, LaunchOption
from tests.core.check.builders import (
    LARGE,
    MEDIUM,
    RESERVATION,
    RESERVED_IN_A,
    SMALL,
    World,
    amounts,
    catalog,
    in_zone,
    instance_type,
    launch,
    node,
    offering,
    option,
    pod,
    pool,
    world,
)
from tests.core.check.fields import RuleFields, SnapshotFields

WEB = pod("web")
ARM = instance_type("arm", 4, requirements={ARCH: one_of(ARCH, "arm64")})
TWO_TYPES = require(INSTANCE_TYPE, Operator.EXISTS, min_values=2)
ONE: Final = pod("one")
TWO: Final = pod("two")


def judge(plan: Launch, **snapshot: Unpack[SnapshotFields]) -> World:
    return world(plan, pods=[WEB], **snapshot)


def test_an_ordinary_launch_is_in_order() -> None:
    assert judge(launch("l1", [WEB])).breaches() == ()


@pytest.mark.parametrize("nodes", [(), (node("n1", is_deleting=True),)])
def test_a_missing_or_deleting_node_cannot_be_nominated(nodes: tuple[Node, ...]) -> None:
    plan = world(pods=[WEB], nodes=nodes, nominations={"n1": [WEB]})

    assert plan.breaches() == (Breach(Rule.UNKNOWN_NODE, "n1"),)


@pytest.mark.parametrize(
    "own_pool",
    [pool("other"), pool(is_static=True), pool(is_ready=False), pool(is_deleting=True)],
)
def test_a_pool_must_exist_and_be_dynamic_ready_and_not_deleting(own_pool: NodePool) -> None:
    plan = judge(launch("l1", [WEB]), pools=(own_pool,))

    assert plan.breaches() == (Breach(Rule.UNKNOWN_POOL, "l1", detail="web"),)


def test_launches_have_distinct_names() -> None:
    other = pod("other")

    plan = world(launch("l1", [WEB]), launch("l1", [other]), pods=[WEB, other])

    assert plan.breaches() == (Breach(Rule.SHARED_NAME, "l1"),)


def test_a_launch_without_pods_is_a_breach() -> None:
    assert world(launch("l1", [])).breaches() == (Breach(Rule.EMPTY_LAUNCH, "l1"),)


def test_a_launch_needs_an_option() -> None:
    assert judge(launch("l1", [WEB], options=())).breaches() == (Breach(Rule.NO_OPTION, "l1"),)


def test_a_launch_has_at_most_600_options() -> None:
    types = [instance_type(f"t{number:03}", 2) for number in range(LAUNCH_OPTIONS_MAX + 1)]
    shop = catalog(*types)

    enough = judge(launch("l1", [WEB], options=types[:-1]), catalog=shop)
    too_many = judge(launch("l1", [WEB], options=types), catalog=shop)

    assert enough.breaches() == ()
    assert too_many.breaches() == (Breach(Rule.TOO_MANY_OPTIONS, "l1", detail="601"),)


@pytest.mark.parametrize("types", [(LARGE, MEDIUM), (MEDIUM, MEDIUM)])
def test_options_are_in_order_and_different(types: tuple[LaunchOption, ...]) -> None:
    assert judge(launch("l1", [WEB], options=types)).rules() == {Rule.OPTION_ORDER}


def test_options_of_one_price_are_in_order_of_name() -> None:
    twins = (instance_type("x", 2), instance_type("y", 2))

    plan = judge(launch("l1", [WEB], options=reversed(twins)), catalog=catalog(*twins))

    assert plan.breaches() == (Breach(Rule.OPTION_ORDER, "l1", detail="y before x"),)


def test_an_option_must_be_a_type_of_the_pool() -> None:
    shop = catalog(SMALL, MEDIUM, LARGE, web=(SMALL, MEDIUM))

    plan = judge(launch("l1", [WEB]), catalog=shop)

    assert plan.breaches() == (Breach(Rule.OPTION_TYPE, "l1", detail="large"),)


@pytest.mark.parametrize(
    "requirement",
    [one_of(ARCH, "amd64"), one_of(INSTANCE_TYPE, "medium"), one_of(CAPACITY_TYPE, ON_DEMAND)],
)
def test_an_option_must_meet_the_requirements_of_the_launch(requirement: Requirement) -> None:
    spot = instance_type("zspot", 5, [offering("a", 700, SPOT)])
    shop = catalog(MEDIUM, ARM, spot)
    options = (option(ARM), option(MEDIUM), option(spot, capacity_type=SPOT))
    misfits = {
        ARCH: ("arm",),
        INSTANCE_TYPE: ("arm", "zspot"),
        CAPACITY_TYPE: ("zspot",),
    }

    plan = judge(launch("l1", [WEB], requirement, options=options), catalog=shop)

    assert {each.rule for each in plan.breaches()} == {Rule.OPTION_TYPE}
    assert plan.breaches()[0].detail.startswith(misfits[requirement.key][0])


def test_an_option_that_is_sold_out_is_a_breach() -> None:
    sold_out = instance_type("medium", 4, [offering("a", 400, is_available=False)])

    plan = judge(launch("l1", [WEB], options=[sold_out]), catalog=catalog(sold_out))

    assert plan.rules() == {Rule.OPTION_TYPE}


@pytest.mark.parametrize(
    "wrong",
    [
        LaunchOption("medium", 399, "a", ON_DEMAND),
        LaunchOption("medium", 400, "z", ON_DEMAND),
        LaunchOption("medium", 400, "a", SPOT),
    ],
)
def test_an_option_is_the_cheapest_offering_of_its_type(wrong: LaunchOption) -> None:
    plan = judge(launch("l1", [WEB], options=[wrong]))

    assert plan.breaches() == (Breach(Rule.OPTION_PRICE, "l1", detail="medium"),)


def test_the_price_is_that_of_the_cheapest_allowed_zone() -> None:
    uneven = instance_type("uneven", 2, [offering("a", 200), offering("b", 100)])
    shop = catalog(uneven)

    free = launch("l1", [WEB], options=[option(uneven, "b")])
    pinned = launch("l1", [WEB], in_zone("a"), options=[option(uneven, "a")])
    missed = launch("l1", [WEB], options=[option(uneven, "a")])

    assert judge(free, catalog=shop).rules() == set()
    assert judge(pinned, catalog=shop).rules() == set()
    assert judge(missed, catalog=shop).rules() == {Rule.OPTION_PRICE}


def test_requirements_lie_within_those_of_the_pool() -> None:
    pools = (pool("web", in_zone("a", "b"), labels={"team": "x"}),)

    assert judge(launch("l1", [WEB], in_zone("b")), pools=pools).rules() == set()
    assert judge(launch("l1", [WEB]), pools=pools).breaches() == (
        Breach(Rule.OUTSIDE_POOL, "l1", detail=f"nothing about {ZONE}"),
    )
    assert judge(launch("l1", [WEB], in_zone("b", "c")), pools=pools).breaches() == (
        Breach(Rule.OUTSIDE_POOL, "l1", detail=f"{ZONE} In [b c]"),
    )


def test_a_custom_key_must_be_defined_by_the_pool() -> None:
    wanting = launch("l1", [WEB], one_of("rack", "r1"))
    shunning = launch("l1", [WEB], require("rack", Operator.NOT_IN, ["r1"]))
    open_rack = (pool("web", require("rack", Operator.EXISTS)),)

    assert judge(wanting).breaches() == (
        Breach(Rule.OUTSIDE_POOL, "l1", detail="rack is not defined"),
    )
    assert judge(shunning).rules() == set()
    assert judge(wanting, pools=open_rack).rules() == set()


@pytest.mark.parametrize(
    "rules",
    [
        {"node_selector": (require("rack", Operator.NOT_IN, ["r9"]),)},
        {"required_node_terms": (NodeTerm((require("rack", Operator.NOT_IN, ["r9"]),)),)},
        {
            "preferred_node_terms": (
                WeightedNodeTerm(1, NodeTerm((require("rack", Operator.NOT_IN, ["r9"]),))),
            )
        },
    ],
)
def test_a_key_with_a_negative_requirement_counts_as_defined(rules: RuleFields) -> None:
    """As in the requirement algebra; the node will have the label."""
    shy = pod("shy", **rules)

    plan = world(launch("l1", [shy], one_of("rack", "r1")), pods=[shy])

    assert plan.rules() == set()


def test_the_label_of_the_node_class_belongs_to_the_pool() -> None:
    reference = NodeClassRef("example.com", "NodeClass", "default")
    right = one_of("example.com/nodeclass", "default")
    wrong = one_of("example.com/nodeclass", "other")
    pools = (pool(node_class=reference),)

    assert judge(launch("l1", [WEB], right), pools=pools).rules() == set()
    assert Rule.OUTSIDE_POOL in judge(launch("l1", [WEB], wrong), pools=pools).rules()


def test_min_values_count_over_the_options() -> None:
    pools = (pool("web", TWO_TYPES),)
    stated = require(INSTANCE_TYPE, Operator.EXISTS)

    assert judge(launch("l1", [WEB], stated), pools=pools).rules() == set()
    assert judge(launch("l1", [WEB], stated, options=[LARGE]), pools=pools).breaches() == (
        Breach(Rule.MIN_VALUES, "l1", detail=f"1 values of {INSTANCE_TYPE}, at least 2 wanted"),
    )


def test_min_values_count_only_values_that_the_launch_still_allows() -> None:
    """Types with two zones do not help a launch that a volume confines to one."""
    two_zones = require(ZONE, Operator.IN, ["a", "b"], min_values=2)
    pools = (pool("web", two_zones),)

    assert judge(launch("l1", [WEB], in_zone("a", "b")), pools=pools).rules() == set()
    assert judge(launch("l1", [WEB], in_zone("a")), pools=pools).rules() == {Rule.MIN_VALUES}


def test_a_key_that_no_type_defines_has_no_variety() -> None:
    racks = require("rack", Operator.IN, ["r1", "r2"], min_values=1)
    stated = one_of("rack", "r1", "r2")

    plan = judge(launch("l1", [WEB], stated), pools=(pool("web", racks),))

    assert plan.rules() == {Rule.MIN_VALUES}


def test_min_values_are_relaxed_only_by_best_effort_and_only_if_stated() -> None:
    stated = require(INSTANCE_TYPE, Operator.EXISTS)
    honest = launch("l1", [WEB], stated, options=[LARGE], is_min_values_relaxed=True)
    silent = replace(honest, is_min_values_relaxed=False)
    pools = (pool("web", TWO_TYPES),)
    best_effort = Settings(min_values_policy=MinValuesPolicy.BEST_EFFORT)

    assert judge(honest, pools=pools, settings=best_effort).rules() == set()
    assert judge(silent, pools=pools, settings=best_effort).rules() == {Rule.MIN_VALUES}
    assert judge(honest, pools=pools).rules() == {Rule.MIN_VALUES}


def test_a_launch_states_at_least_what_its_pods_request() -> None:
    plan = judge(launch("l1", [WEB], resources={"cpu": 999, "memory": 2**30, "pods": 1}))

    assert plan.breaches() == (Breach(Rule.STATED_RESOURCES, "l1"),)


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


def test_a_limit_on_a_resource_that_no_launch_adds_is_no_breach() -> None:
    assert limited(gpu="0").rules() == set()


def test_a_pool_that_is_over_its_limit_already_is_no_breach() -> None:
    plan = world(pools=(pool(limits=amounts(cpu="1")),), nodes=(node("n1"),))

    assert plan.rules() == set()


def test_limits_count_the_capacity_override_of_an_offering() -> None:
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
    planned = launch(
        "l1",
        [ONE],
        *requirements,
        options=[option(BOOKED, capacity_type=RESERVED)],
        reservations=held,
    )
    return world(planned, pods=[ONE], catalog=catalog(BOOKED))


def test_a_launch_requires_the_reservations_it_holds() -> None:
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
def test_a_launch_that_allows_other_offerings_is_a_breach(vague: Requirement) -> None:
    assert holding(vague, HAS_ID).rules() == {Rule.RESERVATION}


def test_a_reservation_is_not_used_beyond_its_capacity() -> None:
    plan = holding(IS_RESERVED, HAS_ID)
    other = replace(plan.verdict.launches[0], name="l2", pods=(TWO.key,))
    pods = replace(plan.snapshot, pods=(ONE, TWO))
    verdict = replace(plan.verdict, launches=(*plan.verdict.launches, other))

    assert World(pods, verdict).breaches() == (
        Breach(Rule.RESERVATION, "r-1", detail="2 launches, room for 1"),
    )


def test_the_capacity_of_a_reservation_is_the_least_of_its_offerings() -> None:
    full = replace(RESERVED_IN_A, reservation_capacity=0)
    plan = holding(IS_RESERVED, HAS_ID)
    shop = catalog(BOOKED, instance_type("other", 4, [full]))

    plan = plan._replace(snapshot=replace(plan.snapshot, catalog=shop))

    assert plan.rules() == {Rule.RESERVATION}


def test_an_unknown_or_disabled_reservation_has_no_capacity() -> None:
    off = Settings(reserved_capacity=False)
    plan = holding(IS_RESERVED, HAS_ID)

    assert holding(IS_RESERVED, one_of(RESERVATION, "r-9"), held=("r-9",)).rules() == {
        Rule.RESERVATION,
        Rule.OPTION_TYPE,
    }
    assert plan._replace(snapshot=replace(plan.snapshot, settings=off)).rules() == {
        Rule.RESERVATION
    }
