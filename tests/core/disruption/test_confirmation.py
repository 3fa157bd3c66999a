from collections.abc import Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.disruption.confirmation import (
    Occupancy,
    confirm,
    confirmation_question,
    nodes_to_confirm,
)
from karpy.core.disruption.decide import decide_nodes
from karpy.core.disruption.progress import NodeChange, Progress
from karpy.core.lifecycle.changes import Changes
from karpy.model.commands import Command, CommandNode, DisruptionVerdict, Replacement, Stage
from karpy.model.pods import DisruptionBudget, Pod
from karpy.model.pools import DisruptionReason
from karpy.model.settings import Settings
from karpy.model.snapshot import ConfirmationQuestion
from karpy.model.verdicts import Launch
from tests.builders.pods import NOON
from tests.core.disruption.scenes import (
    HOUR,
    MINUTE,
    WEB,
    cluster,
    node,
    pod,
    pod_budget,
    refused,
)

EMPTY, DRIFTED, UNHEALTHY = (
    DisruptionReason.EMPTY,
    DisruptionReason.DRIFTED,
    DisruptionReason.UNHEALTHY,
)
METHODS = {
    EMPTY: "emptiness",
    DRIFTED: "drift",
    UNHEALTHY: "repair",
    DisruptionReason.UNDERUTILIZED: "single-node-consolidation",
}
A, B = CommandNode("a", "a-claim", "web"), CommandNode("b", "b-claim", "web")
CLUSTER = cluster(node("a"), node("b"))
GUARD = pod_budget("guard")
CLOSED = pod_budget("guard", max_unavailable="0")
OTHER = pod_budget("other", 5)
REPLACEMENT = Replacement(Launch("web-1", "web", (), {}, {}, ()), "r-claim", True)


def command(reason: DisruptionReason = EMPTY, **changes: object) -> Command:
    made = Command(METHODS[reason], reason, (A, B), stage=Stage.WAITING, begun=NOON)
    return replace(made, **changes)


def confirmed(
    asked: Command, pods: Sequence[Pod], budgets: Sequence[DisruptionBudget] = ()
) -> DisruptionVerdict:
    """Return the verdict on the nodes of a command; the pods are listed on the first of them."""
    occupancy = Occupancy({"a": tuple(pods), "b": ()}, tuple(budgets))
    question = confirmation_question(asked, (A, B), CLUSTER, occupancy)
    verdict = confirm(question, asked.reason)
    assert decide_nodes(question) == verdict
    return verdict


@pytest.mark.parametrize(
    ("reason", "listed", "budgets", "refusals"),
    [
        (EMPTY, [], (), []),
        (EMPTY, [pod("x", on="a")], (), [("a", "NOT_EMPTY", "shop/x")]),
        (EMPTY, [pod("x", on="a", phase="Odd")], (), [("a", "NOT_EMPTY", "shop/x")]),
        (EMPTY, [pod("x", on="a", disruption_cost="-134217728")], (), []),
        (EMPTY, [pod("x", on="a", daemon=True)], (), []),
        (EMPTY, [pod("x", on="a", phase="Succeeded", unreadable="odd")], (), []),
        (EMPTY, [pod("x", on="a", unreadable="odd")], (), [("a", "POD_UNREADABLE", "shop/x")]),
        (
            EMPTY,
            [pod("x", on="a", daemon=True, do_not_disrupt="true")],
            (),
            [("a", "POD_DO_NOT_DISRUPT", "shop/x")],
        ),
        (
            EMPTY,
            [pod("x", on="a", daemon=True, labels=WEB)],
            (GUARD,),
            [("a", "POD_BUDGET", "shop/guard")],
        ),
        (DRIFTED, [pod("x", on="a")], (), []),
        (DRIFTED, [pod("x", on="a", labels=WEB)], (GUARD,), [("a", "POD_BUDGET", "shop/guard")]),
        (
            DRIFTED,
            [pod("x", on="a", labels=WEB)],
            (GUARD, OTHER),
            [("a", "POD_BUDGETS", "shop/guard shop/other")],
        ),
        (
            DisruptionReason.UNDERUTILIZED,
            [pod("x", on="a"), pod("y", on="a", do_not_disrupt="4h", age=HOUR)],
            (),
            [("a", "POD_DO_NOT_DISRUPT", "shop/y")],
        ),
        (UNHEALTHY, [pod("x", on="a")], (), []),
        (UNHEALTHY, [pod("x", on="a", unreadable="odd")], (), [("a", "POD_UNREADABLE", "shop/x")]),
    ],
)
def test_a_node_is_disrupted_only_if_the_pods_listed_there_allow_it(
    reason: DisruptionReason,
    listed: list[Pod],
    budgets: tuple[DisruptionBudget, ...],
    refusals: list[tuple[str, str, str]],
) -> None:
    verdict = confirmed(command(reason), listed, budgets)

    assert refused(verdict.refusals) == refusals
    assert [each.node for each in verdict.nodes] == ["a", "b"][len(refusals) :]
    assert {each.method for each in verdict.refusals} <= {METHODS[reason]}


