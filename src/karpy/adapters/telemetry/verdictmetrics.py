"""Metrics of the last decision about pending pods."""

from collections.abc import Callable
from datetime import datetime

from karpy.adapters.telemetry.metrics import GaugeValues, Metrics, Values
from karpy.core.observation.scheduling import UNFINISHED, decision_labels, verdict_counts
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict
from karpy.ports.clock import Clock


class VerdictMetrics:
    """Keeps the last decision, and collects its gauges at a scrape."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._last: _LastDecision | None = None
        self._work: _Work | None = None
        metrics.add_source(self._collect)
        metrics.add_source(self._collect_unfinished)

    def begin(self, snapshot: Snapshot) -> None:
        """Note that a decision is being made."""
        self._work = _Work(self._clock.now(), tuple(decision_labels(snapshot).values()))

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Take down one decision and what it was made on."""
        self._last = _LastDecision(self._metrics, snapshot, verdict)
        if self._work is not None:
            self._work.ended = self._clock.now()

    def _collect(self) -> Callable[[], GaugeValues]:
        return dict if self._last is None else self._last.told

    def _collect_unfinished(self) -> Callable[[], GaugeValues]:
        work = self._work
        if work is None:
            return dict
        took = (work.ended or self._clock.now()) - work.began
        return lambda: {UNFINISHED: {work.labels: took.total_seconds()}}


class _Work:
    """A decision that is being made, or was."""

    def __init__(self, began: datetime, labels: Values) -> None:
        self.began = began
        self.labels = labels
        self.ended: datetime | None = None


class _LastDecision:
    """One decision; its snapshot is kept until the first scrape."""

    def __init__(self, metrics: Metrics, snapshot: Snapshot, verdict: Verdict) -> None:
        self._metrics = metrics
        self._made: tuple[Snapshot, Verdict] | None = (snapshot, verdict)
        self._told: GaugeValues = {}

    def told(self) -> GaugeValues:
        """Work out the gauges, once."""
        made = self._made
        if made is not None:
            gauges: dict[str, dict[Values, float]] = {}
            for count in verdict_counts(*made):
                names = self._metrics.labels(count.metric)
                values = tuple(count.labels[name] for name in names)
                gauges.setdefault(count.metric, {})[values] = count.value
            # In this order: two scrapes may run at the same time.
            self._told = gauges
            self._made = None
        return self._told
