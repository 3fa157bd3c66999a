"""Metrics of the last decision about pending pods."""

from collections.abc import Callable

from karpy.adapters.telemetry.exposition import Values
from karpy.adapters.telemetry.metrics import Metrics, Told
from karpy.core.observation.verdicts import verdict_counts
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict


class VerdictMetrics:
    """Keeps the last decision, and tells what it came to when that is asked."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._last: _Decision | None = None
        metrics.ask(self._look)

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Take down one decision and what it was made on."""
        self._last = _Decision(self._metrics, snapshot, verdict)

    def _look(self) -> Callable[[], Told]:
        return dict if self._last is None else self._last.told


class _Decision:
    """One decision; what it was made on is kept until somebody wants to know about it."""

    def __init__(self, metrics: Metrics, snapshot: Snapshot, verdict: Verdict) -> None:
        self._metrics = metrics
        self._made: tuple[Snapshot, Verdict] | None = (snapshot, verdict)
        self._told: Told = {}

    def told(self) -> Told:
        """Work out the gauges, once."""
        made = self._made
        if made is not None:
            gauges: dict[str, dict[Values, float]] = {}
            for count in verdict_counts(*made):
                names = self._metrics.labels(count.metric)
                values = tuple(count.labels[name] for name in names)
                gauges.setdefault(count.metric, {})[values] = count.value
            # In this order: somebody else may ask at the same time.
            self._told = gauges
            self._made = None
        return self._told
