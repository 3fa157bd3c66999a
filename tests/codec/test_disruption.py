from datetime import timedelta

import pytest

from karpy.codec.disruption import read_pod_budget, read_policy, read_tenant
from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.model.disruption import Budget, ConsolidationPolicy, DisruptionPolicy

HOUR = timedelta(hours=1)


def policy(disruption: JsonObject | None) -> DisruptionPolicy:
    return read_policy(Fields({"spec": {"disruption": disruption}}))


@pytest.mark.parametrize("disruption", [None, {}])
def test_a_pool_that_says_nothing_has_the_defaults_of_the_api(
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


def test_never_is_never() -> None:
    assert policy({"consolidateAfter": "Never"}).consolidate_after is None


def test_no_budgets_are_not_the_default_budget() -> None:
    assert policy({"budgets": []}).budgets == ()


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(FieldInvalid) as caught:
        policy({"consolidationPolicy": "Sometimes"})

    assert caught.value.path == "spec.disruption.consolidationPolicy"
    assert "WhenEmpty" in caught.value.hint


def test_a_pod_is_read_as_disruption_weighs_it() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1"}
    pod = {
        "metadata": {
            "name": "db-0",
            "namespace": "shop",
            "labels": {"app": "db"},
            "annotations": {"karpenter.sh/do-not-disrupt": "1h"},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": "node-1", "priority": 100},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
    }

    tenant = read_tenant(Fields(pod))

    assert (tenant.pod.key, tenant.pod.do_not_disrupt) == ("shop/db-0", "1h")
    assert tenant.labels == {"app": "db"}
    assert (tenant.priority, tenant.is_stateful, tenant.is_unready) == (100, True, True)
    assert tenant.is_reschedulable


@pytest.mark.parametrize(
    ("policy", "spares"), [("AlwaysAllow", 0), ("IfHealthyBudget", 1), ("", 1)]
)
def test_a_pod_disruption_budget_may_give_up_pods_that_are_not_ready(
    policy: str, spares: int
) -> None:
    spec = {"selector": {"matchLabels": {"app": "db"}}, "unhealthyPodEvictionPolicy": policy}
    obj = {"metadata": {"name": "db", "namespace": "shop"}, "spec": spec}

    budget = read_pod_budget(Fields(obj))

    assert (budget.key, budget.spares_unready) == ("shop/db", bool(spares))
