from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from karpy.model.constraints import Toleration
from karpy.model.leaving import LeavingPod

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
POD = LeavingPod("web-1", "shop", "u1", phase="Running")


@pytest.mark.parametrize(
    ("pod", "is_drainable", "is_waited_for"),
    [
        (POD, True, True),
        (replace(POD, phase="Succeeded"), True, False),
        (replace(POD, phase="Failed"), True, False),
        (replace(POD, is_static=True), False, False),
        (replace(POD, tolerations=(Toleration(operator="Exists"),)), False, False),
        (replace(POD, deleted=NOON - timedelta(seconds=60)), True, True),
        (replace(POD, deleted=NOON - timedelta(seconds=61)), False, False),
        (replace(POD, do_not_disrupt="true"), True, True),
        (replace(POD, is_daemon=True), True, True),
    ],
)
def test_a_node_waits_for_the_pods_that_can_be_drained(
    pod: LeavingPod, *, is_drainable: bool, is_waited_for: bool
) -> None:
    assert pod.is_drainable(NOON) is is_drainable
    assert pod.is_waited_for(NOON) is is_waited_for


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("karpenter.sh/disrupted", "Exists"), True),
        (Toleration("karpenter.sh/disrupted", effect="NoSchedule"), True),
        (Toleration("karpenter.sh/disrupted", "Exists", effect="NoExecute"), False),
        (Toleration("other", "Exists"), False),
    ],
)
def test_a_pod_stays_if_it_tolerates_the_mark_of_a_going_node(
    toleration: Toleration, *, expected: bool
) -> None:
    assert replace(POD, tolerations=(toleration,)).tolerates_disruption is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("system-cluster-critical", True),
        ("system-node-critical", True),
        ("important", False),
        ("", False),
    ],
)
def test_two_priority_classes_are_critical(name: str, *, expected: bool) -> None:
    assert replace(POD, priority_class=name).is_critical is expected
