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
    after_clash,
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
        self._entries: dict[str, Eviction] = {}
        self._refusals: dict[str, str] = {}

    def add(self, entries: Iterable[Eviction], pods: Iterable[Pod]) -> None:
        """Queue evictions, except of pods that are deleting already, as `pods` shows."""
        seen = {pod.uid: pod for pod in pods}
        for entry in entries:
            known = self._entries.get(entry.key)
            wanted = merged(known, entry)
            # A pod that is queued again must not be retried before its backoff ends.
            if wanted != known and not self._is_settled(entry, seen.get(entry.uid)):
                self._entries[entry.key] = wanted
                self._queue.add(entry.key)

    def refusals(self, pods: Iterable[Pod]) -> Mapping[str, str]:
        """Return why the last eviction request of pods, by UID, was refused."""
        return {pod.uid: self._refusals[pod.uid] for pod in pods if pod.uid in self._refusals}

    async def run(self, workers: int = WORKERS) -> None:
        """Evict pods, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._fail)

    async def reconcile(self, key: str) -> float | None:
        """Evict one pod; return after how long to reconcile again."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        pod = await self._look(entry)
        now = self._context.clock.now()
        move = next_step(entry, pod, now)
        await self._context.writer.carry_out(Changes(notices=move.notices))
        if pod is None or move.verb is EvictionVerb.DROP:
            self._forget(entry)
            return None
        if move.verb is EvictionVerb.STAY:
            return _pause(entry, pod, now)
        answered, error = await self._ask(move, pod)
        told = Changes(notices=answered.notices, counts=answered.counts)
        await self._context.writer.carry_out(told)
        if answered.is_done:
            self._forget(entry)
            return None
        self._refusals[entry.uid] = answered.refusal or str(error and error.message)
        assert error is not None
        raise error

    async def _look(self, entry: Eviction) -> Pod | None:
        try:
            obj = await self._context.objects.get(POD, entry.name, entry.namespace)
        except NotFound:
            return None
        return bound_pod(obj)

    async def _ask(
        self, move: EvictionStep, pod: Pod
    ) -> tuple[EvictionAnswer, ClusterError | None]:
        """Evict or delete a pod; return what the answer means, and the error if there is one."""
        node = self._context.records.nodes.get(pod.node_name)
        record = None if node is None else node.record
        reason = self._reason(record)
        error, code = None, _OK
        try:
            if move.verb is EvictionVerb.DELETE:
                removal = Removal(grace_seconds=move.grace_seconds, uid=pod.uid)
                await self._context.objects.delete(
                    POD, pod.name, namespace=pod.namespace, removal=removal
                )
            else:
                await self._context.objects.create(POD, _eviction(pod), subresource="eviction")
        except ClusterError as caught:
            error, code = caught, caught.status
        if move.verb is EvictionVerb.DELETE:
            return after_deletion(reason, code), error
        if error is not None and _CLASH in error.message:
            return after_clash(pod, record, code), error
        return after_eviction(pod, record, reason, code), error

    def _reason(self, node: NodeRecord | None) -> str:
        claims = [] if node is None else self._context.claims_of(node)
        return eviction_reason(claim_of([each.record for each in claims]))

    def _is_settled(self, entry: Eviction, pod: Pod | None) -> bool:
        return next_step(entry, pod, self._context.clock.now()).verb is EvictionVerb.DROP

    def _forget(self, entry: Eviction) -> None:
        # It may have been replaced meanwhile by an eviction with an earlier deadline.
        if self._entries.get(entry.key) == entry:
            del self._entries[entry.key]
        self._refusals.pop(entry.uid, None)

    def _fail(self, key: str, error: KarpyError) -> None:
        # A refusal by a budget is no failure; the node and the claim report it.
        if not isinstance(error, Throttled):
            self._context.on_failure(key, error)


def _pause(entry: Eviction, pod: Pod, now: datetime) -> float:
    """Return when to retry a protected pod: when its deletion is due, or after five seconds."""
    if entry.deadline is None:
        return _PROTECTED_PAUSE
    left = (entry.deadline - pod.disruption.grace - now).total_seconds()
    return min(max(left, _LEAST_PAUSE), _PROTECTED_PAUSE)


def _eviction(pod: Pod) -> JsonObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.uid}},
    }
