from collections.abc import Sequence
from copy import deepcopy
from datetime import timedelta
from typing import Unpack

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from karpy.codec.verdicts import disruption_to_json
from karpy.core.disruption.decide import (
    METHODS,
    Pass,
    decide_disruption,
    decide_nodes,
    is_news,
    method_of,
    repair_at_once,
    validate,
)
from karpy.core.disruption.method import DisruptionMethod
from karpy.core.disruption.progress import VALIDATION_DELAY
from karpy.core.lifecycle.repair import NodeRepair
from karpy.model.commands import Command, CommandNode, DisruptionVerdict
from karpy.model.conditions import Condition
from karpy.model.nodes import Node, RepairRules
from karpy.model.notices import Notice
from karpy.model.pods import Pod
from karpy.model.pools import DisruptionReason
from karpy.model.snapshot import (
    ConfirmationQuestion,
    DisruptionQuestion,
    LegacyRepairQuestion,
    NodeQuestion,
    Snapshot,
    ValidationQuestion,
)
from karpy.model.verdicts import NodeReason, NodeRefusal
from tests.builders import NOON
from tests.core.disruption.questions import REPAIRS, clusters, questions
from tests.core.disruption.scenes import (
    BALANCED,
    DOLLAR,
    HOUR,
    MINUTE,
    WHEN_EMPTY,
    NodeFields,
    budgets,
    cluster,
    node,
    only_claim,
    only_node,
    pod,
    pool,
    refused,
)

EMPTY, UNHEALTHY = DisruptionReason.EMPTY, DisruptionReason.UNHEALTHY
FAULT = Condition("Ready", "False", NOON - HOUR, "KubeletNotReady")
NAMES = [each.name for each in METHODS]


def asked(snapshot: Snapshot, *settled: str) -> DisruptionVerdict:
    return decide_disruption(DisruptionQuestion(snapshot, frozenset(settled)))


def passed(snapshot: Snapshot, *settled: str) -> Pass:
    """Return a pass that has asked the methods in their turn."""
    made = Pass(DisruptionQuestion(snapshot, frozenset(settled)))
    for method in made.methods():
        made.propose(method)
    return made


def emitted(snapshot: Snapshot) -> list[Notice]:
    """Return all events of a pass."""
    made = Pass(DisruptionQuestion(snapshot))
    return [notice for method in made.methods() for notice in made.propose(method).notices]


# --- one pass ------------------------------------------------------------------------------------


def test_the_methods_are_asked_in_the_order_of_karpenter() -> None:
    assert [(each.name, each.reason.value, each.consolidation_type) for each in METHODS] == [
        ("repair", "Unhealthy", ""),
        ("emptiness", "Empty", "empty"),
        ("static-drift", "Drifted", ""),
        ("drift", "Drifted", ""),
        ("multi-node-consolidation", "Underutilized", "multi"),
        ("single-node-consolidation", "Underutilized", "single"),
    ]
    assert [each.name for each in METHODS if each.is_validated] == [
        "emptiness",
        "multi-node-consolidation",
        "single-node-consolidation",
    ]


BUSY = (
    node("broken", conditions=[FAULT]),
    node("empty"),
    node("static", pool="batch", true_conditions=["Drifted"]),
    node("drifted", true_conditions=["Drifted"]),
    node("small-1"),
    node("small-2"),
    *(node(f"well-{number}", true_conditions=[]) for number in range(3)),
)
FULL = [
    pod("x", on="drifted"),
    pod("y", on="small-1"),
    pod("z", on="small-2"),
    *(pod(f"full-{number}", on=f"well-{number}", cpu="3800m") for number in range(3)),
]
EVERYTHING = cluster(
    *BUSY,
    pods=FULL,
    pools=[pool(), pool("batch", replicas=1)],
    repair=RepairRules(REPAIRS),
)


@pytest.mark.parametrize(
    ("settled", "chosen"),
    [
        (0, ["broken"]),
        (1, ["broken", "empty"]),
        (2, ["static"]),
        (3, ["drifted"]),
        (4, ["small-1", "small-2"]),
        (5, ["small-1"]),
    ],
)
def test_the_first_method_with_a_command_ends_a_pass(settled: int, chosen: list[str]) -> None:
    verdict = asked(EVERYTHING, *NAMES[:settled])

    assert (verdict.method, sorted(each.node for each in verdict.nodes)) == (
        NAMES[settled],
        chosen,
    )


def test_methods_that_find_nothing_are_passed_over_until_the_cluster_changes() -> None:
    quiet = cluster(node("a"), pods=[pod("x", on="a", cpu="3")])

    made = passed(quiet)

    assert made.settled() == {"multi-node-consolidation", "single-node-consolidation"}
    assert [each.name for each in passed(quiet, *made.settled()).methods()] == NAMES[:4]
    assert passed(quiet, "drift").settled() == {"drift", *made.settled()}


