from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.core.disruption.consolidation import SINGLE_NODE
from karpy.core.disruption.decide import decide_disruption
from karpy.core.disruption.explain import (
    DRIFT,
    EMPTINESS,
    MULTI_NODE,
    STATIC_DRIFT,
    NodeExplanation,
    NodeOutcome,
    Outlook,
    explain_node,
    find_node,
    with_inferred_state,
)
from karpy.core.disruption.lifts import ADVICE, ClusterChange, RefusedNode, advice_on, lift
from karpy.model.conditions import Condition, Conditions
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, NODE_POOL, ON_DEMAND, SPOT
from karpy.model.nodes import Node
from karpy.model.pods import DisruptionBudget, Pod
from karpy.model.pools import Budget, DisruptionPolicy, DisruptionReason, NodePool
from karpy.model.requirements import one_of
from karpy.model.settings import Settings
from karpy.model.snapshot import DisruptionQuestion, Snapshot
from karpy.model.verdicts import LaunchOption, NodeReason, NodeRefusal, Nomination, Verdict
from tests.builders import anti_affinity
from tests.builders.pods import NOON
from tests.core.disruption.scenes import (
    ALL,
    BALANCED,
    DO_NOT_DISRUPT,
    DOLLAR,
    HOUR,
    MINUTE,
    NEVER,
    WEB,
    WHEN_EMPTY,
    budgets,
    cluster,
    node,
    only_node,
    pod,
    pod_budget,
    pool,
)


def explain(snapshot: Snapshot, name: str = "a") -> NodeExplanation:
    return explain_node(snapshot, name)


def changes_of(explained: NodeExplanation) -> list[str]:
    """Return the first change of the best way."""
    assert explained.way is not None
    return [each.text for each in explained.way.changes]


def with_room(
    *pools: NodePool,
    mover: Pod | None = None,
    there: Node | None = None,
    other: Node | None = None,
    **changes: object,
) -> Snapshot:
    """Build a large node that is nearly empty, and another one with room for its pod."""
    pods = [
        mover or pod("web-0", on="a", cpu="2", labels=WEB),
        pod("busy", on="b", cpu="2"),
    ]
    nodes = there or node("a", type="large"), other or node("b", type="small")
    return replace(cluster(*nodes, pods=pods, pools=pools or None), **changes)


# --- what becomes of a node ----------------------------------------------------------------------


def test_a_node_whose_pods_have_room_elsewhere_goes() -> None:
    explained = explain(with_room())

    assert (explained.outcome, explained.sentence) == (
        NodeOutcome.GOES,
        "goes: single-node-consolidation deletes it",
    )
    assert not explained.is_no
    assert explained.price == 4 * DOLLAR
    assert explained.pods == ("shop/web-0",)


def test_an_empty_node_goes_by_emptiness() -> None:
    explained = explain(cluster(node("a"), pods=[pod("log", on="a", daemon=True)]))

    assert explained.sentence == "goes: emptiness deletes it"
    assert (explained.pods, explained.daemons) == ((), 1)


def test_a_drifted_node_is_replaced() -> None:
    seen = cluster(node("a", true_conditions=["Drifted"]), pods=[pod("web", on="a", cpu="3")])

    explained = explain(seen)

    assert explained.sentence == "goes: drift replaces it"
    assert [reason for reason, _ in explained.allowances] == [
        DisruptionReason.DRIFTED,
        DisruptionReason.UNDERUTILIZED,
    ]


def test_a_node_waits_while_another_command_comes_first() -> None:
    explained = explain(with_room(other=node("b", true_conditions=["Drifted"])))

    assert explained.outcome is NodeOutcome.WAITS
    assert not explained.is_no
    assert explained.sentence.startswith("waits its turn: single-node-consolidation")


