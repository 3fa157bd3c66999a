"""Broken nodes are rebooted or replaced within budgets, on virtual time."""

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from karpy.adapters.clouds.kwok.repairs import REPAIR_POLICIES
from karpy.codec.fields import JsonObject
from karpy.model.instances import Catalog
from karpy.model.kinds import DEPLOYMENT, NODE, NODE_CLAIM, POD
from karpy.model.nodes import RepairPolicy
from karpy.model.records import ClaimRecord
from karpy.ports.cloud import LaunchSpec, Machine
from karpy.ports.objects import Patch, PatchType
from karpy.sim.faults import Faults, InjectedFault
from karpy.sim.faultyports import FaultyFeed
from karpy.sim.kubelets.nodes import Health
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.disruptions import (
    claims_in,
    disrupting,
    leaving,
    make_nodes,
    make_pool,
)
from tests.controllers.operators import Heard, conditions, is_ready, node_of, until

BROKEN = Health("KWOKUnhealthy", "True", "Smoke", "it smokes")
SLOW = Health("KWOKRebootRequired", "True", "Swapping", "it swaps")

MANY = ("web-1", "web-2", "web-3", "web-4", "web-5")


class MendingCloud:
    """The cloud of a world, which reboots machines, too."""

    repair_policies: tuple[RepairPolicy, ...] = REPAIR_POLICIES

    def __init__(self, world: World) -> None:
        self._world = world
        self.operations: set[str] = set()

    name = "mending"

    def start(self) -> None:
        self._world.cloud.start()

    async def close(self) -> None:
        await self._world.cloud.close()

    def catalog(self) -> Catalog:
        return self._world.cloud.catalog()

    async def launch(self, spec: LaunchSpec) -> Machine:
        return await self._world.cloud.launch(spec)

    async def terminate(self, provider_id: str) -> None:
        await self._world.cloud.terminate(provider_id)

    async def machine(self, provider_id: str) -> Machine:
        return await self._world.cloud.machine(provider_id)

    async def machines(self) -> Sequence[Machine]:
        return await self._world.cloud.machines()

    async def drift(self, claim: ClaimRecord) -> str:
        return await self._world.cloud.drift(claim)

    async def reboot(self, provider_id: str, operation: str) -> None:
        if operation not in self.operations:
            self.operations.add(operation)
            self._world.kubelets.reboot(self._world.cloud.node_of(provider_id))


def web(replicas: int, cpu: str = "3") -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    labels = {"app": "web"}
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def running_pods(world: World) -> int:
    return sum(each["status"].get("phase") == "Running" for each in world.store.list(POD))


async def make_busy_nodes(world: World) -> None:
    """Create five nodes, each filled by one pod."""
    await make_nodes(world, *MANY)
    world.store.create(DEPLOYMENT, web(len(MANY)))
    await until(lambda: running_pods(world) == len(MANY))


def test_a_broken_node_goes_once_its_replacement_is_there() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], list[str], int, int]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, heard, policies=REPAIR_POLICIES):
            await make_busy_nodes(world)
            world.kubelets.trouble(node_of(world), BROKEN)
            await asyncio.sleep(29)
            early = claims_in(world)
            await until(lambda: bool(leaving(world)), seconds=300)
            there = [name for name in claims_in(world) if is_ready(world, name)]
            await until(lambda: "web-1" not in claims_in(world), seconds=300)
            await until(lambda: running_pods(world) == len(MANY))
            found = early, leaving(world), len(there), len(world.store.list(NODE))
        world.stop()
        return found

    early, late, there, nodes = run(story())

    assert early == list(MANY)
    assert late == []
    assert there >= 5
    assert nodes == 5
    assert heard.failures == []
    assert heard.counted("nodeclaims_unhealthy_disrupted_total") == 1
    assert heard.told("DisruptionTerminating") == [
        "Disrupting Node: Unhealthy",
        "Disrupting NodeClaim: Unhealthy",
    ]


