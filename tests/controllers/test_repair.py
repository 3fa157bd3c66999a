"""Legacy repair: NodeClaims of unhealthy nodes are deleted, on virtual time."""

import asyncio

from karpy.adapters.clouds.kwok.repairs import REPAIR_POLICIES
from karpy.controllers.repair import RepairController
from karpy.core.disruption.decide import decide_nodes
from karpy.model.kinds import NODE_CLAIM, POD
from karpy.model.pools import DisruptionReason
from karpy.model.verdicts import NodeReason
from karpy.sim.kubelets.nodes import Health
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.disruptions import claims_in, make_nodes
from tests.controllers.operators import Heard, claim, is_empty, node_of, operator, until
from tests.controllers.test_disruption_verdicts import Listener
from tests.controllers.test_nodeclaimdisruption import running
from tests.controllers.test_nodetermination import PROTECTED, pod

BROKEN = Health("KWOKUnhealthy", "True", "Smoke", "it smokes")
WELL = Health("KWOKUnhealthy", "False", "Fine")


def test_a_broken_node_goes_once_it_is_not_put_up_with_any_longer() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], bool]:
        world = World()
        world.start()
        async with (
            operator(world, heard) as context,
            running(RepairController(context, REPAIR_POLICIES)),
        ):
            await make_nodes(world, "web-1")
            world.store.create(POD, pod("a", node_of(world), annotations=PROTECTED))
            world.kubelets.trouble(node_of(world), BROKEN)
            await asyncio.sleep(29)
            early = claims_in(world)
            await until(lambda: is_empty(world), seconds=60)
        world.stop()
        return early, is_empty(world)

    assert run(story()) == (["web-1"], True)
    assert heard.failures == []
    assert heard.counted("nodeclaims_unhealthy_disrupted_total") == 1
    assert heard.counted("pods_disruption_initiated_total") == 1
    assert "deleting unhealthy node" in [each.event for each in heard.remarks]


def test_a_node_that_recovers_in_time_stays() -> None:
    async def story() -> list[str]:
        world = World()
        world.start()
        async with (
            operator(world, Heard()) as context,
            running(RepairController(context, REPAIR_POLICIES)),
        ):
            await make_nodes(world, "web-1")
            world.kubelets.trouble(node_of(world), BROKEN)
            await asyncio.sleep(20)
            world.kubelets.heal(node_of(world), also=(WELL,))
            await asyncio.sleep(600)
            found = claims_in(world)
        world.stop()
        return found

    assert run(story()) == ["web-1"]


def test_a_node_whose_kubelet_is_silent_goes_after_ten_minutes() -> None:
    async def story() -> tuple[list[str], bool]:
        world = World()
        world.start()
        async with (
            operator(world, Heard()) as context,
            running(RepairController(context, REPAIR_POLICIES)),
        ):
            await make_nodes(world, "web-1")
            world.kubelets.lose(node_of(world))
            await asyncio.sleep(10 * 60)
            early = claims_in(world)
            await until(lambda: is_empty(world), seconds=120)
        world.stop()
        return early, is_empty(world)

    assert run(story()) == (["web-1"], True)


def test_a_decision_about_broken_nodes_is_reported_and_can_be_replayed() -> None:
    listener = Listener()

    async def story() -> None:
        world = World()
        world.start()
        async with (
            operator(world, Heard()) as context,
            running(RepairController(context, REPAIR_POLICIES, listener.on_verdict)),
        ):
            await make_nodes(world, "web-1", "web-2", "web-3")
            world.kubelets.trouble(node_of(world, "web-1"), BROKEN)
            world.kubelets.trouble(node_of(world, "web-2"), BROKEN)
            await asyncio.sleep(600)
            world.kubelets.heal(node_of(world, "web-2"), also=(WELL,))
            await asyncio.sleep(400)
        world.stop()

    run(story())

    assert listener.chosen(DisruptionReason.UNHEALTHY) == ["web-1"]
    assert {each.why for verdict in listener.verdicts for each in verdict.refusals} >= {
        NodeReason.MOSTLY_UNHEALTHY
    }
    assert [decide_nodes(each) for each in listener.questions] == listener.verdicts


def test_where_too_many_are_broken_none_goes_until_some_are_well_again() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], list[str]]:
        world = World()
        world.start()
        async with (
            operator(world, heard) as context,
            running(RepairController(context, REPAIR_POLICIES)),
        ):
            await make_nodes(world, "web-1", "web-2", "web-3")
            world.kubelets.trouble(node_of(world, "web-1"), BROKEN)
            world.kubelets.trouble(node_of(world, "web-2"), BROKEN)
            await asyncio.sleep(600)
            blocked = claims_in(world)
            world.kubelets.heal(node_of(world, "web-2"), also=(WELL,))
            await asyncio.sleep(400)
            found = blocked, claims_in(world)
        world.stop()
        return found

    assert run(story()) == (["web-1", "web-2", "web-3"], ["web-2", "web-3"])
    assert heard.told("NodeRepairBlocked") == ["more than 20% nodes are unhealthy in the nodepool"]


def test_a_node_without_a_pool_is_repaired_too() -> None:
    alone = claim()
    del alone["metadata"]["labels"]["karpenter.sh/nodepool"]

    async def story() -> bool:
        world = World()
        world.start()
        async with (
            operator(world, Heard()) as context,
            running(RepairController(context, REPAIR_POLICIES)),
        ):
            world.store.create(NODE_CLAIM, alone)
            await until(lambda: bool(world.kubelets.living()))
            await asyncio.sleep(60)
            world.kubelets.trouble(node_of(world), BROKEN)
            await until(lambda: is_empty(world), seconds=120)
        world.stop()
        return is_empty(world)

    assert run(story())