def test_a_node_that_is_deleted_says_what_its_drain_waits_for() -> None:
    held = pod("db", on="a", labels=WEB)

    explained = explain(cluster(node("a", deleting=True), pods=[held], budgets=(pod_budget("db"),)))

    assert explained.outcome is NodeOutcome.GOING
    assert explained.sentence == (
        "is being deleted; its drain waits: a PodDisruptionBudget lets no pod go (shop/db)"
    )


def test_a_node_of_a_command_is_on_its_way_out() -> None:
    explained = explain(cluster(node("a"), in_command=frozenset({"a-claim"})))

    assert (explained.outcome, explained.sentence) == (
        NodeOutcome.GOING,
        "goes: a disruption command is about it",
    )


def test_commands_are_inferred_from_the_condition_of_their_claims() -> None:
    chosen = node("a", true_conditions=["DisruptionReason"])

    seen = with_inferred_state(cluster(chosen, node("b")), Verdict())

    assert seen.in_command == frozenset({"a-claim"})


def test_nodes_chosen_for_pending_pods_count_as_nominated() -> None:
    verdict = Verdict(nominations=(Nomination("b", ("shop/new",)),))

    seen = with_inferred_state(with_room(), verdict)
    explained = explain(seen, "b")

    assert explained.sentence == "stays: a pending pod is nominated to it"
    assert explain(seen, "a").outcome is NodeOutcome.GOES


def test_an_onlooker_sees_that_a_node_keeps_room_for_a_buffer() -> None:
    room = pod("capacity-buffer-spare-1", namespace="shop")
    seen = cluster(node("a"), node("b"), pods=[replace(room, is_virtual=True)])
    verdict = Verdict(nominations=(Nomination("b", (room.key,)),))

    marked = with_inferred_state(seen, verdict)

    assert [each.buffer_pods for each in marked.nodes] == [0, 1]
    assert [each.nominated_until for each in marked.nodes] == [None, None]


def test_a_node_is_found_by_the_name_of_its_claim_too() -> None:
    seen = cluster(node("a"), node("b"))

    assert find_node(seen, "b-claim") == find_node(seen, "b")
    assert find_node(seen, "c") is None


# --- what keeps it, and what would let it go -----------------------------------------------------


def test_a_pod_with_an_annotation_keeps_it_and_its_removal_was_tried() -> None:
    explained = explain(with_room(mover=pod("web-0", on="a", cpu="2", do_not_disrupt="true")))

    assert explained.is_no
    assert explained.sentence == (
        "stays: the annotation karpenter.sh/do-not-disrupt of a pod forbids disruption"
    )
    assert changes_of(explained) == [f"remove the annotation `{DO_NOT_DISRUPT}` from shop/web-0"]
    assert explained.way is not None
    assert explained.way.command is not None
    assert explained.way.command.savings == 4 * DOLLAR


def test_an_annotation_that_ends_is_waited_for() -> None:
    started = NOON - 10 * MINUTE
    mover = pod("web-0", on="a", cpu="2", do_not_disrupt="1h", started=started)

    explained = explain(with_room(mover=mover))

    assert explained.way is not None
    (change,) = explained.way.changes
    assert (change.is_wait, change.until) == (True, NOON + 50 * MINUTE)


def test_the_annotation_of_a_node_can_be_removed() -> None:
    kept = node("a", type="large", annotations={DO_NOT_DISRUPT: "true", "other": "stays"})

    explained = explain(with_room(there=kept))

    assert changes_of(explained) == [f"remove the annotation `{DO_NOT_DISRUPT}` from Node `a`"]


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (
            pod_budget("web", 0, min_available="2"),
            (
                "add a replica, see that all are ready, or ease PodDisruptionBudget shop/web"
                " (`minAvailable: 2`), which allows none"
            ),
        ),
        (
            pod_budget("web", 0, max_unavailable="0"),
            (
                "let PodDisruptionBudget shop/web allow a disruption: with `maxUnavailable: 0` it"
                " never does"
            ),
        ),
    ],
)
def test_a_budget_of_pods_says_how_it_is_eased(budget: DisruptionBudget, text: str) -> None:
    assert changes_of(explain(with_room(budgets=(budget,)))) == [text]


