from datetime import timedelta

from karpy.core.pools.validation import judge_validity
from karpy.model.conditions import FALSE, TRUE
from tests.builders.pods import NOON
from tests.core.pools.records import pool

LATER = NOON + timedelta(minutes=1)


def test_a_pool_names_all_its_faults() -> None:
    outcome = judge_validity(pool(), ("one is wrong", "two is wrong"), NOON)

    assert outcome.pool is not None
    condition = outcome.pool.conditions.get("ValidationSucceeded")
    assert condition is not None
    assert condition.status == FALSE
    assert condition.reason == "NodePoolValidationFailed"
    assert condition.message == "one is wrong; two is wrong"


def test_a_mended_pool_is_valid_again() -> None:
    broken = judge_validity(pool(), ("one is wrong",), NOON).pool
    assert broken is not None

    outcome = judge_validity(broken, (), LATER)

    assert outcome.pool is not None
    condition = outcome.pool.conditions.get("ValidationSucceeded")
    assert condition is not None
    assert (condition.status, condition.changed) == (TRUE, LATER)
