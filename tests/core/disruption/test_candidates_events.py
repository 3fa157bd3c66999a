"""Events on nodes that are left alone: Karpenter's reasons and texts."""

import pytest

from karpy.core.disruption.candidates import (
    candidate_notices,
    refusal_notices,
    rejected_notices,
    subjects_of,
)
from karpy.core.disruption.evaluation import Evaluation
from karpy.model.commands import Command, CommandNode
from karpy.model.pools import DisruptionReason
from karpy.model.verdicts import NodeReason, NodeRefusal
from tests.core.disruption.scenes import DOLLAR, cluster, event_rows, node, only_claim, only_node

HERE = Evaluation(cluster(node("a"), only_claim("b"), only_node("c")))
SILENT = {
    NodeReason.GONE,
    NodeReason.BACKING_OFF,
    NodeReason.PINNED,
    NodeReason.IN_COMMAND,
    NodeReason.UNMANAGED,
    NodeReason.BUDGET_SPENT,
    NodeReason.POOL_STATIC,
    NodeReason.NOT_QUIET,
    NodeReason.NOT_EMPTY,
    NodeReason.EMPTY,
    NodeReason.OUT_OF_TIME,
    NodeReason.SCALING_OUT,
    NodeReason.ROLLOUT,
    NodeReason.SCORE_TOO_LOW,
    NodeReason.NOT_CONSIDERED,
    NodeReason.NOT_DRIFTED,
    NodeReason.MOSTLY_UNHEALTHY,
    NodeReason.POOL_SHRINKING,
    NodeReason.POOL_SIZE,
    NodeReason.CHANGED,
}
"""Reasons without an event on the node: Karpenter has none, or emits it on the NodePool."""
COMMAND = Command(
    "multi-node-consolidation",
    DisruptionReason.UNDERUTILIZED,
    (CommandNode("a", "a-claim", "web", DOLLAR), CommandNode("gone", "gone-claim", "web", DOLLAR)),
)


def events(why: NodeReason, detail: str = "x") -> list[tuple[str, str, str, str]]:
    return event_rows(refusal_notices([NodeRefusal(why, "a", detail)], HERE))


@pytest.mark.parametrize("why", NodeReason)
def test_each_reason_has_events_on_the_node_and_its_claim_or_none(why: NodeReason) -> None:
    subjects = [each[:2] for each in events(why)]

    assert subjects == ([] if why in SILENT else [("Node", "a"), ("NodeClaim", "a-claim")])


@pytest.mark.parametrize(
    ("why", "detail", "text"),
    [
        (NodeReason.NEEDS_MORE_NODES, "2", "Can't remove without creating 2 candidates"),
        (NodeReason.NOT_CHEAPER, "shop/x: no", "Can't replace with a cheaper node"),
        (
            NodeReason.SPOT_TO_SPOT_DISABLED,
            "",
            "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node",
        ),
        (NodeReason.TYPE_UNKNOWN, "big", 'Instance Type "big" not found'),
        (NodeReason.BUFFER_PODS, "2 pods", 'Node "a" has buffer pods'),
    ],
)
def test_a_node_that_is_not_consolidated_says_why_at_most_every_quarter_of_an_hour(
    why: NodeReason, detail: str, text: str
) -> None:
    (notice, _) = refusal_notices([NodeRefusal(why, "a", detail)], HERE)

    assert (notice.reason, notice.note) == ("Unconsolidatable", text)
    assert (notice.window_seconds, notice.same_as) == (900, ("uid-a",))


def test_pods_without_another_place_block_a_disruption() -> None:
    assert events(NodeReason.PODS_UNPLACED, "shop/x: no host")[0][2:] == (
        "DisruptionBlocked",
        "not all pods would schedule, shop/x: no host",
    )


def test_events_are_on_what_there_is() -> None:
    nodes = HERE.snapshot.nodes

    assert [[each.kind.name for each in subjects_of(node_)] for node_ in nodes] == [
        ["Node", "NodeClaim"],
        ["NodeClaim"],
        ["Node"],
    ]


def test_a_node_that_is_not_there_has_no_event() -> None:
    assert list(refusal_notices([NodeRefusal(NodeReason.DELETING, "gone")], HERE)) == []


def test_events_on_a_command_are_on_those_of_its_nodes_that_are_there() -> None:
    text = "delete: [a] (part of 2-node consolidation)"

    assert event_rows(candidate_notices(COMMAND, HERE)) == [
        (
            kind,
            name,
            "ConsolidationCandidate",
            f"Consolidation candidate: {text} (savings: $2.00)",
        )
        for kind, name in (("Node", "a"), ("NodeClaim", "a-claim"))
    ]
    assert [each[3] for each in event_rows(rejected_notices(COMMAND, "budget", HERE))] == [
        f"Consolidation rejected: {text}, reason: budget (savings: $2.00)"
    ] * 2
