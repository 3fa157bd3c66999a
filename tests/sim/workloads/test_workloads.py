import json

from karpy.model.kinds import DEPLOYMENT, EVENT, POD, REPLICA_SET
from karpy.sim.clock import LoopClock
from karpy.sim.loop import run
from karpy.sim.store.store import Store
from karpy.sim.workloads.workloads import Workloads
from tests.sim.stories import on_virtual_time
from tests.sim.workloads.stage import NAMESPACE, START, on_stage, settle, with_image, workload


async def _story() -> str:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web", replicas=5))
        await settle(5)
        stage.patch(DEPLOYMENT, "web", with_image("app:2"))
        await settle(30)
        kinds = (DEPLOYMENT, REPLICA_SET, POD, EVENT)
        return json.dumps([stage.all(kind) for kind in kinds])


def test_equal_runs_give_equal_objects() -> None:
    assert run(_story()) == run(_story())


@on_virtual_time
async def test_stopped_controllers_do_nothing() -> None:
    with on_stage() as stage:
        stage.add(DEPLOYMENT, "web", workload("web"))
        await settle(5)

        stage.workloads.stop()
        stage.delete(POD, stage.pod_names()[0])
        stage.patch(DEPLOYMENT, "web", {"spec": {"replicas": 9}})
        await settle(600)

        assert len(stage.pods()) == 2


@on_virtual_time
async def test_events_may_be_left_out() -> None:
    store = Store(LoopClock(START))
    workloads = Workloads(store, LoopClock(START), has_events=False)
    workloads.start()

    meta = {"name": "web", "namespace": NAMESPACE}
    store.create(DEPLOYMENT, {"metadata": meta, "spec": workload("web")})
    await settle(5)
    workloads.stop()

    assert len(store.list(POD)) == 3
    assert store.list(EVENT) == []


@on_virtual_time
async def test_changes_of_pods_in_quick_succession_are_reconciled_together() -> None:
    with on_stage(start=None) as stage:
        stage.workloads.stop()
        patient = Workloads(stage.store, stage.clock, patience_seconds=1)
        patient.start()
        stage.add(REPLICA_SET, "web", workload("web", replicas=3))
        await settle(5)
        first, second, third = stage.pod_names()
        seen: list[int] = []
        stage.store.subscribe(
            REPLICA_SET, lambda event, _: seen.append(event.object["status"]["readyReplicas"])
        )

        stage.run(first)
        await settle(0.3)
        stage.run(second)
        await settle(0.3)
        stage.run(third)
        await settle(5)
        patient.stop()

        assert seen == [3]