@pytest.mark.parametrize(
    ("asked", "listed", "budgets", "why"),
    [
        (command(DRIFTED), [pod("x", on="a", labels=WEB)], [GUARD], ["POD_BUDGET"]),
        (
            command(DRIFTED, replacements=(REPLACEMENT,)),
            [pod("x", on="a", labels=WEB)],
            [GUARD],
            [],
        ),
        (
            command(DRIFTED, replacements=(REPLACEMENT,), stage=Stage.TAINTING),
            [pod("x", on="a", labels=WEB)],
            [GUARD],
            ["POD_BUDGET"],
        ),
        (
            command(DRIFTED, replacements=(REPLACEMENT,)),
            [pod("x", on="a", labels=WEB)],
            [CLOSED],
            ["POD_BUDGET"],
        ),
        (
            command(DRIFTED, replacements=(REPLACEMENT,)),
            [pod("x", on="a", labels=WEB)],
            [GUARD, OTHER],
            ["POD_BUDGETS"],
        ),
        (
            command(DRIFTED, replacements=(REPLACEMENT,)),
            [pod("x", on="a", do_not_disrupt="true")],
            [],
            ["POD_DO_NOT_DISRUPT"],
        ),
    ],
    ids=["nothing replaces it", "replaced", "not yet", "closed", "two budgets", "annotation"],
)
def test_a_budget_that_is_spent_for_now_stops_no_command_whose_replacements_are_there(
    asked: Command, listed: list[Pod], budgets: list[DisruptionBudget], why: list[str]
) -> None:
    """The drain waits for the budget; otherwise the replacement would be useless."""
    assert [each.why.name for each in confirmed(asked, listed, budgets).refusals] == why


def test_a_node_that_is_gone_needs_no_disruption() -> None:
    question = ConfirmationQuestion(cluster(node("b")), "emptiness", (A, B))

    verdict = decide_nodes(question)

    assert refused(verdict.refusals) == [("a", "GONE", "")]
    assert verdict.commands == (Command("emptiness", EMPTY, (B,)),)


def test_without_a_node_that_may_be_disrupted_there_is_no_command() -> None:
    question = ConfirmationQuestion(cluster(), "emptiness", (A, B))

    assert decide_nodes(question).commands == ()


def test_a_question_has_what_was_listed_and_nothing_else() -> None:
    """The question is recorded: a snapshot of the whole cluster would be too large."""
    settings = Settings(manages_deletion_cost=True)
    whole = replace(CLUSTER, settings=settings, pods=(pod("watched", on="a"),))
    listed = pod("listed", on="a")

    question = confirmation_question(command(), (A,), whole, Occupancy({"a": (listed,)}, (GUARD,)))

    assert question.nodes == (A,)
    assert (question.snapshot.pods, question.snapshot.budgets) == ((listed,), (GUARD,))
    assert [each.name for each in question.snapshot.nodes] == ["a"]
    assert (question.snapshot.settings, question.snapshot.pools) == (settings, ())


@pytest.mark.parametrize(
    ("reason", "bound", "grace", "asked"),
    [
        (EMPTY, None, None, (A,)),
        (EMPTY, None, MINUTE, (A,)),
        (DisruptionReason.UNDERUTILIZED, None, MINUTE, (A,)),
        (DRIFTED, None, None, (A,)),
        (DRIFTED, None, MINUTE, ()),
        (UNHEALTHY, None, None, (A,)),
        (UNHEALTHY, timedelta(), None, ()),
        (UNHEALTHY, None, MINUTE, ()),
    ],
)
def test_pods_are_asked_for_unless_the_drain_ends_whatever_they_forbid(
    reason: DisruptionReason,
    bound: timedelta | None,
    grace: timedelta | None,
    asked: tuple[CommandNode, ...],
) -> None:
    chosen = replace(A, drain_bound=bound)
    deletion = NodeChange("a-claim", "a", Changes(deletes_claim=True), is_disruptive=True)
    undoing = NodeChange("b-claim", "b", Changes())
    planned = Progress(command(reason, nodes=(chosen, B)), (deletion, undoing))

    found = nodes_to_confirm(planned, cluster(node("a", grace_period=grace), node("b")))

    assert [each.node for each in found] == [each.node for each in asked]
