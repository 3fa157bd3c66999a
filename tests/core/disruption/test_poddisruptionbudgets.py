"""Which budgets keep a pod from being evicted."""

from karpy.core.disruption.evaluation import Blocked, PodDisruptionBudgets
from karpy.model.verdicts import NodeReason
from tests.builders import NOON
from tests.core.disruption.scenes import WEB, pod, pod_budget


def test_without_budgets_nothing_is_kept() -> None:
    budgets = PodDisruptionBudgets([])

    assert budgets.is_empty
    assert budgets.why_not_evicted(pod("x", labels=WEB), NOON) is None


def test_a_budget_without_a_disruption_left_is_named() -> None:
    budgets = PodDisruptionBudgets([pod_budget("spent"), pod_budget("db", namespace="other")])

    assert budgets.why_not_evicted(pod("x", labels=WEB), NOON) == Blocked(
        NodeReason.POD_BUDGET, ("shop/spent",)
    )


def test_several_budgets_are_named_in_order_whatever_they_allow() -> None:
    budgets = PodDisruptionBudgets([pod_budget("b", 9), pod_budget("a", 9)])

    assert budgets.why_not_evicted(pod("x", labels=WEB), NOON) == Blocked(
        NodeReason.POD_BUDGETS, ("shop/a", "shop/b")
    )


def test_a_pod_that_no_drain_evicts_needs_no_budget() -> None:
    budgets = PodDisruptionBudgets([pod_budget("spent")])

    assert budgets.why_not_evicted(pod("x", labels=WEB, static=True), NOON) is None
    assert budgets.why_not_evicted(pod("x", labels=WEB, do_not_disrupt="true"), NOON) is None
