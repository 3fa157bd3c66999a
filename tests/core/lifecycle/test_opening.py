from datetime import timedelta

import pytest

from karpy.core.lifecycle.opening import (
    HEARING_TIME,
    Door,
    gate,
    opened,
    shut,
    stands_ready,
)
from karpy.model.constraints import Taint
from karpy.model.records import NodeRecord
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import DISRUPTED, UNREGISTERED, claim, node

GPU = Taint("gpu", "NoSchedule", "true")
NOT_READY = Taint("node.kubernetes.io/not-ready", "NoSchedule")
LONG_AGO = gate(NOON - timedelta(minutes=1))


def gated(*taints: Taint, is_ready: bool = True) -> NodeRecord:
    return node(taints=(*taints, LONG_AGO), is_ready=is_ready)


def test_what_ends_pods_gives_way_to_what_keeps_them_away() -> None:
    made = shut(node(taints=(UNREGISTERED, GPU)), NOON)

    assert made.taints == (GPU, gate(NOON))
    assert gate(NOON).effect == "NoSchedule"


def test_karpenter_takes_the_gate_for_a_mark_that_was_left_behind() -> None:
    """It takes `karpenter.sh/disrupted:NoSchedule`, with any value, off nodes that stay."""
    assert (gate(NOON).key, gate(NOON).effect) == (DISRUPTED.key, DISRUPTED.effect)


def test_a_node_that_is_being_disrupted_needs_no_gate() -> None:
    assert shut(node(taints=(UNREGISTERED, DISRUPTED)), NOON).taints == (DISRUPTED,)


def test_a_node_that_ends_nobody_stays_as_it_is() -> None:
    assert shut(node(taints=(GPU,)), NOON).taints == (GPU,)


def test_a_node_opens_when_all_have_heard_that_it_ends_nobody() -> None:
    made = node(taints=(GPU, gate(NOON)))

    early = opened(made, Door.FREE, NOON + HEARING_TIME / 4)
    late = opened(made, Door.FREE, NOON + HEARING_TIME)

    assert early == (made, HEARING_TIME * 3 / 4)
    assert (late[0].taints, late[1]) == ((GPU,), timedelta())


@pytest.mark.parametrize("microseconds", [0, 499, 501, 999_999])
def test_a_node_that_was_just_shut_is_shut(microseconds: int) -> None:
    """The gate names the nearest millisecond, which may be ahead."""
    now = NOON + timedelta(microseconds=microseconds)
    made = shut(node(taints=(UNREGISTERED,)), now)

    found, left = opened(made, Door.FREE, now)

    assert found == made
    assert left is not None
    assert left > HEARING_TIME / 2


def test_a_clock_that_was_set_back_keeps_nothing_shut() -> None:
    made = node(taints=(gate(NOON + timedelta(days=1)),))

    assert opened(made, Door.FREE, NOON) == (node(), timedelta())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("karpenter.sh/unregistered", "1772452740000"),
        ("karpenter.sh/unregistered", "why"),
        ("karpenter.sh/unregistered", ""),
        ("karpenter.sh/disrupted", "1772452740000"),
        ("karpenter.sh/disrupted", "9" * 63),
    ],
)
def test_a_gate_that_was_left_behind_opens(key: str, value: str) -> None:
    left = node(taints=(GPU, Taint(key, "NoSchedule", value)))

    assert opened(left, Door.FREE, NOON)[0].taints == (GPU,)


def test_a_node_without_a_gate_is_open() -> None:
    made = node(taints=(NOT_READY,))

    assert opened(made, Door.HELD, NOON) == (made, timedelta())


@pytest.mark.parametrize(
    ("door", "taints", "left"),
    [
        (Door.FREE, (GPU, NOT_READY, LONG_AGO), None),
        (Door.HELD, (GPU, NOT_READY, LONG_AGO), None),
        (Door.CALLED, (GPU,), timedelta()),
    ],
)
def test_who_is_called_upon_does_not_wait_until_others_see_that_he_is_ready(
    door: Door, taints: tuple[Taint, ...], left: timedelta | None
) -> None:
    made, wait = opened(gated(GPU, NOT_READY), door, NOON)

    assert (set(made.taints), wait) == (set(taints), left)


def test_a_node_is_held_although_it_could_open() -> None:
    assert opened(gated(), Door.HELD, NOON) == (gated(), None)


def test_a_node_that_is_not_ready_stays_shut_even_if_called_upon() -> None:
    made = gated(NOT_READY, is_ready=False)

    assert opened(made, Door.CALLED, NOON) == (made, None)


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (gated(), True),
        (gated(NOT_READY), True),
        (gated(is_ready=False), None),
        (node(taints=(UNREGISTERED,)), None),
        (node(taints=(GPU,)), False),
        (gated(Taint("cilium", "NoExecute")), False),
    ],
    ids=["shut", "not seen to be ready", "not ready", "not registered", "open", "not started"],
)
def test_a_node_stands_ready_if_nothing_but_the_gate_is_in_the_way(
    there: NodeRecord, *, expected: bool | None
) -> None:
    made = claim(startup_taints=(Taint("cilium", "NoExecute"),))

    assert stands_ready(made, there) is expected
