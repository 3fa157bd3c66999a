"""Pods that were told a node in vain are free to go elsewhere."""

from typing import Final

from karpy.controllers.context import ControllerContext
from karpy.controllers.queue import WorkQueue
from karpy.core.nominations import PATIENCE, is_in_vain
from karpy.errors import ClusterError
from karpy.model.kinds import POD
from karpy.model.pods import Pod
from karpy.ports.objects import Patch, PatchType

_FIELD: Final = "/status/nominatedNodeName"


class NominationWithdrawal:
    """
    Takes a name back that nobody has acted on; decisions leave a pod alone that has one.

    kube-scheduler does so by itself. Other schedulers may not know what the name means.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = WorkQueue(context.observer)
        context.records.pods.listen(self._hear_pod)
        for pod in context.records.pods.all():
            self._hear_pod(pod.key, None, pod)

    async def run(self) -> None:
        """Take names back, until cancelled."""
        await self._queue.run(self.reconcile, on_failure=self._context.on_failure)

    async def reconcile(self, key: str) -> float | None:
        """Look at one pod; return after how long to look again."""
        pod = self._context.records.pods.get(key)
        if pod is None or not _waits(pod):
            return None
        if not self._is_in_vain(pod.nominated_node):
            return PATIENCE.total_seconds()
        taken_back = [
            {"op": "test", "path": _FIELD, "value": pod.nominated_node},
            {"op": "remove", "path": _FIELD},
        ]
        patch = Patch(PatchType.JSON, taken_back)
        try:
            await self._context.objects.patch(
                POD, pod.name, patch, namespace=pod.namespace, subresource="status"
            )
        except ClusterError:
            # Somebody else was faster, or we may not; whichever, it is looked at again.
            return PATIENCE.total_seconds()
        return None

    def _is_in_vain(self, name: str) -> bool:
        node = self._context.records.nodes.get(name)
        claims = [] if node is None else self._context.claims_of(node.record)
        if node is not None and not claims:
            # It is not ours, and we have told nobody of it.
            return False
        is_emptying = any(pod.is_deleting for pod in self._context.records.pods.under(name))
        claim = claims[0].record if claims else None
        return is_in_vain(claim, is_emptying=is_emptying, now=self._context.clock.now())

    def _hear_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        told = "" if before is None else before.nominated_node
        if after is not None and _waits(after) and after.nominated_node != told:
            self._queue.add_after(key, PATIENCE.total_seconds())


def _waits(pod: Pod) -> bool:
    return bool(pod.nominated_node) and not pod.node_name and pod.is_active
