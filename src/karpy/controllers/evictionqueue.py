"""The controller `eviction-queue`: evict pods, and retry until their budgets allow it."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.unreadable import bound_pod
from karpy.controllers.context import ControllerContext
from karpy.controllers.queue import WorkQueue
from karpy.core.lifecycle.changes import Changes
from karpy.core.lifecycle.eviction import (
    Eviction,
    EvictionAnswer,
    EvictionStep,
    EvictionVerb,
    after_budget_conflict,
    after_deletion,
    after_eviction,
    eviction_reason,
    merged,
    next_step,
)
from karpy.core.lifecycle.termination import claim_of
from karpy.errors import ClusterError, KarpyError, NotFound, Throttled
from karpy.model.kinds import POD
from karpy.model.pods import Pod
from karpy.model.records import NodeRecord
from karpy.ports.objects import Removal

WORKERS: Final = 100
_OK: Final = 200
_PROTECTED_PAUSE: Final = 5.0
_LEAST_PAUSE: Final = 0.1
_CLASH: Final = "more than one PodDisruptionBudget"


class EvictionQueue:
    """Evicts pods as their budgets allow, and deletes those whose deadline has come."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = WorkQueue(context.observer)
        self._evictions: dict[str, Eviction] = {}
        self._refusals: dict[str, str] = {}

    def add(self, evictions: Iterable[Eviction], pods: Iterable[Pod]) -> None:
        """Queue evictions, except of those of `pods` that are deleting already."""
        seen = {pod.uid: pod for pod in pods}
        for eviction in evictions:
            known = self._evictions.get(eviction.key)
            wanted = merged(known, eviction)
            # A pod that is queued again must not be retried before its backoff ends.
            if wanted != known and not self._is_settled(eviction, seen.get(eviction.uid)):
                self._evictions[eviction.key] = wanted
                self._queue.add(eviction.key)

    def refusals(self, pods: Iterable[Pod]) -> Mapping[str, str]:
        """Return why the last eviction request of pods, by UID, was refused."""
        return {pod.uid: self._refusals[pod.uid] for pod in pods if pod.uid in self._refusals}

    async def run(self, workers: int = WORKERS) -> None:
        """Evict pods, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._fail)

    async def reconcile(self, key: str) -> float | None:
        """Evict one pod; return after how long to reconcile again."""
        eviction = self._evictions.get(key)
        if eviction is None:
            return None
        pod = await self._get(eviction)
        now = self._context.clock.now()
        step = next_step(eviction, pod, now)
        await self._context.writer.carry_out(Changes(notices=step.notices))
        if pod is None or step.verb is EvictionVerb.DROP:
            self._forget(eviction)
            return None
        if step.verb is EvictionVerb.RETRY:
            return _pause(eviction, pod, now)
        answer, error = await self._evict(step, pod)
        reported = Changes(notices=answer.notices, counts=answer.counts)
        await self._context.writer.carry_out(reported)
        if answer.is_done:
            self._forget(eviction)
            return None
        self._refusals[eviction.uid] = answer.refusal or str(error and error.message)
        if (left := _until_forced(eviction, pod, now)) is not None:
            # Retries are up to ten seconds apart, which would shorten the grace period of the pod.
            self._queue.add_after(key, left)
        assert error is not None
        raise error

    async def _get(self, eviction: Eviction) -> Pod | None:
        try:
            obj = await self._context.objects.get(POD, eviction.name, eviction.namespace)
        except NotFound:
            return None
        return bound_pod(obj)

    async def _evict(
        self, step: EvictionStep, pod: Pod
    ) -> tuple[EvictionAnswer, ClusterError | None]:
        """Evict or delete a pod; return what the answer means, and the error if there is one."""
        node = self._context.records.nodes.get(pod.node_name)
        record = None if node is None else node.record
        reason = self._reason(record)
        error, code = None, _OK
        try:
            if step.verb is EvictionVerb.DELETE:
                removal = Removal(grace_seconds=step.grace_seconds, uid=pod.uid)
                await self._context.objects.delete(
                    POD, pod.name, namespace=pod.namespace, removal=removal
                )
            else:
                await self._context.objects.create(POD, _eviction(pod), subresource="eviction")
        except ClusterError as caught:
            error, code = caught, caught.status
        if step.verb is EvictionVerb.DELETE:
            return after_deletion(reason, code), error
        if error is not None and _CLASH in error.message:
            return after_budget_conflict(pod, record, code), error
        return after_eviction(pod, record, reason, code), error

    def _reason(self, node: NodeRecord | None) -> str:
        claims = [] if node is None else self._context.claims_of(node)
        return eviction_reason(claim_of([each.record for each in claims]))

    def _is_settled(self, eviction: Eviction, pod: Pod | None) -> bool:
        return next_step(eviction, pod, self._context.clock.now()).verb is EvictionVerb.DROP

    def _forget(self, eviction: Eviction) -> None:
        # An eviction with an earlier deadline may have replaced this one meanwhile.
        if self._evictions.get(eviction.key) == eviction:
            del self._evictions[eviction.key]
        self._refusals.pop(eviction.uid, None)

    def _fail(self, key: str, error: KarpyError) -> None:
        # A refusal by a PodDisruptionBudget is no failure; node and claim report it.
        if not isinstance(error, Throttled):
            self._context.on_failure(key, error)


def _pause(eviction: Eviction, pod: Pod, now: datetime) -> float:
    """Return after how many seconds to retry a pod that may not be evicted."""
    left = _until_forced(eviction, pod, now)
    return _PROTECTED_PAUSE if left is None else min(left, _PROTECTED_PAUSE)


def _until_forced(eviction: Eviction, pod: Pod, now: datetime) -> float | None:
    """Return in how many seconds a pod that may not be evicted is to be deleted; None if never."""
    if eviction.deadline is None:
        return None
    return max((eviction.deadline - pod.disruption.grace - now).total_seconds(), _LEAST_PAUSE)


def _eviction(pod: Pod) -> JsonObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.uid}},
    }