def test_one_broken_node_after_the_other_is_repaired() -> None:
    async def story() -> tuple[int, list[str]]:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        most = 0
        async with disrupting(world, Heard(), policies=REPAIR_POLICIES):
            names = [f"web-{number}" for number in range(10)]
            await make_nodes(world, *names)
            world.kubelets.trouble(node_of(world, "web-3"), BROKEN)
            world.kubelets.trouble(node_of(world, "web-7"), BROKEN)

            def are_gone() -> bool:
                nonlocal most
                most = max(most, len(leaving(world)))
                return len(claims_in(world)) == len(names) - 2

            await until(are_gone)
            found = most, sorted(set(names) - set(claims_in(world)))
        world.stop()
        return found

    most, gone = run(story())

    assert most <= 2
    assert gone == ["web-3", "web-7"]


def test_budgets_hold_for_repairs() -> None:
    heard = Heard()

    async def story() -> list[str]:
        world = World()
        world.start()
        make_pool(world, {"nodes": "0", "reasons": ["Unhealthy"]}, consolidateAfter="Never")
        async with disrupting(world, heard, policies=REPAIR_POLICIES):
            await make_nodes(world, *MANY)
            world.kubelets.trouble(node_of(world), BROKEN)
            await asyncio.sleep(600)
            found = claims_in(world)
        world.stop()
        return found

    assert run(story()) == list(MANY)
    assert "No allowed disruptions for disruption reason Unhealthy due to blocking budget" in (
        heard.told("DisruptionBlocked")
    )


def test_a_node_with_the_annotation_is_not_repaired() -> None:
    heard = Heard()

    async def story() -> list[str]:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        async with disrupting(world, heard, policies=REPAIR_POLICIES):
            await make_nodes(world, *MANY)
            body = {"metadata": {"annotations": {"karpenter.sh/do-not-repair": "true"}}}
            world.store.patch(NODE, node_of(world), Patch(PatchType.MERGE, body))
            world.kubelets.trouble(node_of(world), BROKEN)
            await asyncio.sleep(600)
            found = claims_in(world)
        world.stop()
        return found

    assert run(story()) == list(MANY)
    assert 'repair is blocked through the "karpenter.sh/do-not-repair" annotation' in (
        heard.told("DisruptionBlocked")
    )


@pytest.mark.parametrize(
    ("policies", "is_gone"),
    [(REPAIR_POLICIES, True), ((), False)],
    ids=["with policies", "without"],
)
def test_a_silent_node_is_repaired_only_where_that_is_wanted(
    policies: tuple[RepairPolicy, ...], *, is_gone: bool
) -> None:
    async def story() -> bool:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        async with disrupting(world, Heard(), policies=policies):
            await make_nodes(world, *MANY)
            world.kubelets.lose(node_of(world))
            await asyncio.sleep(15 * 60)
            found = "web-1" not in claims_in(world)
        world.stop()
        return found

    assert run(story()) is is_gone


def test_a_node_that_a_reboot_mends_is_rebooted() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], int, dict[str, str], bool]:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        cloud = MendingCloud(world)
        async with disrupting(world, heard, cloud=cloud, policies=REPAIR_POLICIES):
            await make_busy_nodes(world)
            world.kubelets.trouble(node_of(world), SLOW)
            await until(lambda: bool(cloud.operations), seconds=300)
            world.kubelets.heal(node_of(world), also=(Health(SLOW.type, "False", "Fine"),))
            await until(lambda: is_ready(world), seconds=300)
            await asyncio.sleep(60)
            taints = world.store.get(NODE, node_of(world))["spec"].get("taints")
            found = claims_in(world), len(cloud.operations), conditions(world), bool(taints)
        world.stop()
        return found

    claims, reboots, told, is_tainted = run(story())

    assert claims == list(MANY)
    assert reboots == 1
    assert told["Rebooting"] == "False"
    assert told["Initialized"] == "True"
    assert "DisruptionReason" not in told
    assert not is_tainted
    assert heard.failures == []
    assert heard.counted("nodes_reboots_total") == 1
    assert "committed node reboot" in [each.event for each in heard.remarks]


