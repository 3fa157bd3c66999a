"""Metrics of what we know of the cluster: how many nodes, and whether that is enough to decide."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from karpy.adapters.telemetry.metrics import Metrics, Told
from karpy.ports.clock import Clock
from karpy.ports.records import Records

_PERIOD_SECONDS: Final = 1.0


class SyncMetrics:
    """Looks every second whether what we know can be decided on."""

    def __init__(
        self, metrics: Metrics, records: Records, clock: Clock, is_synced: Callable[[], bool]
    ) -> None:
        self._metrics = metrics
        self._records = records
        self._clock = clock
        self._is_synced = is_synced
        self._unsynced_since: float | None = None
        metrics.ask(self._look)

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(_PERIOD_SECONDS)

    def look(self) -> None:
        """Note whether decisions can be made now, and for how long they could not."""
        now = self._clock.now().timestamp()
        is_synced = self._is_synced()
        if is_synced:
            self._unsynced_since = None
        elif self._unsynced_since is None:
            self._unsynced_since = now
        since = now if self._unsynced_since is None else self._unsynced_since
        self._metrics.set("cluster_state_synced", float(is_synced))
        self._metrics.set("cluster_state_unsynced_time_seconds", now - since)

    def _look(self) -> Callable[[], Told]:
        self.look()
        nodes, claims = self._records.nodes, self._records.claims
        ids = {kept.record.provider_id for kept in nodes.all()}
        launched = {kept.record.provider_id for kept in claims.all()} - {""}
        count = len(nodes.all()) + len(launched - ids)
        return partial(_told, float(count))


def _told(count: float) -> Told:
    return {"cluster_state_node_count": {(): count}}
