from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Count
from karpy.core.observation.scheduling import (
    NO_WAITS,
    UNKNOWN,
    PodTiming,
    Waits,
    bound_counts,
    decision_counts,
    find_waits,
    owner_link,
    startup_counts,
)
from karpy.model.pods import Pod
from tests.builders import NOON, owner, pod

CREATED = NOON - timedelta(minutes=1)
ACKED = NOON - timedelta(seconds=50)
FOUND = NOON - timedelta(seconds=40)
PLACED = PodTiming(ACKED, FOUND, FOUND)
REFUSED = PodTiming(ACKED, FOUND)
STARTED = replace(
    pod("web", on="n"),
    bound=NOON - timedelta(seconds=30),
    ready=NOON - timedelta(seconds=10),
)


@pytest.mark.parametrize(
    ("waiting", "timing", "expected"),
    [
        (pod("web"), UNKNOWN, Waits(CREATED, CREATED)),
        (pod("web"), PodTiming(ACKED), Waits(CREATED, CREATED, undecided=ACKED)),
        (pod("web"), REFUSED, Waits(CREATED, CREATED)),
        (pod("web"), PLACED, Waits(CREATED, CREATED, FOUND, FOUND)),
        (pod("web", on="n", phase="Pending"), PLACED, Waits(CREATED, None, FOUND)),
        (pod("web", on="n"), PLACED, Waits(CREATED, None, FOUND)),
    ],
)
def test_a_pod_that_starts_waits_for_what_it_has_not_got(
    waiting: Pod, timing: PodTiming, expected: Waits
) -> None:
    assert find_waits(waiting, timing, is_starting=True) == expected


@pytest.mark.parametrize("timing", [UNKNOWN, PodTiming(ACKED), PLACED])
def test_a_pod_that_has_started_waits_for_nothing(timing: PodTiming) -> None:
    assert find_waits(STARTED, timing, is_starting=False) == NO_WAITS


def test_it_is_measured_how_long_a_pod_takes() -> None:
    dynamic = {"dynamic_resources": "false"}

    counts = (
        *decision_counts(PLACED),
        *bound_counts(STARTED, PLACED),
        *startup_counts(STARTED, PLACED),
    )

    assert counts == (
        Count("pods_scheduling_decision_duration_seconds", {}, 10.0),
        Count("pods_bound_duration_seconds", dynamic, 30.0),
        Count("pods_provisioning_bound_duration_seconds", dynamic, 10.0),
        Count("pods_startup_duration_seconds", {}, 50.0),
        Count("pods_provisioning_startup_duration_seconds", {}, 30.0),
    )


def test_what_we_had_no_part_in_is_measured_without_us() -> None:
    counts = (*bound_counts(STARTED, UNKNOWN), *startup_counts(STARTED, UNKNOWN))

    assert [each.metric for each in counts] == [
        "pods_bound_duration_seconds",
        "pods_startup_duration_seconds",
    ]


def test_nothing_is_measured_that_has_not_happened() -> None:
    assert (bound_counts(pod("a"), PLACED), startup_counts(pod("a"), PLACED)) == ((), ())


def test_no_time_is_less_than_none() -> None:
    """Kubernetes drops fractions of a second, and we do not."""
    late = PodTiming(ACKED, FOUND, NOON)

    counts = (*bound_counts(STARTED, late), *startup_counts(STARTED, late))

    assert [each.value for each in counts] == [30.0, 0.0, 50.0, 0.0]


def test_an_owner_is_named_by_a_path() -> None:
    owned = pod("web-1", namespace="shop", owners=[owner(("apps/v1", "ReplicaSet"), "web")])

    assert owner_link(owned) == "/apis/apps/v1/namespaces/shop/replicasets/web"
    assert owner_link(pod("alone")) == ""
