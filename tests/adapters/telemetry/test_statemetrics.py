"""What a cluster tells of itself, on virtual time."""

import asyncio

from karpy.adapters.mirror.mirror import Mirror
from karpy.adapters.telemetry.metrics import Metrics
from karpy.adapters.telemetry.specs import metric_specs
from karpy.adapters.telemetry.statemetrics import StateMetrics, StateSources
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.fields import JsonObject
from karpy.core.scheduling.decide import decide
from karpy.model.kinds import NODE_POOL, POD
from karpy.model.notices import Notice
from karpy.model.settings import Settings
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.codec.plain import container, plain_pod
from tests.controllers.operators import NODE_CLASS

CLASS_LABEL = "karpenter.kwok.sh/kwoknodeclass"
EACH = (
    "karpenter_nodes_allocatable",
    "karpenter_pods_state",
    "karpenter_pods_startup_duration_seconds",
    "operator_node_status_condition_count",
)


class Watcher:
    """Scrapes a world in which a decision is made and a machine comes by hand."""

    def __init__(self, *, has_details: bool = True) -> None:
        self.has_details = has_details
        self.notices: list[Notice] = []

    def emit(self, notice: Notice) -> None:
        self.notices.append(notice)

    async def story(self) -> set[str]:
        """Return the names of the metrics that are told after a pod has got its node."""
        world = World()
        world.start()
        mirror = Mirror(world.objects, world.clock, kwok_catalog, Settings())
        known = kwok_catalog().well_known
        metrics = Metrics(
            metric_specs(known, [CLASS_LABEL]), today=lambda: world.clock.now().timestamp()
        )
        sources = StateSources(
            mirror.records, world.clock, self, lambda: mirror.is_synced, known, (CLASS_LABEL,)
        )
        state = StateMetrics(metrics, sources, has_details=self.has_details)
        tasks = [asyncio.create_task(each.run()) for each in (mirror, state)]
        await mirror.wait_until_listed()
        world.store.create(NODE_POOL, _pool())
        world.store.create(POD, _pod())
        await asyncio.sleep(2)
        for pod in mirror.records.pods.all():
            state.acked(pod)
        snapshot = mirror.snapshot()
        state.decided(snapshot, decide(snapshot))
        world.add_node("node-1")
        await asyncio.sleep(60)
        text = metrics.render().decode()
        for task in tasks:
            task.cancel()
        world.stop()
        return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}


def _pool() -> JsonObject:
    template = {"spec": {"requirements": [], "nodeClassRef": NODE_CLASS}}
    return {"metadata": {"name": "web"}, "spec": {"template": template}}


def _pod() -> JsonObject:
    return plain_pod(
        "web",
        meta={"namespace": "default"},
        containers=[container(image="web:1", requests={"cpu": "1"})],
    )


def test_a_cluster_tells_of_its_nodes_and_pods() -> None:
    told = run(Watcher().story())

    assert sorted(set(EACH) - told) == []
    assert {
        "karpenter_cluster_state_node_count",
        "karpenter_cluster_state_synced",
        "karpenter_pods_bound_duration_seconds",
        "karpenter_pods_provisioning_startup_duration_seconds",
        "karpenter_pods_scheduling_decision_duration_seconds",
        "karpenter_scheduler_unschedulable_pods_count",
    } <= told


def test_single_objects_can_be_left_out() -> None:
    told = run(Watcher(has_details=False).story())

    assert sorted(set(EACH) & told) == []
    assert "karpenter_pods_scheduling_decision_duration_seconds" in told
