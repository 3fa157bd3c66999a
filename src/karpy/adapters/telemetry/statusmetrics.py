"""Metrics and events of conditions: of NodeClaims, NodePools and Nodes."""

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
_GOING: Final = "termination_current_time_seconds"


class StatusMetrics:
    """
    Counts and tells each change of a condition, and tells how conditions are when that is asked.

    For the leader alone, since changes become events. `class_labels` are the keys by which nodes
    and claims carry the name of their node class: those that the specs were made with.
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
        """Follow CapacityBuffers, too, where there are any."""
        self._follow(ObservedKind(CAPACITY_BUFFER), buffers)

    def _follow(self, kind: ObservedKind, watched: Watched[Kept[R]]) -> None:
        def look() -> Callable[[], GaugeValues]:
            return partial(status_gauges, kind, [kept.record for kept in watched.all()])

        for kept in watched.all():
            self._hear(kind, kept.record.meta.name, None, kept)
        watched.listen(partial(self._hear, kind))
        self._metrics.add_source(look)

    def _hear(
        self, kind: ObservedKind, _: str, before: Kept[R] | None, after: Kept[R] | None
    ) -> None:
        was = None if before is None else observed(before.record)
        now = None if after is None else observed(after.record)
        if was is not None and now is not None and was.meta.uid != now.meta.uid:
            # The watch merged the deletion of an object and the creation of one of that name.
            self._tell(kind, was, None)
            was = None
        self._tell(kind, was, now)

    def _tell(
        self, kind: ObservedKind, before: ObservedObject | None, after: ObservedObject | None
    ) -> None:
        told = compare(kind, before, after, self._clock.now())
        for count in told.counts:
            self._metrics.count(count)
        for notice in told.notices:
            self._notices.emit(notice)


class _Names(Struct, frozen=True):
    """The gauges of a kind, or those that all kinds share."""

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
    told: _Gauges = {}
    shared = _Names("operator_", tuple(kind.shared().values()))
    for record in records:
        own = _Names(kind.prefix, tuple(kind.more(record.meta).values()))
        each = observed(record)
        _add(told, own, each)
        if kind.has_shared_metrics:
            _add(told, shared, each)
    return told


def _add(told: _Gauges, names: _Names, each: ObservedObject) -> None:
    prefix, more = names.prefix, names.more
    object_ = (each.namespace, each.meta.name)
    counts = told.setdefault(prefix + _COUNT, {})
    since = told.setdefault(prefix + _SINCE, {})
    for condition in each.conditions:
        values = (*object_, condition.type, condition.status, condition.reason, *more)
        counts[values] = 1.0
        since[values] = condition.changed.timestamp()
    if each.meta.deleted is not None:
        told.setdefault(prefix + _GOING, {})[*object_, *more] = each.meta.deleted.timestamp()


def _labels(keys: Iterable[str]) -> dict[str, str]:
    return {status_label(key): key for key in keys}
