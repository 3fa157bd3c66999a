from datetime import UTC, datetime

import pytest

from karpy.codec.fields import JsonObject
from karpy.sim.workloads.pods import available_in, first_to_go, is_active, next_available

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_AGO = "2026-01-01T02:00:00Z"
LATELY = "2026-01-01T11:59:00Z"
COST = "controller.kubernetes.io/pod-deletion-cost"


def _pod(
    uid: str,
    *,
    node: str = "n1",
    phase: str = "Running",
    ready: str = LONG_AGO,
    created: str = LONG_AGO,
    restarts: int = 0,
    **meta: object,
) -> JsonObject:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    return {
        "metadata": {"name": uid, "uid": uid, "creationTimestamp": created, **meta},
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"name": "app", "restartCount": restarts}],
        },
    }


@pytest.mark.parametrize(
    ("goes", "stays"),
    [
        (_pod("z", node="", phase="Pending", ready=""), _pod("a", phase="Pending", ready="")),
        (_pod("z", phase="Pending", ready=""), _pod("a", phase="Unknown", ready="")),
        (_pod("z", phase="Unknown", ready=""), _pod("a", ready="")),
        (_pod("z", ready=""), _pod("a")),
        (_pod("z"), _pod("a", annotations={COST: "5"})),
        (_pod("z", annotations={COST: "-5"}), _pod("a", node="n2")),
        (_pod("z", node="n2"), _pod("a")),
        (_pod("z", ready=LATELY), _pod("a")),
        (_pod("z", restarts=3), _pod("a")),
        (_pod("z", created=LATELY), _pod("a")),
        (_pod("a"), _pod("z")),
        (_pod("a", annotations={COST: "much"}), _pod("z")),
    ],
    ids=[
        "without a node",
        "pending",
        "unknown",
        "unready",
        "cheap to delete",
        "cheaper than crowded",
        "crowded",
        "ready for a short time",
        "restarted often",
        "young",
        "by chance",
        "a cost that is no number counts for nothing",
    ],
)
def test_pods_are_deleted_in_the_order_of_kube_controller_manager(
    goes: JsonObject, stays: JsonObject
) -> None:
    crowd = {"n1": 1, "n2": 2}

    assert first_to_go([stays, goes], crowd, NOW) == [goes, stays]
    assert first_to_go([goes, stays], crowd, NOW) == [goes, stays]


@pytest.mark.parametrize(
    ("pod", "seconds", "expected"),
    [
        (_pod("a"), 0, 0.0),
        (_pod("a", ready=LATELY), 90, 30.0),
        (_pod("a", ready=LATELY), 60, 0.0),
        (_pod("a", ready=""), 0, None),
    ],
)
def test_a_pod_is_available_some_time_after_it_is_ready(
    pod: JsonObject, seconds: int, expected: float | None
) -> None:
    assert available_in(pod, seconds, NOW) == expected


def test_the_next_pod_to_become_available_says_when_to_look_again() -> None:
    pods = [_pod("a"), _pod("b", ready=LATELY), _pod("c", ready="")]

    assert next_available(pods, 90, NOW) == 30.0
    assert next_available(pods, 0, NOW) is None


@pytest.mark.parametrize("pod", [_pod("a"), _pod("a", phase="Pending")])
def test_pending_and_running_pods_are_active(pod: JsonObject) -> None:
    assert is_active(pod)


@pytest.mark.parametrize(
    "pod",
    [
        _pod("a", phase="Succeeded"),
        _pod("a", phase="Failed"),
        _pod("a", deletionTimestamp=LATELY),
    ],
)
def test_finished_and_deleting_pods_are_not_active(pod: JsonObject) -> None:
    assert not is_active(pod)
