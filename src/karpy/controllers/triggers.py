"""What asks for a decision, and how such asks are gathered into one batch."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from karpy.model.constraints import DISRUPTED_TAINT, is_gate
from karpy.model.pods import Pod
from karpy.model.records import NodeRecord
from karpy.ports.records import Kept, Records


class Batcher:
    """Collects triggers until none comes for the idle time, or the longest time is over."""

    def __init__(self, *, idle_seconds: float = 1.0, longest_seconds: float = 10.0) -> None:
        self._idle = idle_seconds
        self._longest = longest_seconds
        self._triggers: set[str] = set()
        self._news = asyncio.Event()

    def trigger(self, who: str) -> None:
        """Ask for a decision; asking again within the same window does not prolong it."""
        if who not in self._triggers:
            self._triggers.add(who)
            self._news.set()

    def prolong(self, who: str) -> None:
        """Extend an open batch by a pod that is decided with it; do not open one."""
        if self._triggers:
            self.trigger(who)

    async def wait(self) -> frozenset[str]:
        """Wait for a first trigger and for those that follow it; return them all."""
        if not self._triggers:
            self._news.clear()
            await self._news.wait()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._longest
        while True:
            self._news.clear()
            left = min(self._idle, end - loop.time())
            if left <= 0:
                break
            try:
                async with asyncio.timeout(left):
                    await self._news.wait()
            except TimeoutError:
                break
        batch = frozenset(self._triggers)
        self._triggers.clear()
        return batch


AGAIN: Final = timedelta(seconds=10)
"""A pod that still waits after that asks again."""

OnPod = Callable[[Pod], None]
"""Is told of a pod that asks for the first time."""


class Triggers:
    """Asks for decisions, at once when something new waits, and again for as long as it does."""

    def __init__(
        self, records: Records, batcher: Batcher, *, on_pod: OnPod = lambda _: None
    ) -> None:
        self._batcher = batcher
        self._on_pod = on_pod
        self._waiting: dict[str, str] = {}
        """UIDs of pods by key, and of nodes by name: only pods have a slash."""
        records.pods.listen(self._hear_pod)
        records.nodes.listen(self._hear_node)
        for pod in records.pods.all():
            self._hear_pod(pod.key, None, pod)
        for kept in records.nodes.all():
            self._hear_node(kept.record.name, None, kept)

    async def run(self) -> None:
        """Ask again for all that still wait, until cancelled."""
        while True:
            await asyncio.sleep(AGAIN.total_seconds())
            for uid in self._waiting.values():
                self._batcher.trigger(uid)

    def _again(self) -> None:
        """Have those who wait decided about again; for one window, one of them asks for all."""
        uid = next(iter(self._waiting.values()), None)
        if uid is not None:
            self._batcher.trigger(uid)

    def _hear_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        if after is None or not after.is_provisionable:
            self._waiting.pop(key, None)
            if after is not None and after.node_name and before and not before.node_name:
                # The pod that was to have this place needs another one now.
                self._again()
            if after is not None and after.is_untried:
                # It joins the batch: a decision should see all pods that come.
                self._batcher.prolong(after.uid)
            return
        if self._waiting.get(key) != after.uid:
            self._on_pod(after)
        self._ask(key, after.uid)

    def _hear_node(
        self, key: str, before: Kept[NodeRecord] | None, after: Kept[NodeRecord] | None
    ) -> None:
        del before
        if after is None or not _is_disrupted(after.record):
            self._waiting.pop(key, None)
        else:
            self._ask(key, after.record.meta.uid)

    def _ask(self, key: str, uid: str) -> None:
        self._waiting[key] = uid
        self._batcher.trigger(uid)


def _is_disrupted(node: NodeRecord) -> bool:
    return any(taint.key == DISRUPTED_TAINT and not is_gate(taint) for taint in node.taints)
