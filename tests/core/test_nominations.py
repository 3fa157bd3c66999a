from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from karpy.core.nominations import (
    STAND_IN_TIME,
    Predecessor,
    with_all_untried,
    with_nominated,
    with_stand_ins,
    with_untried,
)
from karpy.core.scheduling.decide import decide
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, STATEFUL_SET, Pod
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Reason, Refusal
from tests.builders.nodes import node
from tests.builders.pods import owner, pod


def snapshot(*pods: Pod) -> Snapshot:
    return Snapshot(now=datetime(2026, 1, 1, tzinfo=UTC), pods=pods)


def waiting(name: str) -> Pod:
    return pod(name)


def untried(name: str) -> Pod:
    return replace(pod(name, unschedulable=False), is_untried=True)


def placed(found: Snapshot) -> list[str]:
    return [each.name for each in found.pods if each.is_unschedulable]


def test_untried_pods_ride_along_with_one_that_waits() -> None:
    found = with_untried(snapshot(waiting("a"), untried("b")))

    assert placed(found) == ["a", "b"]


def test_alone_they_wait_for_kube_scheduler() -> None:
    given = snapshot(untried("a"), untried("b"))

    assert with_untried(given) is given


def test_for_what_is_disrupted_untried_pods_wait_even_alone() -> None:
    (found,) = with_all_untried(snapshot(untried("a"))).pods

    assert found.is_unschedulable


def test_who_was_looked_at_does_not_ride_along() -> None:
    looked_at = pod("b", unschedulable=False)

    found = with_untried(snapshot(waiting("a"), looked_at, untried("c")))

    assert placed(found) == ["a", "c"]


@pytest.mark.parametrize(
    "stays",
    [
        replace(untried("b"), owners=(owner(DAEMON_SET),)),
        replace(untried("b"), is_deleting=True),
        replace(untried("b"), phase="Succeeded"),
    ],
    ids=["daemon", "going", "over"],
)
def test_daemons_and_the_dead_do_not(stays: Pod) -> None:
    found = with_untried(snapshot(waiting("a"), stays))

    assert placed(found) == ["a"]


def test_who_is_on_his_way_counts_as_there() -> None:
    given = replace(snapshot(waiting("a"), waiting("b")), nodes=(replace(node("n1"), claim="c1"),))

    found = with_nominated(given, {"default/a": "c1"})

    assert [(each.node_name, each.is_unschedulable) for each in found.pods] == [
        ("n1", False),
        ("", True),
    ]


def test_no_pod_is_nominated_to_a_deleted_claim() -> None:
    given = snapshot(waiting("a"))

    assert with_nominated(given, {"default/a": "c1"}).pods == given.pods


def test_who_is_bound_elsewhere_stays_there() -> None:
    bound = pod("a", on="n2")
    given = replace(snapshot(bound), nodes=(replace(node("n1"), claim="c1"), node("n2")))

    assert with_nominated(given, {"default/a": "c1"}).pods == (bound,)


def test_a_pod_whose_room_is_taken_is_not_nominated() -> None:
    """The node has four CPUs."""
    taken, late = pod("other", on="n1", cpu="3"), pod("a", cpu="2")
    given = replace(snapshot(taken, late), nodes=(replace(node("n1"), claim="c1"),))

    found = with_nominated(given, {"default/a": "c1"})

    assert found.pods == (taken, late)


def test_of_those_expected_as_many_count_as_fit() -> None:
    given = replace(
        snapshot(pod("a", cpu="3"), pod("b", cpu="3")), nodes=(replace(node("n1"), claim="c1"),)
    )

    found = with_nominated(given, {"default/a": "c1", "default/b": "c1"})

    assert [each.node_name for each in found.pods] == ["n1", ""]


