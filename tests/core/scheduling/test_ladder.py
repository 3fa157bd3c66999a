"""
Section 4: preferences, dropped one by one.

If two preferences exclude each other, the preference that is dropped later is met.
"""

import pytest

from karpy.core.scheduling.relaxation import Ladder, Rung
from karpy.model.constraints import PREFER_NO_SCHEDULE, TOLERATE_PREFERENCES
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE
from karpy.model.pods import Pod
from karpy.model.settings import PreferencePolicy, Settings
from tests.builders import (
    FAMILY,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    affinity,
    anti_affinity,
    exists,
    is_in,
    node,
    not_in,
    pod,
    pool,
    snapshot,
    spread,
    taint,
    term,
)
from tests.core.scheduling.answers import hosts, values_launched

IN_A, IN_B, IN_C = (term(is_in(ZONE, zone)) for zone in (ZONE_A, ZONE_B, ZONE_C))
NOWHERE = term(is_in(ZONE, "nowhere"))
SOFT = taint("please", effect=PREFER_NO_SCHEDULE)
BUSY = [node("a", zone=ZONE_A, cpu="0"), node("b", zone=ZONE_B, cpu="0")]
RUNNING = [pod("x", labels={"app": "x"}, on="a"), pod("y", labels={"app": "y"}, on="b")]
NEAR_X, NEAR_Y = affinity(ZONE, {"app": "x"}), affinity(ZONE, {"app": "y"})
AWAY_X, AWAY_Y = anti_affinity(ZONE, {"app": "x"}), anti_affinity(ZONE, {"app": "y"})
IGNORE = Settings(preference_policy=PreferencePolicy.IGNORE)


def _zones(picky: Pod, settings: Settings | None = None) -> list[list[str]]:
    """Say where a pod goes when `x` runs in zone-a and `y` in zone-b."""
    cluster = snapshot(
        nodes=BUSY, pods=[*RUNNING, picky], settings=Settings() if settings is None else settings
    )
    return values_launched(cluster, ZONE)


# --- the order, step by step -----------------------------------------------------------------


def test_the_ladder_drops_one_preference_at_a_time_in_a_fixed_order() -> None:
    one, hard = spread(ZONE, {}, soft=True), spread(HOSTNAME, {})
    two = spread(CAPACITY_TYPE, {}, soft=True)
    rules = pod(
        "p",
        terms=[IN_A, IN_B],
        prefers_near=[(1, NEAR_X), (2, NEAR_Y)],
        prefers_away=[(1, AWAY_X), (1, AWAY_Y)],
        prefers=[(5, term(is_in(FAMILY, "c"))), (9, term(is_in(FAMILY, "m")))],
        spreads=[one, hard, two],
    ).rules

    ladder = Ladder(rules, respects_preferences=True, can_tolerate=True)

    def seen(rung: Rung) -> tuple[str, tuple[object, ...], tuple[object, ...], str, list[str]]:
        (zone,) = rung.node_rules.strict[ZONE].values
        wish = min(rung.node_rules.full[FAMILY].values) if FAMILY in rung.node_rules.full else ""
        near, away = ladder.affinity[rung.affinity :], ladder.anti_affinity[rung.anti_affinity :]
        return zone, near, away, wish, [s.topology_key for s in ladder.spreads[rung.spreads :]]

    rungs = [ladder[index] for index in range(len(ladder))]

    near, away, all_three = (NEAR_Y, NEAR_X), (AWAY_X, AWAY_Y), [ZONE, CAPACITY_TYPE, HOSTNAME]
    assert [seen(rung) for rung in rungs] == [
        (ZONE_A, near, away, "m", all_three),
        (ZONE_B, near, away, "m", all_three),
        (ZONE_B, (NEAR_X,), away, "m", all_three),
        (ZONE_B, (), away, "m", all_three),
        (ZONE_B, (), (AWAY_Y,), "m", all_three),
        (ZONE_B, (), (), "m", all_three),
        (ZONE_B, (), (), "c", all_three),
        (ZONE_B, (), (), "", all_three),
        (ZONE_B, (), (), "", [CAPACITY_TYPE, HOSTNAME]),
        (ZONE_B, (), (), "", [HOSTNAME]),
        (ZONE_B, (), (), "", [HOSTNAME]),
        (ZONE_A, (), (), "", [HOSTNAME]),
    ]
    tolerations = [rung.node_rules.tolerations for rung in rungs]
    assert tolerations == [()] * 10 + [(TOLERATE_PREFERENCES,)] * 2


