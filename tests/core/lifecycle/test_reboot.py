from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes
from karpy.core.lifecycle.eviction import Eviction, EvictionMode
from karpy.core.lifecycle.reboot import (
    REJECTED,
    RebootStep,
    fail,
    has_to_drain,
    is_rebooting,
    issued,
    reboot,
)
from karpy.model.conditions import TRUE, UNKNOWN, Condition
from karpy.model.constraints import Taint
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord, NodeRecord
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import bound, claim, node

SECOND = timedelta(seconds=1)
MINUTE = 60 * SECOND
TAINT = Taint("karpenter.sh/rebooting", "NoSchedule")
GRACE = "karpenter.sh/reboot-termination-grace-period"
BOOT = "karpenter.sh/reboot-pre-boot-id"
TIME = "karpenter.sh/nodeclaim-termination-timestamp"
LABEL = "karpenter.sh/initialized"
WHY = "rebooting for Slow/Swapping"


def asked(reason: str = "RebootRequested", at: datetime = NOON, **annotations: str) -> ClaimRecord:
    """Build a claim whose node is to be rebooted."""
    made = claim(annotations={key: value for key, value in _named(annotations).items() if value})
    said = Condition("Rebooting", TRUE, at, reason, WHY)
    status = UNKNOWN if reason == "RebootIssued" else TRUE
    initialized = Condition("Initialized", status, at, "Rebooting", "node is rebooting")
    return replace(made, conditions=replace(made.conditions, items=(initialized, said)))


def _named(annotations: dict[str, str]) -> dict[str, str]:
    return {{"grace": GRACE, "boot": BOOT}[key]: value for key, value in annotations.items()}


def machine(
    boot_id: str = "boot-1", *, ready: bool = True, labels: Mapping[str, str] | None = None
) -> NodeRecord:
    said = (Condition("Ready", "True" if ready else "False", NOON),)
    return replace(node(labels=labels or {}), boot_id=boot_id, taints=(TAINT,), conditions=said)


def said(changes: Changes, type_: str) -> tuple[str, str]:
    assert changes.claim is not None
    condition = changes.claim.conditions.get(type_)
    assert condition is not None
    return condition.status, condition.reason


def test_only_claims_with_the_condition_that_are_not_deleting_reboot() -> None:
    going = asked()

    assert is_rebooting(going)
    assert not is_rebooting(claim())
    assert not is_rebooting(replace(going, meta=replace(going.meta, deleted=NOON)))


def test_the_drain_lasts_until_the_boot_id_is_written() -> None:
    assert has_to_drain(asked())
    assert not has_to_drain(asked(boot="boot-1"))
    assert not has_to_drain(asked("RebootIssued"))


def test_a_rebooting_node_is_tainted() -> None:
    bare = replace(machine(), taints=())

    step = reboot(asked(), bare, (), NOON)

    assert step.changes.node == replace(bare, taints=(TAINT,))


@pytest.mark.parametrize(
    ("grace", "deadline", "left"),
    [
        ("", None, 15 * SECOND),
        ("5m0s", NOON + 5 * MINUTE, 15 * SECOND),
        ("11s", NOON + 11 * SECOND, SECOND),
    ],
)
def test_pods_are_evicted_but_never_deleted(
    grace: str, deadline: datetime | None, left: timedelta
) -> None:
    step = reboot(asked(grace=grace), machine(), (bound("a"),), NOON + 10 * SECOND)

    assert step == RebootStep(
        Changes(requeue_after=left),
        (Eviction("shop", "a", "uid-a", EvictionMode.TIMEOUT, deadline),),
    )


@pytest.mark.parametrize(
    ("grace", "pods", "now"),
    [
        ("0s", (bound("a"),), NOON),
        ("1m0s", (bound("a"),), NOON + MINUTE),
        ("1s", (bound("a"),), NOON + 5 * SECOND),
        ("", (), NOON + 5 * SECOND),
    ],
    ids=["forceful", "time is up", "at least five seconds", "empty"],
)
def test_after_the_drain_the_boot_id_is_written(
    grace: str, pods: tuple[Pod, ...], now: datetime
) -> None:
    step = reboot(asked(grace=grace), machine(), pods, now)

    assert step.operation == ""
    assert step.evictions == ()
    assert step.changes.claim is not None
    assert step.changes.claim.meta.annotations[BOOT] == "boot-1"


def test_an_empty_node_is_drained_only_after_a_moment() -> None:
    step = reboot(asked(), machine(), (), NOON + SECOND)

    assert step == RebootStep(Changes(requeue_after=4 * SECOND))


def test_every_reboot_request_has_the_same_operation_id() -> None:
    step = reboot(asked(boot="boot-1"), machine(), (bound("a"),), NOON + MINUTE)

    assert step == RebootStep(Changes(), operation="uid-web-1-1772452800000000000-boot-1")


