"""A whole cluster in memory: API server, scheduler, controllers, machines and a cloud."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol

from msgspec import Struct

from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.codec.validation.validator import CrdValidator
from karpy.model.instances import Catalog
from karpy.model.kinds import CUSTOM_RESOURCE, NODE_CLAIM
from karpy.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, parse_quantity
from karpy.ports.clock import Clock
from karpy.ports.cloud import LaunchSpec
from karpy.sim.clock import LoopClock
from karpy.sim.cloud.cloud import SimCloud
from karpy.sim.cloud.market import Good, MarketChange, SimulatedMarket
from karpy.sim.cloud.terms import Terms
from karpy.sim.kubelets.hardware import Hardware
from karpy.sim.kubelets.kubelets import Kubelets
from karpy.sim.kubelets.timing import KubeletTiming
from karpy.sim.nodelife.lifecycle import NodeLifecycle
from karpy.sim.nodelife.patience import ControllerTimeouts
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.scheduler.provisioner import Provisioner
from karpy.sim.scheduler.scheduler import Scheduler
from karpy.sim.store.store import Store
from karpy.sim.workloads.workloads import Workloads

START: Final = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday, at midnight."""
_SIZE: Final = {CPU: "4", MEMORY: "16Gi", PODS: "110", EPHEMERAL_STORAGE: "100Gi"}


class Part(Protocol):
    """A component of a world that runs between `start` and `stop`."""

    def start(self) -> None:
        """Start on the running loop."""

    def stop(self) -> None:
        """Stop all activity."""


PartFactory = Callable[[Store, Clock], Part]


class WorldSettings(Struct, frozen=True):
    """The parameters of a world: its cloud, its timing and its controllers."""

    timing: KubeletTiming = KubeletTiming()
    patience: ControllerTimeouts = ControllerTimeouts()
    terms: Terms = Terms()
    stock: Mapping[Good, int] = {}
    """How many machines of a good the cloud has; goods that are absent are unlimited."""
    timetable: tuple[MarketChange, ...] = ()
    history: int = 10_000
    """How many watch events of each kind the API server keeps."""
    deletes_nodes: bool = False
    """Whether the cloud controller manager deletes Nodes without a machine."""
    taints_nodes: bool = False
    """Whether Nodes created by hand have the not-ready taint until they are Ready."""
    has_events: bool = True
    """Whether scheduler and controllers write Events; Events can be half of all writes."""


class World:
    """
    A cluster that runs on the current event loop, virtual or real.

    The same seed and the same calls give the same sequence of events, to the last byte.
    """

    def __init__(
        self,
        settings: WorldSettings | None = None,
        *,
        seed: int = 0,
        start: datetime = START,
        catalog: Catalog | None = None,
        parts: Sequence[PartFactory] | None = None,
    ) -> None:
        settings = settings or WorldSettings()
        timing = settings.timing
        self.clock = LoopClock(start)
        self.store = Store(
            self.clock,
            seed=seed,
            history=settings.history,
            validator=CrdValidator,
            taints_nodes=settings.taints_nodes,
        )
        for kind in CUSTOM_KINDS:
            self.store.create(CUSTOM_RESOURCE, kind.to_json())
        self.objects = EmbeddedObjects(self.store)
        self.kubelets = Kubelets(self.store, self.clock, timing, seed=seed)
        market = SimulatedMarket(
            kwok_catalog() if catalog is None else catalog,
            self.clock,
            stock=settings.stock,
            timetable=settings.timetable,
        )
        self.cloud = SimCloud(
            market,
            self.clock,
            self.kubelets,
            settings.terms.faster(timing.speed),
            seed=seed,
            taints_of=self._taints_of,
        )
        exists = self.cloud.has if settings.deletes_nodes else None
        lifecycle = NodeLifecycle(self.store, self.clock, self.kubelets, settings.patience, exists)
        usual = _usual_parts(has_events=settings.has_events)
        others = [make(self.store, self.clock) for make in (usual if parts is None else parts)]
        self._parts: tuple[Part, ...] = (*others, self.kubelets, lifecycle)
        self._running: list[Part] = []

    def start(self) -> None:
        """Start all components on the running loop."""
        for part in self._parts:
            part.start()
            self._running.append(part)

    def stop(self) -> None:
        """Stop all components; the objects stay."""
        self.cloud.stop()
        while self._running:
            self._running.pop().stop()

    def add_node(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[JsonObject] = (),
        provider_id: str = "",
        **size: str,
    ) -> None:
        """
        Add a node that is Ready as soon as the loop runs.

        The size is given by resource: `cpu="8"`, `memory="32Gi"`, `pods="30"`.
        """
        amounts = {key: parse_quantity(text, key) for key, text in {**_SIZE, **size}.items()}
        hardware = Hardware(
            name=name,
            capacity=amounts,
            labels=labels or {},
            taints=tuple(taints),
            provider_id=provider_id,
            boot_seconds=0,
            ready_seconds=0,
        )
        self.kubelets.boot(hardware)

    def _taints_of(self, spec: LaunchSpec) -> list[JsonObject]:
        """Return the taints of a NodeClaim: its kubelet registers with them."""
        claim = self.store.find(NODE_CLAIM, spec.claim) or {}
        wanted = claim.get("spec") or {}
        return [*(wanted.get("taints") or ()), *(wanted.get("startupTaints") or ())]


def _usual_parts(*, has_events: bool) -> tuple[PartFactory, ...]:
    """Return the components of every world beside its machines."""
    return (
        partial(Scheduler, has_events=has_events),
        lambda store, _: Provisioner(store),
        partial(Workloads, has_events=has_events),
    )