def test_two_budgets_on_one_pod_are_named() -> None:
    both = (pod_budget("web", 1), pod_budget("all", 1))

    assert changes_of(explain(with_room(budgets=both))) == [
        "have one PodDisruptionBudget alone cover shop/web-0: shop/all, shop/web do"
    ]


def test_a_window_that_forbids_is_waited_for_until_it_ends() -> None:
    window = Budget("0", ("Underutilized",), "0 9 * * mon-fri", 8 * HOUR)

    explained = explain(with_room(pool(policy=replace(ALL, budgets=(Budget("50%"), window)))))

    assert explained.way is not None
    assert explained.way.changes == (
        ClusterChange(
            "wait until budget 2 (`nodes: 0`, `0 9 * * mon-fri` UTC for 8h) of NodePool web allows"
            " more than none",
            NodeReason.BUDGET_SPENT,
            is_wait=True,
            until=datetime(2026, 3, 2, 17, tzinfo=UTC),
        ),
    )


def test_a_budget_of_none_has_to_be_raised() -> None:
    explained = explain(with_room(pool(policy=budgets("0"))))

    assert changes_of(explained) == [
        "raise budget 1 (`nodes: 0`) of NodePool web, which allows none"
    ]
    assert explained.way is not None
    assert explained.way.is_complete


def test_a_budget_that_others_use_is_waited_for() -> None:
    gone = node("c", deleting=True)
    seen = with_room(pool(policy=budgets("1")))

    explained = explain(replace(seen, nodes=(*seen.nodes, gone)))

    assert changes_of(explained) == [
        (
            "wait for 1 node of NodePool web that is being deleted or not ready: budget 1"
            " (`nodes: 1`) allows 1"
        )
    ]


def test_a_budget_that_cannot_be_read_has_to_be_corrected() -> None:
    odd = replace(ALL, budgets=(Budget("1", schedule="never", duration=HOUR),))

    (text,) = changes_of(explain(with_room(pool(policy=odd))))

    assert text.startswith("correct the budgets of NodePool web: `never` is no schedule")


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (
            WHEN_EMPTY,
            (
                "set `consolidationPolicy` of NodePool web to `WhenEmptyOrUnderutilized`: it is"
                " `WhenEmpty`"
            ),
        ),
        (NEVER, "set `consolidateAfter` of NodePool web to a duration: it is `Never`"),
    ],
)
def test_a_policy_that_forbids_is_named(policy: DisruptionPolicy, text: str) -> None:
    # A NodePool that never consolidates has no NodeClaim with the condition Consolidatable.
    assert changes_of(explain(with_room(pool(policy=policy))))[0] == text


def test_a_node_under_consolidate_after_is_waited_for() -> None:
    patient = pool(policy=replace(ALL, consolidate_after=5 * MINUTE))
    recent = node("a", type="large", true_conditions=[], last_pod_event=NOON - MINUTE)

    explained = explain(with_room(patient, there=recent))

    assert explained.way is not None
    assert explained.way.changes == (
        ClusterChange(
            "wait until no pod has come or gone for `consolidateAfter`",
            NodeReason.NOT_QUIET,
            is_wait=True,
            until=NOON + 4 * MINUTE,
        ),
    )


def test_several_reasons_are_all_named_in_order() -> None:
    mover = pod("web-0", on="a", cpu="2", labels=WEB, do_not_disrupt="true")

    explained = explain(
        with_room(pool(policy=budgets("0")), mover=mover, budgets=(pod_budget("web"),))
    )

    assert explained.way is not None
    assert [each.why for each in explained.way.changes] == [
        NodeReason.POD_DO_NOT_DISRUPT,
        NodeReason.POD_BUDGET,
        NodeReason.BUDGET_SPENT,
    ]
    assert explained.way.is_complete


