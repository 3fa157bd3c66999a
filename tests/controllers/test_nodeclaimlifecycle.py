"""NodeClaims on the embedded cluster become machines and nodes, on virtual time."""

import asyncio

import pytest

from karpy.codec.fields import JsonObject
from karpy.errors import CloudUnavailable
from karpy.model.kinds import NODE, NODE_CLAIM
from karpy.ports.cloud import LaunchSpec, Machine
from karpy.ports.objects import Patch, PatchType
from karpy.sim.cloud.market import Good
from karpy.sim.loop import run
from karpy.sim.world import World, WorldSettings
from tests.controllers.operators import (
    SMALL,
    Heard,
    claim,
    conditions,
    is_empty,
    is_ready,
    node_of,
    operator,
    until,
)

_ZONES = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
_SOLD_OUT = WorldSettings(stock={Good(SMALL, zone, "on-demand"): 0 for zone in _ZONES})


class ShakyCloud:
    """A cloud whose first launches fail, seen from the operator."""

    def __init__(self, world: World, failures: int) -> None:
        self._cloud = world.cloud
        self._failures = failures
        self.name = world.cloud.name
        self.repair_policies = world.cloud.repair_policies
        self.start = world.cloud.start
        self.close = world.cloud.close
        self.reboot = world.cloud.reboot
        self.catalog = world.cloud.catalog
        self.terminate = world.cloud.terminate
        self.machine = world.cloud.machine
        self.machines = world.cloud.machines
        self.drift = world.cloud.drift

    async def launch(self, spec: LaunchSpec) -> Machine:
        if self._failures:
            self._failures -= 1
            raise CloudUnavailable(call="launch", problem="too many requests")
        return await self._cloud.launch(spec)


def test_a_claim_becomes_a_node_that_is_ready_for_pods() -> None:
    heard = Heard()
    taint = {"key": "team", "value": "shop", "effect": "NoSchedule"}

    async def story() -> tuple[JsonObject, JsonObject]:
        world = World()
        world.start()
        async with operator(world, heard):
            world.store.create(NODE_CLAIM, claim(taints=[taint]))
            await until(lambda: is_ready(world))
            found = world.store.get(NODE_CLAIM, "web-1")
            node = world.store.get(NODE, node_of(world))
        world.stop()
        return found, node

    found, node = run(story())

    told = {each["type"]: each["reason"] for each in found["status"]["conditions"]}
    said = ("Launched", "Registered", "Initialized", "Ready", "ConsistentStateFound")
    assert told == {each: each for each in said}
    assert found["metadata"]["finalizers"] == ["karpenter.sh/termination"]
    assert found["metadata"]["labels"]["node.kubernetes.io/instance-type"] == SMALL
    assert found["metadata"]["labels"]["karpenter.sh/capacity-type"] == "on-demand"
    assert found["status"]["providerID"] == node["spec"]["providerID"]
    assert found["status"]["allocatable"]["cpu"]
    labels = node["metadata"]["labels"]
    assert labels["karpenter.sh/registered"] == labels["karpenter.sh/initialized"] == "true"
    assert labels["karpenter.sh/nodepool"] == "web"
    assert labels["team"] == "shop"
    assert node["spec"]["taints"] == [taint]
    assert node["metadata"]["finalizers"] == ["karpenter.sh/termination"]
    assert [each["kind"] for each in node["metadata"]["ownerReferences"]] == ["NodeClaim"]
    assert heard.counted("nodes_created_total") == 1
    assert heard.failures == []


def test_a_node_with_startup_taints_is_initialized_once_they_are_off() -> None:
    taint = {"key": "cni/not-ready", "effect": "NoSchedule"}

    async def story() -> tuple[dict[str, str], dict[str, str]]:
        world = World()
        world.start()
        async with operator(world, Heard()):
            world.store.create(NODE_CLAIM, claim(startupTaints=[taint]))
            await asyncio.sleep(120)
            before = conditions(world)
            patch = Patch(PatchType.MERGE, {"spec": {"taints": None}})
            world.store.patch(NODE, node_of(world), patch)
            await asyncio.sleep(1)
            after = conditions(world)
        world.stop()
        return before, after

    before, after = run(story())

    assert (before["Registered"], before["Initialized"]) == ("True", "Unknown")
    assert after["Ready"] == "True"


