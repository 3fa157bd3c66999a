from datetime import timedelta

import pytest

from karpy.codec.disruption import read_policy
from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.model.pools import Budget, ConsolidationPolicy, DisruptionPolicy

HOUR = timedelta(hours=1)


def policy(disruption: JsonObject | None) -> DisruptionPolicy:
    return read_policy(Fields({"spec": {"disruption": disruption}}))


@pytest.mark.parametrize("disruption", [None, {}])
def test_a_pool_without_a_policy_has_the_defaults_of_the_api(
    disruption: JsonObject | None,
) -> None:
    assert policy(disruption) == DisruptionPolicy(
        timedelta(), ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED, (Budget("10%"),)
    )


def test_a_policy_is_read_in_full() -> None:
    written = {
        "consolidateAfter": "1h30m",
        "consolidationPolicy": "Balanced",
        "budgets": [
            {"nodes": "0", "schedule": "@daily", "duration": "8h", "reasons": ["Empty"]},
            {"nodes": "5", "reasons": []},
        ],
    }

    assert policy(written) == DisruptionPolicy(
        1.5 * HOUR,
        ConsolidationPolicy.BALANCED,
        (Budget("0", ("Empty",), "@daily", 8 * HOUR), Budget("5", ())),
    )


def test_consolidate_after_never_is_none() -> None:
    assert policy({"consolidateAfter": "Never"}).consolidate_after is None


def test_no_budgets_are_not_the_default_budget() -> None:
    assert policy({"budgets": []}).budgets == ()


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FieldInvalid) as caught:
        policy({"consolidationPolicy": "Sometimes"})

    assert caught.value.path == "spec.disruption.consolidationPolicy"
    assert "WhenEmpty" in caught.value.hint
