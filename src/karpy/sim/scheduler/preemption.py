"""Preemption: make room for a pod by deleting pods of lower priority."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import selector_of
from karpy.model.kinds import DISRUPTION_BUDGET
from karpy.sim.scheduler.nodes import NodeInfo, NodeTable
from karpy.sim.scheduler.podinfos import PodInfo
from karpy.sim.scheduler.refusals import HELPLESS, NO_VICTIMS, Diagnosis, SchedulerRefusal, counted
from karpy.sim.scheduler.trial import Judge, Trial
from karpy.sim.scheduler.volumes import VolumeCheck
from karpy.sim.store.conditions import condition_of
from karpy.sim.store.store import Store

_CANDIDATES_MIN: Final = 100
_SHARE: Final = 10
"""At least one in this many nodes is tried."""
_PRIORITY_OFFSET: Final = 2**31
NEVER: Final = "Never"
PREEMPTED: Final = "PreemptionByScheduler"

Rivals = Callable[[PodInfo, str], Iterable[PodInfo]]
"""Returns the other pods nominated to a node whose priority is not lower than that of a pod."""


class PreemptionAttempt(Struct, frozen=True):
    """A pod that fits on no node, with the results of its filters."""

    pod: PodInfo
    judge: Judge
    check: VolumeCheck | None
    diagnosis: Diagnosis


class PreemptionCandidate(Struct, frozen=True):
    """A node, and the pods to delete from it."""

    node: NodeInfo
    victims: tuple[PodInfo, ...]
    """The pods to delete, most important first."""
    violations: int
    """How many victims a PodDisruptionBudget protects."""


class Preemption:
    """Finds the pods whose deletion does the least harm."""

    def __init__(self, store: Store, table: NodeTable, rivals: Rivals) -> None:
        self._store = store
        self._table = table
        self._rivals = rivals

    def why_ineligible(self, attempt: PreemptionAttempt) -> str:
        """Return why a pod must not preempt other pods; empty if it may."""
        pod = attempt.pod
        if pod.obj["spec"].get("preemptionPolicy") == NEVER:
            return "not eligible due to preemptionPolicy=Never."
        nominated = pod.nominated()
        node = self._table.find(nominated) if nominated else None
        refusal = attempt.diagnosis.refusals.get(nominated)
        if node is None or (refusal is not None and refusal.is_final):
            return ""
        if any(
            other.priority < pod.priority and _is_being_preempted(other)
            for other in node.pods.values()
        ):
            return "not eligible due to a terminating pod on the nominated node."
        return ""

    def find(self, attempt: PreemptionAttempt, now: datetime) -> PreemptionCandidate | str:
        """Return the best candidate, or the message why there is none."""
        refusals: dict[str, SchedulerRefusal] = {}
        candidates: list[PreemptionCandidate] = []
        lowest = self._table.lowest_priority
        has_victims = lowest is not None and lowest < attempt.pod.priority
        budgets = _Budgets(self._store.list(DISRUPTION_BUDGET) if has_victims else [])
        enough = max(_CANDIDATES_MIN, self._table.count // _SHARE)
        for name, refusal in attempt.diagnosis.refusals.items():
            node = None if refusal.is_final else self._table.find(name)
            if node is None:
                continue
            found = self._try(attempt, node, budgets, now) if has_victims else NO_VICTIMS
            if isinstance(found, SchedulerRefusal):
                refusals[name] = found
                continue
            candidates.append(found)
            if len(candidates) >= enough and any(not each.violations for each in candidates):
                break
        if candidates:
            return min(candidates, key=lambda each: _harm(each, now))
        return counted(self._table.count, refusals.values(), HELPLESS)

    def _try(
        self, attempt: PreemptionAttempt, node: NodeInfo, budgets: "_Budgets", now: datetime
    ) -> PreemptionCandidate | SchedulerRefusal:
        pod = attempt.pod
        possible = [other for other in node.pods.values() if other.priority < pod.priority]
        if not possible:
            return NO_VICTIMS
        possible.sort(key=lambda other: _importance(other, now))
        with Trial(attempt.judge, node, attempt.check) as trial:
            for other in possible:
                trial.take(other)
            refusal = self._refusal(trial, pod, node)
            if refusal is not None:
                return refusal
            protected, others = budgets.split(possible)
            doomed = [each for each in protected if not self._spares(trial, pod, node, each)]
            violations = len(doomed)
            doomed += [each for each in others if not self._spares(trial, pod, node, each)]
        victims = sorted(doomed, key=lambda other: _importance(other, now))
        return PreemptionCandidate(node, tuple(victims), violations) if victims else NO_VICTIMS

    def _spares(self, trial: Trial, pod: PodInfo, node: NodeInfo, other: PodInfo) -> bool:
        trial.put(other)
        if self._refusal(trial, pod, node) is None:
            return True
        trial.take(other)
        return False

    def _refusal(self, trial: Trial, pod: PodInfo, node: NodeInfo) -> SchedulerRefusal | None:
        """Filter a node with the rivals of the pod placed on it, then without them."""
        rivals = list(self._rivals(pod, node.name))
        if rivals:
            for rival in rivals:
                trial.put(rival)
            refusal = trial.refusal()
            for rival in rivals:
                trial.take(rival)
            if refusal is not None:
                return refusal
        return trial.refusal()


class _Budgets:
    """PodDisruptionBudgets with their remaining disruptions."""

    def __init__(self, budgets: list[JsonObject]) -> None:
        self._budgets = [
            (each, selector)
            for each in budgets
            if (selector := selector_of((each.get("spec") or {}).get("selector"))) is not None
            and selector.rules
        ]

    def split(self, pods: list[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Split pods into those that a budget protects and the others."""
        left = [
            (each.get("status") or {}).get("disruptionsAllowed", 0) for each, _ in self._budgets
        ]
        protected: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            is_protected = False
            for index in self._of(pod):
                left[index] -= 1
                is_protected = is_protected or left[index] < 0
            (protected if is_protected else others).append(pod)
        return protected, others

    def _of(self, pod: PodInfo) -> list[int]:
        labels: Mapping[str, str] = pod.wants.kin.labels
        if not labels:
            return []
        return [
            index
            for index, (budget, selector) in enumerate(self._budgets)
            if budget["metadata"]["namespace"] == pod.namespace
            and selector.matches(labels)
            and pod.name not in ((budget.get("status") or {}).get("disruptedPods") or {})
        ]


def _is_being_preempted(pod: PodInfo) -> bool:
    condition = condition_of(pod.obj, "DisruptionTarget") if pod.is_deleting else None
    return (
        condition is not None
        and condition.get("status") == "True"
        and condition.get("reason") == PREEMPTED
    )


def _importance(pod: PodInfo, now: datetime) -> tuple[int, datetime, str]:
    return -pod.priority, pod.started(now), pod.key


def _harm(candidate: PreemptionCandidate, now: datetime) -> tuple[int, int, int, int, float, str]:
    victims = candidate.victims
    highest = victims[0].priority
    earliest = min(each.started(now) for each in victims if each.priority == highest)
    return (
        candidate.violations,
        highest,
        sum(each.priority + _PRIORITY_OFFSET for each in victims),
        len(victims),
        -earliest.timestamp(),
        candidate.node.name,
    )
