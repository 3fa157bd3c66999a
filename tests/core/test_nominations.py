from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from karpy.core.nominations import with_all_untried, with_nominated, with_untried
from karpy.core.scheduling.decide import decide
from karpy.model.pods import DAEMON_SET, Pod
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
