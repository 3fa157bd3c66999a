import asyncio

from karpy.model.kinds import NODE, POD
from karpy.ports.objects import EventType, Patch, PatchType, WatchEvent
from karpy.sim.store.conditions import condition_of
from tests.sim.stories import bare_world, bind, on_virtual_time, phase, pod

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}


@on_virtual_time
async def test_pods_of_a_deleted_node_are_collected_after_a_while() -> None:
    with bare_world() as world:
        world.add_node("n1")
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")
        await asyncio.sleep(10)
        last: list[WatchEvent] = []
        world.store.subscribe(POD, lambda event, _: last.append(event))

        world.kubelets.halt("n1")
        world.store.delete(NODE, "n1")
        await asyncio.sleep(39)
        before = phase(world, "web")
        await asyncio.sleep(2)

        assert (before, phase(world, "web")) == ("Running", "gone")
        assert last[-1].type is EventType.DELETED
        assert last[-1].object["status"]["phase"] == "Failed"
        target = condition_of(last[-1].object, "DisruptionTarget")
        assert target is not None
        assert target["reason"] == "DeletionByPodGC"


@on_virtual_time
async def test_pods_stay_if_their_node_comes_back() -> None:
    with bare_world() as world:
        world.add_node("n1")
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")
        await asyncio.sleep(10)

        world.store.delete(NODE, "n1")
        await asyncio.sleep(20)
        world.add_node("n1")
        await asyncio.sleep(60)

        assert phase(world, "web") == "Running"


@on_virtual_time
async def test_a_pod_bound_to_a_node_that_never_was_is_collected() -> None:
    with bare_world() as world:
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "nowhere")

        await asyncio.sleep(41)

        assert phase(world, "web") == "gone"


@on_virtual_time
async def test_deleting_pods_on_a_node_out_of_service_are_removed() -> None:
    patch = Patch(PatchType.MERGE, {"spec": {"taints": [OUT_OF_SERVICE]}})
    with bare_world() as world:
        world.add_node("n1")
        world.store.create(POD, pod("web"))
        bind(world.store, "web", "n1")
        await asyncio.sleep(10)
        world.kubelets.lose("n1")
        await asyncio.sleep(60)
        world.store.delete(POD, "web", namespace="default")
        await asyncio.sleep(60)
        held = phase(world, "web")

        world.store.patch(NODE, "n1", patch)
        await asyncio.sleep(1)

        assert (held, phase(world, "web")) == ("Running", "gone")