def test_a_machine_that_has_rebooted_already_is_not_rebooted_again() -> None:
    step = reboot(asked(boot="boot-1"), machine("boot-2"), (), NOON + MINUTE)

    assert step.operation == ""
    assert said(step.changes, "Rebooting") == ("True", "RebootIssued")


def test_a_rebooting_node_is_not_initialized() -> None:
    changes = issued(asked(boot="boot-1"), machine(labels={LABEL: "true"}), NOON + MINUTE)

    assert said(changes, "Rebooting") == ("True", "RebootIssued")
    assert said(changes, "Initialized") == ("Unknown", "Rebooting")
    assert changes.node == machine()


def test_a_new_boot_removes_the_taint_and_has_an_event() -> None:
    claimed = asked("RebootIssued", boot="boot-1")

    step = reboot(claimed, machine("boot-2", ready=False), (), NOON + MINUTE)

    assert step.changes.node is not None
    assert step.changes.node.taints == ()
    assert [each.reason for each in step.changes.notices] == ["RebootObserved"]
    assert said(step.changes, "Rebooting") == ("True", "RebootIssued")


def test_a_node_with_a_new_boot_that_is_ready_has_rebooted() -> None:
    claimed = asked("RebootIssued", boot="boot-1")

    step = reboot(claimed, machine("boot-2"), (), NOON + MINUTE)

    changes = step.changes
    assert said(changes, "Rebooting") == ("False", "RebootSucceeded")
    assert changes.claim is not None
    assert changes.claim.meta.annotations == {}
    assert changes.node is not None
    assert changes.node.taints == ()
    assert [(each.metric, each.value) for each in changes.counts] == [
        ("nodes_reboots_total", 1.0),
        ("nodes_reboot_duration_seconds", 60.0),
        ("nodes_reboot_recovery_duration_seconds", 60.0),
    ]


def test_a_node_with_the_old_boot_is_awaited() -> None:
    claimed = asked("RebootIssued", boot="boot-1")

    step = reboot(claimed, machine("boot-1"), (), NOON + 20 * MINUTE)

    assert not step.changes.deletes_claim
    assert step.changes.requeue_after == 15 * SECOND


@pytest.mark.parametrize(
    ("claimed", "there", "now", "asked_since", "message"),
    [
        (
            asked("RebootIssued", boot="boot-1"),
            machine(),
            NOON + 20 * MINUTE + SECOND,
            None,
            "node did not recover within the observation window",
        ),
        (
            asked("RebootIssued", boot="boot-1"),
            None,
            NOON + 20 * MINUTE + SECOND,
            None,
            "node did not recover within the observation window",
        ),
        (
            asked(boot="boot-1"),
            machine(),
            NOON + 10 * MINUTE,
            NOON + 4 * MINUTE,
            "reboot was not issued within the issuance timeout",
        ),
        (
            asked(),
            None,
            NOON + 6 * MINUTE,
            None,
            "reboot was not issued within the issuance timeout",
        ),
    ],
    ids=[
        "it does not come back",
        "it is gone",
        "the cloud does not reboot it",
        "it was never there",
    ],
)
def test_a_node_that_does_not_recover_in_time_is_replaced(
    claimed: ClaimRecord,
    there: NodeRecord | None,
    now: datetime,
    asked_since: datetime | None,
    message: str,
) -> None:
    changes = reboot(claimed, there, (), now, asked_since).changes

    assert changes.deletes_claim
    assert [each.note for each in changes.notices] == [message]
    assert [each.event for each in changes.remarks] == ["reboot failed, replacing node"]


def test_the_pods_of_a_failed_reboot_keep_their_grace_period() -> None:
    changes = fail(asked(grace="5m0s"), machine(), REJECTED, NOON, "it is broken")

    assert changes.claim is not None
    assert changes.claim.meta.annotations[TIME] == "2026-03-02T12:05:00Z"
    assert changes.node is not None
    assert changes.node.taints == ()
    assert [each.note for each in changes.notices] == [
        "reboot rejected by the cloud provider: it is broken"
    ]


@pytest.mark.parametrize("grace", ["soon", "-5s"])
def test_an_invalid_reboot_request_is_refused_and_the_node_kept(grace: str) -> None:
    changes = reboot(asked(grace=grace), machine(), (), NOON).changes

    assert said(changes, "Rebooting") == ("False", "RebootFailed")
    assert not changes.deletes_claim
    assert changes.notices[0].note == (
        f"invalid reboot request: `{grace}` is no grace period, such as `5m0s`"
    )


@pytest.mark.parametrize("reason", ["RebootRequested", "RebootIssued"])
def test_a_missing_node_is_awaited(reason: str) -> None:
    step = reboot(asked(reason), None, (), NOON + MINUTE)

    assert step.changes.requeue_after == 15 * SECOND
    assert not step.changes.deletes_claim
