"""Consolidation of nodes in use: eligibility, replacements, savings."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from karpy.core.disruption.candidates import refusal_notices
from karpy.core.disruption.consolidation import (
    Consolidation,
    Move,
    examine,
    find_eligible,
    is_settled,
)
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.scheduling.overlays import with_overlays
from karpy.model.commands import Command, CommandNode
from karpy.model.instances import InstanceType
from karpy.model.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    ON_DEMAND,
    RESERVED,
    SPOT,
    ZONE,
)
from karpy.model.nodes import Node
from karpy.model.pools import DisruptionReason, NodeOverlay, NodePool
from karpy.model.requirements import one_of
from karpy.model.settings import MinValuesPolicy, PreferencePolicy, Settings
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import LaunchOption, NodeReason, NodeRefusal
from tests.builders import (
    FAMILY,
    NOON,
    ZONE_A,
    ZONE_B,
    anti_affinity,
    catalog,
    exists,
    instance_type,
    is_in,
    min_values,
    offering,
    overlay,
    taint,
)
from tests.core.disruption.scenes import (
    ALL,
    BALANCED,
    DOLLAR,
    HOUR,
    MINUTE,
    NEVER,
    WEB,
    WHEN_EMPTY,
    candidate,
    cluster,
    event_rows,
    node,
    pod,
    pool,
    refused,
)

METHOD = "single-node-consolidation"
BOTH = pool(requirements=[one_of(CAPACITY_TYPE, SPOT, ON_DEMAND)])
"""A NodePool that makes spot and on-demand nodes."""
SPOT_TO_SPOT = Settings(spot_to_spot_consolidation=True)


def move(given: Snapshot, *names: str) -> Move:
    consolidation = Consolidation(Evaluation(given), METHOD, "single")
    return consolidation.move([candidate(given, each) for each in names])


def types_of(found: Move) -> list[str]:
    """Return the types that the replacement may become."""
    assert found.command is not None
    (replacement,) = found.command.replacements
    return [each.instance_type for each in replacement.launch.options]


def capacity_types(found: Move) -> frozenset[str]:
    assert found.command is not None
    (replacement,) = found.command.replacements
    return replacement.launch.requirements[CAPACITY_TYPE].values


def spot_types(count: int, dollars: float = 0.01) -> list[InstanceType]:
    """Build types with four CPUs, each a cent dearer than the previous type."""
    return [
        instance_type(f"t{number:02}", cpu="4", dollars=9.0, spot_dollars=dollars * (number + 1))
        for number in range(count)
    ]


# --- eligibility ---------------------------------------------------------------------------------


def test_a_node_in_use_that_has_been_quiet_is_eligible() -> None:
    given = cluster(node("a"), pods=[pod("x", on="a")])

    eligible = find_eligible(Evaluation(given), METHOD)

    assert eligible.candidates == (candidate(given, "a"),)
    assert eligible.refusals == ()


INELIGIBLE: tuple[tuple[str, Node, NodePool, str], ...] = (
    ("POOL_STATIC", node("a"), pool(replicas=1), ""),
    (
        "TYPE_UNKNOWN",
        node("a", type="unheard-of"),
        pool(),
        'Instance Type "unheard-of" not found',
    ),
    (
        "LABEL_MISSING",
        node("a", labels={CAPACITY_TYPE: "", ZONE: ""}),
        pool(),
        f'Node does not have label "{CAPACITY_TYPE}"',
    ),
    (
        "LABEL_MISSING",
        node("a", labels={ZONE: ""}),
        pool(),
        f'Node does not have label "{ZONE}"',
    ),
    (
        "CONSOLIDATION_DISABLED",
        node("a"),
        pool(policy=NEVER),
        'NodePool "web" has consolidation disabled',
    ),
    (
        "WHEN_EMPTY_ONLY",
        node("a"),
        pool(policy=WHEN_EMPTY),
        'NodePool "web" has non-empty consolidation disabled',
    ),
    ("NOT_QUIET", node("a", true_conditions=[]), pool(), ""),
)


@pytest.mark.parametrize(("why", "given", "of_pool", "text"), INELIGIBLE)
def test_a_node_takes_no_part_in_consolidation_and_says_why(
    why: str, given: Node, of_pool: NodePool, text: str
) -> None:
    evaluation = Evaluation(cluster(given, pods=[pod("x", on="a")], pools=[of_pool]))

    (refusal,) = find_eligible(evaluation, METHOD).refusals

    assert (refusal.why.name, refusal.method) == (why, METHOD)
    events = event_rows(refusal_notices([refusal], evaluation))
    assert {each[2:] for each in events} == ({("Unconsolidatable", text)} if text else set())


def test_a_node_of_no_type_is_refused_for_that_before_anything_else_but_its_pool() -> None:
    given = node("a", labels={INSTANCE_TYPE: "", ZONE: ""}, true_conditions=[])

    (refusal,) = find_eligible(
        Evaluation(cluster(given, pools=[pool(policy=NEVER)])), METHOD
    ).refusals

    assert refusal.why is NodeReason.TYPE_UNKNOWN


def test_an_empty_node_is_left_to_emptiness_whatever_the_policy() -> None:
    given = cluster(node("a", true_conditions=[]), pools=[pool(policy=WHEN_EMPTY)])

    assert refused(find_eligible(Evaluation(given), METHOD).refusals) == [("a", "EMPTY", "")]


def test_a_node_that_was_not_quiet_says_until_when() -> None:
    policy = replace(ALL, consolidate_after=HOUR)
    busy = node("a", true_conditions=[], last_pod_event=NOON - MINUTE)
    given = cluster(busy, pods=[pod("x", on="a")], pools=[pool(policy=policy)])

    (refusal,) = find_eligible(Evaluation(given), METHOD).refusals

    assert refusal.until == NOON + HOUR - MINUTE


@pytest.mark.parametrize("policy", [ALL, BALANCED])
def test_two_policies_let_nodes_in_use_go(policy: object) -> None:
    given = cluster(node("a"), pods=[pod("x", on="a")], pools=[replace(pool(), policy=policy)])

    assert len(find_eligible(Evaluation(given), METHOD).candidates) == 1


def test_nodes_in_use_stay_while_nodes_boot_for_pods() -> None:
    booting = node("new", age=MINUTE, initialized=False, true_conditions=[])
    pods = [pod("x", on="a"), pod("y", on="new", unschedulable=False, expected=True)]

    eligible = find_eligible(Evaluation(cluster(node("a"), booting, pods=pods)), METHOD)

    assert eligible.candidates == ()
    assert ("a", "SCALING_OUT", "") in refused(eligible.refusals)


def test_a_node_stays_whose_pods_a_rollout_is_about_to_replace() -> None:
    pods = [
        pod("x", on="a", age=HOUR, replica_set="web-aaa"),
        pod("y", on="b", age=MINUTE, replica_set="web-bbb"),
        pod("z", on="c", replica_set="db-aaa"),
    ]

    eligible = find_eligible(
        Evaluation(cluster(node("a"), node("b"), node("c"), pods=pods)), METHOD
    )

    assert [each.name for each in eligible.candidates] == ["c"]
    assert refused(eligible.refusals) == [("a", "ROLLOUT", "shop/x"), ("b", "ROLLOUT", "shop/y")]


# --- deletion ------------------------------------------------------------------------------------


def test_a_node_whose_pods_fit_elsewhere_is_deleted() -> None:
    given = cluster(node("a"), node("b"), pods=[pod("x", on="a", cpu="2")])

    found = move(given, "a")

    assert found == Move(
        Command(
            METHOD,
            DisruptionReason.UNDERUTILIZED,
            (CommandNode("a", "a-claim", "web", DOLLAR, 1),),
            nominated=("b",),
            consolidation_type="single",
            proposed=NOON,
        ),
        replacement=0,
        saving=DOLLAR,
        counts=found.counts,
    )


def test_several_nodes_are_deleted_together() -> None:
    given = cluster(
        *(node(each) for each in "abc"),
        pods=[pod("x", on="a", cpu="1"), pod("y", on="b", cpu="1"), pod("z", on="c", cpu="2")],
    )

    found = move(given, "a", "b")

    assert found.command is not None
    assert (found.command.savings, found.command.nominated) == (2 * DOLLAR, ("c",))


def test_daemons_go_with_their_node() -> None:
    given = cluster(node("a"), node("b"), pods=[pod("d", on="a", cpu="4", daemon=True)])

    assert move(replace(given, pods=(*given.pods, pod("x", on="a"))), "a").command is not None


@pytest.mark.parametrize(
    "there",
    [
        node("b", initialized=False),
        node("b", deleting=True),
        node("b", taints=[taint("dedicated", "db")]),
        node("b", last_pod_event=NOON - MINUTE),
    ],
    ids=["booting", "deleting", "tainted", "not quiet"],
)
def test_pods_are_not_moved_to_a_node_that_is_no_place_for_them(there: Node) -> None:
    policy = replace(ALL, consolidate_after=5 * MINUTE)
    given = cluster(node("a"), there, pods=[pod("x", on="a", cpu="2")], pools=[pool(policy=policy)])

    assert move(given, "a").why is NodeReason.NOT_CHEAPER


def test_pods_are_moved_to_a_node_once_consolidate_after_is_over_there() -> None:
    policy = replace(ALL, consolidate_after=5 * MINUTE)
    quiet = node("b", last_pod_event=NOON - 5 * MINUTE)
    given = cluster(node("a"), quiet, pods=[pod("x", on="a", cpu="2")], pools=[pool(policy=policy)])

    assert move(given, "a").command is not None


def test_pods_that_wait_take_the_room_first() -> None:
    some = [pod("x", on="a", cpu="3"), pod("waits", cpu="3500m")]

    assert move(cluster(node("a"), node("b"), pods=some), "a").why is NodeReason.NOT_CHEAPER


def test_pods_expected_on_a_node_keep_their_room() -> None:
    some = [
        pod("x", on="a", cpu="3"),
        pod("coming", on="b", cpu="3", expected=True, unschedulable=False),
    ]

    assert move(cluster(node("a"), node("b"), pods=some), "a").why is NodeReason.NOT_CHEAPER


def test_a_pod_that_waits_for_a_node_of_its_own_does_not_count_as_a_replacement() -> None:
    """Provisioning launches the node for the pending pod in any case."""
    some = [pod("x", on="a", cpu="2"), pod("waits", cpu="15")]

    found = move(cluster(node("a"), node("b"), pods=some), "a")

    assert found.command is not None
    assert found.command.replacements == ()


def test_pods_on_nodes_that_are_deleted_already_take_room_too() -> None:
    some = [pod("x", on="a", cpu="3"), pod("y", on="gone", cpu="3500m")]
    given = cluster(node("a"), node("b"), node("gone", deleting=True), pods=some)

    assert move(given, "a").why is NodeReason.NOT_CHEAPER


def test_moved_pods_leave_smaller_pods_that_wait_the_room_these_have() -> None:
    some = [pod("x", on="a", cpu="3"), pod("waits", cpu="1500m")]

    assert move(cluster(node("a"), node("b"), pods=some), "a").command is None


def test_a_node_stays_if_a_pod_that_waits_has_room_on_it_alone() -> None:
    """A new node would be launched for the pod at once."""
    some = [pod("x", on="a", cpu="1"), pod("y", on="b", cpu="2500m"), pod("waits", cpu="2")]

    found = move(cluster(node("a"), node("b"), pods=some), "a")

    assert (found.why, found.pods) == (NodeReason.NOT_CHEAPER, ("shop/waits",))


def test_moved_pods_leave_pods_of_deleting_nodes_the_room_these_have() -> None:
    some = [pod("x", on="a", cpu="3"), pod("y", on="gone", cpu="1500m")]
    given = cluster(node("a"), node("b"), node("gone", deleting=True), pods=some)

    assert move(given, "a").command is None


def test_a_pod_that_waits_and_has_no_room_keeps_no_node() -> None:
    some = [pod("x", on="a", cpu="2"), pod("y", on="b", cpu="1"), pod("waits", cpu="4")]

    assert move(cluster(node("a"), node("b"), pods=some), "a").command is not None


# --- buffers -------------------------------------------------------------------------------------


def buffered(*, cpu: str) -> Snapshot:
    """Build two nodes in use, and a virtual pod that has room on the first alone."""
    some = [
        pod("x", on="a", cpu="1"),
        pod("y", on="b", cpu="2500m"),
        pod("buffer-1", cpu=cpu, virtual=True),
    ]
    return cluster(node("a"), node("b"), pods=some)


def test_a_node_goes_if_what_a_buffer_keeps_there_fits_elsewhere() -> None:
    assert move(buffered(cpu="500m"), "a").command is not None


def test_a_node_stays_if_what_a_buffer_keeps_there_fits_nowhere_else() -> None:
    """A new node would be launched for the virtual pod at once."""
    assert move(buffered(cpu="2"), "a").why is NodeReason.NOT_CHEAPER


def test_a_replacement_keeps_the_room_of_a_buffer() -> None:
    some = [pod("x", on="a", cpu="1"), pod("buffer-1", cpu="5", virtual=True)]

    found = move(cluster(node("a", type="large"), pods=some), "a")

    assert types_of(found) == ["medium"]


def test_a_buffer_that_has_no_room_now_keeps_no_node() -> None:
    some = [pod("x", on="a", cpu="2"), pod("buffer-1", cpu="60", virtual=True)]

    assert move(cluster(node("a"), node("b"), pods=some), "a").command is not None


def test_virtual_pods_may_stay_where_pods_are_not_moved() -> None:
    policy = replace(ALL, consolidate_after=5 * MINUTE)
    busy = node("busy", last_pod_event=NOON - MINUTE, type="medium")
    some = [
        pod("x", on="a", cpu="2"),
        pod("y", on="b", cpu="1"),
        pod("buffer-1", cpu="5", virtual=True),
    ]
    given = cluster(node("a"), node("b"), busy, pods=some, pools=[pool(policy=policy)])

    assert move(given, "a").command is not None


def crowded(*, cpu: str, of: str = "small") -> Snapshot:
    """Build a node whose pod fits on two others; a virtual pod has room on the last alone."""
    some = [
        pod("x", on="a", cpu="1"),
        pod("y", on="b", cpu="3"),
        pod("z", on="c", cpu="500m"),
        pod("buffer-1", cpu=cpu, virtual=True),
    ]
    return cluster(node("a", type=of), node("b"), node("c"), pods=some)


def test_a_node_goes_if_its_pods_may_take_the_room_of_a_buffer_without_harm() -> None:
    assert move(crowded(cpu="2500m"), "a").command is not None


def test_a_node_stays_if_its_pods_may_take_room_that_a_buffer_would_have_to_buy_again() -> None:
    """Kube-scheduler does not know of buffers: it may put the pod on the emptiest node."""
    assert move(crowded(cpu="3"), "a") == Move(
        why=NodeReason.NOT_CHEAPER,
        detail=(
            "shop/buffer-1: no node has room and no NodePool can make one that would:"
            " no other node, and no new one for less than $1.0000/h"
            " (if kube-scheduler puts moved pods where CapacityBuffers have their room)"
        ),
        pods=("shop/buffer-1",),
    )


def test_a_node_is_replaced_if_that_pays_for_the_room_its_pods_may_take_from_a_buffer() -> None:
    found = move(crowded(cpu="3", of="medium"), "a")

    assert types_of(found) == ["small"]
    assert found.saving == DOLLAR


def test_kube_scheduler_puts_pods_also_where_none_should_move() -> None:
    policy = replace(ALL, consolidate_after=5 * MINUTE)
    busy = node("c", last_pod_event=NOON - MINUTE)
    given = replace(crowded(cpu="3"), pools=(pool(policy=policy),))
    given = replace(given, nodes=(node("a"), node("b"), busy))

    assert move(given, "a").why is NodeReason.NOT_CHEAPER


def test_moved_pods_may_be_put_elsewhere_than_where_they_are_expected() -> None:
    """The plan expects the pod on `b`, beside the small part of the buffer."""
    some = [
        pod("x", on="a", cpu="1"),
        pod("y", on="b", cpu="1100m"),
        pod("z", on="c", cpu="1"),
        pod("buffer-1", cpu="1900m", virtual=True),
        pod("buffer-2", cpu="3", virtual=True),
    ]
    given = cluster(node("a"), node("b"), node("c"), pods=some)

    assert move(given, "a").why is NodeReason.NOT_CHEAPER


# --- replacement ---------------------------------------------------------------------------------


def test_a_node_that_is_too_large_is_replaced_by_cheaper_types_cheapest_first() -> None:
    given = cluster(node("a", type="large"), pods=[pod("x", on="a", cpu="2")])

    found = move(given, "a")

    assert found.command is not None
    (replacement,) = found.command.replacements
    assert replacement.launch.options == (
        LaunchOption("small", DOLLAR, ZONE_A, ON_DEMAND),
        LaunchOption("medium", 2 * DOLLAR, ZONE_A, ON_DEMAND),
    )
    assert replacement.launch.pods == ("shop/x",)
    assert (found.replacement, found.saving, found.command.savings) == (
        DOLLAR,
        3 * DOLLAR,
        3 * DOLLAR,
    )


def test_a_replacement_that_costs_as_much_is_none() -> None:
    given = cluster(node("a"), pods=[pod("x", on="a", cpu="2")])

    assert move(given, "a") == Move(
        why=NodeReason.NOT_CHEAPER,
        detail=(
            "shop/x: no node has room and no NodePool can make one that would:"
            " no other node, and no new one for less than $1.0000/h"
        ),
        pods=("shop/x",),
    )


def test_a_replacement_must_cost_less_wherever_it_is_launched() -> None:
    uneven = instance_type(
        "uneven", cpu="4", offerings=[offering(ZONE_A, dollars=1.0), offering(ZONE_B, dollars=4.0)]
    )
    given = cluster(
        node("a", type="large"), pods=[pod("x", on="a", cpu="2")], types=[uneven, LARGE]
    )

    assert move(given, "a").why is NodeReason.NOT_CHEAPER
    anchored = pod("x", on="a", cpu="2", selector={ZONE: ZONE_A})
    assert types_of(move(replace(given, pods=(anchored,)), "a")) == ["uneven"]


LARGE = instance_type("large", cpu="16", memory="64Gi", dollars=4.0)


def test_one_node_is_never_replaced_by_two() -> None:
    """Two small nodes would cost half as much."""
    some = [pod("x", on="a", cpu="3"), pod("y", on="a", cpu="3")]
    small = instance_type("small", cpu="4", dollars=1.0)
    given = cluster(node("a", type="large"), pods=some, types=[small, LARGE])

    found = move(given, "a")

    assert (found.why, found.detail) == (NodeReason.NEEDS_MORE_NODES, "2")


def test_a_nodepool_keeps_its_turn_although_another_is_cheaper() -> None:
    dear = pool("dear", weight=9)
    given = cluster(
        node("a", type="large"),
        pods=[pod("x", on="a", cpu="2")],
        pools=[pool(), dear],
        catalog=catalog([LARGE], by_pool={"web": [*SIZES]}),
    )

    assert move(given, "a").why is NodeReason.NOT_CHEAPER
    assert move(replace(given, pools=(pool(weight=10), dear)), "a").command is not None


def test_a_preference_gives_way_to_no_price() -> None:
    apart = [(1, anti_affinity(HOSTNAME, WEB))]
    some = [pod(f"web-{name}", on=name, labels=WEB, prefers_away=apart) for name in "ab"]
    given = cluster(node("a"), node("b"), pods=some)
    careless = Settings(preference_policy=PreferencePolicy.IGNORE)

    assert move(given, "a").why is NodeReason.NOT_CHEAPER
    assert move(replace(given, settings=careless), "a").command is not None


SIZES = (
    instance_type("small", cpu="4", dollars=1.0),
    instance_type("medium", cpu="8", dollars=2.0),
    LARGE,
)


def test_several_nodes_are_replaced_by_one() -> None:
    some = [pod("x", on="a", cpu="3"), pod("y", on="b", cpu="3")]
    wide = instance_type("wide", cpu="8", dollars=1.5)
    given = cluster(node("a"), node("b"), pods=some, types=[SIZES[0], wide])

    assert types_of(move(given, "a", "b")) == ["wide"]


def test_a_replacement_of_a_candidates_type_costs_less_than_the_cheapest_of_that_type() -> None:
    """Otherwise keeping that candidate would cost as much, with fewer pods to move."""
    some = [pod("x", on="a", cpu="2"), pod("y", on="b", cpu="1")]
    nodes = [node("a"), node("b")]
    cheap = instance_type("cheap", cpu="4", dollars=0.9)

    only_same = move(cluster(*nodes, pods=some, types=[SIZES[0]]), "a", "b")
    one_more = move(cluster(*nodes, pods=some, types=[SIZES[0], cheap]), "a", "b")

    assert only_same == Move(why=NodeReason.NOT_CHEAPER)
    assert types_of(one_more) == ["cheap"]


def test_types_that_cost_more_than_a_candidate_of_a_like_type_are_dropped() -> None:
    some = [pod("x", on="a", cpu="2"), pod("y", on="b", cpu="1")]
    types = [
        SIZES[0],
        instance_type("cheap", cpu="4", dollars=0.9),
        instance_type("dearer", cpu="4", dollars=1.1),
    ]

    found = move(cluster(node("a"), node("b"), pods=some, types=types), "a", "b")

    assert types_of(found) == ["cheap"]


def test_min_values_are_kept_among_the_cheaper_types() -> None:
    wanting = [one_of(CAPACITY_TYPE, ON_DEMAND), min_values(exists(FAMILY), 2)]
    types = [
        instance_type("m.cheap", cpu="4", dollars=1.0),
        instance_type("c.cheap", cpu="4", dollars=1.5),
        instance_type("large", cpu="16", memory="64Gi", dollars=4.0),
    ]
    here = node("a", type=types[2])
    given = cluster(here, pods=[pod("x", on="a")], types=types, pools=[pool(requirements=wanting)])
    fewer = replace(given, catalog=catalog([types[0], types[2]]))

    assert types_of(move(given, "a")) == ["m.cheap", "c.cheap"]
    assert move(fewer, "a").why is NodeReason.NOT_CHEAPER


@pytest.mark.parametrize(("other", "becomes"), [("c.large", []), ("m.large", ["m.cheap"])])
def test_min_values_are_relaxed_for_a_lack_of_types_and_not_for_a_price(
    other: str, becomes: list[str]
) -> None:
    """With types of one family only, minValues are relaxed; with two, both must be cheaper."""
    wanting = [one_of(CAPACITY_TYPE, ON_DEMAND), min_values(exists(FAMILY), 2)]
    cheap = instance_type("m.cheap", cpu="4", dollars=1.0)
    large = instance_type(other, cpu="16", memory="64Gi", dollars=4.0)
    given = cluster(
        node("a", type=large),
        pods=[pod("x", on="a")],
        types=[cheap, large],
        pools=[pool(requirements=wanting)],
        settings=Settings(min_values_policy=MinValuesPolicy.BEST_EFFORT),
    )

    found = move(given, "a")

    assert (types_of(found) if found.command else []) == becomes


# --- capacity types ------------------------------------------------------------------------------


def test_an_on_demand_node_may_become_a_spot_node_and_nothing_else_then() -> None:
    """As on-demand the same type might cost more than the node."""
    given = cluster(node("a"), pods=[pod("x", on="a", cpu="2")], pools=[BOTH])

    found = move(given, "a")

    assert types_of(found) == ["small", "medium"]
    assert capacity_types(found) == {SPOT}


def test_without_spot_capacity_a_replacement_is_on_demand_for_sure() -> None:
    types = [
        instance_type(
            "small",
            cpu="4",
            offerings=[offering(dollars=1.0), offering(capacity_type=SPOT, available=False)],
        ),
        LARGE,
    ]
    given = cluster(
        node("a", type="large"), pods=[pod("x", on="a", cpu="2")], types=types, pools=[BOTH]
    )

    found = move(given, "a")

    assert types_of(found) == ["small"]
    assert capacity_types(found) == {ON_DEMAND}


def test_a_spot_node_becomes_an_on_demand_node_only_where_spot_is_not_allowed() -> None:
    cheap = instance_type("cheap", cpu="4", dollars=0.1)
    given = cluster(
        node("a", spot=True), pods=[pod("x", on="a", cpu="2")], types=[cheap, *SPOT_SIZES]
    )

    assert capacity_types(move(given, "a")) == {ON_DEMAND}
    both = replace(given, pools=(BOTH,))
    assert move(both, "a").why is NodeReason.SPOT_TO_SPOT_DISABLED


SPOT_SIZES = (instance_type("small", cpu="4", dollars=1.0, spot_dollars=0.4),)


@pytest.mark.parametrize(
    ("count", "settings", "why", "expected"),
    [
        (15, SPOT_TO_SPOT, None, 15),
        (20, SPOT_TO_SPOT, None, 15),
        (14, SPOT_TO_SPOT, NodeReason.SPOT_TO_SPOT_TYPES, 0),
        (15, Settings(), NodeReason.SPOT_TO_SPOT_DISABLED, 0),
    ],
)
def test_a_spot_node_becomes_another_only_behind_a_gate_and_with_15_cheaper_types(
    count: int, settings: Settings, why: NodeReason | None, expected: int
) -> None:
    own = instance_type("own", cpu="4", dollars=9.0, spot_dollars=5.0)
    given = cluster(
        node("a", type=own, spot=True),
        pods=[pod("x", on="a")],
        pools=[BOTH],
        types=[own, *spot_types(count)],
        settings=settings,
    )

    found = move(given, "a")

    assert found.why is why
    assert (types_of(found) if found.command else []) == [f"t{each:02}" for each in range(expected)]


def test_too_few_cheaper_spot_types_are_counted_in_the_event() -> None:
    own = instance_type("own", cpu="4", dollars=9.0, spot_dollars=5.0)
    evaluation = Evaluation(cluster(node("a", type=own, spot=True)))
    refusal = NodeRefusal(NodeReason.SPOT_TO_SPOT_TYPES, "a", "7")

    text = (
        "SpotToSpotConsolidation requires 15 cheaper instance type options than the current"
        " candidate to consolidate, got 7"
    )
    assert event_rows(refusal_notices([refusal], evaluation))[0][3] == text


def test_of_15_cheaper_spot_types_no_more_are_kept_unless_min_values_ask_for_them() -> None:
    own = instance_type("own", cpu="4", dollars=9.0, spot_dollars=5.0)
    families = [
        instance_type(
            f"f{number // 9}.t{number:02}", cpu="4", dollars=9.0, spot_dollars=0.01 * number
        )
        for number in range(1, 25)
    ]
    wanting = [one_of(CAPACITY_TYPE, SPOT), min_values(exists(FAMILY), 3)]
    given = cluster(
        node("a", type=own, spot=True),
        pods=[pod("x", on="a")],
        pools=[pool(requirements=wanting)],
        types=[own, *families],
        settings=SPOT_TO_SPOT,
    )

    assert len(types_of(move(given, "a"))) == 18


def test_several_spot_nodes_become_one_without_asking_for_many_types() -> None:
    own = instance_type("own", cpu="4", dollars=9.0, spot_dollars=5.0)
    given = cluster(
        node("a", type=own, spot=True),
        node("b", type=own, spot=True),
        pods=[pod("x", on="a"), pod("y", on="b")],
        pools=[BOTH],
        types=[own, *spot_types(3)],
        settings=SPOT_TO_SPOT,
    )

    assert types_of(move(given, "a", "b")) == ["t00", "t01", "t02"]


def test_spot_and_on_demand_nodes_together_become_one_spot_node() -> None:
    own = instance_type("own", cpu="4", dollars=9.0, spot_dollars=5.0)
    given = cluster(
        node("a", type=own, spot=True),
        node("b", type=own),
        pods=[pod("x", on="a"), pod("y", on="b")],
        pools=[BOTH],
        types=[own, *spot_types(3)],
    )

    assert capacity_types(move(given, "a", "b")) == {SPOT}


def reserving(left: int) -> Snapshot:
    """Build a node, and a reservation for a type that is dear without it."""
    sold = [offering(dollars=0.001, reservation="r", left=left), offering(dollars=9.0)]
    types = [instance_type("reserved", cpu="4", offerings=sold), LARGE]
    asks = [one_of(CAPACITY_TYPE, RESERVED, ON_DEMAND)]
    return cluster(
        node("a", type="large"),
        pods=[pod("x", on="a", cpu="2")],
        types=types,
        pools=[pool(requirements=asks)],
    )


def test_a_node_goes_where_capacity_is_reserved_and_only_there() -> None:
    found = move(reserving(1), "a")

    assert found.command is not None
    (replacement,) = found.command.replacements
    assert replacement.launch.reservations == ("r",)
    assert capacity_types(found) == {RESERVED}
    assert found.saving == 4 * DOLLAR - 1000


def test_a_reservation_without_a_machine_left_justifies_no_replacement() -> None:
    assert move(reserving(0), "a").why is NodeReason.NOT_CHEAPER


def test_pods_do_not_wait_for_a_full_reservation_but_go_elsewhere() -> None:
    """Provisioning would wait for the reservation, whose machines are nearly free."""
    given = reserving(0)
    small = instance_type("small", cpu="4", dollars=1.0)
    given = replace(given, catalog=catalog([*given.catalog.types, small]))

    assert types_of(move(given, "a")) == ["small"]


# --- overlays ------------------------------------------------------------------------------------


OTHER = instance_type("other", cpu="8", dollars=1.5)


def overlaid(*overlays: NodeOverlay, others: Sequence[InstanceType] = (OTHER,)) -> Snapshot:
    return with_overlays(
        cluster(
            node("a", type="medium"),
            pods=[pod("x", on="a", cpu="6")],
            types=[SIZES[1], *others],
            overlays=overlays,
            settings=Settings(node_overlay=True),
        )
    )


def test_an_overlay_on_all_types_makes_no_saving() -> None:
    """With other prices for nodes than for replacements, each would be replaced for ever."""
    half = overlay("half", price_adjustment="-50%")
    given, same = overlaid(half), overlaid(half, others=())

    assert move(same, "a").why is NodeReason.NOT_CHEAPER
    assert move(given, "a").saving == DOLLAR // 4


def test_an_overlay_can_make_a_node_the_cheaper_one() -> None:
    given = overlaid(overlay("cheap", is_in(INSTANCE_TYPE, "medium"), price="1.0"))

    assert move(given, "a").why is NodeReason.NOT_CHEAPER


# --- in depth ------------------------------------------------------------------------------------


HALF = instance_type("half", cpu="8", memory="64Gi", dollars=3.0)
WHOLE = instance_type("whole", cpu="16", memory="64Gi", dollars=5.0)
SOLD_OUT = instance_type("large", cpu="16", offerings=[offering(dollars=4.0, available=False)])


def explain(given: Snapshot, name: str = "a") -> Move:
    return examine(candidate(given, name), Evaluation(given))


def test_in_depth_a_move_that_is_found_is_the_same() -> None:
    given = cluster(node("a", type="large"), node("b"), pods=[pod("x", on="a", cpu="2")])

    assert explain(given) == move(given, "a")


def test_in_depth_a_replacement_that_is_not_cheaper_has_its_price() -> None:
    given = cluster(node("a", type="medium"), pods=[pod("x", on="a", cpu="6")])

    assert explain(given) == Move(why=NodeReason.NOT_CHEAPER, replacement=2 * DOLLAR, saving=0)


def test_in_depth_the_best_replacement_is_priced_where_it_is_dearest() -> None:
    uneven = instance_type(
        "uneven", cpu="4", offerings=[offering(ZONE_A, dollars=1.0), offering(ZONE_B, dollars=5.0)]
    )
    here = node("a", type="small")
    given = cluster(here, pods=[pod("x", on="a", cpu="2")], types=[uneven, SIZES[0]])

    assert (explain(given).replacement, explain(given).saving) == (DOLLAR, 0)
    dearer = replace(given, catalog=catalog([uneven]))
    assert (explain(dearer).replacement, explain(dearer).saving) == (5 * DOLLAR, -5 * DOLLAR)


def test_in_depth_every_pod_without_another_place_is_named() -> None:
    stuck = [
        pod("x", on="a", cpu="1", selector={"disk": "ssd"}),
        pod("y", on="a", cpu="1", selector={"disk": "ssd"}),
        pod("z", on="a", cpu="1"),
    ]
    given = cluster(node("a", labels={"disk": "ssd"}), pods=stuck)

    found = explain(given)

    assert found.why is NodeReason.PODS_UNPLACED
    assert found.pods == ("shop/x", "shop/y")
    assert found.detail.startswith("shop/x: no node has room and no NodePool can make one")
    assert (found.replacement, found.saving) == (None, None)


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (
            [HALF],
            Move(
                why=NodeReason.NEEDS_MORE_NODES,
                detail="2",
                replacement=6 * DOLLAR,
                saving=-2 * DOLLAR,
            ),
        ),
        ([HALF, WHOLE], Move(why=NodeReason.NOT_CHEAPER, replacement=5 * DOLLAR, saving=-DOLLAR)),
    ],
    ids=["two", "one that is dearer"],
)
def test_in_depth_nodes_in_place_of_one_have_their_number_and_their_price(
    types: list[InstanceType], expected: Move
) -> None:
    some = [pod("x", on="a", cpu="7"), pod("y", on="a", cpu="7")]
    given = cluster(node("a", type=LARGE), pods=some, types=[SOLD_OUT, *types])

    assert move(given, "a").why is NodeReason.NEEDS_MORE_NODES
    assert explain(given) == expected


# --- the memo ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ([], True),
        ([NodeReason.NOT_CHEAPER, NodeReason.NOT_QUIET, NodeReason.POD_BUDGET], True),
        ([NodeReason.NOT_CHEAPER, NodeReason.BUDGET_SPENT], False),
        ([NodeReason.SCALING_OUT], False),
        ([NodeReason.ROLLOUT], False),
        ([NodeReason.NOMINATED], False),
    ],
)
def test_nothing_is_settled_while_a_reason_may_end_by_itself(
    reasons: Sequence[NodeReason], *, expected: bool
) -> None:
    refusals = [NodeRefusal(each, "a") for each in reasons]

    assert is_settled(Move(), refusals) is expected


def test_a_command_settles_nothing() -> None:
    command = Command(METHOD, DisruptionReason.UNDERUTILIZED, ())

    assert not is_settled(Move(command), [])
