"""The controllers of an operator, with Karpenter's names for them."""

from collections.abc import Iterator
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from karpy.adapters.clouds.overlaid import OverlaidCloud
from karpy.adapters.mirror.bufferbook import BufferBook
from karpy.adapters.mirror.cluster import MirroredCluster
from karpy.adapters.mirror.mirror import Mirror
from karpy.controllers.breaker import Breaker
from karpy.controllers.buffers import BufferController
from karpy.controllers.clusterstate import ClusterState, Commands, Promises
from karpy.controllers.context import ControllerContext
from karpy.controllers.disruption import DisruptionController
from karpy.controllers.disruptionqueue import OnVerdict
from karpy.controllers.evictionqueue import EvictionQueue
from karpy.controllers.garbagecollection import GarbageCollector
from karpy.controllers.interruption import InterruptionController
from karpy.controllers.nodeclaimdisruption import NodeClaimDisruptionController, PodEventController
from karpy.controllers.nodeclaimlifecycle import LifecycleController
from karpy.controllers.nodeclasses import NodeClasses
from karpy.controllers.nodepools import (
    NodePoolController,
    NodePoolMetrics,
    RegistrationHealthController,
)
from karpy.controllers.nodetermination import TerminationController
from karpy.controllers.nominations import (
    ClaimNominations,
    NodeNominations,
    NominationWithdrawal,
    PodNominator,
)
from karpy.controllers.overlays import OverlayController
from karpy.controllers.poddeletioncost import PodDeletionCostController, PodDeletionCostQueue
from karpy.controllers.provisioning import Batcher, DecisionGuard, ProvisioningController, Triggers
from karpy.controllers.reboot import RebootController
from karpy.controllers.repair import RepairController
from karpy.controllers.staticcapacity import StaticCapacityController
from karpy.controllers.writer import Writer
from karpy.model.nodes import RepairPolicy
from karpy.model.settings import Options, PodNomination
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict
from karpy.ports.observers import Observer
from karpy.wiring.instruments import DecisionAudience, DisruptionAudience, Instruments, PoolAudience
from karpy.wiring.surface import OperatorTask, Reporting, Surface


class ClusterView(Struct, frozen=True):
    """The cluster as watches deliver it."""

    mirror: Mirror
    cluster: MirroredCluster
    classes: NodeClasses
    buffers: BufferBook | None = None
    """None if the feature gate CapacityBuffer is off."""


