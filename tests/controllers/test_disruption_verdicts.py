"""Whoever listens hears what is decided about nodes, and on what."""

import asyncio

from karpy.codec.fields import JsonObject
from karpy.core.disruption.decide import decide_disruption
from karpy.errors import ServerFault
from karpy.model.disruption import DisruptionReason
from karpy.model.kinds import NODE_CLAIM, POD, Kind
from karpy.model.questions import (
    BrokenNodesQuestion,
    DisruptionQuestion,
    SecondLookQuestion,
    TreatmentQuestion,
)
from karpy.model.refusals import NodeRefusal, Obstacle
from karpy.model.repairs import RepairAction
from karpy.model.verdicts import DisruptionVerdict
from karpy.ports.objects import Patch
from karpy.sim.loop import run
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.store import Store
from karpy.sim.world import World
from tests.controllers.disruptions import claims_in, disrupting, make_nodes, make_pool
from tests.controllers.operators import Heard, is_empty, node_of, until
from tests.controllers.test_nodetermination import pod
from tests.controllers.test_remedies import (
    BROKEN,
    MANY,
    REPAIR,
    SLOW,
    MendingCloud,
    make_busy_nodes,
)


class Listener:
    """Keeps what was decided."""

    def __init__(self) -> None:
        self.questions: list[DisruptionQuestion] = []
        self.verdicts: list[DisruptionVerdict] = []

    def hear(self, question: DisruptionQuestion, verdict: DisruptionVerdict) -> None:
        self.questions.append(question)
        self.verdicts.append(verdict)

    def about(self, kind: type[DisruptionQuestion]) -> list[DisruptionVerdict]:
        """Return the verdicts on one kind of question."""
        both = zip(self.questions, self.verdicts, strict=True)
        return [verdict for question, verdict in both if isinstance(question, kind)]

    def chosen(self, reason: DisruptionReason) -> list[str]:
        """Name the claims that were chosen, each once."""
        names = [
            choice.claim
            for verdict in self.verdicts
            if verdict.reason is reason
            for choice in verdict.choices
        ]
        return list(dict.fromkeys(names))


class Stubborn(EmbeddedObjects):
    """Does not let one claim be changed, once it has made up its mind."""

    def __init__(self, store: Store, claim: str) -> None:
        super().__init__(store)
        self._claim = claim
        self.is_stubborn = False

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        if self.is_stubborn and (kind, name) == (NODE_CLAIM, self._claim):
            raise ServerFault("etcdserver: request timed out", status=500)
        return await super().patch(
            kind, name, patch, namespace=namespace, subresource=subresource, dry_run=dry_run
        )


def test_every_look_at_empty_nodes_is_told_and_can_be_repeated() -> None:
    listener = Listener()

    async def story() -> None:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard()) as stage:
            stage.disruption.listen(listener.hear)
            await make_nodes(world, "web-1")
            await until(lambda: is_empty(world))
        world.stop()

    run(story())

    assert listener.chosen(DisruptionReason.EMPTY) == ["web-1"]
    assert {each.why.name for verdict in listener.verdicts for each in verdict.refusals} >= {
        "UNINITIALIZED",
        "NOT_QUIET",
    }
    assert [decide_disruption(each) for each in listener.questions] == listener.verdicts


def test_a_second_look_that_confirms_a_proposal_is_told() -> None:
    listener = Listener()

    async def story() -> None:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard()) as stage:
            stage.disruption.listen(listener.hear)
            await make_nodes(world, "web-1", "web-2")
            await until(lambda: is_empty(world))
        world.stop()

    run(story())

    (verdict,) = listener.about(SecondLookQuestion)
    assert [each.claim for each in verdict.choices] == ["web-1", "web-2"]
    assert verdict.refusals == ()
    assert [decide_disruption(each) for each in listener.questions] == listener.verdicts


def test_a_second_look_that_finds_a_pod_is_told_with_the_reason() -> None:
    listener = Listener()

    async def story() -> str:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard()) as stage:
            stage.disruption.listen(listener.hear)
            await make_nodes(world, "web-1")
            await until(lambda: bool(listener.chosen(DisruptionReason.EMPTY)))
            world.store.create(POD, pod("a", node_of(world)))
            await until(lambda: bool(listener.about(SecondLookQuestion)))
            found = node_of(world)
        world.stop()
        return found

    node = run(story())

    (verdict,) = listener.about(SecondLookQuestion)
    assert verdict.choices == ()
    assert verdict.refusals == (NodeRefusal(Obstacle.NOT_EMPTY, node),)
    assert [decide_disruption(each) for each in listener.questions] == listener.verdicts


