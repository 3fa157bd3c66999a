"""What controllers write on NodePools, and the metrics of NodePools, on virtual time."""

import asyncio

from karpy.adapters.telemetry.metrics import Metrics
from karpy.codec.fields import JsonObject
from karpy.controllers.nodeclasses import NodeClasses
from karpy.controllers.nodepools import (
    NodePoolController,
    NodePoolMetrics,
    RegistrationHealthController,
)
from karpy.core.nodepool.hash import VERSION
from karpy.errors import CloudUnavailable
from karpy.model.instances import Catalog
from karpy.model.kinds import KWOK_NODE_CLASS, NODE_CLAIM, NODE_POOL
from karpy.model.labels import NODE_POOL_HASH, NODE_POOL_HASH_VERSION
from karpy.ports.objects import Patch, PatchType
from karpy.sim.cloud.cloud import SimCloud
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import Heard, claim, is_empty, is_ready, until
from tests.controllers.poolwriters import (
    Loop,
    Scene,
    add_class,
    claim_writers,
    conditions_of,
    patch_pool,
    pool,
    running,
    scene_of,
)

READY = ("True", "Ready", "")
OLD = {NODE_POOL_HASH: "1", NODE_POOL_HASH_VERSION: "v2"}


def controller(scene: Scene) -> NodePoolController:
    return NodePoolController(scene.context, scene.classes, scene.nodes)


def set_ready(world: World, status: str, reason: str, message: str = "") -> None:
    """Have the node class say whether it is ready."""
    moment = "2026-01-05T00:00:00Z"
    ready = {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": moment,
    }
    patch = Patch(PatchType.MERGE, {"status": {"conditions": [ready]}})
    world.store.patch(KWOK_NODE_CLASS, "default", patch, subresource="status")


def health_of(world: World) -> str:
    return conditions_of(world)["NodeRegistrationHealthy"][0]


def test_a_new_pool_is_hashed_and_ready_within_a_second() -> None:
    heard = Heard()

    async def story() -> tuple[JsonObject, dict[str, tuple[str, str, str]]]:
        world = World()
        world.start()
        add_class(world)
        async with scene_of(world, heard) as scene, running(controller(scene)):
            world.store.create(NODE_POOL, pool())
            await asyncio.sleep(1)
            found = world.store.get(NODE_POOL, "web")
        world.stop()
        return found, conditions_of(world)

    found, conditions = run(story())

    assert found["metadata"]["annotations"][NODE_POOL_HASH_VERSION] == VERSION
    assert found["metadata"]["annotations"][NODE_POOL_HASH].isdecimal()
    assert conditions == {
        "ValidationSucceeded": ("True", "ValidationSucceeded", ""),
        "NodeClassReady": ("True", "NodeClassReady", ""),
        "Ready": READY,
    }
    none = dict.fromkeys(("cpu", "memory", "pods", "ephemeral-storage", "nodes"), "0")
    assert found["status"]["resources"] == none
    assert found["status"]["nodes"] == 0
    assert heard.failures == []


def test_a_pool_that_is_as_it_should_be_is_not_written() -> None:
    async def story() -> tuple[str, str]:
        world = World()
        world.start()
        add_class(world)
        world.store.create(NODE_POOL, pool())
        async with scene_of(world, Heard()) as scene, running(controller(scene)):
            await asyncio.sleep(1)
            before = world.store.get(NODE_POOL, "web")["metadata"]["resourceVersion"]
            await asyncio.sleep(600)
            after = world.store.get(NODE_POOL, "web")["metadata"]["resourceVersion"]
        world.stop()
        return before, after

    before, after = run(story())

    assert before == after


def test_a_pool_follows_its_node_class_within_a_second() -> None:
    async def story() -> list[tuple[str, str, str]]:
        world = World()
        world.start()
        told = []
        world.store.create(NODE_POOL, pool())
        async with scene_of(world, Heard()) as scene, running(controller(scene)):
            await asyncio.sleep(1)
            told.append(conditions_of(world)["NodeClassReady"])
            add_class(world)
            await asyncio.sleep(1)
            told.append(conditions_of(world)["Ready"])
            set_ready(world, "False", "SubnetsNotFound", "no subnets")
            await asyncio.sleep(1)
            told.append(conditions_of(world)["NodeClassReady"])
            world.store.delete(KWOK_NODE_CLASS, "default")
            await asyncio.sleep(1)
            told.append(conditions_of(world)["NodeClassReady"])
        world.stop()
        return told

    missing = ("False", "NodeClassNotFound", "NodeClass not found on cluster")
    refused = ("False", "SubnetsNotFound", "no subnets")
    assert run(story()) == [missing, READY, refused, missing]


