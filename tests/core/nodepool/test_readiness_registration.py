from datetime import timedelta

import pytest

from karpy.core.lifecycle.launch import launch_failed
from karpy.core.nodepool.readiness import (
    HealthUpdate,
    RegistrationHealth,
    record_attempt,
    refresh_health,
)
from karpy.model.conditions import Condition
from karpy.model.records import ClaimRecord, PoolRecord
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import claim, condition_of, pool

TYPE = "NodeRegistrationHealthy"


def healthy(status: str, generation: int = 1) -> Condition:
    return Condition(TYPE, status, NOON - timedelta(hours=1), TYPE, "", generation)


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        ((), "Unknown"),
        ((True,), "True"),
        ((False,), "True"),
        ((False, False), "False"),
        ((True, False, False), "False"),
        ((False, False, True, True), "False"),
        ((False, True, True, True), "True"),
    ],
)
def test_two_failures_among_four_attempts_are_too_many(
    attempts: tuple[bool, ...], expected: str
) -> None:
    assert RegistrationHealth(attempts).status == expected


def test_the_fifth_attempt_drives_out_the_first() -> None:
    health = RegistrationHealth((False, False, True, True)).with_attempt(is_success=True)

    assert health == RegistrationHealth((False, True, True, True))


def test_a_success_makes_a_pool_healthy() -> None:
    update = record_attempt(RegistrationHealth(), pool(), claim(), NOON, is_success=True)

    assert update.health == RegistrationHealth((True,))
    assert condition_of(update.pool, TYPE) == ("True", TYPE, "")


def test_a_success_among_failures_does_not() -> None:
    health = RegistrationHealth((False, False))

    update = record_attempt(health, pool(), claim(), NOON, is_success=True)

    assert update == HealthUpdate(RegistrationHealth((False, False, True)), pool())


def failed_launch() -> ClaimRecord:
    failed = launch_failed(claim(provider_id=""), "quota reached", NOON).claim
    assert failed is not None
    return failed


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        (claim(), ("False", "RegistrationFailed", "Failed to register node")),
        (failed_launch(), ("False", "LaunchFailed", "quota reached")),
    ],
    ids=["registration", "launch"],
)
def test_the_second_failure_makes_a_pool_unhealthy(
    failed: ClaimRecord, expected: tuple[str, str, str]
) -> None:
    update = record_attempt(RegistrationHealth((False,)), pool(), failed, NOON, is_success=False)

    assert update.health == RegistrationHealth((False, False))
    assert condition_of(update.pool, TYPE) == expected


def test_a_pool_that_is_unhealthy_keeps_the_first_explanation() -> None:
    sick = pool(conditions=[healthy("False")])

    update = record_attempt(
        RegistrationHealth((False, False)), sick, claim(), NOON, is_success=False
    )

    assert update == HealthUpdate(RegistrationHealth((False, False, False)), sick)


def test_a_claim_of_another_pool_of_that_name_does_not_count() -> None:
    update = record_attempt(RegistrationHealth(), pool(), claim(pool=""), NOON, is_success=True)

    assert update == HealthUpdate(RegistrationHealth(), pool())


@pytest.mark.parametrize(
    ("status", "attempts"), [("True", (True,)), ("False", (False, False)), ("Unknown", ())]
)
def test_after_a_restart_the_condition_is_what_is_remembered(
    status: str, attempts: tuple[bool, ...]
) -> None:
    record = pool(conditions=[healthy(status)])

    assert refresh_health(RegistrationHealth(), record, 1, NOON) == HealthUpdate(
        RegistrationHealth(attempts), record
    )


@pytest.mark.parametrize(
    ("record", "class_generation"),
    [
        (pool(), 1),
        (pool(conditions=[healthy("False")]), 2),
        (pool(conditions=[healthy("False")], generation=2), 1),
        (pool(conditions=[healthy("False")], class_generation=None), 1),
    ],
    ids=["nothing said", "new class", "new pool", "class never seen"],
)
def test_a_change_makes_health_unknown(record: PoolRecord, class_generation: int) -> None:
    update = refresh_health(RegistrationHealth((False, False)), record, class_generation, NOON)

    expected = ("Unknown", "AwaitingReconciliation", "object is awaiting reconciliation")
    assert update.health == RegistrationHealth()
    assert condition_of(update.pool, TYPE) == expected
    assert update.pool.class_generation == class_generation
    assert refresh_health(update.health, update.pool, class_generation, NOON) == update


def test_what_is_remembered_is_kept_while_nothing_changes() -> None:
    record = pool(conditions=[healthy("True")])

    update = refresh_health(RegistrationHealth((False, True, True)), record, 1, NOON)

    assert update == HealthUpdate(RegistrationHealth((False, True, True)), record)
