"""Section 4: preferences, dropped one by one."""

from karpy.model.constraints import PREFER_NO_SCHEDULE, TOLERATE_PREFERENCES
from karpy.model.labels import HOSTNAME, ZONE
from tests.builders import (
    FAMILY,
    ZONE_A,
    ZONE_B,
    affinity,
    is_in,
    pod,
    pool,
    snapshot,
    spread,
    taint,
    term,
)
from tests.reference.answers import hosts, values_launched
from tests.reference.ladder import full, steps, strict


def test_the_ladder_drops_one_preference_at_a_time_in_a_fixed_order() -> None:
    light, heavy = affinity(HOSTNAME, {"a": "light"}), affinity(HOSTNAME, {"a": "heavy"})
    red, blue = term(is_in("team", "red")), term(is_in("team", "blue"))
    one = spread(ZONE, {}, soft=True)
    hard = spread(HOSTNAME, {})
    two = spread(HOSTNAME, {}, soft=True)
    rules = pod(
        "p",
        terms=[red, blue],
        prefers_near=[(1, light), (2, heavy)],
        prefers_away=[(1, light), (1, heavy)],
        prefers=[(5, red), (9, blue)],
        spreads=[one, hard, two],
    ).rules

    ladder = list(steps(rules, has_soft_taints=True))

    assert [
        (
            [each.expressions[0] for each in step.required_node_terms],
            [each.term for each in step.preferred_affinity],
            [each.term for each in step.preferred_anti_affinity],
            [each.weight for each in step.preferred_node_terms],
            list(step.spreads),
        )
        for step in ladder[1:-2]
    ] == [
        ([blue.expressions[0]], [light, heavy], [light, heavy], [5, 9], [one, hard, two]),
        ([blue.expressions[0]], [light], [light, heavy], [5, 9], [one, hard, two]),
        ([blue.expressions[0]], [], [light, heavy], [5, 9], [one, hard, two]),
        ([blue.expressions[0]], [], [heavy], [5, 9], [one, hard, two]),
        ([blue.expressions[0]], [], [], [5, 9], [one, hard, two]),
        ([blue.expressions[0]], [], [], [5], [one, hard, two]),
        ([blue.expressions[0]], [], [], [], [one, hard, two]),
        ([blue.expressions[0]], [], [], [], [two, hard]),
        ([blue.expressions[0]], [], [], [], [hard]),
    ]
    assert [step.tolerations for step in ladder[-3:]] == [(), *[(TOLERATE_PREFERENCES,)] * 2]
    assert ladder[-1].required_node_terms == (red,)


def test_strict_is_the_selector_and_the_first_term_full_adds_the_heaviest_preference() -> None:
    rules = pod(
        "p",
        selector={"a": "1"},
        terms=[term(is_in("b", "2")), term(is_in("c", "3"))],
        prefers=[(1, term(is_in("d", "4"))), (2, term(is_in("e", "5"))), (2, term())],
    ).rules

    assert sorted(strict(rules)) == ["a", "b"]
    assert sorted(full(rules)) == ["a", "b", "e"]


def test_only_the_heaviest_remaining_preference_counts() -> None:
    """A heavy preference that no node meets is dropped, and then the next one counts."""
    impossible, possible = term(is_in(FAMILY, "nothing")), term(is_in(ZONE, ZONE_B))

    def zones(*weights: int) -> list[list[str]]:
        wishes = list(zip(weights, [impossible, possible], strict=True))
        return values_launched(snapshot(pods=[pod("p", prefers=wishes)]), ZONE)

    assert zones(1, 9) == [[ZONE_B]]
    assert zones(9, 1) == [[ZONE_B]]
    assert zones(1, 1) == [[ZONE_B]]


def test_the_next_required_term_is_tried_when_the_first_fails() -> None:
    terms = [term(is_in(ZONE, "nowhere")), term(is_in(ZONE, ZONE_A)), term()]

    assert values_launched(snapshot(pods=[pod("p", terms=terms)]), ZONE) == [[ZONE_A]]


def test_soft_taints_of_templates_are_tolerated_last() -> None:
    pools = [pool("soft", weight=9, taints=[taint("x", effect=PREFER_NO_SCHEDULE)]), pool("plain")]
    big = pod("big", cpu="99")

    assert hosts(snapshot(pods=[pod("p")], pools=pools)) == {"p": "plain#0"}
    assert hosts(snapshot(pods=[pod("p")], pools=pools[:1])) == {"p": "soft#0"}
    assert hosts(snapshot(pods=[big], pools=pools)) == {"big": "NO_HOST"}


def test_a_dropped_term_is_tried_again_without_preferences() -> None:
    """The wish would cost the first term, and the second one is out of reach."""
    picky = pod(
        "picky",
        terms=[term(is_in(ZONE, ZONE_A)), term(is_in(ZONE, "nowhere"))],
        prefers_near=[(1, affinity(HOSTNAME, {"app": "nobody"}))],
    )

    assert values_launched(snapshot(pods=[picky]), ZONE) == [[ZONE_A]]


def test_requirements_that_contradict_each_other_cannot_be_met() -> None:
    """Nor by a pool that does not know the label, though what is left of them is no value."""
    torn = pod("torn", selector={"team": "red"}, terms=[term(is_in("team", "blue"))])
    wishful = pod("wishful", selector={"team": "red"}, prefers=[(1, term(is_in("team", "blue")))])
    pools = [pool("plain", weight=9), pool("red", labels={"team": "red"})]

    assert hosts(snapshot(pods=[torn, wishful], pools=pools)) == {
        "torn": "NO_HOST",
        "wishful": "red#0",
    }
