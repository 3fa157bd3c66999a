"""Balanced NodePools: golden scores, shares of several NodePools, metrics and events."""

from collections.abc import Sequence
from fractions import Fraction

import pytest
from msgspec.structs import replace

from karpy.core.disruption.candidates import Candidate
from karpy.core.disruption.consolidation import Balance
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.lifecycle.changes import Count
from karpy.model.commands import Command, CommandNode
from karpy.model.pools import ConsolidationPolicy, DisruptionPolicy, DisruptionReason
from karpy.model.snapshot import Snapshot
from tests.builders import instance_type
from tests.core.disruption.scenes import (
    ALL,
    BALANCED,
    DOLLAR,
    candidate,
    cluster,
    event_rows,
    node,
    only_claim,
    pod,
    pool,
)


def balance(given: Snapshot) -> Balance:
    return Balance(Evaluation(given))


def shops(policy: DisruptionPolicy = BALANCED, others: DisruptionPolicy = ALL) -> Snapshot:
    """Build a NodePool of five dollars and six pods, and one of a dollar and two pods."""
    pods = [pod(f"a-{number}", on="a") for number in range(2)]
    pods += [pod(f"b-{number}", on="b") for number in range(4)]
    pods += [pod(f"c-{number}", on="c") for number in range(2)]
    return cluster(
        node("a"),
        node("b", type="large"),
        node("c", pool="batch"),
        pods=pods,
        pools=[pool(policy=policy), pool("batch", policy=others)],
    )


def some(given: Snapshot, *names: str) -> Sequence[Candidate]:
    return [candidate(given, each) for each in names]


def command(savings: int) -> Command:
    """Build a command that deletes a node of a price."""
    node_ = CommandNode("a", "a-claim", "web", savings)
    return Command("m", DisruptionReason.UNDERUTILIZED, (node_,))


@pytest.mark.parametrize(
    ("savings", "pods", "score", "is_approved"),
    [
        (7_260_000, 2, Fraction(10, 3), True),
        (4_840_000, 3, Fraction(5, 3), True),
        (2_420_000, 7, Fraction(5, 12), False),
        (0, 2, Fraction(0), False),
        (-1, 2, Fraction(0), False),
    ],
)
def test_scores_are_karpenters(
    savings: int, pods: int, score: Fraction, *, is_approved: bool
) -> None:
    """Golden values: a NodePool of 58.08 dollars an hour, whose pods cost 80 to move."""
    own = instance_type("own", dollars=8.08)
    rest = instance_type("rest", dollars=50.0)
    given = cluster(
        node("a", type=own),
        node("b", type=rest),
        pods=[pod(f"x-{each}", on="a" if each < pods else "b") for each in range(78)],
        pools=[pool(policy=BALANCED)],
        types=[own, rest],
    )

    found = balance(given).scores(some(given, "a"), savings)

    assert found == {"web": score}
    assert balance(given).is_approved(score) is is_approved


def test_a_score_of_one_half_is_enough() -> None:
    assert balance(shops()).is_approved(Fraction(1, 2))


def test_a_score_is_the_share_of_the_price_by_the_share_of_moving_all_pods() -> None:
    """Saving one of five dollars moves three of eight: two nodes and six pods count as eight."""
    given = shops()

    assert balance(given).scores(some(given, "a"), DOLLAR) == {
        "web": Fraction(1, 5) / Fraction(3, 8)
    }


def test_pods_that_do_not_move_do_not_count() -> None:
    given = shops()
    more = (pod("d", on="b", daemon=True), pod("over", on="b", phase="Failed"))

    after = replace(given, pods=(*given.pods, *more))

    assert balance(after).scores(some(after, "a"), DOLLAR) == balance(given).scores(
        some(given, "a"), DOLLAR
    )


def test_nodes_on_their_way_count_for_the_price_of_their_nodepool() -> None:
    given = shops()
    after = replace(given, nodes=(*given.nodes, only_claim("new", type="large")))

    assert balance(after).scores(some(after, "a"), DOLLAR) == {
        "web": Fraction(1, 9) / Fraction(3, 9)
    }


def test_only_balanced_nodepools_are_scored() -> None:
    given = shops(policy=ALL)

    assert balance(given).scores(some(given, "a", "c"), DOLLAR) == {}


def test_each_nodepool_has_its_share_of_what_is_saved() -> None:
    given = shops(others=BALANCED)

    found = balance(given).scores(some(given, "a", "b", "c"), 3 * DOLLAR)

    assert found == {
        "batch": Fraction(3, 6) / 1 / Fraction(3, 3),
        "web": Fraction(3 * 5, 6) / 5 / Fraction(8, 8),
    }


def test_without_any_price_nothing_is_approved() -> None:
    given = cluster(
        node("a", type="unheard-of"), pods=[pod("x", on="a")], pools=[pool(policy=BALANCED)]
    )

    assert balance(given).scores(some(given, "a"), 0) == {"web": Fraction(0)}


def test_moves_are_counted_for_each_nodepool_and_scores_where_they_decide() -> None:
    given = shops()
    weighed = balance(given)

    counts = list(weighed.counts(some(given, "a", "c"), {"web": Fraction(1, 4)}))

    rejected = {"decision": "rejected", "nodepool": "web", "policy": "Balanced"}
    approved = {
        "decision": "approved",
        "nodepool": "batch",
        "policy": ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED.value,
    }
    assert counts == [
        Count("consolidation_moves_total", approved),
        Count("consolidation_moves_total", rejected),
        Count("consolidation_score", rejected, 0.25),
    ]


def test_the_event_of_an_approved_move_is_on_its_node_and_claim() -> None:
    given = shops()

    found = event_rows(balance(given).notices(command(DOLLAR), some(given, "a")))

    text = "score 0.53 >= threshold 0.50 (k: 2, savings 20.0%, disruption 37.5%)"
    assert found == [
        ("Node", "a", "ConsolidationApproved", text),
        ("NodeClaim", "a-claim", "ConsolidationApproved", text),
    ]


def test_the_events_of_a_move_of_several_nodes_are_on_their_nodepools() -> None:
    given = shops(others=BALANCED)

    found = event_rows(balance(given).notices(command(3 * DOLLAR), some(given, "a", "b", "c")))

    text = "score 0.50 >= threshold 0.50 (k: 2, savings 50.0%, disruption 100.0%)"
    assert found == [
        ("NodePool", "batch", "ConsolidationApproved", text),
        ("NodePool", "web", "ConsolidationApproved", text),
    ]