def test_a_method_that_a_budget_holds_back_is_asked_again() -> None:
    held = cluster(node("a"), pods=[pod("x", on="a")], pools=[pool(policy=budgets("0"))])

    assert passed(held).settled() == frozenset()


def test_no_method_is_passed_over_while_nodes_for_pending_pods_boot() -> None:
    """A scale-out ends by itself, although nothing else in the cluster changes."""
    booting = only_claim("new", age=MINUTE, initialized=False)
    coming = pod("coming", on="new-claim", expected=True)

    made = passed(cluster(node("a"), booting, pods=[pod("x", on="a"), coming]), "drift")

    assert "SCALING_OUT" in {each.why.name for each in made.verdict().refusals}
    assert made.settled() == {"drift"}


@pytest.mark.parametrize(
    ("snapshot", "settled", "expected"),
    [
        (cluster(node("a"), node("b"), pods=[pod("x", on="a", cpu="3")]), [], {"b"}),
        (cluster(node("a"), pods=[pod("x", on="a", cpu="3")]), [], {"a"}),
        (cluster(node("a"), pods=[pod("x", on="a", cpu="3")]), NAMES[4:], {"a"}),
        (
            cluster(
                node("a"),
                node("b"),
                node("c", true_conditions=[]),
                pods=[pod("x", on="a"), pod("y", on="b")],
            ),
            NAMES[:5],
            {"a", "c"},
        ),
    ],
    ids=["methods are left", "all have answered", "passed over", "one was put off"],
)
def test_nodes_are_considered_once_every_method_has_answered_about_them(
    snapshot: Snapshot, settled: list[str], expected: set[str]
) -> None:
    assert passed(snapshot, *settled).considered() == expected


def test_a_pass_says_when_the_first_refusal_ends_by_itself() -> None:
    lasting = pool(policy=replace(budgets(), consolidate_after=HOUR))
    quiet = [node("a", last_pod_event=NOON, true_conditions=[]), node("b")]
    protected = pod("x", on="b", do_not_disrupt="150m", age=HOUR)

    both, one = cluster(*quiet, pods=[protected], pools=[lasting]), cluster(*quiet[1:])

    assert passed(both).settled_until() == NOON + HOUR
    assert passed(replace(both, nodes=(quiet[1],))).settled_until() == NOON + 1.5 * HOUR
    assert passed(one).settled_until() is None


def test_the_verdict_has_one_refusal_for_each_reason_of_a_node() -> None:
    snapshot = cluster(
        node("a", annotations={"karpenter.sh/do-not-disrupt": "true"}),
        node("b"),
        pods=[pod("x", on="a", cpu="3"), pod("y", on="b", cpu="3")],
    )

    verdict = asked(snapshot)

    assert [each[:2] for each in refused(verdict.refusals)] == [
        ("a", "DO_NOT_DISRUPT"),
        ("b", "NOT_EMPTY"),
        ("b", "NOT_DRIFTED"),
        ("b", "NOT_CHEAPER"),
    ]


def test_what_other_methods_say_of_a_chosen_node_is_no_refusal() -> None:
    verdict = asked(cluster(node("a", true_conditions=["Drifted"]), pods=[pod("x", on="a")]))

    assert [each.node for each in verdict.nodes] == ["a"]
    assert verdict.refusals == ()


def test_an_event_on_a_node_is_emitted_once_in_a_pass() -> None:
    """Each method meets the same annotation."""
    snapshot = cluster(node("a", annotations={"karpenter.sh/do-not-disrupt": "true"}))

    assert [(each.subject.name, each.reason) for each in emitted(snapshot)] == [
        ("a", "DisruptionBlocked"),
        ("a-claim", "DisruptionBlocked"),
    ]


@given(questions())
@settings(max_examples=150)
def test_equal_questions_have_verdicts_that_are_equal_to_the_byte(question: NodeQuestion) -> None:
    again = deepcopy(question)

    assert disruption_to_json(decide_nodes(question)) == disruption_to_json(decide_nodes(again))


@given(clusters(), clusters())
@settings(max_examples=60)
def test_what_was_seen_before_changes_no_verdict(before: Snapshot, now: Snapshot) -> None:
    """Karpenter scores moves by costs that it loses when a NodeClaim changes."""
    fresh, after = passed(now), Pass(DisruptionQuestion(now), passed(before))
    for method in after.methods():
        after.propose(method)

    assert after.verdict() == fresh.verdict()
    assert after.settled() == fresh.settled()


