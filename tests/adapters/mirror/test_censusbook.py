"""Pods counted as they come and go, and decisions that must not notice."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.adapters.mirror.censusbook import CensusBook
from karpy.adapters.mirror.records import Shelf
from karpy.core.nominations import with_nominated, with_untried
from karpy.core.scheduling.decide import decide
from karpy.model.census import Census, CountedPods, uncounted, with_more
from karpy.model.labels import HOSTNAME, ZONE
from karpy.model.pods import DAEMON_SET, HostPort, Pod
from karpy.model.snapshot import Snapshot
from tests.builders import (
    ZONE_A,
    ZONE_B,
    anti_affinity,
    daemon,
    node,
    owner,
    pod,
    snapshot,
    spread,
)

APP = {"app": "a"}
OTHER = {"app": "b"}
KINDS = (
    pod("p", labels=APP),
    pod("p", labels=OTHER, cpu="700m"),
    pod("p", labels=APP, anti_affinity=[anti_affinity(HOSTNAME, APP)]),
    pod("p", labels=OTHER, anti_affinity=[anti_affinity(HOSTNAME, APP)]),
    pod("p", labels=OTHER, anti_affinity=[anti_affinity(ZONE, OTHER)]),
    pod("p", labels=APP, spreads=[spread(ZONE, APP)]),
    pod("p", ports=[HostPort(80)]),
    pod("p", owners=[owner(DAEMON_SET)], cpu="100m"),
)
NODES = [
    replace(node("n0", zone=ZONE_A, cpu="4"), claim="c0"),
    replace(node("n1", zone=ZONE_B, cpu="4"), claim="c1"),
    replace(node("n2", zone=ZONE_B, cpu="4", deleting=True), claim="c2"),
]


class Mirrored:
    """A shelf with a book."""

    def __init__(self) -> None:
        self.shelf: Shelf[Pod] = Shelf()
        self.book = CensusBook(self.shelf)

    def put(self, *pods: Pod) -> None:
        for each in pods:
            self.shelf.put(each.key, each)

    def census(self) -> Census:
        return self.book.counted().census


def write(mirrored: Mirrored, step: tuple[Any, ...]) -> None:
    match step:
        case ("pod", number, kind, where, phase, is_deleting, is_untried):
            known = KINDS[kind]
            made = replace(
                known,
                name=f"p{number}",
                uid=f"u{number}-{kind}",
                node_name=where,
                phase=phase,
                is_deleting=is_deleting,
                is_untried=is_untried and not where,
                is_unschedulable=not where and not is_untried,
            )
            mirrored.put(made)
        case ("gone", number):
            mirrored.shelf.put(f"default/p{number}", None)
        case _:
            mirrored.book.counted()


NUMBERS = st.integers(0, 7)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("pod"),
            NUMBERS,
            st.integers(0, len(KINDS) - 1),
            st.sampled_from(["", "", "n0", "n1", "n2", "n9"]),
            st.sampled_from(["", "", "Running", "Failed"]),
            st.booleans(),
            st.booleans(),
        ),
        st.tuples(st.just("gone"), NUMBERS),
        st.just(("look",)),
    ),
    max_size=25,
)


def rows(census: Census) -> Counter[tuple[frozenset[tuple[str, str]], str, str]]:
    """Count pods by labels, namespace and node."""
    return Counter(
        (frozenset(row.labels.items()), row.namespace, node)
        for row in census.placed
        for node in row.nodes
    )


def cluster(pods: Sequence[Pod]) -> Snapshot:
    given = snapshot(nodes=NODES, daemons=[daemon("d", cpu="200m")])
    return replace(given, pods=pods)


@given(STEPS)
def test_what_is_counted_bit_by_bit_is_as_if_counted_at_once(steps: list[tuple[Any, ...]]) -> None:
    mirrored, fresh = Mirrored(), Mirrored()

    for step in steps:
        write(mirrored, step)

    fresh.put(*mirrored.shelf.values.values())
    census, expected = mirrored.census(), fresh.census()
    assert rows(census) == rows(expected)
    assert replace(census, placed=()) == replace(expected, placed=())
    assert mirrored.book.counted() == tuple(mirrored.shelf.values.values())


@given(STEPS, st.sampled_from([{}, {f"default/p{number}": "c1" for number in range(8)}]))
def test_decisions_on_counted_pods_are_the_same(
    steps: list[tuple[Any, ...]], places: dict[str, str]
) -> None:
    mirrored = Mirrored()
    for step in steps:
        write(mirrored, step)
    counted = cluster(mirrored.book.counted())
    plain = cluster(tuple(mirrored.shelf.values.values()))

    on_counted = with_untried(with_nominated(counted, places))
    on_plain = with_untried(with_nominated(plain, places))

    assert isinstance(on_counted.pods, CountedPods)
    assert on_counted == on_plain
    assert decide(on_counted) == decide(on_plain)


def test_pods_of_a_node_are_summed_up_and_those_that_are_over_are_not() -> None:
    mirrored = Mirrored()

    mirrored.put(
        pod("a", on="n", cpu="1", memory="1Gi"),
        pod("b", on="n", cpu="2", memory="1Gi"),
        pod("c", on="n", cpu="4", phase="Succeeded"),
    )

    assert mirrored.census().requests["n"]["cpu"] == 3000


def test_a_node_that_all_pods_have_left_is_forgotten() -> None:
    mirrored = Mirrored()
    mirrored.put(pod("a", on="n"))

    mirrored.shelf.put("default/a", None)

    census = mirrored.census()
    assert (census.requests, census.placed) == ({}, ())


def test_a_census_does_not_change_any_more() -> None:
    mirrored = Mirrored()
    mirrored.put(pod("a", on="n", cpu="1"))
    census = mirrored.census()

    mirrored.put(pod("b", on="n", cpu="1"))

    assert census.requests["n"]["cpu"] == 1000


def test_a_pod_that_waits_again_under_its_name_is_where_the_shelf_has_it() -> None:
    mirrored = Mirrored()
    mirrored.put(pod("a", on="n", uid="1"), pod("b"))

    mirrored.put(pod("a", uid="2"))

    assert [each.name for each in mirrored.census().uncounted] == ["a", "b"]


@pytest.mark.parametrize("pods", [(pod("a", on="n"), pod("b")), (pod("b"),)], ids=["both", "one"])
def test_pods_that_come_on_top_are_not_counted(pods: tuple[Pod, ...]) -> None:
    mirrored = Mirrored()
    mirrored.put(*pods)

    found = with_more(mirrored.book.counted(), (pod("virtual"),))

    assert found == (*pods, pod("virtual"))
    assert [each.name for each in uncounted(found)] == ["b", "virtual"]
