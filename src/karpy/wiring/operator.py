"""The operator: the same in a real cluster, over HTTP and in memory."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from karpy.adapters.mirror.bufferbook import BufferBook
from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import DISPENSABLE, OPTIONAL, Mirror
from karpy.adapters.telemetry.metrics import Metrics
from karpy.barriers import Barrier, lost_lease
from karpy.controllers.nodeclasses import NodeClasses
from karpy.core.lifecycle.changes import Count, Remark
from karpy.errors import Bug, ClusterError, CredentialsRefused, Forbidden, KarpyError, NotFound
from karpy.model.backoff import Backoff
from karpy.model.kinds import CAPACITY_BUFFER, Kind
from karpy.model.settings import Options
from karpy.ports.journal import Journal
from karpy.ports.notices import Notices
from karpy.wiring.assembly import Assembly, ClusterView
from karpy.wiring.surface import OperatorTask, Reporting, Surface, Voice

_AGAIN_SECONDS: Final = 5.0
"""Seconds until an optional kind whose list failed is listed again."""
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 10.0
"""Longest pause before a failed part is started again."""
_PANICS: Final = "controller_runtime_reconcile_panics_total"


class KarpyOperator:
    """
    Runs all watches and controllers.

    `watch` watches the cluster and writes nothing; it also runs on a standby replica. `act` runs
    the controllers, on the leader alone. Both end by cancellation at any moment: the next leader
    finishes what was begun, whose state is in the objects.
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
        self._reporting = Reporting(voice, notices, journal, metrics)
        feed, clock = surface.feed, surface.clock
        classes = NodeClasses(feed, surface.node_classes, partial(voice.fail, "nodeclasses"))
        self.mirror = Mirror(
            feed,
            clock,
            surface.cloud.catalog,
            options.settings(),
            partial(voice.fail, "mirror"),
            classes.is_ours,
        )
        self.cluster = MirroredCluster(self.mirror, surface.objects)
        buffers = (
            BufferBook(feed, clock, partial(voice.fail, "buffers"))
            if options.gates.capacity_buffer
            else None
        )
        self._view = ClusterView(self.mirror, self.cluster, classes, buffers)

    def why_stuck(self) -> str:
        """Name the controllers that have work and make no progress; empty if none does."""
        return self._reporting.progress.check()

    async def run(self) -> None:
        """Watch and act, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watch(), name="watch")
            group.create_task(self.act(), name="act")

    # Differs: a replica that does not lead: Karpenter starts to watch once it leads, unless warm-up
    # is switched on; Karpy always watches before, so that the next leader knows the cluster.
    async def watch(self) -> None:
        """Watch the cluster, until cancelled."""
        view = self._view
        books = (view.mirror, view.classes, *(() if view.buffers is None else (view.buffers,)))
        parts = [OperatorTask(name, run) for book in books for name, run in book.follows()]
        own = self._surface.follows
        await supervise([*self._probes(), *parts, *own], self._reporting.voice)

    async def act(self) -> None:
        """Run the controllers once everything is listed, until cancelled."""
        await self.mirror.wait_until_listed()
        if self._view.buffers is not None:
            await self._view.buffers.wait_until_listed()
        assembly = Assembly(self._surface, self._options, self._reporting, self._view)
        await supervise(list(assembly.parts()), self._reporting.voice)

    def _probes(self) -> Iterator[OperatorTask]:
        """Return the parts that find out which optional kinds are missing or forbidden."""
        kinds = [
            (kind, self.mirror.note_absent) for kind in sorted(OPTIONAL | DISPENSABLE, key=str)
        ]
        if self._view.buffers is not None:
            kinds.append((CAPACITY_BUFFER, self._view.buffers.note_absent))
        for kind, note_absent in kinds:
            yield OperatorTask(
                f"probe.{kind.plural}", partial(self._note_absence, kind, note_absent)
            )

    async def _note_absence(self, kind: Kind, note_absent: Callable[[Kind], None]) -> None:
        """Count a kind as listed if it is not installed or may not be read."""
        while True:
            try:
                await self._surface.objects.list(kind, limit=1)
            except NotFound:
                note_absent(kind)
            except Forbidden:
                # For a kind that decisions need, the feed reports the error and retries.
                if kind in DISPENSABLE:
                    self._reporting.voice.remark(_missing_rule(kind))
                    note_absent(kind)
            except (ClusterError, CredentialsRefused):
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            return


def _missing_rule(kind: Kind) -> Remark:
    """Return a log line with the rule that the operator's ClusterRole lacks."""
    rule = f'apiGroups: ["{kind.group}"], resources: [{kind.plural}], verbs: [list, watch]'
    return Remark(
        "kind may not be read, DaemonSets without a pod count as their templates are written",
        {"kind": str(kind), "rule": rule},
        is_error=True,
    )


async def supervise(parts: Iterable[OperatorTask], voice: Voice) -> None:
    """
    Run parts concurrently until cancelled; restart failed parts, after a longer pause each time.

    A lost lease ends all parts.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(_keep_running(part, voice), name=part.name)
    except ExceptionGroup as errors:
        lost = lost_lease(errors)
        if lost is not None:
            raise lost from errors
        raise


async def _keep_running(part: OperatorTask, voice: Voice) -> None:
    loop = asyncio.get_running_loop()
    backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)

    def fail(error: KarpyError) -> None:
        if isinstance(error, Bug):
            voice.count(Count(_PANICS, {"controller": part.name}))
        voice.fail(part.name, "", error)

    while True:
        began = loop.time()
        with Barrier(fail):
            await part.run()
            return
        if loop.time() - began > _LONGEST_PAUSE:
            backoff.reset()
        await asyncio.sleep(backoff.next_pause())
