"""Pods placed in one go must end up where they would be placed one by one."""

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.core.scheduling.decide import decide
from karpy.model.labels import HOSTNAME, ZONE
from karpy.model.nodes import Node
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot
from tests.builders import (
    ZONE_A,
    ZONE_B,
    anti_affinity,
    catalog,
    instance_type,
    is_in,
    node,
    pod,
    pods,
    pool,
    snapshot,
    spread,
    term,
)
from tests.builders.pods import PodFields
from tests.core.scheduling.answers import decide_checked, for_looks, pods_launched

WEB: Final = {"app": "web"}
SMALL: Final = catalog([instance_type("small", cpu="2"), instance_type("large", cpu="4")])
KINDS: Final[dict[str, PodFields]] = {
    "plain": {},
    "zonal": {"selector": {ZONE: ZONE_A}},
    "counted": {"labels": WEB},
    "even": {"labels": WEB, "spreads": [spread(ZONE, WEB)]},
    "watching": {"spreads": [spread(ZONE, WEB)]},
    "evenish": {"labels": WEB, "spreads": [spread(ZONE, WEB, soft=True)]},
    "choosy": {
        "labels": WEB,
        "spreads": [spread(ZONE, WEB)],
        "terms": [term(is_in(ZONE, ZONE_A))],
    },
    "alone": {"labels": WEB, "anti_affinity": [anti_affinity(HOSTNAME, WEB)]},
    "alone if possible": {
        "labels": WEB,
        "prefers_away": [(2, anti_affinity(ZONE, WEB)), (1, anti_affinity(HOSTNAME, WEB))],
    },
    "too large": {"cpu": "64"},
    "nowhere": {"selector": {"no-such-label": "x"}},
}


def _row(number: int, kind: str, cpu: str, count: int) -> list[Pod]:
    """Build equal pods, whose UIDs make them take turns with pods of other rows."""
    fields: PodFields = {"cpu": cpu, **KINDS[kind]}
    made = pods(f"{number}-{kind}", count, **fields)
    return [replace(each, uid=f"{i % 7}-{number}-{i}") for i, each in enumerate(made)]


drawn_rows = st.lists(
    st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from(["300m", "1"]), st.integers(1, 22)),
    min_size=1,
    max_size=4,
)


@given(drawn_rows, st.sampled_from([[], [node("n", cpu="2")]]))
@settings(max_examples=60)
def test_rows_of_any_pods_end_up_where_they_would_one_by_one(
    rows: list[tuple[str, str, int]], nodes: list[Node]
) -> None:
    batch = [each for number, row in enumerate(rows) for each in _row(number, *row)]

    decide_checked(snapshot(pods=batch, nodes=nodes, catalog=SMALL))


def _nodes(sizes: list[str]) -> list[Node]:
    """Build nodes of some sizes, in two zones by turns."""
    zones = (ZONE_A, ZONE_B)
    return [node(f"n{i:03}", cpu=cpu, zone=zones[i % 2]) for i, cpu in enumerate(sizes)]


@given(drawn_rows, st.lists(st.sampled_from(["200m", "700m", "1"]), min_size=10, max_size=90))
@settings(max_examples=40)
def test_rows_of_any_pods_fill_many_nodes_as_they_would_one_by_one(
    rows: list[tuple[str, str, int]], sizes: list[str]
) -> None:
    batch = [each for number, row in enumerate(rows) for each in _row(number, *row)]

    decide_checked(snapshot(pods=batch, nodes=_nodes(sizes), catalog=SMALL))


@given(st.lists(st.integers(100, 1900), min_size=2, max_size=40, unique=True))
@settings(max_examples=40)
def test_pods_no_two_of_which_are_alike_end_up_where_they_would_one_by_one(
    millis: list[int],
) -> None:
    batch = [pod(f"p{each}", cpu=f"{each}m") for each in millis]

    decide_checked(snapshot(pods=batch, catalog=SMALL))


def test_a_row_fills_one_claim_to_the_brim_before_the_next_is_made() -> None:
    batch = pods("p", 20, cpu="300m")

    launched = pods_launched(snapshot(pods=batch, catalog=SMALL))

    assert [len(some) for some in launched] == [13, 7]


def test_a_row_goes_to_the_claim_with_fewer_pods_until_both_have_as_many() -> None:
    batch = [*pods("large", 2, cpu="3"), *pods("mid", 1, cpu="200m"), *pods("small", 5, cpu="50m")]

    launched = pods_launched(snapshot(pods=batch, catalog=SMALL))

    assert [len(some) for some in launched] == [4, 4]


@pytest.mark.parametrize("count", [2, 16, 17, 60])
def test_every_pod_of_a_row_with_anti_affinity_to_itself_gets_a_claim(count: int) -> None:
    batch = pods("p", count, labels=WEB, anti_affinity=[anti_affinity(HOSTNAME, WEB)])

    verdict = decide_checked(snapshot(pods=batch))

    assert [len(launch.pods) for launch in verdict.launches] == [1] * count


def _shunning(count: int) -> Snapshot:
    rules = [anti_affinity(HOSTNAME, WEB)]
    row = pods("row", count, cpu="1", labels=WEB, anti_affinity=rules)
    late = pods("late", count, cpu="500m", labels=WEB, anti_affinity=rules)
    other = pods("other", count, cpu="100m")
    return snapshot(pods=[*row, *late, *other])


def test_later_pods_are_tried_on_every_claim_of_a_row() -> None:
    verdict = decide_checked(_shunning(30))

    assert [len(launch.pods) for launch in verdict.launches] == [2] * 30 + [1] * 30


def test_a_limit_ends_a_row() -> None:
    batch = pods("p", 40, cpu="1", labels=WEB, anti_affinity=[anti_affinity(HOSTNAME, WEB)])
    pools = [pool("default", limits={"nodes": "25"})]

    verdict = decide_checked(snapshot(pods=batch, pools=pools))

    assert len(verdict.launches) == 25


@pytest.mark.parametrize("looks", range(1, 6))
def test_a_look_at_the_clock_cuts_a_row_short(looks: int) -> None:
    verdict = decide_checked(_shunning(40), for_looks(looks))

    assert sum(len(launch.pods) for launch in verdict.launches) == 16 * looks


def test_where_a_row_is_cut_makes_no_difference() -> None:
    cluster = _shunning(40)

    assert decide(cluster, keep_going=lambda: True) == decide(cluster)
