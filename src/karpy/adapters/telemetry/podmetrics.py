"""Metrics of pods: the state of each pod, and how long pods wait."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Final

from msgspec.structs import replace

from karpy.adapters.telemetry.metrics import GaugeValues, Metrics, Values
from karpy.core.lifecycle.changes import Count
from karpy.core.observation.scheduling import (
    NO_DECISION,
    NO_WAITS,
    PENDING,
    UNKNOWN,
    PodTiming,
    bound_counts,
    decision_counts,
    find_waits,
    has_dynamic_resources,
    owner_link,
    startup_counts,
)
from karpy.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE
from karpy.model.pods import Owner, Pod
from karpy.model.records import NodeRecord
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict
from karpy.ports.clock import Clock
from karpy.ports.records import Kept, Records

_NODE_LABELS: Final = (NODE_POOL, ZONE, ARCH, CAPACITY_TYPE, INSTANCE_TYPE)
_NOWHERE: Final = ("",) * len(_NODE_LABELS)
_WAITS: Final = (
    "pods_unstarted_time_seconds",
    "pods_unbound_time_seconds",
    "pods_provisioning_unstarted_time_seconds",
    "pods_provisioning_unbound_time_seconds",
    "pods_provisioning_scheduling_undecided_time_seconds",
)
"""Metrics in the order of the fields of Waits."""
_WITH_DEVICES: Final = frozenset({_WAITS[1], _WAITS[3]})


class PodTimes:
    """When decisions saw and placed each pod; kept until the pod is ready or gone."""

    def __init__(self, metrics: Metrics, records: Records, clock: Clock) -> None:
        self._metrics = metrics
        self._records = records
        self._clock = clock
        self._timings: dict[str, PodTiming] = {}
        records.pods.listen(self._on_pod)

    def acked(self, pod: Pod) -> None:
        """Note that a pod waits for a decision."""
        known = self._timings.get(pod.key, UNKNOWN)
        if known.acked is None:
            self._timings[pod.key] = replace(known, acked=self._clock.now())

    def decided(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Note which pods a decision placed, and which it refused."""
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
        """Return the timing of a pod."""
        return self._timings.get(key, UNKNOWN)

    def all(self) -> Mapping[str, PodTiming]:
        """Return a copy of all timings, by pod."""
        return dict(self._timings)

    def forget(self, key: str) -> None:
        """Forget a pod that is ready or terminal."""
        self._timings.pop(key, None)

    def _note(self, key: str, news: PodTiming) -> None:
        pod = self._records.pods.get(key)
        # A decision also places pods that still have a node: they are not waiting yet.
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

    def _on_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        if after is None or (before is not None and before.uid != after.uid):
            self._timings.pop(key, None)


class PodMetrics:
    """Measures latencies when pods change; collects the state of each pod at a scrape."""

    def __init__(self, metrics: Metrics, records: Records, times: PodTimes) -> None:
        self._metrics = metrics
        self._records = records
        self._times = times
        self._starting: set[str] = set()
        """Pods that were seen pending and are not ready yet."""
        self._unbound: set[str] = set()
        """Pods that were seen pending and whose wait for a node is not measured yet."""
        records.pods.listen(self._on_pod)
        for pod in records.pods.all():
            self._on_pod(pod.key, None, pod)
        metrics.add_source(self._collect)

    def _collect(self) -> Callable[[], GaugeValues]:
        records = self._records
        return partial(
            pod_gauges,
            tuple(records.pods.all()),
            tuple(records.nodes.all()),
            frozenset(self._starting),
            self._times.all(),
        )

    def _on_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        is_new = before is None or after is None or before.uid != after.uid
        if is_new:
            self._starting.discard(key)
            self._unbound.discard(key)
        if after is None:
            return
        if is_new and after.phase == PENDING:
            self._starting.add(key)
            self._unbound.add(key)
        if key in self._unbound and after.bound is not None:
            self._unbound.discard(key)
            self._count(bound_counts(after, self._times.of(key)))
        is_ready = after.ready is not None and after.phase != PENDING
        if key in self._starting and (is_ready or after.is_terminal):
            self._starting.discard(key)
            if is_ready:
                self._count(startup_counts(after, self._times.of(key)))
            self._times.forget(key)

    def _count(self, counts: Iterable[Count]) -> None:
        for count in counts:
            self._metrics.count(count)


def pod_gauges(
    pods: Iterable[Pod],
    nodes: Iterable[Kept[NodeRecord]],
    starting: Collection[str],
    timings: Mapping[str, PodTiming],
) -> GaugeValues:
    """Return the state of each pod, and the moments since when it waits for each step."""
    places = {kept.record.name: _place(kept.record.meta.labels) for kept in nodes}
    links = _Links()
    states: dict[Values, float] = {}
    waits: dict[str, dict[Values, float]] = {metric: {} for metric in _WAITS}
    for pod in pods:
        place = places.get(pod.node_name, _NOWHERE) if pod.node_name else _NOWHERE
        states[_state(pod, place, links)] = 1.0
        if not pod.node_name or pod.phase == PENDING or starting:
            _add_waits(waits, pod, timings, starting)
    return {"pods_state": states, **waits}


class _Links:
    """A cache of owners as text, by namespace and owners."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[Owner, ...]], str] = {}

    def of(self, pod: Pod) -> str:
        if not pod.owners:
            return ""
        key = (pod.namespace, pod.owners)
        link = self._known.get(key)
        if link is None:
            link = self._known[key] = owner_link(pod)
        return link


def _place(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple([labels.get(key, "") for key in _NODE_LABELS])


def _state(pod: Pod, place: tuple[str, ...], links: _Links) -> Values:
    is_ready = pod.ready is not None
    return (
        pod.name,
        pod.namespace,
        links.of(pod),
        pod.node_name,
        "true" if pod.node_name else "false",
        *place,
        pod.phase,
        "true" if is_ready else "false",
        "true" if place[0] else "false",
    )


def _add_waits(
    waits: dict[str, dict[Values, float]],
    pod: Pod,
    timings: Mapping[str, PodTiming],
    starting: Collection[str],
) -> None:
    key = pod.key
    found = find_waits(pod, timings.get(key, UNKNOWN), is_starting=key in starting)
    if found is NO_WAITS:
        return
    moments = (
        found.unstarted,
        found.unbound,
        found.provisioning_unstarted,
        found.provisioning_unbound,
        found.undecided,
    )
    for metric, since in zip(_WAITS, moments, strict=True):
        if since is not None:
            more = (has_dynamic_resources(pod),) if metric in _WITH_DEVICES else ()
            waits[metric][pod.name, pod.namespace, *more] = since.timestamp()
