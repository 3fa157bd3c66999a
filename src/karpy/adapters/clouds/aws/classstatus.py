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
    """Counts and tells each change of a condition, and tells how conditions are when asked."""

    def __init__(self, book: NodeClassBook, clock: Clock, reports: Reports) -> None:
        self._book = book
        self._clock = clock
        self._reports = reports

    def begin(self) -> None:
        """Begin with the node classes that are there, and hear of every change from then on."""
        for each in self._book.classes.values():
            self._hear(None, each)
        self._book.listen(self._hear)

    def gauges(self) -> Callable[[], GaugeValues]:
        """Collect how all conditions are now."""
        return partial(
            status_gauges, KIND, [_observed(each) for each in self._book.classes.values()]
        )

    def _hear(self, before: Ec2NodeClass | None, after: Ec2NodeClass | None) -> None:
        if before is not None and after is not None and before.meta.uid != after.meta.uid:
            self._hear(before, None)
            before = None
        was = None if before is None else _observed(before)
        now = None if after is None else _observed(after)
        told = compare(KIND, was, now, self._clock.now())
        for count in told.counts:
            self._reports.count(count)
        for notice in told.notices:
            self._reports.emit(notice)


def _observed(node_class: Ec2NodeClass) -> ObservedObject:
    return ObservedObject(node_class.meta, node_class.status.conditions.items)