def test_a_required_term_goes_before_preferred_affinity() -> None:
    picky = pod("p", terms=[IN_A, IN_B], prefers_near=[(1, NEAR_Y)])

    assert _zones(picky) == [[ZONE_B]]


def test_preferred_affinity_goes_before_preferred_anti_affinity() -> None:
    picky = pod("p", prefers_near=[(100, NEAR_X)], prefers_away=[(1, AWAY_X)])

    assert _zones(picky) == [[ZONE_B, ZONE_C]]


def test_preferred_anti_affinity_goes_before_preferred_node_affinity() -> None:
    picky = pod("p", prefers_away=[(100, AWAY_X)], prefers=[(1, IN_A)])

    assert _zones(picky) == [[ZONE_A]]


def test_preferred_node_affinity_goes_before_a_soft_spread() -> None:
    picky = pod(
        "p",
        labels={"app": "x"},
        prefers=[(100, IN_A)],
        spreads=[spread(ZONE, {"app": "x"}, soft=True)],
    )

    assert _zones(picky) == [[ZONE_B]]


def test_a_soft_spread_goes_before_a_soft_taint() -> None:
    pools = [
        pool("soft", weight=9, taints=[SOFT], requirements=[is_in(ZONE, ZONE_B)]),
        pool("plain", requirements=[is_in(ZONE, ZONE_A)]),
    ]
    picky = pod("p", labels={"app": "x"}, spreads=[spread(ZONE, {"app": "x"}, soft=True)])

    cluster = snapshot(nodes=BUSY, pods=[*RUNNING, picky], pools=pools)

    assert hosts(cluster) == {"p": "plain-0"}


@pytest.mark.parametrize(
    ("picky", "zone"),
    [
        (pod("p", prefers_near=[(1, NEAR_X), (9, NEAR_Y)]), ZONE_A),
        (pod("p", prefers_near=[(9, NEAR_X), (1, NEAR_Y)]), ZONE_B),
        (pod("p", prefers_near=[(5, NEAR_X), (5, NEAR_Y)]), ZONE_B),
        (
            pod("p", selector=[not_in(ZONE, ZONE_C)], prefers_away=[(1, AWAY_X), (9, AWAY_Y)]),
            ZONE_B,
        ),
        (
            pod("p", selector=[not_in(ZONE, ZONE_C)], prefers_away=[(5, AWAY_X), (5, AWAY_Y)]),
            ZONE_A,
        ),
    ],
)
def test_the_heaviest_goes_first_of_equals_the_first_written(picky: Pod, zone: str) -> None:
    assert _zones(picky) == [[zone]]


def test_only_the_heaviest_node_preference_left_counts() -> None:
    """A heavy preference that nothing meets is dropped, and then the next one counts."""
    assert _zones(pod("p", prefers=[(9, NOWHERE), (1, IN_B), (5, IN_C)])) == [[ZONE_C]]
    assert _zones(pod("p", prefers=[(5, IN_B), (5, IN_C)])) == [[ZONE_B]]


def test_the_last_spread_takes_the_place_of_the_one_dropped() -> None:
    """Of three soft spreads the first is dropped, then the third, and the second stays."""
    rules = [
        spread("rack", {}, soft=True),
        spread(ZONE, {"x": "1"}, soft=True),
        spread(ZONE, {"z": "1"}, soft=True),
    ]
    cluster = snapshot(
        nodes=[*BUSY, node("c", zone=ZONE_C, cpu="0")],
        pods=[
            pod("not-in-a", labels={"x": "1"}, on="a"),
            pod("not-in-b", labels={"z": "1"}, on="b"),
            pod("not-in-c", labels={"z": "1"}, on="c"),
            pod("p", labels={"x": "1", "z": "1"}, spreads=rules),
        ],
    )

    assert values_launched(cluster, ZONE) == [[ZONE_B]]


def test_a_hard_spread_is_never_dropped() -> None:
    soft, hard = spread("rack", {}, soft=True), spread("rack", {})

    assert _zones(pod("p", spreads=[soft])) == [[]]
    assert _zones(pod("p", spreads=[soft, hard])) == []


def test_the_next_required_term_is_tried_when_the_first_fails() -> None:
    assert _zones(pod("p", terms=[NOWHERE, IN_C, IN_A])) == [[ZONE_C]]


def test_the_first_of_several_terms_is_kept_if_it_can_be_met() -> None:
    assert _zones(pod("p", terms=[IN_C, IN_A])) == [[ZONE_C]]


# --- soft taints -----------------------------------------------------------------------------