def test_a_pool_names_every_fault_until_it_is_mended() -> None:
    taint = {"key": "team", "effect": "NoSchedule"}
    wrong = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["sopt"]}
    spoilt = {"requirements": [wrong], "taints": [taint], "startupTaints": [taint]}

    async def story() -> list[tuple[str, str, str]]:
        world = World()
        world.start()
        add_class(world)
        world.store.create(NODE_POOL, pool())
        told = []
        async with scene_of(world, Heard()) as scene, running(controller(scene)):
            patch_pool(world, {"template": {"spec": spoilt}})
            await asyncio.sleep(1)
            told.append(conditions_of(world)["ValidationSucceeded"])
            patch_pool(world, {"template": {"spec": {"requirements": [], "taints": None}}})
            await asyncio.sleep(1)
            told.append(conditions_of(world)["Ready"])
        world.stop()
        return told

    faults = (
        "`spec.template.spec.startupTaints[0]` repeats team:NoSchedule; "
        "`spec.template.spec.requirements[0].values` is [sopt]; too few of them exist"
    )
    assert run(story()) == [("False", "NodePoolValidationFailed", faults), READY]


def test_a_pool_of_another_cloud_is_left_alone() -> None:
    theirs = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}

    async def story() -> tuple[JsonObject, JsonObject]:
        world = World()
        world.start()
        made = pool()
        made["spec"]["template"]["spec"]["nodeClassRef"] = theirs
        world.store.create(NODE_POOL, made)
        said = {
            "type": "NodeClassReady",
            "status": "True",
            "reason": "NodeClassReady",
            "message": "",
            "lastTransitionTime": "2026-01-05T00:00:00Z",
        }
        patch = Patch(PatchType.MERGE, {"status": {"conditions": [said]}})
        before = world.store.patch(NODE_POOL, "web", patch, subresource="status")
        async with scene_of(world, Heard()) as scene:
            health = RegistrationHealthController(scene.context, scene.classes.generation_of)
            async with running(controller(scene), health):
                await asyncio.sleep(60)
        world.stop()
        return before, world.store.get(NODE_POOL, "web")

    before, after = run(story())

    assert before == after


def test_a_pool_of_no_autoscaler_learns_why_nothing_is_launched() -> None:
    theirs = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}

    async def story() -> tuple[tuple[str, str, str], list[str]]:
        world, heard = World(), Heard()
        world.start()
        made = pool()
        made["spec"]["template"]["spec"]["nodeClassRef"] = theirs
        world.store.create(NODE_POOL, made)
        async with scene_of(world, heard) as scene, running(controller(scene)):
            await asyncio.sleep(60)
        world.stop()
        return conditions_of(world)["NodeClassReady"], [each.reason for each in heard.notices]

    condition, events = run(story())

    assert condition == (
        "False",
        "NodeClassNotServed",
        (
            "The provider serves KWOKNodeClass.karpenter.kwok.sh, "
            "not EC2NodeClass.karpenter.k8s.aws: nothing is launched"
        ),
    )
    assert "NodeClassNotServed" in events


def test_a_pool_counts_its_nodes() -> None:
    async def story() -> list[JsonObject]:
        world = World()
        world.start()
        add_class(world)
        world.store.create(NODE_POOL, pool())
        told = []
        async with (
            scene_of(world, Heard()) as scene,
            running(controller(scene), *claim_writers(scene.context)),
        ):
            world.store.create(NODE_CLAIM, claim())
            await until(lambda: is_ready(world))
            await asyncio.sleep(6)
            told.append(world.store.get(NODE_POOL, "web")["status"])
            world.store.delete(NODE_CLAIM, "web-1")
            await until(lambda: is_empty(world))
            await asyncio.sleep(6)
            told.append(world.store.get(NODE_POOL, "web")["status"])
        world.stop()
        return told

    full, empty = run(story())

    assert (full["resources"]["cpu"], full["resources"]["nodes"], full["nodes"]) == ("4", "1", 1)
    assert (empty["resources"]["cpu"], empty["nodes"]) == ("0", 0)


