"""The autoscaler, put together: the same in a real cluster, over HTTP and in memory."""

import asyncio
from collections.abc import Callable
from typing import Final

from karpy.adapters.mirror.bufferbook import BufferBook
from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import DISPENSABLE, OPTIONAL, Mirror
from karpy.adapters.telemetry.metrics import Metrics
from karpy.controllers.nodeclasses import NodeClasses
from karpy.core.lifecycle.outcomes import Remark
from karpy.errors import ClusterError, Forbidden, NotFound
from karpy.model.kinds import CAPACITY_BUFFER, Kind
from karpy.model.options import Options
from karpy.ports.journal import Journal
from karpy.ports.notices import Notices
from karpy.wiring.assembly import Assembly, View
from karpy.wiring.surface import Speech, Surface, Voice

_AGAIN_SECONDS: Final = 5.0
"""How long to wait before asking again whether a kind can be had."""


class Operator:
    """
    Everything that keeps a cluster in the right size.

    `watch` follows the cluster and changes nothing; it may run while somebody else leads. `act` is
    for the leader alone. Either ends by cancellation, at any moment and without harm: whatever was
    begun can be read off the objects, and is finished by whoever comes next.
    """

    def __init__(
        self,
        surface: Surface,
        options: Options,
        *,
        notices: Notices,
        voice: Voice,
        journal: Journal | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._surface = surface
        self._options = options
        self._speech = Speech(voice, notices, journal, metrics)
        feed, clock = surface.feed, surface.clock
        self.mirror = Mirror(feed, clock, surface.catalog, options.settings())
        self.cluster = MirroredCluster(self.mirror, surface.objects)
        buffers = BufferBook(feed, clock) if options.gates.capacity_buffer else None
        if buffers is not None:
            self.cluster.virtual_pods = buffers.virtual_pods
        classes = NodeClasses(feed, surface.node_classes)
        self._view = View(self.mirror, self.cluster, classes, buffers)

    async def run(self) -> None:
        """Watch and act, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watch(), name="watch")
            group.create_task(self.act(), name="act")

    async def watch(self) -> None:
        """Follow the cluster, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for kind in sorted(OPTIONAL | DISPENSABLE, key=str):
                group.create_task(self._note_absence(kind, self.mirror.note_absent))
            group.create_task(self.mirror.run(), name="mirror")
            group.create_task(self._view.classes.run(), name="node classes")
            if self._view.buffers is not None:
                absence = self._note_absence(CAPACITY_BUFFER, self._view.buffers.note_absent)
                group.create_task(absence)
                group.create_task(self._view.buffers.run(), name="buffers")

    async def act(self) -> None:
        """Keep the cluster in the right size, until cancelled."""
        await self.mirror.wait_until_listed()
        if self._view.buffers is not None:
            await self._view.buffers.wait_until_listed()
        assembly = Assembly(self._surface, self._options, self._speech, self._view)
        parts = list(assembly.parts())
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part.run(), name=part.name)

    async def _note_absence(self, kind: Kind, note_absent: Callable[[Kind], None]) -> None:
        """Find out whether a kind cannot be had: then there is nothing to wait for."""
        while True:
            try:
                await self._surface.objects.list(kind, limit=1)
            except NotFound:
                note_absent(kind)
            except Forbidden:
                # Of a kind that decisions need the feed says so, and tries again.
                if kind in DISPENSABLE:
                    self._speech.voice.remark(_missing_rule(kind))
                    note_absent(kind)
            except ClusterError:
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            return


def _missing_rule(kind: Kind) -> Remark:
    """Name the rule that the operator's ClusterRole lacks."""
    rule = f'apiGroups: ["{kind.group}"], resources: [{kind.plural}], verbs: [get, list, watch]'
    return Remark(
        "kind may not be read, DaemonSets without a pod count as their templates are written",
        {"kind": str(kind), "rule": rule},
        is_error=True,
    )