def test_a_sold_out_claim_is_deleted_with_an_event() -> None:
    heard = Heard()

    async def story() -> bool:
        world = World(_SOLD_OUT)
        world.start()
        async with operator(world, heard):
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(5)
        world.stop()
        return is_empty(world)

    assert run(story())
    (note,) = heard.told("InsufficientCapacityError")
    assert note.startswith("NodeClaim web-1 event: none of 4 offerings")
    assert heard.counted("nodeclaims_disrupted_total") == 1


def test_a_claim_whose_node_class_is_not_ready_is_deleted() -> None:
    heard = Heard()

    async def story() -> bool:
        world = World()
        world.cloud.refuse("default", "it has no subnets")
        world.start()
        async with operator(world, heard):
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(5)
        world.stop()
        return is_empty(world)

    assert run(story())
    (count,) = [each for each in heard.counts if each.metric == "nodeclaims_disrupted_total"]
    assert count.labels["reason"] == "nodeclass_not_ready"


def test_a_failed_launch_is_reported_and_retried() -> None:
    heard = Heard()

    async def story() -> tuple[JsonObject, bool]:
        world = World()
        world.start()
        async with operator(world, heard, ShakyCloud(world, failures=5)):
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(1)
            found = world.store.get(NODE_CLAIM, "web-1")
            await until(lambda: is_ready(world))
            machines = await world.cloud.machines()
        world.stop()
        return found, len(machines) == 1

    found, is_one = run(story())

    (launched,) = [each for each in found["status"]["conditions"] if each["type"] == "Launched"]
    assert (launched["status"], launched["reason"]) == ("Unknown", "LaunchFailed")
    assert launched["message"] == "`launch` failed: too many requests"
    assert len(heard.failures) == 5
    assert is_one


def test_a_machine_that_never_joins_is_given_up_after_a_quarter_of_an_hour() -> None:
    heard = Heard()

    async def story() -> tuple[bool, bool, int]:
        world = World()
        world.cloud.spoil()
        world.start()
        async with operator(world, heard):
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(14 * 60)
            is_there = not is_empty(world)
            await asyncio.sleep(3 * 60)
            machines = await world.cloud.machines()
        world.stop()
        return is_there, is_empty(world), len(machines)

    assert run(story()) == (True, True, 0)
    (count,) = [each for each in heard.counts if each.metric == "nodeclaims_disrupted_total"]
    assert count.labels["reason"] == "registration_timeout"


def test_a_claim_of_another_cloud_is_left_alone() -> None:
    async def story() -> JsonObject:
        world = World()
        world.start()
        ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        async with operator(world, Heard(), is_ours=lambda each: each.node_class.kind == "X"):
            world.store.create(NODE_CLAIM, claim(nodeClassRef=ref))
            await asyncio.sleep(60)
        world.stop()
        return world.store.get(NODE_CLAIM, "web-1")

    assert "finalizers" not in run(story())["metadata"]


@pytest.mark.parametrize("seconds", [0, 1, 31, 45])
def test_deleting_a_claim_on_its_way_leaves_no_machine(seconds: int) -> None:
    async def story() -> tuple[bool, int]:
        world = World()
        world.start()
        async with operator(world, Heard()):
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(seconds + 0.5)
            world.store.delete(NODE_CLAIM, "web-1")
            await until(lambda: not world.store.list(NODE_CLAIM))
            machines = await world.cloud.machines()
        world.stop()
        return not world.store.list(NODE_CLAIM), len(machines)

    assert run(story()) == (True, 0)
