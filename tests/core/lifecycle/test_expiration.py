from datetime import timedelta

import pytest

from karpy.core.lifecycle.changes import Changes, Count, Remark
from karpy.core.lifecycle.expiration import check_expiry, check_liveness
from karpy.model.records import ClaimRecord
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import claim

MINUTE = timedelta(minutes=1)


def labels(reason: str, mode: str = "graceful") -> dict[str, str]:
    return {
        "reason": reason,
        "nodepool": "web",
        "capacity_type": "spot",
        "consolidation_policy": "",
        "termination_mode": mode,
    }


@pytest.mark.parametrize(
    ("waiting", "remaining"),
    [
        (claim(provider_id="", age=4 * MINUTE), MINUTE),
        (claim(age=14 * MINUTE), MINUTE),
    ],
    ids=["launch", "registration"],
)
def test_a_claim_has_time_to_launch_and_to_register(
    waiting: ClaimRecord, remaining: timedelta
) -> None:
    assert check_liveness(waiting, NOON) == Changes(requeue_after=remaining)


@pytest.mark.parametrize(
    ("late", "reason", "timeout"),
    [
        (claim(provider_id="", age=5 * MINUTE), "launch_timeout", "5m0s"),
        (claim(age=15 * MINUTE), "registration_timeout", "15m0s"),
    ],
)
def test_a_claim_that_takes_too_long_is_deleted(
    late: ClaimRecord, reason: str, timeout: str
) -> None:
    assert check_liveness(late, NOON) == Changes(
        deletes_claim=True,
        counts=(Count("nodeclaims_disrupted_total", labels(reason)),),
        remarks=(Remark("terminating due to timeout", {"timeout": timeout, "reason": reason}),),
        has_registered=False,
    )


def test_a_provider_may_allow_more_time_to_launch() -> None:
    changes = check_liveness(claim(provider_id="", age=5 * MINUTE), NOON, 7 * MINUTE)

    assert changes == Changes(requeue_after=2 * MINUTE)


@pytest.mark.parametrize(
    "left_alone",
    [
        claim(age=timedelta(days=9), said={"Registered": timedelta(days=9)}),
        claim(age=timedelta(days=9), deleted=MINUTE),
    ],
    ids=["registered", "going"],
)
def test_registered_and_deleting_claims_do_not_time_out(left_alone: ClaimRecord) -> None:
    assert check_liveness(left_alone, NOON) == Changes()


def test_a_claim_older_than_expire_after_is_deleted() -> None:
    old = claim(age=timedelta(hours=720), expire_after=timedelta(hours=720), grace_period=MINUTE)

    counted = labels("expired", "eventual")
    assert check_expiry(old, NOON, pods=7) == Changes(
        deletes_claim=True,
        counts=(
            Count("nodeclaims_disrupted_total", counted),
            Count("pods_disruption_initiated_total", counted, 7.0),
        ),
    )


def test_a_claim_is_requeued_for_its_expiry() -> None:
    changes = check_expiry(claim(age=MINUTE, expire_after=3 * MINUTE), NOON)

    assert changes == Changes(requeue_after=2 * MINUTE)


@pytest.mark.parametrize(
    "kept",
    [claim(age=timedelta(days=9999)), claim(age=MINUTE, expire_after=MINUTE, deleted=MINUTE)],
    ids=["never", "going"],
)
def test_a_claim_without_expire_after_or_deleting_does_not_expire(kept: ClaimRecord) -> None:
    assert check_expiry(kept, NOON) == Changes()