@given(clusters())
@settings(max_examples=100)
def test_no_node_is_chosen_and_refused_or_chosen_twice(snapshot: Snapshot) -> None:
    verdict = asked(snapshot)

    chosen = [each.claim for each in verdict.nodes]
    assert len(chosen) == len(set(chosen))
    assert not {each.node for each in verdict.nodes} & {each.node for each in verdict.refusals}
    assert not set(chosen) & snapshot.in_command


# --- more than a hundred nodes -------------------------------------------------------------------


def test_a_command_may_be_about_more_nodes_than_karpenter_ever_tries() -> None:
    names = [f"n-{number:03}" for number in range(120)]
    pods = [pod(f"x-{each}", on=each, cpu="10m") for each in names]

    verdict = asked(cluster(*map(node, names), pods=pods))

    (command,) = verdict.commands
    assert (verdict.method, command.decision) == ("multi-node-consolidation", "delete")
    # Two nodes are left, since a node takes 110 pods.
    assert (len(command.nodes), command.savings) == (118, 118 * DOLLAR)


# --- validation ----------------------------------------------------------------------------------


def validated(before: Snapshot, later: Snapshot, method: str) -> tuple[Command, ValidationQuestion]:
    """Return the proposal of a method, and the question of its validation."""
    settled = frozenset(each for each in NAMES if each != method)
    (command,) = decide_disruption(DisruptionQuestion(before, settled)).commands
    return command, ValidationQuestion(replace(later, now=NOON + VALIDATION_DELAY), command)


def test_a_command_that_holds_is_kept_and_recorded_so() -> None:
    snapshot = cluster(node("a"), node("b"))

    command, question = validated(snapshot, snapshot, "emptiness")

    assert validate(question).command == command
    assert decide_nodes(question) == DisruptionVerdict("emptiness", (command,))


def test_what_does_not_hold_any_more_is_refused_with_its_reason() -> None:
    before = cluster(node("a"), node("b"), node("c"))
    later = cluster(node("a"), node("b"), pods=[pod("x", on="b")])

    command, question = validated(before, later, "emptiness")

    verdict = decide_nodes(question)
    assert [each.node for each in command.nodes] == ["a", "b", "c"]
    assert [each.node for each in verdict.nodes] == ["a"]
    assert refused(verdict.refusals) == [("c", "GONE", ""), ("b", "NOT_EMPTY", "1 pods")]


def test_each_node_of_a_rejected_multi_node_consolidation_has_its_events() -> None:
    """Karpenter empties the command before it emits these events."""
    small = [node("a"), node("b")]
    before = cluster(
        *small, node("c", true_conditions=[]), pods=[pod("x", on="a"), pod("y", on="b")]
    )
    nominated = tuple(replace(each, nominated_until=NOON + HOUR) for each in before.nodes)
    later = replace(before, nodes=nominated)

    command, question = validated(before, later, "multi-node-consolidation")
    validation = validate(question)

    assert len(command.nodes) == 2
    assert validation.command is None
    assert [
        (each.subject.kind.name, each.subject.name)
        for each in validation.notices
        if each.reason == "ConsolidationRejected"
    ] == [("Node", "a"), ("NodeClaim", "a-claim"), ("Node", "b"), ("NodeClaim", "b-claim")]


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.name)
def test_a_command_is_validated_by_its_own_method(method: DisruptionMethod) -> None:
    assert method_of(Command(method.name, EMPTY, ())) is method


# --- repair as before v1.15 ----------------------------------------------------------------------


def broken(name: str = "a", since: timedelta = HOUR, **fields: Unpack[NodeFields]) -> Node:
    fields["conditions"] = [Condition("Ready", "False", NOON - since, "KubeletNotReady")]
    return node(name, **fields)


def legacy(*nodes: Node, pods: Sequence[Pod] = ()) -> LegacyRepairQuestion:
    snapshot = cluster(*nodes, pods=pods, repair=RepairRules(REPAIRS))
    return LegacyRepairQuestion(snapshot, "a-claim")


WELL = [node(f"well-{number}") for number in range(9)]
GIVEN_UP = Command("legacy-repair", UNHEALTHY, (CommandNode("a", "a-claim", "web"),))


@pytest.mark.parametrize(
    ("nodes", "verdict"),
    [
        ([broken(), *WELL], DisruptionVerdict("legacy-repair", (GIVEN_UP,))),
        ([broken(since=timedelta()), *WELL], DisruptionVerdict("legacy-repair")),
        (
            [broken(), broken("b", since=timedelta())],
            DisruptionVerdict(
                "legacy-repair", (), (NodeRefusal(NodeReason.MOSTLY_UNHEALTHY, "a", "web"),)
            ),
        ),
        (
            [broken(deleting=True), *WELL],
            DisruptionVerdict("legacy-repair", (), (NodeRefusal(NodeReason.DELETING, "a"),)),
        ),
        ([only_node("a", conditions=[FAULT]), *WELL], DisruptionVerdict("legacy-repair")),
        ([only_claim("a"), *WELL], DisruptionVerdict("legacy-repair")),
        (WELL, DisruptionVerdict("legacy-repair")),
    ],
    ids=["deleted", "tolerated", "one of many", "deleting", "unmanaged", "no node", "gone"],
)
def test_the_verdict_on_a_node_that_is_repaired_the_legacy_way(
    nodes: list[Node], verdict: DisruptionVerdict
) -> None:
    assert decide_nodes(legacy(*nodes)) == verdict