def test_the_one_pod_that_keeps_a_node_is_found() -> None:
    """The two pods fit nowhere together; without the smaller pod, the other has room."""
    pods = [pod("db", on="a", cpu="2"), pod("web", on="a", cpu="1"), pod("busy", on="b", cpu="2")]

    explained = explain(cluster(node("a"), node("b"), pods=pods))

    assert changes_of(explained) == [
        "end shop/web, or make room for it elsewhere: the others have a place then"
    ]
    assert explained.outlook == Outlook(
        price=1 * DOLLAR,
        pods=2,
        nodes=("b",),
        new_nodes=1,
        replacement=LaunchOption("small", 1 * DOLLAR, "zone-a", ON_DEMAND),
        cost=1 * DOLLAR,
    )
    assert explained.outlook.saving == 0


def test_a_node_that_nothing_lets_go_gets_advice_that_was_not_tried() -> None:
    explained = explain(cluster(node("a"), pods=[pod("db", on="a", cpu="3")]))

    way = explained.way
    assert way is not None
    assert (way.is_complete, way.changes) == (False, ())
    assert way.wall is not None
    assert way.wall.why is NodeReason.NOT_CHEAPER
    assert way.advice.startswith("end or shrink some of its pods")


def test_pods_that_need_several_new_nodes_are_counted() -> None:
    """The two pods are too large for one cheaper node; two nodes would cost as much as now."""
    apart = anti_affinity(HOSTNAME, WEB)
    pods = [pod(f"web-{n}", on="a", cpu="3", labels=WEB, anti_affinity=[apart]) for n in range(2)]

    explained = explain(cluster(node("a", type="medium"), pods=pods))

    assert explained.sentence == "stays: its pods would take more than one new node"
    assert explained.outlook is not None
    assert (explained.outlook.new_nodes, explained.outlook.saving) == (2, 0)


def test_a_pause_after_a_failed_command_is_waited_for() -> None:
    until = NOON + 2 * MINUTE

    explained = explain(with_room(command_backoffs={"a-claim": until}))

    assert explained.way is not None
    (change,) = explained.way.changes
    assert (change.why, change.until, change.is_wait) == (NodeReason.BACKING_OFF, until, True)
    assert explained.way.is_complete


def test_pods_that_prefer_nodes_of_their_own_may_prefer_less() -> None:
    apart = [(1, anti_affinity(HOSTNAME, WEB))]
    pods = [pod(f"web-{name}", on=name, labels=WEB, prefers_away=apart) for name in "ab"]

    explained = explain(cluster(node("a"), node("b"), pods=pods))

    assert explained.way is not None
    assert [each.text for each in explained.way.changes] == [
        "remove the preferences (preferred terms, `ScheduleAnyway`) of shop/web-a"
    ]
    assert explained.way.is_complete


def test_nodes_under_consolidate_after_take_pods_later() -> None:
    patient = pool(policy=replace(ALL, consolidate_after=5 * MINUTE))
    recent = node("b", true_conditions=[], last_pod_event=NOON - MINUTE)
    small = node("a", type="small")

    explained = explain(with_room(patient, there=small, other=recent))

    assert explained.way is not None
    assert explained.way.changes == (
        ClusterChange(
            "wait until no pod comes or goes on b for `consolidateAfter`",
            NodeReason.NOT_CHEAPER,
            is_wait=True,
            until=NOON + 4 * MINUTE,
        ),
    )


def test_the_gate_of_spot_nodes_is_named_and_what_lies_behind_it() -> None:
    spot = pool(requirements=[one_of(CAPACITY_TYPE, SPOT)])
    seen = cluster(node("a", type="large", spot=True), pods=[pod("db", on="a")], pools=[spot])

    explained = explain(seen)
    opened = explain(replace(seen, settings=Settings(spot_to_spot_consolidation=True)))

    assert changes_of(explained) == ["open the feature gate `SpotToSpotConsolidation`"]
    assert explained.way is not None
    assert explained.way.wall is not None
    assert explained.way.wall.why is NodeReason.SPOT_TO_SPOT_TYPES
    assert "15 cheaper ones are asked for, 2 are left" in explained.way.advice
    assert changes_of(opened) == []


