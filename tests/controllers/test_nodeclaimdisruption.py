"""Conditions and pod events of NodeClaims that disruption reads, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from karpy.codec.fields import JsonObject
from karpy.controllers.context import ControllerContext
from karpy.controllers.garbagecollection import GarbageCollector
from karpy.controllers.nodeclaimdisruption import NodeClaimDisruptionController, PodEventController
from karpy.controllers.nodepools import RegistrationHealthController
from karpy.core.lifecycle.changes import Changes
from karpy.model.kinds import NODE, NODE_CLAIM, NODE_POOL, POD
from karpy.ports.objects import Patch, PatchType
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.operators import (
    NODE_CLASS,
    Heard,
    claim,
    conditions,
    is_empty,
    is_ready,
    node_of,
    operator,
    until,
)
from tests.controllers.test_nodetermination import pod

LABEL = "karpenter.kwok.sh/kwoknodeclass"


class Loop(Protocol):
    """A controller."""

    async def run(self) -> None:
        """Work until cancelled."""


@asynccontextmanager
async def running(*loops: Loop) -> AsyncIterator[None]:
    """Let controllers run beside the operator."""
    tasks = [asyncio.create_task(each.run()) for each in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def pool(**disruption: object) -> JsonObject:
    template = {"spec": {"requirements": [], "nodeClassRef": NODE_CLASS}}
    return {
        "metadata": {"name": "web"},
        "spec": {"template": template, "disruption": disruption},
    }


def reason_of(world: World, type_: str) -> str:
    """Return the reason of a condition of the claim; empty without the condition."""
    told = world.store.get(NODE_CLAIM, "web-1")["status"]["conditions"]
    return str(next((each["reason"] for each in told if each["type"] == type_), ""))


def test_a_claim_that_is_too_old_ends() -> None:
    heard = Heard()

    async def story() -> tuple[bool, bool]:
        world = World()
        world.start()
        async with (
            operator(world, heard) as context,
            running(NodeClaimDisruptionController(context)),
        ):
            world.store.create(NODE_CLAIM, claim(expireAfter="1h"))
            await asyncio.sleep(59 * 60)
            was_ready = is_ready(world)
            await asyncio.sleep(120)
        world.stop()
        return was_ready, is_empty(world)

    assert run(story()) == (True, True)
    reasons = [each.labels["reason"] for each in heard.counts if "reason" in each.labels]
    assert set(reasons) == {"expired"}
    assert heard.failures == []


def test_a_claim_and_its_node_tell_their_class_and_that_they_are_consistent() -> None:
    async def story() -> tuple[JsonObject, JsonObject]:
        world = World()
        world.start()
        async with (
            operator(world, Heard()) as context,
            running(NodeClaimDisruptionController(context)),
        ):
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(120)
            found = world.store.get(NODE_CLAIM, "web-1"), world.store.get(NODE, node_of(world))
            assert conditions(world)["ConsistentStateFound"] == "True"
        world.stop()
        return found

    found, node = run(story())

    assert found["metadata"]["labels"][LABEL] == "default"
    assert node["metadata"]["labels"][LABEL] == "default"


def test_a_claim_drifts_when_its_pool_asks_for_something_else() -> None:
    async def story() -> tuple[str, str]:
        world = World()
        world.start()
        world.store.create(NODE_POOL, pool())
        async with (
            operator(world, Heard()) as context,
            running(NodeClaimDisruptionController(context)),
        ):
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(120)
            before = reason_of(world, "Drifted")
            wanted = {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}
            spec = {"template": {"spec": {"requirements": [wanted]}}}
            world.store.patch(NODE_POOL, "web", Patch(PatchType.MERGE, {"spec": spec}))
            await asyncio.sleep(2)
            after = reason_of(world, "Drifted")
        world.stop()
        return before, after

    assert run(story()) == ("", "RequirementsDrifted")


def test_what_the_cloud_says_of_drift_is_written_and_taken_back() -> None:
    async def story() -> tuple[str, str]:
        world = World()
        world.start()
        world.store.create(NODE_POOL, pool())
        world.cloud.set_drift("web-1", "AMIDrift")
        async with (
            operator(world, Heard()) as context,
            running(NodeClaimDisruptionController(context)),
        ):
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(120)
            before = reason_of(world, "Drifted")
            world.cloud.set_drift("web-1", None)
            await asyncio.sleep(5 * 60)
            after = reason_of(world, "Drifted")
        world.stop()
        return before, after

    assert run(story()) == ("AMIDrift", "")


def test_a_claim_is_consolidatable_once_its_pods_have_been_quiet() -> None:
    async def story() -> list[bool]:
        world = World()
        world.start()
        world.store.create(NODE_POOL, pool(consolidateAfter="5m"))
        async with (
            operator(world, Heard()) as context,
            running(NodeClaimDisruptionController(context), PodEventController(context)),
        ):
            world.store.create(NODE_CLAIM, claim())
            await until(lambda: is_ready(world))
            await asyncio.sleep(4 * 60)
            world.store.create(POD, pod("a", node_of(world)))
            told = []
            await asyncio.sleep(4 * 60)
            told.append("Consolidatable" in conditions(world))
            await asyncio.sleep(90)
            told.append("Consolidatable" in conditions(world))
            world.store.delete(POD, "a", namespace="default")
            await asyncio.sleep(5)
            told.append("Consolidatable" in conditions(world))
        world.stop()
        return told

    assert run(story()) == [False, True, False]


def test_the_first_pods_are_noted_once_there_is_time() -> None:
    async def story() -> list[tuple[bool, bool]]:
        world = World()
        world.start()
        busy = {"now"}
        async with operator(world, Heard()) as context:
            events = PodEventController(context, lambda: bool(busy))
            async with running(events):
                world.store.create(NODE_CLAIM, claim())
                await until(lambda: is_ready(world))
                world.store.create(POD, pod("a", node_of(world)))
                told = []
                for _ in range(2):
                    await asyncio.sleep(5)
                    status = world.store.get(NODE_CLAIM, "web-1")["status"]
                    told.append((events.holds("web-1"), "lastPodEventTime" in status))
                    busy.clear()
        world.stop()
        return told

    assert run(story()) == [(True, False), (False, True)]


def test_pods_that_keep_coming_do_not_put_off_what_is_to_be_noted() -> None:
    async def story() -> list[bool]:
        world = World()
        world.start()
        async with operator(world, Heard()) as context:
            events = PodEventController(context, lambda: True)
            async with running(events):
                world.store.create(NODE_CLAIM, claim())
                await until(lambda: is_ready(world))
                told = []
                for name in "abc":
                    world.store.create(POD, pod(name, node_of(world)))
                    await asyncio.sleep(8)
                    status = world.store.get(NODE_CLAIM, "web-1")["status"]
                    told.append("lastPodEventTime" in status)
        world.stop()
        return told

    assert run(story()) == [False, True, True]


def test_a_claim_whose_machine_is_gone_is_collected() -> None:
    heard = Heard()

    async def story() -> bool:
        world = World()
        world.start()
        async with operator(world, heard) as context, running(GarbageCollector(context)):
            world.store.create(NODE_CLAIM, claim())
            await until(lambda: is_ready(world))
            world.cloud.kill(world.store.get(NODE_CLAIM, "web-1")["status"]["providerID"])
            await until(lambda: is_empty(world))
        world.stop()
        return is_empty(world)

    assert run(story())
    reasons = {each.labels["reason"] for each in heard.counts if "reason" in each.labels}
    assert "garbage_collected" in reasons
    assert heard.failures == []


def test_a_machine_that_no_claim_knows_is_ended() -> None:
    async def story() -> tuple[int, int]:
        world = World()
        world.start()
        async with operator(world, Heard()):
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(0.5)
        # The operator crashed during the launch, and a user deleted the claim.
        patch = Patch(PatchType.MERGE, {"metadata": {"finalizers": None}})
        world.store.patch(NODE_CLAIM, "web-1", patch)
        world.store.delete(NODE_CLAIM, "web-1")
        before = len(await world.cloud.machines())
        async with operator(world, Heard()) as context, running(GarbageCollector(context)):
            await asyncio.sleep(4 * 60)
            after = len(await world.cloud.machines())
        world.stop()
        return before, after

    assert run(story()) == (1, 0)


def test_machines_of_claims_are_not_collected() -> None:
    async def story() -> bool:
        world = World()
        world.start()
        async with operator(world, Heard()) as context, running(GarbageCollector(context)):
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(30 * 60)
            found = is_ready(world)
        world.stop()
        return found

    assert run(story())


def test_a_pool_tells_whether_its_nodes_register() -> None:
    async def story() -> list[str]:
        world = World()
        world.start()
        world.store.create(NODE_POOL, pool())
        told = []
        async with operator(world, Heard()) as context:
            health = RegistrationHealthController(context)
            async with running(health):
                await asyncio.sleep(1)
                told.append(health_of(world))
                await attempt(world, context, health, is_success=True)
                told.append(health_of(world))
                await attempt(world, context, health, is_success=False)
                await attempt(world, context, health, is_success=False)
                told.append(health_of(world))
        world.stop()
        return told

    assert run(story()) == ["Unknown", "True", "False"]


def health_of(world: World) -> str:
    told = world.store.get(NODE_POOL, "web")["status"]["conditions"]
    return str(next(e["status"] for e in told if e["type"] == "NodeRegistrationHealthy"))


async def attempt(
    world: World,
    context: ControllerContext,
    health: RegistrationHealthController,
    *,
    is_success: bool,
) -> None:
    """Let a node of the pool register, or fail to."""
    made = claim("attempt")
    uid = world.store.get(NODE_POOL, "web")["metadata"]["uid"]
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "web", "uid": uid}
    made["metadata"]["ownerReferences"] = [owner]
    world.store.create(NODE_CLAIM, made)
    await asyncio.sleep(1)
    kept = context.records.claims.get("attempt")
    assert kept is not None
    health.record(kept.record, Changes(has_registered=is_success))
    world.store.delete(NODE_CLAIM, "attempt")
    await until(lambda: not world.store.list(NODE_CLAIM))
