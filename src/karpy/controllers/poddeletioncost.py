"""The controllers `pod.deletioncost` and `pod.deletioncost.queue`: deletion costs of pods."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.controllers.clusterstate import ClusterState
from karpy.controllers.context import ControllerContext, decide_aside
from karpy.controllers.disruption import SETTLED_TIME, UNTIL_SYNCED, Version
from karpy.controllers.nodepools import Gauges
from karpy.controllers.queue import WorkQueue
from karpy.core.disruption.deletioncost import (
    DeletionCosts,
    PodCost,
    find_deletion_costs,
    is_managed,
)
from karpy.core.lifecycle.changes import Changes, Count, Remark
from karpy.errors import Conflict, Forbidden, KarpyError, NotFound
from karpy.model.kinds import POD
from karpy.model.labels import POD_DELETION_COST
from karpy.ports.objects import Patch, PatchType

PERIOD: Final = timedelta(minutes=1)
WORKERS: Final = 100
_KEY: Final = "deletion-costs"
_PENDING: Final = "pod_deletion_cost_nodes_with_pending_annotation_writes"
_WRITES: Final = "pod_deletion_cost_pod_annotation_writes_total"
_RULE: Final = 'apiGroups: [""], resources: [pods], verbs: [patch]'
_HINT: Final = (
    "bind the ClusterRole karpy-pod-deletion-cost to karpy's service account, or switch the gate"
    " PodDeletionCostManagement off"
)


class PodDeletionCostQueue:
    """
    Writes the deletion cost annotation of pods; the last value queued for a pod wins.

    A pod whose patch conflicts is left to the next cycle, and so are all pods of a namespace where
    patching is forbidden.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = WorkQueue(context.observer)
        self._wanted: dict[str, PodCost] = {}
        """Costs that are not written yet, by the UID of their pod."""
        self._forbidden: set[str] = set()
        """Namespaces whose pods may not be patched."""
        self._has_dropped = False
        """Whether a pod of this cycle was left to the next one."""
        self._has_logged = False
        """Whether this cycle has logged that patching is forbidden."""

    @property
    def is_complete(self) -> bool:
        """Whether every pod of the last `begin` is written."""
        return not self._wanted and not self._has_dropped

    def begin(self, costs: Iterable[PodCost]) -> None:
        """Queue these costs in place of those of the earlier cycle."""
        self._wanted = {}
        self._has_dropped = self._has_logged = False
        tried = set[str]()
        for each in costs:
            # One pod shows whether patches are allowed by now; the other pods of the namespace
            # wait for the next cycle.
            if each.namespace in tried and each.namespace in self._forbidden:
                self._has_dropped = True
                continue
            tried.add(each.namespace)
            self._wanted[each.uid] = each
            self._queue.add(each.uid)
        self._forbidden &= tried

    async def run(self, workers: int = WORKERS) -> None:
        """Write queued costs, until cancelled."""
        await self._queue.run(self.reconcile, workers=workers, on_failure=self._fail)

    async def reconcile(self, uid: str) -> None:
        """Write the queued cost of one pod, by UID."""
        wanted = self._wanted.get(uid)
        if wanted is None:
            return
        try:
            result = await self._write(wanted)
        except KarpyError:
            await self._count("error")
            raise
        await self._count(result)
        # Differs: a deletion cost that is decided on while another is written on the same pod:
        # Karpenter loses it until the next cycle; Karpy writes it next.
        if self._wanted.get(uid) == wanted:
            del self._wanted[uid]

    async def _write(self, wanted: PodCost) -> str:
        """Patch a pod unless it has its cost; return the value of the metric's `result` label."""
        objects = self._context.objects
        try:
            pod = await objects.get(POD, wanted.name, wanted.namespace)
            if pod["metadata"].get("uid") != wanted.uid:
                return "skipped_notfound"
            value = (pod["metadata"].get("annotations") or {}).get(POD_DELETION_COST)
            if value == wanted.text or not is_managed(value):
                return "skipped_unchanged"
            patch = Patch(PatchType.MERGE, _annotation_patch(pod, wanted))
            await objects.patch(POD, wanted.name, patch, namespace=wanted.namespace)
        except NotFound:
            return "skipped_notfound"
        except Conflict:
            self._has_dropped = True
            return "skipped_conflict"
        except Forbidden as error:
            await self._forbid(wanted.namespace, error)
            return "error"
        self._forbidden.discard(wanted.namespace)
        return "updated"

    async def _forbid(self, namespace: str, error: Forbidden) -> None:
        """Leave the pods of a namespace to the next cycle; log this once per cycle."""
        self._has_dropped = True
        if namespace in self._forbidden:
            return
        self._forbidden.add(namespace)
        kept = [each for each in self._wanted.values() if each.namespace != namespace]
        self._wanted = {each.uid: each for each in kept}
        if not self._has_logged:
            self._has_logged = True
            fields = {"namespace": namespace, "error": error.message, "rule": _RULE, "hint": _HINT}
            remark = Remark("deletion costs of pods may not be written", fields, is_error=True)
            await self._context.writer.carry_out(Changes(remarks=(remark,)))

    async def _count(self, result: str) -> None:
        counts = (Count(_WRITES, {"result": result}),)
        await self._context.writer.carry_out(Changes(counts=counts))

    def _fail(self, uid: str, error: KarpyError) -> None:
        wanted = self._wanted.get(uid)
        name = uid if wanted is None else f"{wanted.namespace}/{wanted.name}"
        self._context.on_failure(name, error)