def test_repairs_are_told_with_the_reboots_they_depend_on() -> None:
    listener = Listener()

    async def story() -> None:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        cloud = MendingCloud(world)
        async with disrupting(world, Heard(), cloud=cloud, repair=REPAIR) as stage:
            stage.disruption.listen(listener.hear)
            await make_nodes(world, *(f"web-{number}" for number in range(10)))
            world.kubelets.trouble(node_of(world, "web-3"), SLOW)
            world.kubelets.trouble(node_of(world, "web-7"), BROKEN)
            await asyncio.sleep(900)
        world.stop()

    run(story())

    broken = [each for each in listener.questions if isinstance(each, BrokenNodesQuestion)]
    assert set(listener.chosen(DisruptionReason.UNHEALTHY)) == {"web-3", "web-7"}
    assert len(broken[-1].reboots) == 1
    assert {
        each.choices[0].remedy for each in listener.about(TreatmentQuestion) if each.choices
    } == {
        RepairAction.REBOOT,
        RepairAction.REPLACE,
    }
    assert [decide_disruption(each) for each in listener.questions] == listener.verdicts


def test_what_replaces_a_broken_node_is_told_before_it_comes() -> None:
    listener, launched = Listener(), list[int]()

    async def story() -> None:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard(), repair=REPAIR) as stage:
            stage.disruption.listen(listener.hear)
            stage.disruption.listen(lambda *_: launched.append(len(world.store.list(NODE_CLAIM))))
            await make_busy_nodes(world)
            world.kubelets.trouble(node_of(world), BROKEN)
            await until(lambda: "web-1" not in claims_in(world), seconds=600)
        world.stop()

    run(story())

    treated = [each for each in listener.about(TreatmentQuestion) if each.choices]
    assert [(each.choices[0].claim, len(each.launches), each.refusals) for each in treated] == [
        ("web-1", 1, ())
    ]
    assert launched[listener.verdicts.index(treated[0])] == len(MANY)
    assert [decide_disruption(each) for each in listener.questions] == listener.verdicts


def test_a_broken_node_whose_pods_find_no_place_is_told_with_the_reason() -> None:
    listener = Listener()
    stuck = pod("stuck", "")

    async def story() -> str:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard(), repair=REPAIR) as stage:
            stage.disruption.listen(listener.hear)
            await make_busy_nodes(world)
            spec = {"nodeName": node_of(world), "nodeSelector": {"kubernetes.io/arch": "s390x"}}
            world.store.create(POD, {**stuck, "spec": {**stuck["spec"], **spec}})
            world.kubelets.trouble(node_of(world), BROKEN)
            await asyncio.sleep(120)
            found = node_of(world)
        world.stop()
        return found

    node = run(story())

    refused = [each for each in listener.about(TreatmentQuestion) if each.refusals]
    assert set(refused) == {
        DisruptionVerdict(
            DisruptionReason.UNHEALTHY, (), (NodeRefusal(Obstacle.PODS_UNPLACED, node, "web"),)
        )
    }
    assert [decide_disruption(each) for each in listener.questions] == listener.verdicts


def test_after_a_reboot_that_cannot_be_asked_for_the_next_node_has_its_turn() -> None:
    listener = Listener()

    async def story() -> int:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        cloud, objects = MendingCloud(world), Stubborn(world.store, "web-3")
        async with disrupting(world, Heard(), objects, cloud, REPAIR) as stage:
            stage.disruption.listen(listener.hear)
            await make_nodes(world, *(f"web-{number}" for number in range(10)))
            objects.is_stubborn = True
            world.kubelets.trouble(node_of(world, "web-3"), SLOW)
            await asyncio.sleep(1)
            world.kubelets.trouble(node_of(world, "web-7"), SLOW)
            await until(lambda: bool(cloud.operations), seconds=600)
        world.stop()
        return len(cloud.operations)

    assert run(story()) == 1
    asked = [each for each in listener.questions if isinstance(each, TreatmentQuestion)]
    assert {each.tried for each in asked} == {frozenset(), frozenset({"web-3"})}
    assert [decide_disruption(each) for each in listener.questions] == listener.verdicts