def test_a_balanced_pool_is_named_with_its_policy() -> None:
    seen = cluster(
        node("a"),
        node("b", type="large"),
        pods=[*(pod(f"web-{n}", on="a", cpu="100m") for n in range(9)), pod("db", on="b")],
        pools=[pool(policy=BALANCED)],
    )

    explained = explain(seen)

    assert explained.sentence == (
        "stays: the move would save too little for the pods that it disrupts"
    )
    assert changes_of(explained) == [
        "set `consolidationPolicy` of NodePool web to `WhenEmptyOrUnderutilized`: it is `Balanced`"
    ]


def test_a_drifted_node_names_the_pods_without_another_place() -> None:
    seen = cluster(
        node("a", type="large", true_conditions=["Drifted"]),
        pods=[pod("huge", on="a", cpu="14"), pod("web", on="a")],
        types=[],
        catalog=with_room().catalog,
        pools=[pool(limits={"cpu": "1"})],
    )

    explained = explain(seen)
    drift = next(each for each in explained.ways if each.method == DRIFT)

    assert drift.first is not None
    assert drift.first.why is NodeReason.PODS_UNPLACED
    assert drift.changes[0].text.startswith("end shop/huge, shop/web, or make room for them")


def test_a_node_of_a_static_pool_is_about_static_drift_alone() -> None:
    explained = explain(cluster(node("a"), pools=[pool(replicas=3)]))

    assert [each.method for each in explained.attempts] == [
        "repair",
        EMPTINESS,
        STATIC_DRIFT,
        MULTI_NODE,
        SINGLE_NODE,
    ]
    assert explained.way is not None
    assert explained.way.advice == "lower `replicas` of NodePool web"


# --- what was not seen ---------------------------------------------------------------------------


def test_a_node_without_its_claim_is_said_to_lack_it() -> None:
    explained = explain(cluster(only_node("a")))

    assert explained.sentence == "stays: it has no NodeClaim that Karpy manages"
    assert explained.unknown == (
        (
            "its NodeClaim, without which no method is about it; its label says that NodePool web"
            " made it"
        ),
    )
    assert explained.way is not None
    assert explained.way.advice.startswith("look for its NodeClaim")


def test_a_node_that_no_pool_made_lacks_nothing() -> None:
    explained = explain(cluster(only_node("a", labels={NODE_POOL: ""})))

    assert explained.unknown == ()
    assert explained.way is not None
    assert explained.way.advice.startswith("delete it as it was made")


def test_a_budget_without_a_status_is_not_known() -> None:
    explained = explain(with_room(budgets=(pod_budget("web", None),)))

    assert explained.unknown == (
        "the status of PodDisruptionBudget shop/web: it counts as allowing none",
    )
    assert changes_of(explained) == [
        "look at the status of PodDisruptionBudget shop/web, which is not known"
    ]


def test_a_claim_without_conditions_is_not_known() -> None:
    bare = node("a")
    assert bare.claim_record is not None
    bare = replace(bare, claim_record=replace(bare.claim_record, conditions=Conditions()))

    assert explain(cluster(bare)).unknown == (
        "the status of NodeClaim a-claim: nothing is known of Consolidatable or Drifted",
    )


def test_a_pool_that_is_not_there_is_not_known() -> None:
    explained = explain(cluster(node("a"), pools=[]))

    assert explained.unknown == ("NodePool web, with its policy and budgets",)
    assert explained.sentence == "stays: its NodePool does not exist, or has no instance types"


