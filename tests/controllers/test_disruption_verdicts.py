"""Whoever listens hears what is decided about nodes, and on what."""

import asyncio

from karpy.core.disruption.decide import decide_disruption
from karpy.model.disruption import DisruptionReason
from karpy.model.kinds import POD
from karpy.model.questions import BrokenNodesQuestion, DisruptionQuestion, SecondLookQuestion
from karpy.model.refusals import NodeRefusal, Obstacle
from karpy.model.verdicts import DisruptionVerdict
from karpy.sim.loop import run
from karpy.sim.world import World
from tests.controllers.disruptions import disrupting, make_nodes, make_pool
from tests.controllers.operators import Heard, is_empty, node_of, until
from tests.controllers.test_remedies import BROKEN, REPAIR, SLOW, MendingCloud
from tests.controllers.test_termination import pod


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
    assert [decide_disruption(each) for each in listener.questions] == listener.verdicts