def test_a_node_that_is_chosen_to_go_does_not_count() -> None:
    async def story() -> list[int]:
        world = World()
        world.start()
        add_class(world)
        world.store.create(NODE_POOL, pool())
        marked: set[str] = set()
        told = []
        async with scene_of(world, Heard()) as scene:
            pools = NodePoolController(
                scene.context, scene.classes, scene.nodes, deleting=lambda: marked
            )
            async with running(pools, *claim_writers(scene.context)):
                world.store.create(NODE_CLAIM, claim())
                await until(lambda: is_ready(world))
                await asyncio.sleep(6)
                told.append(world.store.get(NODE_POOL, "web")["status"]["nodes"])
                marked.add("web-1")
                await asyncio.sleep(6)
                told.append(world.store.get(NODE_POOL, "web")["status"]["nodes"])
        world.stop()
        return told

    assert run(story()) == [1, 0]


def test_nothing_is_counted_before_all_nodes_are_known() -> None:
    """Too low a figure would let the pool grow beyond its limits."""

    async def story() -> JsonObject:
        world = World()
        world.start()
        add_class(world)
        world.store.create(NODE_POOL, pool())
        async with (
            scene_of(world, Heard()) as scene,
            running(NodePoolController(scene.context, scene.classes, lambda: None)),
        ):
            await asyncio.sleep(60)
        world.stop()
        return dict(world.store.get(NODE_POOL, "web")["status"])

    status = run(story())

    assert "resources" not in status
    assert "conditions" in status


def test_claims_of_an_older_way_to_hash_are_hashed_anew() -> None:
    async def story() -> list[dict[str, str]]:
        world = World()
        world.start()
        add_class(world)
        made = pool()
        made["metadata"]["annotations"] = OLD
        world.store.create(NODE_POOL, made)
        add_old_claim(world, "web-1")
        add_old_claim(world, "web-2")
        async with scene_of(world, Heard()) as scene, running(controller(scene)):
            await asyncio.sleep(2)
        world.stop()
        found = [world.store.get(NODE_POOL, "web"), *world.store.list(NODE_CLAIM)]
        return [each["metadata"]["annotations"] for each in found]

    annotations, *others = run(story())

    assert annotations[NODE_POOL_HASH_VERSION] == VERSION
    assert others == [annotations, annotations]


def test_a_changed_node_class_makes_health_unknown() -> None:
    """Registrations with the former node class say nothing about the present one."""

    async def story() -> list[str]:
        world = World()
        world.start()
        add_class(world)
        world.store.create(NODE_POOL, pool())
        told = []
        async with scene_of(world, Heard()) as scene:
            health = RegistrationHealthController(scene.context, scene.classes.generation_of)
            scene.classes.listen(health.on_class)
            async with running(controller(scene), health):
                await asyncio.sleep(3)
                make_healthy(world)
                await asyncio.sleep(3)
                told.append(health_of(world))
                change = {"spec": {"nodeRegistrationDelay": "5s"}}
                world.store.patch(KWOK_NODE_CLASS, "default", Patch(PatchType.MERGE, change))
                await asyncio.sleep(1)
                told.append(health_of(world))
        world.stop()
        return told

    assert run(story()) == ["True", "Unknown"]


def test_health_survives_a_restart() -> None:
    """A node class that is delivered for the first time must not count as changed."""

    async def story() -> list[str]:
        world = World()
        world.start()
        add_class(world)
        world.store.create(NODE_POOL, pool())
        told = []
        async with scene_of(world, Heard()) as scene:
            health = RegistrationHealthController(scene.context, scene.classes.generation_of)
            scene.classes.listen(health.on_class)
            async with running(controller(scene), health):
                await asyncio.sleep(3)
                make_healthy(world)
                await asyncio.sleep(3)
        async with scene_of(world, Heard()) as scene:
            classes = NodeClasses(world.objects, (KWOK_NODE_CLASS,))
            health = RegistrationHealthController(scene.context, classes.generation_of)
            classes.listen(health.on_class)
            async with running(health):
                await asyncio.sleep(1)
                told.append(health_of(world))
                async with running(classes):
                    await asyncio.sleep(1)
                    told.append(health_of(world))
        world.stop()
        return told

    assert run(story()) == ["True", "True"]


