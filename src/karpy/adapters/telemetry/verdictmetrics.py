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
        """Keep a decision and its snapshot."""
        self._last = _LastDecision(self._metrics, snapshot, verdict)
        if self._work is not None:
            self._work.ended = self._clock.now()

    def _collect(self) -> Callable[[], GaugeValues]:
        return dict if self._last is None else self._last.gauges

    def _collect_unfinished(self) -> Callable[[], GaugeValues]:
        work = self._work
        if work is None:
            return dict
        took = (work.ended or self._clock.now()) - work.began
        return lambda: {UNFINISHED: {work.labels: took.total_seconds()}}


class _Work:
    """The start and end of a decision."""

    def __init__(self, began: datetime, labels: Values) -> None:
        self.began = began
        self.labels = labels
        self.ended: datetime | None = None


class _LastDecision:
    """One decision; its snapshot is kept until the first scrape."""

    def __init__(self, metrics: Metrics, snapshot: Snapshot, verdict: Verdict) -> None:
        self._metrics = metrics
        self._made: tuple[Snapshot, Verdict] | None = (snapshot, verdict)
        self._gauges: GaugeValues = {}

    def gauges(self) -> GaugeValues:
        """Compute the gauges at the first call, then drop the snapshot."""
        made = self._made
        if made is not None:
            gauges: dict[str, dict[Values, float]] = {}
            for count in verdict_counts(*made):
                names = self._metrics.labels(count.metric)
                values = tuple(count.labels[name] for name in names)
                gauges.setdefault(count.metric, {})[values] = count.value
            # Set the gauges before the snapshot is dropped: two scrapes may run at the same time.
            self._gauges = gauges
            self._made = None
        return self._gauges