class Assembly:
    """Builds all controllers of a leader, once."""

    def __init__(
        self, surface: Surface, options: Options, reporting: Reporting, view: ClusterView
    ) -> None:
        self._surface = surface
        self._options = options
        self._reporting = reporting
        self._view = view
        self._writer = Writer(surface.objects, reporting.notices, reporting.voice, view.mirror)
        self._instruments = Instruments(
            reporting.metrics,
            surface,
            view.mirror,
            reporting.notices,
            buffers=view.buffers,
            has_details=options.has_cluster_metrics,
        )
        self._batcher = Batcher(
            idle_seconds=options.batch_idle.total_seconds(),
            longest_seconds=options.batch_max.total_seconds(),
        )
        self._claim_nominations = ClaimNominations(
            view.mirror.records, surface.clock, self._batcher.trigger
        )
        self._breaker = Breaker(
            view.mirror.records,
            surface.clock,
            reporting.voice,
            self._batcher.trigger,
        )
        self._nominations = NodeNominations(surface.clock, options.batch_max)
        self._commands = Commands()
        self._nominator = self._make_nominator()
        self._buffers = self._make_buffers()
        self._state = self._make_state()

    def parts(self) -> Iterator[OperatorTask]:
        """Return each controller as a part to run."""
        yield from self._provisioning()
        yield from self._claims()
        yield OperatorTask("disruption", self._make_disruption().run)
        yield from self._pools()
        yield from self._gauges()
        yield from self._surface.parts(self._context)
        if self._surface.machine_events is not None:
            interruption = InterruptionController(
                self._context("interruption"), self._surface.machine_events
            )
            yield OperatorTask("interruption", interruption.run)
        if self._options.gates.pod_deletion_cost_management:
            yield from self._deletion_costs()
        if self._buffers is not None:
            yield OperatorTask("capacitybuffer", self._buffers.run)
        if self._options.gates.node_overlay:
            overlays = OverlayController(self._context("nodeoverlay.controller"))
            self._view.classes.listen(lambda _: overlays.wake())
            yield OperatorTask("nodeoverlay.controller", overlays.run)

    def _provisioning(self) -> Iterator[OperatorTask]:
        view, reporting = self._view, self._reporting
        audience = DecisionAudience(
            reporting.voice,
            claim_nominations=self._claim_nominations,
            journal=reporting.journal,
            on_nomination=self._nominations.note,
            on_verdict=self._on_verdict,
            on_launch=self._on_launch,
        )
        audience.on_question = self._instruments.deciding
        audience.on_vain_launches = self._breaker.vain_launches
        triggers = Triggers(view.mirror.records, self._batcher, on_new_pod=self._instruments.acked)
        provisioning = ProvisioningController(
            self._state,
            self._batcher,
            reporting.notices,
            self._surface.clock,
            audience,
            DecisionGuard(
                self._options.decision_timeout,
                partial(reporting.voice.fail, "provisioner"),
                self._observer("provisioner"),
            ),
        )
        yield OperatorTask("provisioner.trigger", triggers.run)
        yield OperatorTask("provisioner", provisioning.run)
        yield OperatorTask("provisioner.breaker", self._breaker.run)
        yield OperatorTask("state.nodeclaim", view.cluster.run)

    def _on_verdict(self, snapshot: Snapshot, verdict: Verdict) -> None:
        self._instruments.decided(snapshot, verdict)
        self._breaker.begin()
        if self._buffers is not None:
            self._buffers.record(verdict)
        if self._nominator is not None:
            self._nominator.on_decision(snapshot, verdict)

    def _on_launch(self, claim: str, launch: Launch) -> None:
        self._breaker.note(claim, launch)
        if self._nominator is not None:
            self._nominator.note(claim, launch)

    def _claims(self) -> Iterator[OperatorTask]:
        """Build the controllers of NodeClaims and nodes."""
        workers, classes = self._options.workers, self._view.classes
        registrations = RegistrationHealthController(
            self._context("nodepool.registrationhealth"), classes.generation_of
        )
        classes.listen(registrations.on_class)
        lifecycle = LifecycleController(
            self._launching_context("nodeclaim.lifecycle"),
            pods_of=self._claim_nominations.pods_of,
            on_attempt=registrations.record,
            nominator=self._nominator,
            hooks=self._surface.registration_hooks,
        )
        evictions = EvictionQueue(self._context("eviction-queue"))
        termination = TerminationController(self._context("node.termination"), evictions)
        expected = self._claim_nominations
        podevents = PodEventController(self._context("nodeclaim.podevents"), expected.is_busy)
        upkeep = NodeClaimDisruptionController(
            self._context("nodeclaim.disruption"),
            lambda claim: expected.has_unbound_pods(claim) or podevents.holds(claim),
            expected.is_busy,
        )
        classes.listen(upkeep.on_class)
        garbage = GarbageCollector(self._context("nodeclaim.garbagecollection"))
        yield OperatorTask("nodepool.registrationhealth", registrations.run)
        if self._nominator is not None:
            yield OperatorTask("pod.nomination", self._nominator.run)
            yield OperatorTask(
                "pod.nomination.withdrawal",
                NominationWithdrawal(self._context("pod.nomination.withdrawal")).run,
            )
        yield OperatorTask("nodeclaim.lifecycle", partial(lifecycle.run, workers(1000, 5000)))
        yield OperatorTask("eviction-queue", partial(evictions.run, workers(100, 5000)))
        yield OperatorTask("node.termination", partial(termination.run, workers(100, 5000)))
        yield OperatorTask("nodeclaim.disruption", partial(upkeep.run, workers(10, 1000)))
        yield OperatorTask("nodeclaim.podevents", partial(podevents.run, workers(10, 1000)))
        yield OperatorTask("nodeclaim.garbagecollection", garbage.run)
        yield OperatorTask(
            "nodeclaim.reboot", RebootController(self._context("nodeclaim.reboot"), evictions).run
        )
        if self._options.has_legacy_repair and self._policies():
            health = RepairController(
                self._context("node.health"), self._policies(), self._node_audience()
            )
            yield OperatorTask("node.health", health.run)

    def _pools(self) -> Iterator[OperatorTask]:
        """Build the controllers of NodePools."""
        view, commands = self._view, self._commands
        pools = NodePoolController(
            self._context("nodepool"),
            view.classes,
            lambda: view.mirror.node_book.joined() if view.mirror.is_synced else None,
            deleting=lambda: commands.deleting,
            well_known=self._surface.cloud.catalog().well_known,
        )
        yield OperatorTask("nodepool", partial(pools.run, self._options.workers(10, 1000)))
        if self._options.gates.static_capacity:
            static = StaticCapacityController(
                self._context("static"),
                self._state,
                is_our_pool=view.classes.is_our_pool,
                is_listed=lambda: view.mirror.is_listed,
                disrupting=lambda: commands.disrupting,
            )
            if self._reporting.journal is not None:
                static.listen(PoolAudience(self._reporting.journal).decided)
            yield OperatorTask("static", static.run)

    def _gauges(self) -> Iterator[OperatorTask]:
        """Build the controllers that export the cluster to Prometheus."""
        if self._instruments.run is not None:
            yield OperatorTask("metrics.state", self._instruments.run)
        metrics = self._reporting.metrics
        if metrics is not None and self._options.has_cluster_metrics:
            context = self._launching_context("metrics.nodepool")
            yield OperatorTask(
                "metrics.nodepool",
                NodePoolMetrics(context, metrics, self._view.classes.is_our_pool).run,
            )

    def _deletion_costs(self) -> Iterator[OperatorTask]:
        """Build the controllers that write deletion costs on pods."""
        mirror, name = self._view.mirror, "pod.deletioncost.queue"
        # Thousands of pods are patched at once: launches must not share their rate limit.
        objects = self._surface.nominations or self._surface.objects
        queue = PodDeletionCostQueue(replace(self._context(name), objects=objects))
        costs = PodDeletionCostController(
            self._context("pod.deletioncost"),
            self._state,
            queue,
            lambda: mirror.consolidation_version,
            self._reporting.metrics,
        )
        yield OperatorTask(name, partial(queue.run, self._options.workers(100, 5000)))
        yield OperatorTask("pod.deletioncost", costs.run)

    def _make_nominator(self) -> PodNominator | None:
        if self._options.nominate_pods is PodNomination.NEVER:
            return None
        objects = self._surface.nominations or self._surface.objects
        voice = self._reporting.voice
        on_failure = partial(voice.fail, "pod.nomination")
        return PodNominator(objects, self._claim_nominations.pods_of, voice.remark, on_failure)

    def _make_buffers(self) -> BufferController | None:
        book = self._view.buffers
        if book is None:
            return None
        return BufferController(self._context("capacitybuffer"), book, self._batcher.trigger)

    def _make_state(self) -> ClusterState:
        """Build the cluster state, whose snapshots decisions are made on."""
        view, buffers = self._view, self._buffers
        promises = Promises(self._commands, self._nominations, self._claim_nominations)
        return ClusterState(
            view.cluster,
            promises,
            is_ours=view.classes.is_ours,
            virtual_pods=tuple if view.buffers is None else view.buffers.virtual_pods,
            buffer_pods=(lambda _: 0) if buffers is None else buffers.pods_on,
            repair_policies=() if self._options.has_legacy_repair else self._policies(),
        )

    def _make_disruption(self) -> DisruptionController:
        disruption = DisruptionController(
            self._context("disruption"),
            self._state,
            self._commands,
            self._nominations,
            self._consolidation_version,
        )
        disruption.listen(self._node_audience())
        self._instruments.show_considered(disruption.considered)
        return disruption

    def _consolidation_version(self) -> object:
        """Return a value that changes whenever consolidation may find a new command."""
        buffers = self._view.buffers
        return (
            self._view.mirror.consolidation_version,
            None if buffers is None else buffers.buffers.version,
        )

    def _node_audience(self) -> OnVerdict:
        """Return the listener of decisions about nodes: the journal, or a no-op."""
        journal = self._reporting.journal
        return (lambda *_: None) if journal is None else DisruptionAudience(journal).decided

    def _policies(self) -> tuple[RepairPolicy, ...]:
        """Return the cloud's repair policies; none if the feature gate NodeRepair is off."""
        return self._surface.cloud.repair_policies if self._options.gates.node_repair else ()

    def _launching_context(self, name: str) -> ControllerContext:
        """Return a controller context whose catalog has NodeOverlays applied, as in decisions."""
        context = self._context(name)
        if not self._options.gates.node_overlay:
            return context
        return replace(context, cloud=OverlaidCloud(context.cloud, self._view.mirror))

    def _context(self, name: str) -> ControllerContext:
        """Return the context of a controller."""
        surface = self._surface
        return ControllerContext(
            self._view.mirror.records,
            surface.objects,
            self._instruments.cloud(name),
            self._writer,
            surface.clock,
            is_ours=self._view.classes.is_ours,
            on_failure=partial(self._reporting.voice.fail, name),
            decision_timeout=self._options.decision_timeout,
            observer=self._observer(name),
        )

    def _observer(self, controller: str) -> Observer:
        return self._reporting.progress.of(controller, self._instruments.observer(controller))
