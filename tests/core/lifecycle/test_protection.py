from datetime import timedelta

import pytest

from karpy.core.lifecycle.protection import Protection, is_evictable, protection_of
from karpy.model.constraints import Toleration
from karpy.model.kinds import POD
from karpy.model.leaving import LeavingPod
from karpy.model.notices import Notice, Subject
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import leaving

HOUR = timedelta(hours=1)
SUBJECT = Subject(POD, "web-1", "shop", "uid-web-1")


def test_a_pod_may_forbid_to_be_disturbed() -> None:
    pod = leaving("web-1", do_not_disrupt="true")

    assert protection_of(pod, NOON) == Protection(is_active=True)


def test_a_pod_that_says_nothing_may_be_disturbed() -> None:
    assert protection_of(leaving("web-1"), NOON) == Protection()


def test_a_duration_begins_with_the_pod() -> None:
    pod = leaving("web-1", do_not_disrupt="1h30m", started=NOON - HOUR)

    assert protection_of(pod, NOON) == Protection(
        is_active=True,
        until=NOON + HOUR / 2,
        notices=(
            Notice(
                SUBJECT,
                "DoNotDisruptUntil",
                "The karpenter.sh/do-not-disrupt grace period will elapse at 2026-03-02T12:30:00Z",
                same_as=("uid-web-1", "2026-03-02T12:30:00Z"),
            ),
        ),
    )


def test_a_duration_ends() -> None:
    pod = leaving("web-1", do_not_disrupt="1h", started=NOON - HOUR)

    assert protection_of(pod, NOON) == Protection(
        until=NOON,
        notices=(
            Notice(
                SUBJECT,
                "DoNotDisruptGracePeriodElapsed",
                "The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable",
                same_as=("uid-web-1",),
            ),
        ),
    )


def test_a_duration_holds_for_a_pod_that_has_not_started() -> None:
    pod = leaving("web-1", do_not_disrupt="1h", started=None)

    assert protection_of(pod, NOON) == Protection(is_active=True)


@pytest.mark.parametrize("value", ["false", "", "-1h", "0s", "1 day"])
def test_what_is_no_positive_duration_protects_nobody_and_is_told(value: str) -> None:
    note = (
        f"Invalid karpenter.sh/do-not-disrupt annotation: `{value}` is neither `true` nor a "
        "positive duration such as `4h`, ignoring annotation"
    )

    assert protection_of(leaving("web-1", do_not_disrupt=value), NOON) == Protection(
        notices=(
            Notice(
                SUBJECT,
                "InvalidDoNotDisruptAnnotation",
                note,
                is_warning=True,
                same_as=("uid-web-1", note),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (leaving("p"), True),
        (leaving("p", phase="Failed"), False),
        (leaving("p", deleted=NOON), False),
        (leaving("p", is_static=True), False),
        (leaving("p", tolerations=(Toleration(operator="Exists"),)), False),
        (leaving("p", do_not_disrupt="true"), False),
        (leaving("p", do_not_disrupt="nonsense"), True),
        (leaving("p", is_daemon=True), True),
    ],
)
def test_some_pods_are_not_asked_to_go(pod: LeavingPod, *, expected: bool) -> None:
    assert is_evictable(pod, NOON) is expected
