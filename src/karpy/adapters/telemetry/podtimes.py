"""When pods asked for a node, and when something was decided about them."""

from collections.abc import Mapping
from itertools import chain

from msgspec.structs import replace

from karpy.adapters.telemetry.metrics import Metrics
from karpy.core.observation.pods import UNKNOWN, PodTiming, decision_counts
from karpy.core.observation.verdicts import NO_DECISION
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict
from karpy.ports.clock import Clock
from karpy.ports.records import Records


class PodTimes:
    """Remembers it for as long as pods are there, or until they have started."""

    def __init__(self, metrics: Metrics, records: Records, clock: Clock) -> None:
        self._metrics = metrics
        self._records = records
        self._clock = clock
        self._timings: dict[str, PodTiming] = {}
        records.pods.listen(self._hear_pod)

    def acked(self, pod: Pod) -> None:
        """Note that a pod asks for a node."""
        known = self._timings.get(pod.key, UNKNOWN)
        if known.acked is None:
            self._timings[pod.key] = replace(known, acked=self._clock.now())

    def decided(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Note which pods have a place, and which have none."""
        del snapshot
        now = self._clock.now()
        placed = chain(
            (each.pods for each in verdict.launches), (each.pods for each in verdict.nominations)
        )
        for key in chain.from_iterable(placed):
            self._note(key, PodTiming(decided=now, schedulable=now))
        refused = (each.pods for each in verdict.refusals if each.reason not in NO_DECISION)
        for key in chain.from_iterable(refused):
            self._note(key, PodTiming(decided=now))

    def of(self, key: str) -> PodTiming:
        """Return what is known of a pod."""
        return self._timings.get(key, UNKNOWN)

    def all(self) -> Mapping[str, PodTiming]:
        """Return what is known of all pods, as it is now."""
        return dict(self._timings)

    def forget(self, key: str) -> None:
        """Forget a pod: it has started, or is over."""
        self._timings.pop(key, None)

    def _note(self, key: str, news: PodTiming) -> None:
        pod = self._records.pods.get(key)
        # Pods that leave their node are placed before they have to; their waiting is yet to come.
        if pod is None or pod.node_name:
            return
        known = self._timings.get(key, UNKNOWN)
        is_first = known.decided is None
        timing = PodTiming(
            known.acked,
            known.decided or news.decided,
            news.schedulable and (known.schedulable or news.schedulable),
        )
        self._timings[key] = timing
        if is_first:
            for count in decision_counts(timing):
                self._metrics.count(count)

    def _hear_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        if after is None or (before is not None and before.uid != after.uid):
            self._timings.pop(key, None)
