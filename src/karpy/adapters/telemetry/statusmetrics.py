"""Metrics and events of the conditions of NodeClaims, NodePools, Nodes and CapacityBuffers."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from karpy.adapters.telemetry.metrics import GaugeValues, Metrics, Values
from karpy.adapters.telemetry.specs import status_label
from karpy.core.observation.transitions import ObservedKind, ObservedObject, compare
from karpy.model.buffers import BufferRecord
from karpy.model.kinds import CAPACITY_BUFFER, NODE, NODE_CLAIM, NODE_POOL
from karpy.model.labels import INITIALIZED
from karpy.model.labels import NODE_POOL as POOL_LABEL
from karpy.model.records import ClaimRecord, NodeRecord, PoolRecord
from karpy.ports.clock import Clock
from karpy.ports.notices import Notices
from karpy.ports.records import Kept, Records, Watched

_Record: TypeAlias = ClaimRecord | NodeRecord | PoolRecord | BufferRecord
R = TypeVar("R", ClaimRecord, NodeRecord, PoolRecord, BufferRecord)
_Gauges: TypeAlias = dict[str, dict[Values, float]]
_COUNT: Final = "status_condition_count"
_SINCE: Final = "status_condition_current_status_seconds"
_TERMINATING: Final = "termination_current_time_seconds"


class StatusMetrics:
    """
    Counts changes of conditions and emits events about them; collects conditions at a scrape.

    Only in the leader, because changes become events. `class_labels` are the labels of nodes and
    claims that hold the name of the node class; the specs must be made with the same ones.
    """

    def __init__(
        self,
        metrics: Metrics,
        records: Records,
        notices: Notices,
        clock: Clock,
        class_labels: Iterable[str] = (),
    ) -> None:
        self._metrics = metrics
        self._notices = notices
        self._clock = clock
        claim = (*sorted(class_labels, key=status_label), POOL_LABEL)
        claims = ObservedKind(NODE_CLAIM, _labels(claim))
        pools = ObservedKind(NODE_POOL)
        nodes = ObservedKind(NODE, _labels((*claim, INITIALIZED)), has_shared_metrics=False)
        self._follow(claims, records.claims)
        self._follow(pools, records.pools)
        self._follow(nodes, records.nodes)

    def follow_buffers(self, buffers: Watched[Kept[BufferRecord]]) -> None:
        """Follow CapacityBuffers as well."""
        self._follow(ObservedKind(CAPACITY_BUFFER), buffers)

    def _follow(self, kind: ObservedKind, watched: Watched[Kept[R]]) -> None:
        def collect() -> Callable[[], GaugeValues]:
            return partial(status_gauges, kind, [kept.record for kept in watched.all()])

        for kept in watched.all():
            self._on_object(kind, kept.record.meta.name, None, kept)
        watched.listen(partial(self._on_object, kind))
        self._metrics.add_source(collect)

    def _on_object(
        self, kind: ObservedKind, _: str, before: Kept[R] | None, after: Kept[R] | None
    ) -> None:
        was = None if before is None else observed(before.record)
        now = None if after is None else observed(after.record)
        if was is not None and now is not None and was.meta.uid != now.meta.uid:
            # The watch merged the deletion of an object and the creation of its namesake.
            self._report(kind, was, None)
            was = None
        self._report(kind, was, now)

    def _report(
        self, kind: ObservedKind, before: ObservedObject | None, after: ObservedObject | None
    ) -> None:
        changes = compare(kind, before, after, self._clock.now())
        for count in changes.counts:
            self._metrics.count(count)
        for notice in changes.notices:
            self._notices.emit(notice)


class _Names(Struct, frozen=True):
    """Prefix and extra labels of the gauges of a kind, or of the gauges that all kinds share."""

    prefix: str
    more: tuple[str, ...]


def observed(record: _Record | ObservedObject) -> ObservedObject:
    """Return the metadata and the conditions of an object."""
    if isinstance(record, ObservedObject):
        return record
    conditions = record.conditions
    items = conditions if isinstance(conditions, tuple) else conditions.items
    namespace = record.namespace if isinstance(record, BufferRecord) else ""
    return ObservedObject(record.meta, items, namespace)


def status_gauges(kind: ObservedKind, records: Iterable[_Record | ObservedObject]) -> GaugeValues:
    """Return the gauges of every condition of every object, and of deleting objects."""
    gauges: _Gauges = {}
    shared = _Names("operator_", tuple(kind.shared_labels().values()))
    for record in records:
        own = _Names(kind.prefix, tuple(kind.object_labels(record.meta).values()))
        each = observed(record)
        _add(gauges, own, each)
        if kind.has_shared_metrics:
            _add(gauges, shared, each)
    return gauges


def _add(gauges: _Gauges, names: _Names, each: ObservedObject) -> None:
    prefix, more = names.prefix, names.more
    object_ = (each.namespace, each.meta.name)
    counts = gauges.setdefault(prefix + _COUNT, {})
    since = gauges.setdefault(prefix + _SINCE, {})
    for condition in each.conditions:
        values = (*object_, condition.type, condition.status, condition.reason, *more)
        counts[values] = 1.0
        since[values] = condition.changed.timestamp()
    if each.meta.deleted is not None:
        terminating = gauges.setdefault(prefix + _TERMINATING, {})
        terminating[*object_, *more] = each.meta.deleted.timestamp()


def _labels(keys: Iterable[str]) -> dict[str, str]:
    return {status_label(key): key for key in keys}
