"""The census of pods and DaemonSets, updated with each change, equals one that is made anew."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.adapters.mirror.censusbook import AMOUNTS_MAX, CensusBook, DaemonBook
from karpy.adapters.mirror.records import Shelf
from karpy.codec.admission import LimitRange, RuntimeClass
from karpy.codec.fields import Fields
from karpy.codec.pods import PodReader
from karpy.codec.workloads import read_daemon_template
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
from tests.codec.plain import Json, container, workload

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
T = TypeVar("T")
AGENT = "default/agent"
USUAL = LimitRange("usual", "default", {"cpu": "2"}, {"cpu": "2"})


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


class MirroredDaemons:
    """The shelves of a book, and what it makes of them."""

    def __init__(self) -> None:
        self.pods: Shelf[Pod] = Shelf()
        self.book = DaemonBook(self.pods)

    def apply(self, daemon_set: Json) -> None:
        meta = daemon_set["metadata"]
        template = read_daemon_template(Fields(daemon_set), PodReader())
        self.book.templates.put(f"{meta['namespace']}/{meta['name']}", template)

    def put(self, *pods: Pod) -> None:
        for each in pods:
            self.pods.put(each.key, each)

    def cpus(self) -> dict[str, int]:
        """Return what each DaemonSet takes of a new node's CPUs."""
        return {
            f"{each.namespace}/{each.name}": each.pod.requests.get("cpu", 0)
            for each in self.book.daemons()
        }


def agent(namespace: str = "default", uid: str = "uid-agent", **pod_spec: object) -> Json:
    meta = {"namespace": namespace, "uid": uid}
    inner = {"containers": [container()], **pod_spec}
    return workload("DaemonSet", "agent", meta=meta, pod=inner)


def agent_pod(
    name: str, cpu: str, *, age: int = 0, phase: str = "Running", deleting: bool = False
) -> Pod:
    owners = [owner(DAEMON_SET, "agent")]
    made = pod(name, cpu=cpu, on="n1", phase=phase, owners=owners, deleting=deleting)
    return replace(made, created=made.created - timedelta(seconds=age))


def test_a_template_is_admitted_whatever_comes_first() -> None:
    early, late = MirroredDaemons(), MirroredDaemons()
    early.book.ranges.put("default/usual", USUAL)
    early.apply(agent())
    late.apply(agent())
    before = late.cpus()

    late.book.ranges.put("default/usual", USUAL)

    assert (early.cpus(), before, late.cpus()) == ({AGENT: 2000}, {AGENT: 0}, {AGENT: 2000})


def test_a_runtime_class_costs_what_it_says() -> None:
    mirrored = MirroredDaemons()
    mirrored.apply(agent(runtimeClassName="sandboxed"))
    before = mirrored.cpus()

    mirrored.book.runtimes.put("sandboxed", RuntimeClass("sandboxed", {"cpu": "250m"}, {}, ()))

    assert (before, mirrored.cpus()) == ({AGENT: 0}, {AGENT: 250})


def test_a_limit_range_of_another_namespace_changes_nothing() -> None:
    mirrored = MirroredDaemons()
    mirrored.apply(agent("shop"))

    mirrored.book.ranges.put("default/usual", USUAL)

    assert mirrored.cpus() == {"shop/agent": 0}


def test_a_pod_counts_before_the_template_and_a_new_pod_before_an_old_one() -> None:
    mirrored = MirroredDaemons()
    mirrored.apply(agent())
    mirrored.put(agent_pod("old", "1", age=9))
    first = mirrored.cpus()
    mirrored.put(agent_pod("new", "2"))
    second = mirrored.cpus()

    mirrored.pods.put("default/new", None)

    assert (first, second, mirrored.cpus()) == ({AGENT: 1000}, {AGENT: 2000}, {AGENT: 1000})


def test_pods_that_are_over_or_being_deleted_do_not_count() -> None:
    mirrored = MirroredDaemons()
    mirrored.apply(agent())

    mirrored.put(agent_pod("over", "1", phase="Failed"), agent_pod("going", "1", deleting=True))

    assert mirrored.cpus() == {AGENT: 0}


def test_a_pod_that_names_the_daemon_set_of_another_namespace_does_not_count() -> None:
    mirrored = MirroredDaemons()
    mirrored.apply(agent("kube-system"))

    mirrored.put(agent_pod("forged", "1000"))

    assert mirrored.cpus() == {"kube-system/agent": 0}


