"""Metrics of the cluster state: whether the cache is synced, and all sources together."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from karpy.adapters.telemetry.metrics import GaugeValues, Metrics
from karpy.adapters.telemetry.nodemetrics import NodeMetrics
from karpy.adapters.telemetry.podmetrics import PodMetrics, PodTimes
from karpy.adapters.telemetry.statusmetrics import StatusMetrics
from karpy.adapters.telemetry.verdictmetrics import VerdictMetrics
from karpy.model.buffers import BufferRecord
from karpy.model.labels import WELL_KNOWN
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict
from karpy.ports.clock import Clock
from karpy.ports.notices import Notices
from karpy.ports.records import Kept, Records, Watched

_PERIOD_SECONDS: Final = 1.0


class SyncMetrics:
    """Checks every second whether the cache is synced."""

    def __init__(
        self, metrics: Metrics, records: Records, clock: Clock, is_synced: Callable[[], bool]
    ) -> None:
        self._metrics = metrics
        self._records = records
        self._clock = clock
        self._is_synced = is_synced
        self._unsynced_since: float | None = None
        metrics.add_source(self._collect)

    async def run(self) -> None:
        """Check every second, until cancelled."""
        while True:
            self.refresh()
            await asyncio.sleep(_PERIOD_SECONDS)

    def refresh(self) -> None:
        """Set the gauges: whether the cache is synced, and for how long it has not been."""
        now = self._clock.now().timestamp()
        is_synced = self._is_synced()
        if is_synced:
            self._unsynced_since = None
        elif self._unsynced_since is None:
            self._unsynced_since = now
        since = now if self._unsynced_since is None else self._unsynced_since
        self._metrics.set("cluster_state_synced", float(is_synced))
        self._metrics.set("cluster_state_unsynced_time_seconds", now - since)

    def _collect(self) -> Callable[[], GaugeValues]:
        self.refresh()
        nodes, claims = self._records.nodes, self._records.claims
        ids = {kept.record.provider_id for kept in nodes.all()}
        launched = {kept.record.provider_id for kept in claims.all()} - {""}
        count = len(nodes.all()) + len(launched - ids)
        return partial(_node_count, float(count))


def _node_count(count: float) -> GaugeValues:
    return {"cluster_state_node_count": {(): count}}


class StateSources(Struct, frozen=True):
    """The input of the metrics of a cluster."""

    records: Records
    clock: Clock
    notices: Notices
    is_synced: Callable[[], bool]
    well_known: frozenset[str] = WELL_KNOWN
    """The well-known labels that the specs of the metrics were made with."""
    class_labels: tuple[str, ...] = ()
    """The labels of node classes that the specs of the metrics were made with."""
    buffers: Watched[Kept[BufferRecord]] | None = None


class StateMetrics:
    """
    Updates all metrics of the cluster; only in the leader, because it emits events, too.

    Series of single objects are computed at each scrape. Without `has_details`, there are no such
    series, and no events about conditions.
    """

    def __init__(
        self, metrics: Metrics, sources: StateSources, *, has_details: bool = True
    ) -> None:
        records, clock = sources.records, sources.clock
        self._times = PodTimes(metrics, records, clock)
        self._verdicts = VerdictMetrics(metrics, clock)
        self._sync = SyncMetrics(metrics, records, clock, sources.is_synced)
        if has_details:
            NodeMetrics(metrics, records, sources.well_known)
            PodMetrics(metrics, records, self._times)
            statuses = StatusMetrics(metrics, records, sources.notices, clock, sources.class_labels)
            if sources.buffers is not None:
                statuses.follow_buffers(sources.buffers)

    async def run(self) -> None:
        """Check every second whether the cache is synced, until cancelled."""
        await self._sync.run()

    def acked(self, pod: Pod) -> None:
        """Note that a pod waits for a decision."""
        self._times.acked(pod)

    def deciding(self, snapshot: Snapshot) -> None:
        """Note that a decision about pending pods begins."""
        self._verdicts.begin(snapshot)

    def decided(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Note a decision about pending pods, and its snapshot."""
        self._times.decided(snapshot, verdict)
        self._verdicts.record(snapshot, verdict)
