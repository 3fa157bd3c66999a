"""The pods of nodes, as the API server lists them at that moment."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import replace

from karpy.codec.unreadable import bound_pod, pod_budget
from karpy.controllers.context import ControllerContext
from karpy.core.disruption.confirmation import Occupancy
from karpy.model.kinds import DISRUPTION_BUDGET, POD
from karpy.model.pods import Pod
from karpy.ports.objects import Query

_REQUESTS_AT_ONCE: Final = 10


class Occupants:
    """Lists the pods of nodes, whatever watches tell of them."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._room = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    async def list(self, nodes: Sequence[str]) -> Occupancy:
        """Return all pods of nodes, and the budgets if there are any pods."""
        listed = await asyncio.gather(*(self._list(node) for node in nodes))
        budgets = []
        if any(listed):
            page = await self._context.objects.list(DISRUPTION_BUDGET)
            budgets = [pod_budget(each) for each in page.items]
        return Occupancy(dict(zip(nodes, listed, strict=True)), tuple(budgets))

    async def _list(self, node: str) -> tuple[Pod, ...]:
        async with self._room:
            page = await self._context.objects.list(POD, Query(fields=f"spec.nodeName={node}"))
        watched = self._context.records.pods.under(node)
        return _doubted([bound_pod(each) for each in page.items], watched)


def _doubted(pods: Sequence[Pod], watched: Collection[Pod]) -> tuple[Pod, ...]:
    """Mark the pods that are watched and cannot be read."""
    problems = {pod.uid: pod.unreadable for pod in watched if pod.unreadable}
    return tuple(
        replace(each, rules=replace(each.rules, unreadable=problems[each.uid]))
        if each.uid in problems
        else each
        for each in pods
    )
