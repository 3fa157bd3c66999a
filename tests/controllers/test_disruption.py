"""The controller of disruption deletes empty nodes, on virtual time."""

import asyncio

from karpy.codec.fields import JsonObject
from karpy.model.kinds import DAEMON_SET, DISRUPTION_BUDGET, NODE, NODE_CLAIM, POD
from karpy.ports.objects import Patch, PatchType
from karpy.sim.faults import Faults, InjectedFault, cloud_unavailable
from karpy.sim.faultyports import FaultyCloud
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.disruptions import (
    Stage,
    claims_in,
    disrupting,
    leaving,
    make_nodes,
    make_pool,
    tainted,
)
from tests.controllers.operators import Heard, claim, conditions, is_empty, node_of, until
from tests.controllers.test_nodetermination import PROTECTED, budget, pod


def test_an_empty_node_goes_after_a_while() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], list[str], bool]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, heard):
            await make_nodes(world, "web-1")
            await asyncio.sleep(40)
            early = leaving(world)
            await asyncio.sleep(20)
            late = leaving(world)
            await until(lambda: is_empty(world))
            has_ended = is_empty(world)
        world.stop()
        return early, late, has_ended

    assert run(story()) == ([], ["web-1"], True)
    assert heard.failures == []
    assert heard.counted("voluntary_disruption_decisions_total") == 1
    assert heard.counted("nodeclaims_disrupted_total") == 1
    assert heard.told("DisruptionTerminating") == [
        "Disrupting Node: Empty",
        "Disrupting NodeClaim: Empty",
    ]


def test_a_budget_of_nothing_keeps_nodes_and_says_so() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], list[str]]:
        world = World()
        world.start()
        make_pool(world, {"nodes": "0"})
        async with disrupting(world, heard):
            await make_nodes(world, "web-1")
            await asyncio.sleep(600)
            found = claims_in(world), tainted(world)
        world.stop()
        return found

    assert run(story()) == (["web-1"], [])
    assert heard.told("DisruptionBlocked")[-1] == (
        "No allowed disruptions for disruption reason Empty due to blocking budget"
    )
    gauges = {each.value for each in heard.counts if each.metric == "nodepools_allowed_disruptions"}
    assert gauges == {0.0}


def test_no_more_nodes_go_at_once_than_the_budget_allows() -> None:
    async def story() -> tuple[int, bool]:
        world = World()
        world.start()
        make_pool(world, {"nodes": "2"})
        most = 0
        async with disrupting(world, Heard()):
            await make_nodes(world, "web-1", "web-2", "web-3", "web-4", "web-5")

            def has_ended() -> bool:
                nonlocal most
                most = max(most, len(going(world)))
                return is_empty(world)

            await until(has_ended)
        world.stop()
        return most, is_empty(world)

    assert run(story()) == (2, True)


def going(world: World) -> list[str]:
    """Return the claims that count against a budget: not those with an ending machine."""
    return [name for name in leaving(world) if "InstanceTerminating" not in conditions(world, name)]


def test_a_pod_that_comes_while_a_decision_is_validated_keeps_its_node() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], list[str]]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, heard):
            await make_nodes(world, "web-1", "web-2")
            await until(lambda: bool(eligible(heard)))
            world.store.create(POD, pod("a", node_of(world, "web-1")))
            await until(lambda: bool(leaving(world)))
            first = leaving(world)
            await asyncio.sleep(600)
            found = first, claims_in(world)
        world.stop()
        return found

    assert run(story()) == (["web-2"], ["web-1"])


def eligible(heard: Heard) -> list[float]:
    """Return how many nodes were eligible, where any was."""
    metric = "voluntary_disruption_eligible_nodes"
    return [each.value for each in heard.counts if each.metric == metric and each.value]


def test_a_decision_of_which_nothing_is_left_is_abandoned() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], str]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, heard):
            await make_nodes(world, "web-1")
            await until(lambda: bool(eligible(heard)))
            world.store.create(POD, pod("a", node_of(world)))
            await asyncio.sleep(120)
            found = tainted(world), conditions(world).get("DisruptionReason", "")
        world.stop()
        return found

    assert run(story()) == ([], "")
    assert heard.counted("voluntary_disruption_failed_validations_total") == 1
    assert [each.event for each in heard.remarks if each.event.startswith("abandoning")] == [
        "abandoning emptiness attempt, command is no longer valid"
    ]


def test_a_node_that_pods_are_expected_on_stays() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], list[str]]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, heard) as stage:
            await make_nodes(world, "web-1", "web-2")
            await nominate(stage, node_of(world, "web-1"), seconds=200)
            stayed = claims_in(world)
            await until(lambda: is_empty(world))
            found = stayed, claims_in(world)
        world.stop()
        return found

    assert run(story()) == (["web-1"], [])
    assert "Node is nominated for a pending pod" in heard.told("DisruptionBlocked")


async def nominate(stage: Stage, name: str, *, seconds: int) -> None:
    """Nominate a node repeatedly, for a while."""
    for _ in range(0, seconds, 10):
        stage.nominations.note(name)
        await asyncio.sleep(10)


