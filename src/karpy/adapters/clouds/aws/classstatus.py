"""Metrics and events of the conditions of EC2NodeClasses."""

from collections.abc import Callable
from functools import partial
from typing import Final

from karpy.adapters.clouds.aws.classes import NodeClassBook
from karpy.adapters.clouds.aws.reports import Reports
from karpy.adapters.telemetry.metrics import GaugeValues
from karpy.adapters.telemetry.statusmetrics import status_gauges
from karpy.core.observation.transitions import ObservedKind, ObservedObject, compare
from karpy.model.ec2nodeclass import Ec2NodeClass
from karpy.model.kinds import EC2_NODE_CLASS
from karpy.ports.clock import Clock

KIND: Final = ObservedKind(EC2_NODE_CLASS)


class ClassStatus:
    """Counts changes of conditions and emits events about them; collects conditions at a scrape."""

    def __init__(self, book: NodeClassBook, clock: Clock, reports: Reports) -> None:
        self._book = book
        self._clock = clock
        self._reports = reports

    def begin(self) -> None:
        """Report the present node classes, then every change."""
        for each in self._book.classes.values():
            self._on_class(None, each)
        self._book.listen(self._on_class)

    def gauges(self) -> Callable[[], GaugeValues]:
        """Copy all conditions; return a function that computes their gauges."""
        return partial(
            status_gauges, KIND, [_observed(each) for each in self._book.classes.values()]
        )

    def _on_class(self, before: Ec2NodeClass | None, after: Ec2NodeClass | None) -> None:
        if before is not None and after is not None and before.meta.uid != after.meta.uid:
            self._on_class(before, None)
            before = None
        was = None if before is None else _observed(before)
        now = None if after is None else _observed(after)
        changes = compare(KIND, was, now, self._clock.now())
        for count in changes.counts:
            self._reports.count(count)
        for notice in changes.notices:
            self._reports.emit(notice)


def _observed(node_class: Ec2NodeClass) -> ObservedObject:
    return ObservedObject(node_class.meta, node_class.status.conditions.items)