def test_a_pod_that_does_not_run_counts_less_than_one_that_does() -> None:
    mirrored = MirroredDaemons()
    mirrored.apply(agent())

    mirrored.put(agent_pod("true", "1", age=9), agent_pod("forged", "1000", phase="Pending"))

    assert mirrored.cpus() == {AGENT: 1000}


def test_a_daemon_set_made_anew_under_its_name_does_not_take_over_the_pods_of_the_old_one() -> None:
    mirrored = MirroredDaemons()
    mirrored.apply(agent())
    mirrored.put(agent_pod("one", "1"))
    before = mirrored.cpus()

    mirrored.apply(agent(uid="uid-later"))

    assert (before, mirrored.cpus()) == ({AGENT: 1000}, {AGENT: 0})


def test_daemon_sets_are_worked_out_once_per_change() -> None:
    mirrored = MirroredDaemons()
    mirrored.apply(agent())
    mirrored.put(agent_pod("one", "1"))
    first = mirrored.book.daemons()

    mirrored.put(agent_pod("older", "1", age=9), pod("web"))

    assert mirrored.book.daemons() is first


POD_STEPS = st.tuples(
    st.just("pod"),
    st.integers(0, 4),
    st.sampled_from(["1", "2", "3"]),
    st.integers(0, 3),
    st.sampled_from(["Pending", "Running", "Failed"]),
    st.booleans(),
)
DAEMON_STEPS = st.lists(
    st.one_of(
        POD_STEPS,
        st.tuples(st.just("gone"), st.integers(0, 4)),
        st.tuples(st.just("range"), st.booleans()),
        st.tuples(st.just("daemon"), st.booleans()),
        st.just(("look",)),
    ),
    max_size=20,
)


def write_daemons(mirrored: MirroredDaemons, step: tuple[Any, ...]) -> None:
    match step:
        case ("pod", number, cpu, age, phase, is_deleting):
            name = f"p{number}"
            mirrored.put(agent_pod(name, cpu, age=age, phase=phase, deleting=is_deleting))
        case ("gone", number):
            mirrored.pods.put(f"default/p{number}", None)
        case ("range", is_there):
            mirrored.book.ranges.put("default/usual", USUAL if is_there else None)
        case ("daemon", True):
            mirrored.apply(agent())
        case ("daemon", False):
            mirrored.book.templates.put(AGENT, None)
        case _:
            mirrored.book.daemons()


def copy(shelf: Shelf[T], other: Shelf[T]) -> None:
    for key, value in shelf.values.items():
        other.put(key, value)


@given(DAEMON_STEPS)
def test_what_is_worked_out_bit_by_bit_is_as_if_worked_out_at_once(
    steps: list[tuple[Any, ...]],
) -> None:
    mirrored, fresh = MirroredDaemons(), MirroredDaemons()

    for step in steps:
        write_daemons(mirrored, step)

    copy(mirrored.book.templates, fresh.book.templates)
    copy(mirrored.book.ranges, fresh.book.ranges)
    copy(mirrored.pods, fresh.pods)
    assert mirrored.book.daemons() == fresh.book.daemons()


def test_amounts_of_a_limit_range_do_not_multiply_with_containers_without_end() -> None:
    """Objects of 35 and 25 KB take over a minute otherwise."""
    many = {f"example.com/{number}": "1" for number in range(500)}
    mirrored = MirroredDaemons()
    mirrored.book.ranges.put("vast/usual", LimitRange("usual", "vast", many, many))
    mirrored.book.ranges.put("default/usual", USUAL)
    mirrored.apply(agent("vast", containers=[container(requests={"cpu": "1"})] * 500))
    mirrored.apply(agent())

    assert mirrored.cpus() == {"vast/agent": 500_000, AGENT: 2000}


def test_as_many_amounts_as_a_namespace_may_have_are_added() -> None:
    usual = {"cpu": "2"}
    mirrored = MirroredDaemons()
    mirrored.book.ranges.put("default/usual", LimitRange("usual", "default", usual, usual))
    mirrored.apply(agent(containers=[{"name": "c"}] * (AMOUNTS_MAX // 2)))

    assert mirrored.cpus() == {AGENT: 2000 * AMOUNTS_MAX // 2}