class PodDeletionCostController:
    """Observe, decide, apply. core.disruption decides the costs."""

    def __init__(
        self,
        context: ControllerContext,
        state: ClusterState,
        queue: PodDeletionCostQueue,
        version: Version = object,
        gauges: Gauges | None = None,
    ) -> None:
        self._context = context
        self._state = state
        self._queue = queue
        self._version = version
        self._gauges = gauges
        self._work_queue = WorkQueue(context.observer)
        self._last: tuple[object, datetime, DeletionCosts] | None = None
        """Version of the cluster, time and result of the last decision."""

    async def run(self) -> None:
        """Decide once a minute, until cancelled."""
        self._work_queue.add(_KEY)
        await self._work_queue.run(self.reconcile, on_failure=self._context.on_failure)

    async def reconcile(self, key: str = _KEY) -> float:
        """Queue the costs that have changed; return after how long to reconcile again."""
        del key
        if not self._state.is_synced:
            return UNTIL_SYNCED.total_seconds()
        version, now = self._version(), self._context.clock.now()
        if self._is_settled(version, now):
            self._show({})
            return PERIOD.total_seconds()
        snapshot = self._state.snapshot()
        costs = await decide_aside(lambda: find_deletion_costs(snapshot))
        if costs.nodes:
            self._last = version, now, costs
            self._queue.begin(costs.writes())
        self._show(costs.pending())
        await self._context.writer.carry_out(Changes(remarks=tuple(_remarks(costs))))
        return PERIOD.total_seconds()

    # Differs: deletion costs that a cycle does not write (of nodes beyond the first 50, and of pods
    # that change during the write): Karpenter waits for a change in the cluster; Karpy writes them
    # a minute later.
    def _is_settled(self, version: object, now: datetime) -> bool:
        """Say whether a new decision would be the same, and all costs of the last are written."""
        if self._last is None:
            return False
        known, since, costs = self._last
        is_known = known == version and now - since < SETTLED_TIME
        return is_known and self._queue.is_complete and not costs.postponed

    def _show(self, pending: Mapping[str, int]) -> None:
        if self._gauges is not None:
            series: dict[tuple[str, ...], float] = {
                (pool,): float(nodes) for pool, nodes in pending.items()
            }
            self._gauges.replace(_PENDING, series)


def _annotation_patch(pod: JsonObject, wanted: PodCost) -> JsonObject:
    """Return a patch of the annotation that conflicts if the pod has changed."""
    version = pod["metadata"]["resourceVersion"]
    annotations = {POD_DELETION_COST: wanted.text}
    return {"metadata": {"resourceVersion": version, "annotations": annotations}}


def _remarks(costs: DeletionCosts) -> Iterator[Remark]:
    pods = sum(1 for _ in costs.writes())
    if pods:
        nodes = sum(bool(each.writes) for each in costs.nodes) - costs.postponed
        counts = {"pod-count": pods, "node-count": nodes, "postponed-count": costs.postponed}
        fields = {name: str(count) for name, count in counts.items()}
        yield Remark("writing deletion costs of pods", fields)
