"""What measures an operator; without metrics nothing is measured, and nothing costs anything."""

from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from karpy.adapters.mirror.bufferbook import BufferBook
from karpy.adapters.mirror.mirror import Mirror
from karpy.adapters.telemetry.controllermetrics import ControllerMetrics
from karpy.adapters.telemetry.measuredcloud import MeasuredCloud, Meter
from karpy.adapters.telemetry.metrics import GaugeValues, Metrics
from karpy.adapters.telemetry.statemetrics import Sources, StateMetrics
from karpy.controllers.disruption import Considered
from karpy.controllers.queue import UNOBSERVED
from karpy.model.kinds import Kind
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict
from karpy.ports.cloud import CloudProvider
from karpy.ports.notices import Notices
from karpy.ports.observers import Observer
from karpy.wiring.surface import Surface

_UNCONSIDERED: Final = "karpy_nodes_unconsidered_time_seconds"


class Instruments:
    """Measures controllers, calls to the cloud, decisions and the cluster."""

    def __init__(
        self,
        metrics: Metrics | None,
        surface: Surface,
        mirror: Mirror,
        notices: Notices,
        *,
        buffers: BufferBook | None = None,
        has_details: bool = True,
    ) -> None:
        self._surface = surface
        self._details = metrics if has_details else None
        self._state: StateMetrics | None = None
        self._controllers: ControllerMetrics | None = None
        self._meter: Meter | None = None
        if metrics is not None:
            sources = Sources(
                mirror.records,
                surface.clock,
                notices,
                lambda: mirror.is_synced,
                surface.cloud.catalog().well_known,
                tuple(map(class_label, surface.node_classes)),
                buffers=None if buffers is None else buffers.buffers,
            )
            self._state = StateMetrics(metrics, sources, has_details=has_details)
            self._controllers = ControllerMetrics(metrics)
            self._meter = Meter(metrics, mirror.records)

    @property
    def run(self) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """What is to run beside the controllers, if there is anything."""
        return None if self._state is None else self._state.run

    def show_considered(self, considered: Considered) -> None:
        """Have told at each scrape when nodes were last considered for disruption."""
        if self._details is not None:
            self._details.add_source(lambda: partial(_unconsidered, considered.moments()))

    def cloud(self, controller: str) -> CloudProvider:
        """Return the cloud for a controller."""
        cloud = self._surface.cloud
        return cloud if self._meter is None else MeasuredCloud(cloud, self._meter, controller)

    def observer(self, controller: str) -> Observer:
        """Return who watches the queue of a controller."""
        return UNOBSERVED if self._controllers is None else self._controllers.of(controller)

    def acked(self, pod: Pod) -> None:
        """Note that a pod asks for a node."""
        if self._state is not None:
            self._state.acked(pod)

    def deciding(self, snapshot: Snapshot) -> None:
        """Note that a decision begins."""
        if self._state is not None:
            self._state.deciding(snapshot)

    def decided(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Note what was decided, and on what."""
        if self._state is not None:
            self._state.decided(snapshot, verdict)


def _unconsidered(moments: Mapping[tuple[str, str], datetime]) -> GaugeValues:
    return {_UNCONSIDERED: {node: moment.timestamp() for node, moment in moments.items()}}


def class_label(kind: Kind) -> str:
    """Return the label by which nodes and claims carry the name of their node class."""
    return f"{kind.group}/{kind.name.lower()}"