def test_a_pool_with_a_soft_taint_is_the_last_resort() -> None:
    pools = [pool("soft", weight=9, taints=[SOFT]), pool("plain")]

    assert hosts(snapshot(pods=[pod("p")], pools=pools)) == {"p": "plain-0"}
    assert hosts(snapshot(pods=[pod("p")], pools=pools[:1])) == {"p": "soft-0"}


def test_hard_taints_are_never_tolerated_for_want_of_anything_else() -> None:
    pools = [pool(taints=[SOFT, taint("hard")])]

    assert hosts(snapshot(pods=[pod("p")], pools=pools)) == {"p": "NO_HOST"}


# --- Respect and Ignore ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "wishful",
    [
        pod("p", prefers=[(1, IN_A)]),
        pod("p", prefers_near=[(1, NEAR_X)]),
        pod("p", labels={"app": "y"}, spreads=[spread(ZONE, {"app": "y"}, soft=True)]),
    ],
)
def test_preferences_count_as_required_unless_they_are_ignored(wishful: Pod) -> None:
    assert _zones(wishful) == [[ZONE_A]]
    assert _zones(wishful, IGNORE) == [[]]


def test_preferred_anti_affinity_may_be_ignored_too() -> None:
    shy = pod("p", prefers_away=[(1, AWAY_X)])

    assert _zones(shy) == [[ZONE_B, ZONE_C]]
    assert _zones(shy, IGNORE) == [[]]


def test_rules_and_alternatives_hold_though_preferences_are_ignored() -> None:
    hard = pod(
        "p",
        labels={"app": "x"},
        terms=[NOWHERE, term(exists(ZONE))],
        spreads=[spread(ZONE, {"app": "x"})],
    )

    assert _zones(hard, IGNORE) == [[ZONE_B]]


# --- second chance, contradictions -----------------------------------------------------------


def test_a_dropped_term_is_tried_again_without_preferences() -> None:
    """The preference makes the first term fail, and no node matches the second term."""
    picky = pod(
        "p", terms=[IN_A, NOWHERE], prefers_near=[(1, affinity(HOSTNAME, {"app": "nobody"}))]
    )

    assert _zones(picky) == [[ZONE_A]]


def test_dropped_terms_are_tried_again_in_their_order() -> None:
    picky = pod(
        "p",
        terms=[NOWHERE, IN_C, IN_A, NOWHERE],
        prefers_near=[(1, affinity(HOSTNAME, {"app": "nobody"}))],
    )

    assert _zones(picky) == [[ZONE_C]]


def test_dropped_terms_are_tried_again_only_after_the_last_preference() -> None:
    """The last term allows zone-b; the dropped term for zone-a is tried only after it."""
    nobody = (1, affinity(HOSTNAME, {"app": "nobody"}))

    assert _zones(pod("p", terms=[IN_A, IN_B], prefers_near=[nobody])) == [[ZONE_B]]


def test_requirements_that_contradict_each_other_cannot_be_met() -> None:
    """A NodePool without the label does not meet them, although they leave no value."""
    torn = pod("torn", selector={"team": "red"}, terms=[term(is_in("team", "blue"))])
    wishful = pod("wishful", selector={"team": "red"}, prefers=[(1, term(is_in("team", "blue")))])
    pools = [pool("plain", weight=9), pool("red", labels={"team": "red"})]

    assert hosts(snapshot(pods=[torn, wishful], pools=pools)) == {
        "torn": "NO_HOST",
        "wishful": "red-0",
    }


def test_preferences_decide_compatibility_and_rules_decide_topology() -> None:
    """
    The preference for zone-a is no part of the spread, whose minimum is over all zones.

    If it counted, zone-a would be the only zone, and its skew zero.
    """
    picky = pod("p", labels={"app": "x"}, prefers=[(1, IN_A)], spreads=[spread(ZONE, {"app": "x"})])

    assert _zones(picky) == [[ZONE_B]]
    assert _zones(pod("p", labels={"app": "x"}, terms=[IN_A], spreads=picky.rules.spreads)) == [
        [ZONE_A]
    ]


def test_a_preferred_capacity_type_is_required_of_the_claim() -> None:
    wishful = pod("p", prefers=[(1, term(is_in(CAPACITY_TYPE, ON_DEMAND)))])
    other = pod("q", prefers=[(1, term(is_in(CAPACITY_TYPE, SPOT)))])

    assert values_launched(snapshot(pods=[wishful, other]), CAPACITY_TYPE) == [[ON_DEMAND], [SPOT]]
