"""Observers of an operator: journal, log and metrics of decisions, gauges of the cluster."""

from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Generic, TypeVar

from karpy.adapters.mirror.bufferbook import BufferBook
from karpy.adapters.mirror.mirror import Mirror
from karpy.adapters.telemetry.controllermetrics import ControllerMetrics
from karpy.adapters.telemetry.measuredcloud import MeasuredCloud, Meter
from karpy.adapters.telemetry.metrics import GaugeValues, Metrics
from karpy.adapters.telemetry.statemetrics import StateMetrics, StateSources
from karpy.controllers.disruption import Considered
from karpy.controllers.nominations import ClaimNominations
from karpy.controllers.queue import UNOBSERVED
from karpy.controllers.writer import Telemetry
from karpy.core.announcements import (
    created_count,
    created_remark,
    decision_remarks,
    pending_remark,
)
from karpy.core.disruption.decide import is_news
from karpy.core.lifecycle.changes import Count, Remark
from karpy.core.staticpools import is_news as is_news_of_pool
from karpy.errors import KarpyError
from karpy.model.census import uncounted
from karpy.model.commands import DisruptionVerdict
from karpy.model.kinds import Kind
from karpy.model.pods import Pod
from karpy.model.snapshot import (
    LegacyRepairQuestion,
    NodeQuestion,
    PoolQuestion,
    Snapshot,
    VainLaunches,
)
from karpy.model.verdicts import Launch, Nomination, PoolVerdict, Verdict
from karpy.ports.cloud import CloudProvider
from karpy.ports.journal import Journal
from karpy.ports.notices import Notices
from karpy.ports.observers import Observer
from karpy.wiring.surface import Surface

T = TypeVar("T")

_UNCONSIDERED: Final = "karpy_nodes_unconsidered_time_seconds"
_DURATION: Final = "scheduler_scheduling_duration_seconds"
_CONTROLLER: Final = {"controller": "provisioner"}
_REMEMBERED_MAX: Final = 1000
"""Nodes and NodePools whose last verdict is kept; a dropped one is recorded anew."""