def add_old_claim(world: World, name: str) -> None:
    """Have a claim that was hashed in another way."""
    old = claim(name)
    old["metadata"]["annotations"] = OLD
    world.store.create(NODE_CLAIM, old)


def make_healthy(world: World) -> None:
    """Have the pool say that its nodes register."""
    status = world.store.get(NODE_POOL, "web")["status"]
    told = [
        {**each, "status": "True"} if each["type"] == "NodeRegistrationHealthy" else each
        for each in status["conditions"]
    ]
    patch = Patch(PatchType.MERGE, {"status": {"conditions": told}})
    world.store.patch(NODE_POOL, "web", patch, subresource="status")


def told(metrics: Metrics) -> dict[str, float]:
    """Return the gauges of NodePools, by series."""
    lines = metrics.render().decode().splitlines()
    pairs = [each.rsplit(" ", 1) for each in lines if each.startswith("karpenter_nodepools_")]
    return {series: float(value) for series, value in pairs}


def gauges(scene: Scene, metrics: Metrics) -> NodePoolMetrics:
    return NodePoolMetrics(scene.context, metrics, scene.classes.is_our_pool)


COST = 'karpenter_nodepools_cost_total{nodepool="web"}'
LIMIT = 'karpenter_nodepools_limit{nodepool="web",resource_type="cpu"}'
USAGE = 'karpenter_nodepools_usage{nodepool="web",resource_type="cpu"}'


def test_a_pool_is_shown_as_long_as_it_is_there() -> None:
    metrics = Metrics()

    async def story() -> list[dict[str, float]]:
        world = World()
        world.start()
        add_class(world)
        shown = []
        async with scene_of(world, Heard()) as scene:
            pools = NodePoolController(scene.context, scene.classes, scene.nodes)
            loops: tuple[Loop, ...] = (pools, gauges(scene, metrics), *claim_writers(scene.context))
            async with running(*loops):
                world.store.create(NODE_POOL, pool(limits={"cpu": "10"}))
                world.store.create(NODE_CLAIM, claim())
                await until(lambda: is_ready(world))
                await asyncio.sleep(20)
                shown.append(told(metrics))
                world.store.delete(NODE_POOL, "web")
                await asyncio.sleep(20)
                shown.append(told(metrics))
        world.stop()
        return shown

    before, after = run(story())

    assert (before[LIMIT], before[USAGE]) == (10.0, 4.0)
    assert 0.1 < before[COST] < 0.2
    assert after == {}


class MuteCloud(SimCloud):
    """A cloud whose catalog sometimes fails."""

    is_mute = False

    def catalog(self) -> Catalog:
        if self.is_mute:
            raise CloudUnavailable(call="list prices", problem="no route")
        return super().catalog()


def test_the_rest_is_shown_though_prices_cannot_be_asked_for() -> None:
    metrics, heard = Metrics(), Heard()

    async def story() -> list[dict[str, float]]:
        world = World()
        world.start()
        add_class(world)
        cloud = MuteCloud(world.cloud.market, world.clock, world.kubelets)
        world.cloud = cloud
        shown = []
        async with scene_of(world, heard) as scene:
            looker = gauges(scene, metrics)
            async with running(*claim_writers(scene.context)):
                world.store.create(NODE_POOL, pool(limits={"cpu": "10"}))
                world.store.create(NODE_CLAIM, claim())
                await until(lambda: is_ready(world))
                cloud.is_mute = True
                async with running(looker):
                    await asyncio.sleep(20)
                    shown.append(told(metrics))
                    cloud.is_mute = False
                    await asyncio.sleep(20)
                    shown.append(told(metrics))
        world.stop()
        return shown

    before, after = run(story())

    assert (before[LIMIT], before[COST]) == (10.0, 0.0)
    assert after[COST] > 0.1
    assert {type(each) for each in heard.failures} == {CloudUnavailable}