def test_a_node_that_does_not_initialize_says_what_it_waits_for() -> None:
    booting = node("a", initialized=False)
    assert booting.claim_record is not None
    why = Condition("Initialized", "Unknown", NOON, "NodeNotReady", "Node status is NotReady")
    conditions = booting.claim_record.conditions.with_condition(why, NOON)
    booting = replace(booting, claim_record=replace(booting.claim_record, conditions=conditions))

    explained = explain(cluster(booting))

    assert explained.way is not None
    assert explained.way.advice == (
        "see why it is not initialized (Node status is NotReady): `kubectl describe nodeclaim"
        " a-claim`"
    )


# --- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", NodeReason)
def test_every_reason_has_a_change_or_advice(why: NodeReason) -> None:
    there = node("a", type="large", nominated_for=MINUTE, annotations={"x": "y"})
    seen = with_room(pool(policy=budgets("0")), there=there, budgets=(pod_budget("web"),))
    refusal = NodeRefusal(why, "a", "shop/web", pods=("shop/web-0",))
    kept = RefusedNode(seen, there, refusal, DisruptionReason.UNDERUTILIZED)

    lifted = lift(kept)
    text = advice_on(kept) if lifted is None else lifted.change.text

    assert (lifted is None) == (why in ADVICE)
    assert text
    assert "{" not in text


POLICIES = st.sampled_from(
    [ALL, WHEN_EMPTY, BALANCED, NEVER, budgets("0"), budgets("1"), budgets("40%")]
)


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Draw a few nodes, each with a reason to be kept or none, and their pods."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 4)))]
    nodes = [
        node(
            name,
            type=draw(st.sampled_from(["small", "medium", "large", "unheard-of"])),
            spot=draw(st.booleans()),
            true_conditions=draw(
                st.sampled_from([["Consolidatable"], ["Consolidatable", "Drifted"], []])
            ),
            annotations=draw(st.sampled_from([{}, {}, {DO_NOT_DISRUPT: "true"}])),
            initialized=draw(st.sampled_from([True, True, True, False])),
            deleting=draw(st.sampled_from([False, False, False, True])),
            grace_period=draw(st.sampled_from([None, MINUTE])),
            buffer_pods=draw(st.sampled_from([0, 0, 2])),
        )
        for name in names
    ]
    pods = [
        pod(
            f"{name}-{number}",
            on=name,
            cpu=draw(st.sampled_from(["100m", "1", "3"])),
            labels=draw(st.sampled_from([{}, WEB])),
            age=draw(st.sampled_from([MINUTE, timedelta(days=1)])),
            do_not_disrupt=draw(st.sampled_from(["", "", "90m"])),
        )
        for name in names
        for number in range(draw(st.integers(0, 3)))
    ]
    return cluster(
        *nodes,
        pods=pods,
        pools=[pool(policy=draw(POLICIES), replicas=draw(st.sampled_from([None, None, 2])))],
        budgets=draw(st.sampled_from([(), (pod_budget("web"),), (pod_budget("web", 1),)])),
        settings=Settings(spot_to_spot_consolidation=draw(st.booleans())),
    )


@given(clusters())
def test_a_node_goes_exactly_if_the_verdict_takes_it(seen: Snapshot) -> None:
    verdict = decide_disruption(DisruptionQuestion(seen))
    taken = {each.node for each in verdict.nodes}

    going = {
        each.name
        for each in seen.nodes
        if explain_node(seen, each.name).outcome is NodeOutcome.GOES
    }

    assert going == taken


@given(clusters())
def test_the_first_way_is_complete_if_any_is(seen: Snapshot) -> None:
    ends = [[way.is_complete for way in explain_node(seen, each.name).ways] for each in seen.nodes]

    assert ends == [sorted(each, reverse=True) for each in ends]


@given(clusters())
def test_an_incomplete_way_has_advice(seen: Snapshot) -> None:
    ways = [way for each in seen.nodes for way in explain_node(seen, each.name).ways]

    assert all(way.advice for way in ways if way.wall is not None)
    assert all(way.is_complete or way.wall is not None for way in ways)