@pytest.mark.parametrize(("settling", "expected"), [({"c1"}, []), ({"c2"}, ["a"])])
def test_who_has_lost_a_place_waits_for_the_nodes_that_came_with_it(
    settling: set[str], expected: list[str]
) -> None:
    taken, late = pod("other", on="n1", cpu="3"), pod("a", cpu="2")
    given = replace(snapshot(taken, late), nodes=(replace(node("n1"), claim="c1"),))

    found = with_untried(with_nominated(given, {"default/a": "c1"}, settling))

    assert placed(found) == expected


def test_who_is_left_alone_hears_why() -> None:
    """The node has four CPUs."""
    given = replace(
        snapshot(pod("a", cpu="3"), pod("b", cpu="3")), nodes=(replace(node("n1"), claim="c1"),)
    )

    found = decide(with_nominated(given, {"default/a": "c1", "default/b": "c1"}, {"c1"}))

    assert found.refusals == (
        Refusal(Reason.ON_ITS_WAY, ("default/a",), "n1"),
        Refusal(Reason.PLACE_TAKEN, ("default/b",)),
    )


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def ended(name: str, *claims: str, cpu: str = "3", seconds: int = 0) -> Predecessor:
    """A pod of a StatefulSet that ended some time ago on a node that is gone."""
    gone = pod(name, on="old", cpu=cpu, unschedulable=False)
    gone = replace(gone, owners=(owner(STATEFUL_SET),), is_deleting=True, deleted=NOW, phase="")
    return Predecessor(gone, claims, NOW - timedelta(seconds=seconds))


def replaced(*pods: Pod) -> Snapshot:
    """Two nodes of four CPUs that were launched as replacements."""
    return replace(snapshot(*pods), nodes=(of_claim("a"), of_claim("b")))


def of_claim(name: str) -> Node:
    return replace(node(name), claim=f"{name}-claim")


def stand_ins(found: Snapshot) -> dict[str, str]:
    return {each.name: each.node_name for each in found.pods if each.is_expected}


def test_a_pod_stands_on_its_planned_node_for_the_one_to_come() -> None:
    found = with_stand_ins(replaced(), [ended("db-0", "a-claim", seconds=60)])

    (stand_in,) = found.pods
    assert (stand_in.node_name, stand_in.is_expected, stand_in.is_active) == ("a", True, True)
    assert [each.nominated_until for each in found.nodes] == [NOW + timedelta(seconds=240), None]


def test_a_node_is_nominated_until_its_last_stand_in_is_late() -> None:
    first, last = ended("db-0", "a-claim", cpu="1"), ended("db-1", "a-claim", cpu="1", seconds=9)

    found = with_stand_ins(replaced(), [first, last])

    assert found.nodes[0].nominated_until == NOW + STAND_IN_TIME


def test_if_another_pod_of_the_set_is_there_its_place_counts_instead() -> None:
    given = replaced(pod("db-1", on="a", cpu="3"))

    found = with_stand_ins(given, [ended("db-0", "a-claim", "a-claim", "b-claim")])

    assert stand_ins(found) == {"db-0": "b"}


def test_no_two_pods_stand_in_the_room_of_one() -> None:
    both = [ended("db-1", "a-claim", "b-claim"), ended("db-0", "a-claim", "b-claim")]

    assert stand_ins(with_stand_ins(replaced(), both)) == {"db-0": "a", "db-1": "b"}


@pytest.mark.parametrize(
    ("given", "predecessor"),
    [
        (replaced(), replace(ended("db-0", "a-claim"), ended=None)),
        (replaced(), ended("db-0", "a-claim", seconds=300)),
        (replaced(), ended("db-0", "c-claim")),
        (replaced(pod("web", on="a", cpu="2")), ended("db-0", "a-claim")),
        (
            replace(snapshot(), nodes=(replace(of_claim("a"), is_deleting=True),)),
            ended("db-0", "a-claim"),
        ),
    ],
    ids=["still there", "too late", "no node", "no room", "deleting"],
)
def test_otherwise_nothing_stands_for_it(given: Snapshot, predecessor: Predecessor) -> None:
    assert with_stand_ins(given, [predecessor]) == given
