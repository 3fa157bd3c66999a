import asyncio

from karpy.codec.fields import JsonObject
from karpy.model.kinds import LEASE, NODE, POD
from karpy.ports.objects import Patch, PatchType
from karpy.sim.kubelets.nodes import Health
from karpy.sim.store.conditions import condition_of
from karpy.sim.world import World, WorldSettings
from tests.sim.stories import (
    bare_world,
    bind,
    condition,
    launch_spec,
    on_virtual_time,
    phase,
    pod,
    taints,
)

BROKEN = Health("Ready", "False", "KubeletNotReady", "PLEG is not healthy")
READY = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-05T00:00:00Z"}
UNREACHABLE = ["unreachable:NoExecute", "unreachable:NoSchedule"]
NOT_READY = ["not-ready:NoExecute", "not-ready:NoSchedule"]


def _change(world: World, name: str, body: JsonObject) -> None:
    world.store.patch(NODE, name, Patch(PatchType.MERGE, body))


@on_virtual_time
async def test_a_silent_node_is_unreachable_after_fifty_seconds() -> None:
    with bare_world() as world:
        world.add_node("n1")
        await asyncio.sleep(10)

        world.kubelets.lose("n1")
        await asyncio.sleep(49)
        before = condition(world, "Ready", node="n1"), taints(world, "n1")
        await asyncio.sleep(2)

        assert before == ("True", [])
        ready = condition_of(world.store.get(NODE, "n1"), "Ready")
        assert ready is not None
        assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
        assert condition(world, "MemoryPressure", node="n1") == "Unknown"
        assert taints(world, "n1") == UNREACHABLE


@on_virtual_time
async def test_a_node_that_reports_again_loses_its_taints() -> None:
    with bare_world() as world:
        world.add_node("n1")
        await asyncio.sleep(10)
        world.kubelets.lose("n1")
        await asyncio.sleep(100)

        world.kubelets.recover("n1")
        await asyncio.sleep(1)

        assert (condition(world, "Ready", node="n1"), taints(world, "n1")) == ("True", [])
        assert condition(world, "MemoryPressure", node="n1") == "False"


@on_virtual_time
async def test_a_short_silence_goes_unnoticed() -> None:
    with bare_world() as world:
        world.add_node("n1")
        await asyncio.sleep(10)

        world.kubelets.lose("n1")
        await asyncio.sleep(40)
        world.kubelets.recover("n1")
        await asyncio.sleep(100)

        assert (condition(world, "Ready", node="n1"), taints(world, "n1")) == ("True", [])


@on_virtual_time
async def test_a_node_that_says_it_is_not_ready_is_tainted_at_once() -> None:
    with bare_world() as world:
        world.add_node("n1")
        await asyncio.sleep(10)

        world.kubelets.trouble("n1", BROKEN)
        await asyncio.sleep(0.1)

        assert taints(world, "n1") == NOT_READY


@on_virtual_time
async def test_pods_of_a_node_in_trouble_are_not_ready_until_it_recovers() -> None:
    with bare_world() as world:
        world.add_node("n1")
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")
        await asyncio.sleep(10)

        world.kubelets.lose("n1")
        await asyncio.sleep(60)
        lost = condition(world, "Ready", pod="web"), condition(world, "ContainersReady", pod="web")
        world.kubelets.recover("n1")
        await asyncio.sleep(1)

        assert lost == ("False", "True")
        assert condition(world, "Ready", pod="web") == "True"


@on_virtual_time
async def test_a_cordoned_node_is_tainted_until_it_is_not_cordoned_any_more() -> None:
    with bare_world() as world:
        world.add_node("n1")
        await asyncio.sleep(1)

        _change(world, "n1", {"spec": {"unschedulable": True}})
        await asyncio.sleep(1)
        cordoned = taints(world, "n1")
        _change(world, "n1", {"spec": {"unschedulable": None}})
        await asyncio.sleep(1)

        assert (cordoned, taints(world, "n1")) == (["unschedulable:NoSchedule"], [])


@on_virtual_time
async def test_other_taints_stay() -> None:
    gpu = {"key": "gpu", "effect": "NoSchedule", "value": "yes"}
    with bare_world() as world:
        world.add_node("n1", taints=[gpu])
        await asyncio.sleep(1)
        world.kubelets.trouble("n1", BROKEN)
        await asyncio.sleep(1)

        world.kubelets.heal("n1")
        await asyncio.sleep(1)

        assert world.store.get(NODE, "n1")["spec"]["taints"] == [gpu]


@on_virtual_time
async def test_a_node_without_a_kubelet_is_unreachable_after_a_minute() -> None:
    with bare_world() as world:
        world.store.create(NODE, {"metadata": {"name": "n1"}})
        await asyncio.sleep(59)
        before = taints(world, "n1")
        await asyncio.sleep(2)

        ready = condition_of(world.store.get(NODE, "n1"), "Ready")
        assert before in ([], ["not-ready:NoSchedule"])
        assert ready is not None
        assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusNeverUpdated")
        assert taints(world, "n1") == UNREACHABLE


@on_virtual_time
async def test_a_node_of_another_kubelet_is_ready_while_its_lease_is_renewed() -> None:
    lease = {
        "metadata": {"name": "n1", "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": "n1", "renewTime": "2026-01-05T00:00:00.000000Z"},
    }
    with bare_world() as world:
        node = {"metadata": {"name": "n1"}, "status": {"conditions": [READY]}}
        world.store.create(NODE, node)
        made = world.store.create(LEASE, lease)
        await asyncio.sleep(40)

        spec = {**made["spec"], "renewTime": "2026-01-05T00:00:40.000000Z"}
        world.store.replace(LEASE, {**made, "spec": spec})
        await asyncio.sleep(40)
        alive = condition(world, "Ready", node="n1")
        await asyncio.sleep(20)

        assert (alive, condition(world, "Ready", node="n1")) == ("True", "Unknown")


@on_virtual_time
async def test_a_node_without_a_machine_is_deleted_where_the_cloud_does_that() -> None:
    with bare_world(WorldSettings(deletes_nodes=True)) as world:
        machine = await world.cloud.launch(launch_spec())
        await asyncio.sleep(60)

        world.cloud.kill(machine.provider_id)
        await asyncio.sleep(49)
        before = len(world.store.list(NODE))
        await asyncio.sleep(10)

        assert (before, len(world.store.list(NODE))) == (1, 0)


@on_virtual_time
async def test_a_node_without_a_machine_stays_where_the_cloud_does_not_delete_it() -> None:
    with bare_world() as world:
        machine = await world.cloud.launch(launch_spec())
        await asyncio.sleep(60)

        world.cloud.kill(machine.provider_id)
        await asyncio.sleep(3600)

        assert len(world.store.list(NODE)) == 1


@on_virtual_time
async def test_nodes_that_were_there_first_are_watched_too() -> None:
    world = World(parts=())
    world.store.create(NODE, {"metadata": {"name": "n1"}, "spec": {"unschedulable": True}})

    world.start()
    await asyncio.sleep(1)
    world.stop()

    assert "unschedulable:NoSchedule" in taints(world, "n1")


@on_virtual_time
async def test_a_stopped_world_does_nothing() -> None:
    with bare_world() as world:
        world.add_node("n1")
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")
        await asyncio.sleep(1)
    version = world.store.version

    await asyncio.sleep(3600)

    assert (world.store.version, phase(world, "web")) == (version, "Pending")
