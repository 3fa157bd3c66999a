"""What DaemonSets take of a new node, as pods and rules come and go."""

from datetime import timedelta
from typing import Any, TypeVar

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.adapters.mirror.censusbook import AMOUNTS_MAX, DaemonBook
from karpy.adapters.mirror.records import Shelf
from karpy.codec.admission import LimitRange, RuntimeClass
from karpy.codec.fields import Fields
from karpy.codec.pods import PodReader
from karpy.codec.workloads import read_daemon_template
from karpy.model.pods import DAEMON_SET, Pod
from tests.builders import owner, pod
from tests.codec.plain import Json, container, workload

T = TypeVar("T")
AGENT = "default/agent"
USUAL = LimitRange("usual", "default", {"cpu": "2"}, {"cpu": "2"})


class Mirrored:
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
    early, late = Mirrored(), Mirrored()
    early.book.ranges.put("default/usual", USUAL)
    early.apply(agent())
    late.apply(agent())
    before = late.cpus()

    late.book.ranges.put("default/usual", USUAL)

    assert (early.cpus(), before, late.cpus()) == ({AGENT: 2000}, {AGENT: 0}, {AGENT: 2000})


def test_a_runtime_class_costs_what_it_says() -> None:
    mirrored = Mirrored()
    mirrored.apply(agent(runtimeClassName="sandboxed"))
    before = mirrored.cpus()

    mirrored.book.runtimes.put("sandboxed", RuntimeClass("sandboxed", {"cpu": "250m"}, {}, ()))

    assert (before, mirrored.cpus()) == ({AGENT: 0}, {AGENT: 250})


def test_a_limit_range_of_another_namespace_changes_nothing() -> None:
    mirrored = Mirrored()
    mirrored.apply(agent("shop"))

    mirrored.book.ranges.put("default/usual", USUAL)

    assert mirrored.cpus() == {"shop/agent": 0}


def test_a_pod_counts_before_the_template_and_a_new_pod_before_an_old_one() -> None:
    mirrored = Mirrored()
    mirrored.apply(agent())
    mirrored.put(agent_pod("old", "1", age=9))
    first = mirrored.cpus()
    mirrored.put(agent_pod("new", "2"))
    second = mirrored.cpus()

    mirrored.pods.put("default/new", None)

    assert (first, second, mirrored.cpus()) == ({AGENT: 1000}, {AGENT: 2000}, {AGENT: 1000})


def test_pods_that_are_over_or_being_deleted_do_not_count() -> None:
    mirrored = Mirrored()
    mirrored.apply(agent())

    mirrored.put(agent_pod("over", "1", phase="Failed"), agent_pod("going", "1", deleting=True))

    assert mirrored.cpus() == {AGENT: 0}


def test_a_pod_that_names_the_daemon_set_of_another_namespace_does_not_count() -> None:
    mirrored = Mirrored()
    mirrored.apply(agent("kube-system"))

    mirrored.put(agent_pod("forged", "1000"))

    assert mirrored.cpus() == {"kube-system/agent": 0}


def test_a_pod_that_does_not_run_counts_less_than_one_that_does() -> None:
    mirrored = Mirrored()
    mirrored.apply(agent())

    mirrored.put(agent_pod("true", "1", age=9), agent_pod("forged", "1000", phase="Pending"))

    assert mirrored.cpus() == {AGENT: 1000}


def test_a_daemon_set_made_anew_under_its_name_does_not_take_over_the_pods_of_the_old_one() -> None:
    mirrored = Mirrored()
    mirrored.apply(agent())
    mirrored.put(agent_pod("one", "1"))
    before = mirrored.cpus()

    mirrored.apply(agent(uid="uid-later"))

    assert (before, mirrored.cpus()) == ({AGENT: 1000}, {AGENT: 0})


def test_daemon_sets_are_worked_out_once_per_change() -> None:
    mirrored = Mirrored()
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
STEPS = st.lists(
    st.one_of(
        POD_STEPS,
        st.tuples(st.just("gone"), st.integers(0, 4)),
        st.tuples(st.just("range"), st.booleans()),
        st.tuples(st.just("daemon"), st.booleans()),
        st.just(("look",)),
    ),
    max_size=20,
)


def write(mirrored: Mirrored, step: tuple[Any, ...]) -> None:
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


@given(STEPS)
def test_what_is_worked_out_bit_by_bit_is_as_if_worked_out_at_once(
    steps: list[tuple[Any, ...]],
) -> None:
    mirrored, fresh = Mirrored(), Mirrored()

    for step in steps:
        write(mirrored, step)

    copy(mirrored.book.templates, fresh.book.templates)
    copy(mirrored.book.ranges, fresh.book.ranges)
    copy(mirrored.pods, fresh.pods)
    assert mirrored.book.daemons() == fresh.book.daemons()


def test_amounts_of_a_limit_range_do_not_multiply_with_containers_without_end() -> None:
    """Objects of 35 and 25 KB take over a minute otherwise."""
    many = {f"example.com/{number}": "1" for number in range(500)}
    mirrored = Mirrored()
    mirrored.book.ranges.put("vast/usual", LimitRange("usual", "vast", many, many))
    mirrored.book.ranges.put("default/usual", USUAL)
    mirrored.apply(agent("vast", containers=[container(requests={"cpu": "1"})] * 500))
    mirrored.apply(agent())

    assert mirrored.cpus() == {"vast/agent": 500_000, AGENT: 2000}


def test_as_many_amounts_as_a_namespace_may_have_are_added() -> None:
    usual = {"cpu": "2"}
    mirrored = Mirrored()
    mirrored.book.ranges.put("default/usual", LimitRange("usual", "default", usual, usual))
    mirrored.apply(agent(containers=[{"name": "c"}] * (AMOUNTS_MAX // 2)))

    assert mirrored.cpus() == {AGENT: 2000 * AMOUNTS_MAX // 2}
