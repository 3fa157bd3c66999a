from collections.abc import Collection
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from karpy.core.scheduling.breaker import (
    explain_pause,
    has_kept_place,
    pause_after,
    waiting_pods,
    why_vain,
    with_one_more,
)
from karpy.core.scheduling.decide import decide
from karpy.model.pods import Pod
from karpy.model.snapshot import VainCause, VainLaunches
from karpy.model.verdicts import Reason
from tests.builders import NOON, node, owner, pod, pool, snapshot
from tests.reference.batch import select

SECOND = timedelta(seconds=1)
SAID = "3 launches in vain, the next not before 12:00:04 UTC; kube-scheduler left it out"
REPLICA_SET = ("apps/v1", "ReplicaSet")


def vain(group: str, **changes: object) -> VainLaunches:
    return replace(VainLaunches(group, 3, NOON, NOON + 4 * SECOND, VainCause.LEFT_OUT), **changes)


def test_pauses_double_up_to_five_minutes() -> None:
    pauses = [pause_after(count) / SECOND for count in range(1, 12)]

    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert pause_after(10**9) == timedelta(minutes=5)


def test_each_launch_in_vain_counts_and_keeps_what_kube_scheduler_said() -> None:
    first = with_one_more(None, "shop/web", VainCause.LEFT_OUT, NOON)
    second = with_one_more(
        vain("shop/web", count=1, message="no"), "shop/web", VainCause.NODE_GONE, NOON
    )

    assert first == VainLaunches("shop/web", 1, NOON, NOON + SECOND, VainCause.LEFT_OUT)
    assert second == VainLaunches("shop/web", 2, NOON, NOON + 2 * SECOND, VainCause.NODE_GONE, "no")


WAITS, OTHER, BOUND = pod("a"), pod("b"), pod("c", deleting=True)


@pytest.mark.parametrize(
    ("pods", "waiting", "history", "found"),
    [
        ([WAITS], {WAITS.key}, {}, VainCause.LEFT_OUT),
        ([WAITS], {WAITS.key}, {"has_claims": False}, VainCause.NODE_GONE),
        ([WAITS], {WAITS.key}, {"was_bound": True}, VainCause.PUSHED_OUT),
        ([WAITS], {}, {}, None),
        ([WAITS, OTHER], {WAITS.key}, {}, None),
        ([], {}, {"was_bound": True, "has_waiting_siblings": True}, VainCause.PUSHED_OUT),
        ([], {}, {"was_bound": True}, None),
        ([BOUND], {}, {}, None),
        ([], {}, {"has_waiting_siblings": True}, None),
    ],
    ids=[
        "left out",
        "its node is gone",
        "pushed out, and made anew by the same name",
        "on its way",
        "another one is on its way",
        "pushed out, and another one waits",
        "pushed out, and none waits",
        "it goes itself",
        "it went before",
    ],
)
def test_a_launch_is_in_vain_when_none_of_its_pods_has_a_place_or_is_about_to(
    pods: list[Pod], waiting: Collection[str], history: dict[str, bool], found: VainCause | None
) -> None:
    assert why_vain(pods, waiting, **history) is found


@pytest.mark.parametrize(
    ("bound", "is_long"),
    [([], False), ([NOON - 59 * SECOND], False), ([NOON - 60 * SECOND, NOON], True)],
)
def test_a_pod_keeps_its_place_if_it_has_it_for_a_minute(
    bound: list[datetime], *, is_long: bool
) -> None:
    assert has_kept_place(bound, NOON) is is_long


def test_pods_of_one_controller_are_one_group_and_other_pods_a_group_each() -> None:
    made = owner(REPLICA_SET, "u1")
    watched = owner(REPLICA_SET, "u1", is_controller=False)

    groups = [
        pod("a", namespace="shop", owners=[made]).group,
        pod("b", namespace="shop", owners=[made]).group,
        pod("a", namespace="other", owners=[made]).group,
        pod("a", namespace="shop", owners=[watched]).group,
        pod("a", namespace="shop").group,
    ]

    assert groups == ["shop/ReplicaSet/uid-u1"] * 2 + ["other/ReplicaSet/uid-u1"] + ["shop/a"] * 2


def test_nothing_is_launched_for_a_pod_until_its_pause_is_over() -> None:
    given = snapshot(
        pods=[pod("a"), pod("b"), pod("c"), pod("early", unschedulable=False)],
        pools=[pool("default")],
    )
    vain_launches = (
        vain("default/a", message="0/1 nodes are available"),
        vain("default/b", retry_at=NOON),
        vain("default/early"),
    )
    given = replace(given, vain_launches=vain_launches)

    verdict = decide(given)

    (launch,) = verdict.launches
    assert launch.pods == ("default/b", "default/c")
    assert [(each.reason, each.pods, each.detail) for each in verdict.refusals] == [
        (
            Reason.LAUNCHED_IN_VAIN,
            ("default/a",),
            f"{SAID}: 0/1 nodes are available",
        ),
        (Reason.NOT_YET_UNSCHEDULABLE, ("default/early",), ""),
    ]
    assert select(given)[1] == {
        "default/a": Reason.LAUNCHED_IN_VAIN,
        "default/early": Reason.NOT_YET_UNSCHEDULABLE,
    }


def test_a_pod_of_a_deleting_node_is_placed_in_spite_of_launches_in_vain() -> None:
    given = snapshot(
        pods=[pod("a", on="old")],
        nodes=[node("old", deleting=True)],
        pools=[pool("default")],
    )
    given = replace(given, vain_launches=(vain("default/a"),))

    assert [each.pods for each in decide(given).launches] == [("default/a",)]


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (VainCause.LEFT_OUT, "kube-scheduler left it out"),
        (VainCause.PUSHED_OUT, "it got to its node and was pushed out again"),
        (VainCause.NODE_GONE, "its node was gone before it got there"),
    ],
)
def test_what_kube_scheduler_says_is_left_out_where_it_is_not_known(
    why: VainCause, said: str
) -> None:
    text = explain_pause(vain("default/a", count=1, why=why))

    assert text == f"1 launch in vain, the next not before 12:00:04 UTC; {said}"


def test_pods_that_a_decision_passes_over_do_not_wait() -> None:
    pods = [pod("a"), pod("on", on="n"), pod("early", unschedulable=False), pod("d", deleting=True)]

    assert list(waiting_pods(snapshot(pods=pods))) == ["default/a"]