def test_a_node_whose_annotation_forbids_it_stays() -> None:
    heard = Heard()

    async def story() -> list[str]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, heard):
            await make_nodes(world, "web-1")
            patch = Patch(PatchType.MERGE, {"metadata": {"annotations": PROTECTED}})
            world.store.patch(NODE, node_of(world), patch)
            await asyncio.sleep(300)
            found = claims_in(world)
        world.stop()
        return found

    assert run(story()) == ["web-1"]
    assert heard.told("DisruptionBlocked")[-1] == (
        'Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation'
    )


def daemons(**annotations: str) -> JsonObject:
    labels = {"app": "web"}
    return {
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }


def test_pods_of_daemons_do_not_keep_a_node() -> None:
    async def story() -> tuple[int, bool]:
        world = World()
        world.start()
        make_pool(world)
        world.store.create(DAEMON_SET, daemons())
        async with disrupting(world, Heard()):
            await make_nodes(world, "web-1")
            await asyncio.sleep(5)
            pods = len(world.store.list(POD))
            await until(lambda: is_empty(world))
        world.stop()
        return pods, is_empty(world)

    assert run(story()) == (1, True)


def test_a_daemon_that_must_not_be_disturbed_keeps_its_node() -> None:
    heard = Heard()

    async def story() -> list[str]:
        world = World()
        world.start()
        make_pool(world)
        world.store.create(DAEMON_SET, daemons(**PROTECTED))
        async with disrupting(world, heard):
            await make_nodes(world, "web-1")
            await asyncio.sleep(600)
            found = claims_in(world)
        world.stop()
        return found

    assert run(story()) == ["web-1"]
    note = heard.told("DisruptionBlocked")[-1]
    assert note.startswith('Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/agent-')


def test_a_budget_of_its_pods_keeps_a_node() -> None:
    heard = Heard()

    async def story() -> list[str]:
        world = World()
        world.start()
        make_pool(world)
        world.store.create(DAEMON_SET, daemons())
        world.store.create(DISRUPTION_BUDGET, budget("all", 1))
        async with disrupting(world, heard):
            await make_nodes(world, "web-1")
            await asyncio.sleep(600)
            found = claims_in(world)
        world.stop()
        return found

    assert run(story()) == ["web-1"]
    assert heard.told("DisruptionBlocked")[-1] == (
        "Pdb prevents pod evictions (PodDisruptionBudget=[default/all])"
    )


def test_pods_that_cost_nothing_do_not_keep_a_node() -> None:
    cheap = {"karpenter.sh/disruption-cost": "-134217728"}

    async def story() -> tuple[list[str], bool]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard()):
            await make_nodes(world, "web-1", "web-2")
            world.store.create(POD, pod("cheap", node_of(world, "web-1"), annotations=cheap))
            world.store.create(POD, pod("dear", node_of(world, "web-2")))
            await asyncio.sleep(600)
            found = claims_in(world), bool(world.store.find(POD, "cheap", "default"))
        world.stop()
        return found

    assert run(story()) == (["web-2"], False)


def test_what_is_written_on_a_pod_later_counts_within_minutes() -> None:
    async def story() -> tuple[list[str], bool]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard()):
            await make_nodes(world, "web-1")
            world.store.create(POD, pod("a", node_of(world)))
            await asyncio.sleep(120)
            stayed = claims_in(world)
            body = {"metadata": {"annotations": {"karpenter.sh/disruption-cost": "-134217728"}}}
            world.store.patch(POD, "a", Patch(PatchType.MERGE, body), namespace="default")
            await until(lambda: is_empty(world), seconds=400)
        world.stop()
        return stayed, is_empty(world)

    assert run(story()) == (["web-1"], True)


def test_a_pool_that_never_consolidates_keeps_its_nodes() -> None:
    heard = Heard()

    async def story() -> list[str]:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        async with disrupting(world, heard):
            await make_nodes(world, "web-1")
            await asyncio.sleep(600)
            found = claims_in(world)
        world.stop()
        return found

    assert run(story()) == ["web-1"]
    assert heard.told("Unconsolidatable") == ['NodePool "web" has consolidation disabled']


def test_a_claim_without_a_machine_is_waited_for_but_not_for_long() -> None:
    faults = Faults()

    async def story() -> tuple[list[str], list[str], list[str]]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard(), cloud=FaultyCloud(world.cloud, faults)):
            await make_nodes(world, "web-1")
            faults.add(InjectedFault(cloud_unavailable, ("launch",)))
            world.store.create(NODE_CLAIM, claim("web-2"))
            await asyncio.sleep(14)
            early = claims_in(world)
            await asyncio.sleep(240)
            stuck = claims_in(world)
            faults.clear()
            await until(lambda: is_empty(world))
        world.stop()
        return early, stuck, claims_in(world)

    assert run(story()) == (["web-1", "web-2"], ["web-2"], [])


def test_a_deleted_pool_does_not_delay_other_pools() -> None:
    async def story() -> list[str]:
        world = World()
        world.start()
        make_pool(world)
        other = claim("other-1")
        other["metadata"]["labels"]["karpenter.sh/nodepool"] = "gone"
        async with disrupting(world, Heard()):
            world.store.create(NODE_CLAIM, other)
            await make_nodes(world, "web-1")
            await asyncio.sleep(300)
            found = claims_in(world)
        world.stop()
        return found

    assert run(story()) == ["other-1"]