def test_a_node_is_not_rebooted_for_a_pod_that_no_watch_tells_of() -> None:
    heard, faults = Heard(), Faults()
    unbound = [replace(each, grace_period=None) for each in REPAIR_POLICIES]

    async def story() -> tuple[int, int, dict[str, str]]:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        cloud = MendingCloud(world)
        feed = FaultyFeed(world.objects, faults)
        async with disrupting(world, heard, cloud=cloud, policies=tuple(unbound), feed=feed):
            await make_nodes(world, *MANY)
            faults.add(InjectedFault(calls=("event",), kind=POD, delay_seconds=7200))
            meta = {"name": "late", "annotations": {"karpenter.sh/do-not-disrupt": "true"}}
            spec = {"nodeName": node_of(world), "containers": [{"name": "c", "image": "i"}]}
            world.store.create(POD, {"metadata": {**meta, "namespace": "default"}, "spec": spec})
            world.kubelets.trouble(node_of(world), SLOW)
            await asyncio.sleep(600)
            early = len(cloud.operations), conditions(world)
            world.store.delete(POD, "late", namespace="default")
            await until(lambda: bool(cloud.operations), seconds=900)
            found = early[0], len(cloud.operations), early[1]
        world.stop()
        return found

    early, late, told = run(story())

    assert (early, late) == (0, 1)
    assert "Rebooting" not in told


def test_a_node_that_reboots_do_not_mend_is_replaced_in_the_end() -> None:
    heard = Heard()

    async def story() -> tuple[int, bool]:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        cloud = MendingCloud(world)
        async with disrupting(world, heard, cloud=cloud, policies=REPAIR_POLICIES):
            await make_nodes(world, *MANY)
            world.kubelets.trouble(node_of(world), SLOW)
            await until(lambda: "web-1" not in claims_in(world), seconds=1800)
            found = len(cloud.operations), "web-1" in claims_in(world)
        world.stop()
        return found

    assert run(story()) == (2, False)
    assert heard.counted("nodes_reboots_total") == 2
    assert heard.counted("nodeclaims_unhealthy_disrupted_total") == 3


def test_a_reboot_that_the_cloud_does_not_know_ends_in_a_replacement() -> None:
    heard = Heard()

    async def story() -> list[str]:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        async with disrupting(world, heard, policies=REPAIR_POLICIES):
            await make_nodes(world, *MANY)
            world.kubelets.trouble(node_of(world), SLOW)
            await until(lambda: "web-1" not in claims_in(world), seconds=600)
            found = claims_in(world)
        world.stop()
        return found

    assert run(story()) == list(MANY[1:])
    assert heard.told("RebootFailed") == ["reboot not implemented by the cloud provider"]


def test_a_replacement_that_cannot_be_made_keeps_the_broken_node() -> None:
    async def story() -> tuple[list[str], list[str]]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard(), policies=REPAIR_POLICIES):
            await make_busy_nodes(world)
            world.cloud.spoil(100)
            world.kubelets.trouble(node_of(world), BROKEN)
            await asyncio.sleep(300)
            held = [each for each in claims_in(world) if each in MANY], leaving(world)
        world.stop()
        return held

    assert run(story()) == (list(MANY), [])


def test_without_a_claim_nothing_is_repaired() -> None:
    heard = Heard()

    async def story() -> int:
        world = World()
        world.start()
        make_pool(world)
        world.add_node("own")
        async with disrupting(world, heard, policies=REPAIR_POLICIES):
            await asyncio.sleep(10)
            world.kubelets.trouble("own", BROKEN)
            await asyncio.sleep(300)
            found = len(world.store.list(NODE)) + len(world.store.list(NODE_CLAIM))
        world.stop()
        return found

    assert run(story()) == 1
    assert heard.failures == []