OnNomination = Callable[[str], None]
"""Called with the name of a nominated node or NodeClaim."""
OnQuestion = Callable[[Snapshot], None]
"""Called with the snapshot of a decision that is about to be made."""
VainLaunchesOf = Callable[[Snapshot], tuple[VainLaunches, ...]]
"""Returns the launches in vain, for whose pods nothing may be launched."""
OnVerdict = Callable[[Snapshot, Verdict], None]
"""Called with a snapshot and the verdict on it."""
OnLaunch = Callable[[str, Launch], None]
"""Called with the NodeClaim that was created for a launch."""


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
            sources = StateSources(
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
        """The task that runs beside the controllers, or None."""
        return None if self._state is None else self._state.run

    def show_considered(self, considered: Considered) -> None:
        """Export at each scrape when nodes were last considered for disruption."""
        if self._details is not None:
            self._details.add_source(lambda: partial(_unconsidered, considered.moments()))

    def cloud(self, controller: str) -> CloudProvider:
        """Return the cloud for a controller."""
        cloud = self._surface.cloud
        return cloud if self._meter is None else MeasuredCloud(cloud, self._meter, controller)

    def observer(self, controller: str) -> Observer:
        """Return the observer of a controller's queue."""
        return UNOBSERVED if self._controllers is None else self._controllers.of(controller)

    def acked(self, pod: Pod) -> None:
        """Note that a pod triggers a decision for the first time."""
        if self._state is not None:
            self._state.acked(pod)

    def deciding(self, snapshot: Snapshot) -> None:
        """Note that a decision begins."""
        if self._state is not None:
            self._state.deciding(snapshot)

    def decided(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Note a verdict and its snapshot."""
        if self._state is not None:
            self._state.decided(snapshot, verdict)


def _unconsidered(moments: Mapping[tuple[str, str], datetime]) -> GaugeValues:
    return {_UNCONSIDERED: {node: moment.timestamp() for node, moment in moments.items()}}


def class_label(kind: Kind) -> str:
    """Return the label with the name of the node class on nodes and claims."""
    return f"{kind.group}/{kind.name.lower()}"


class DecisionAudience:
    """Passes decisions about pods on to journal, metrics, log and controllers."""

    def __init__(
        self,
        telemetry: Telemetry,
        *,
        claim_nominations: ClaimNominations,
        journal: Journal | None = None,
        on_nomination: OnNomination = lambda _: None,
        on_verdict: OnVerdict = lambda *_: None,
        on_launch: OnLaunch = lambda *_: None,
    ) -> None:
        self.on_question: OnQuestion = lambda _: None
        self.on_vain_launches: VainLaunchesOf = _no_vain_launches
        self._telemetry = telemetry
        self._claim_nominations = claim_nominations
        self._journal = journal
        self._on_nomination = on_nomination
        self._on_verdict = on_verdict
        self._on_launch = on_launch
        self._pending: Remark | None = None
        """The last remark about pods that stay pending."""

    def deciding(self, snapshot: Snapshot) -> None:
        """Pass on the snapshot of a decision that is about to be made."""
        self.on_question(snapshot)

    def decided(self, snapshot: Snapshot, verdict: Verdict, duration: timedelta) -> None:
        """Record a decision, and log it."""
        if self._journal is not None:
            self._journal.record(snapshot, verdict)
        self._on_verdict(snapshot, verdict)
        # A node that nominated pods are to be bound to must not be disrupted.
        for claim in sorted(set(self._claim_nominations.places().values())):
            self._on_nomination(claim)
        self._telemetry.count(Count(_DURATION, _CONTROLLER, duration.total_seconds()))
        for remark in decision_remarks(verdict, duration):
            self._telemetry.remark(remark)
        self._report_pending(snapshot, verdict)

    def _report_pending(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Log which pods stay pending, unless the last remark was the same."""
        pods = {pod.key: pod for pod in uncounted(snapshot.pods)} if verdict.refusals else {}
        pending = pending_remark(verdict, pods)
        if pending is not None and pending != self._pending:
            self._telemetry.remark(pending)
        self._pending = pending

    def vain_launches(self, snapshot: Snapshot) -> tuple[VainLaunches, ...]:
        """Return the launches in vain, for whose pods nothing may be launched."""
        return self.on_vain_launches(snapshot)

    def nominated(self, nomination: Nomination, claim: str) -> None:
        """Nominate a node, and its pods to its NodeClaim."""
        self._on_nomination(nomination.node)
        self._claim_nominations.add(claim, nomination.pods)

    def launched(self, claim: str, launch: Launch) -> None:
        """Nominate the pods of a launch to its NodeClaim, and log the launch."""
        self._claim_nominations.note(claim, launch)
        self._on_launch(claim, launch)
        self._on_nomination(claim)
        self._telemetry.count(created_count(launch))
        self._telemetry.remark(created_remark(launch, claim))

    def failed(self, launch: Launch, error: KarpyError) -> None:
        """Log that a NodeClaim could not be created."""
        fields = {"NodePool": launch.pool, "error": error.message}
        self._telemetry.remark(Remark("creating nodeclaim failed", fields, is_error=True))


def _no_vain_launches(_: Snapshot) -> tuple[VainLaunches, ...]:
    return ()


class DisruptionAudience:
    """Records decisions about nodes in the journal, if they are new."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._recorded: _Recent[DisruptionVerdict] = _Recent()

    def decided(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        """Record a decision unless it repeats the last one: most do."""
        # Only a LegacyRepairQuestion is about one node; other questions are about all nodes.
        claim = question.claim if isinstance(question, LegacyRepairQuestion) else ""
        topic = (type(question).__name__, claim)
        if is_news(question, verdict, self._recorded.get(topic)):
            self._recorded.keep(topic, verdict)
            self._journal.record_disruption(question, verdict)


class PoolAudience:
    """Records decisions about the size of NodePools in the journal, if they are new."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._recorded: _Recent[PoolVerdict] = _Recent()

    def decided(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        """Record a decision unless it repeats the last one of its pool: most do."""
        topic = (type(question).__name__, verdict.pool)
        if is_news_of_pool(verdict, self._recorded.get(topic)):
            self._recorded.keep(topic, verdict)
            self._journal.record_pool(question, verdict)


class _Recent(Generic[T]):
    """The last verdict by topic: a kind of question, and the object it is about."""

    def __init__(self) -> None:
        self._verdicts: dict[tuple[str, str], T] = {}

    def get(self, topic: tuple[str, str]) -> T | None:
        return self._verdicts.get(topic)

    def keep(self, topic: tuple[str, str], verdict: T) -> None:
        self._verdicts.pop(topic, None)
        self._verdicts[topic] = verdict
        if len(self._verdicts) > _REMEMBERED_MAX:
            del self._verdicts[next(iter(self._verdicts))]