def test_the_legacy_repair_counts_the_pods_that_need_another_node() -> None:
    pods = [
        pod("x", on="a"),
        pod("y", on="a", daemon=True),
        pod("z", on="a", phase="Succeeded"),
        pod("other", on="well-1"),
    ]

    counts = repair_at_once(legacy(broken(), *WELL, pods=pods)).changes.counts

    assert counts[1].value == 1.0


def test_the_legacy_repair_of_nothing_changes_nothing() -> None:
    assert repair_at_once(legacy(*WELL)) == NodeRepair()


# --- news ----------------------------------------------------------------------------------------


A, B = NodeRefusal(NodeReason.NOT_EMPTY, "a"), NodeRefusal(NodeReason.NOT_EMPTY, "b")
SINGLE = NodeRefusal(NodeReason.NOT_CHEAPER, "a", method="single-node-consolidation")
DEARER = replace(A, price=5)
NOTHING, REFUSES_A = DisruptionVerdict(), DisruptionVerdict(refusals=(A,))
REFUSES_ALL = DisruptionVerdict(refusals=(A, SINGLE))
CHOOSES = DisruptionVerdict("emptiness", (Command("emptiness", EMPTY, ()),))
ASKED = DisruptionQuestion(cluster())
SETTLED = DisruptionQuestion(cluster(), frozenset({"single-node-consolidation"}))
LATER = ValidationQuestion(cluster(), Command("emptiness", EMPTY, ()))
LISTED = ConfirmationQuestion(cluster(), "emptiness")
OLD = LegacyRepairQuestion(cluster(), "a-claim")


@pytest.mark.parametrize(
    ("question", "verdict", "before", "expected"),
    [
        (ASKED, NOTHING, None, False),
        (ASKED, NOTHING, NOTHING, False),
        (ASKED, REFUSES_A, None, True),
        (ASKED, REFUSES_A, REFUSES_A, False),
        (ASKED, NOTHING, REFUSES_A, True),
        (ASKED, DisruptionVerdict(refusals=(A, B)), REFUSES_A, True),
        (ASKED, DisruptionVerdict(refusals=(DEARER,)), REFUSES_A, False),
        (ASKED, DisruptionVerdict(refusals=(replace(A, detail="2 pods"),)), REFUSES_A, True),
        (ASKED, CHOOSES, None, True),
        (ASKED, CHOOSES, CHOOSES, True),
        (ASKED, REFUSES_A, REFUSES_ALL, True),
        (SETTLED, REFUSES_A, REFUSES_ALL, False),
        (SETTLED, NOTHING, REFUSES_ALL, True),
        (ASKED, REFUSES_ALL, REFUSES_ALL, False),
        (OLD, DisruptionVerdict("legacy-repair"), None, False),
        (OLD, REFUSES_A, REFUSES_A, False),
        (LATER, NOTHING, NOTHING, True),
        (LATER, REFUSES_A, REFUSES_A, True),
        (LISTED, REFUSES_A, REFUSES_A, True),
    ],
)
def test_news_is_what_does_something_or_has_changed(
    question: NodeQuestion,
    verdict: DisruptionVerdict,
    before: DisruptionVerdict | None,
    *,
    expected: bool,
) -> None:
    assert is_news(question, verdict, before) is expected


def test_a_method_that_is_passed_over_is_no_news() -> None:
    """Otherwise a converged cluster would be recorded again every few minutes."""
    quiet = cluster(node("a"), pods=[pod("x", on="a", cpu="3")], pools=[pool(policy=BALANCED)])
    first, settled = asked(quiet), passed(quiet).settled()

    again = asked(quiet, *settled)

    assert again != first
    assert not is_news(DisruptionQuestion(quiet, settled), again, first)
    assert not is_news(DisruptionQuestion(quiet), asked(quiet), first)


def test_another_policy_of_a_pool_is_news() -> None:
    before = cluster(node("a"), pods=[pod("x", on="a", cpu="3")])
    after = replace(before, pools=(pool(policy=WHEN_EMPTY),))

    assert is_news(DisruptionQuestion(after), asked(after), asked(before))
