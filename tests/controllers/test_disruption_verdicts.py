"""Every verdict about nodes is reported with its question, which gives the same verdict again."""

import asyncio
from datetime import timedelta
from itertools import pairwise

from karpy.adapters.clouds.kwok.repairs import REPAIR_POLICIES
from karpy.codec.fields import JsonObject
from karpy.core.disruption.decide import decide_nodes
from karpy.errors import ServerFault
from karpy.model.commands import DisruptionVerdict
from karpy.model.kinds import NODE_CLAIM, POD, Kind
from karpy.model.nodes import RepairAction
from karpy.model.pools import DisruptionReason
from karpy.model.snapshot import DisruptionQuestion, NodeQuestion, ValidationQuestion
from karpy.model.verdicts import NodeReason, NodeRefusal
from karpy.ports.objects import Patch
from karpy.sim.loop import run
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.store import Store
from karpy.sim.world import World
from tests.controllers.disruptions import claims_in, disrupting, make_nodes, make_pool
from tests.controllers.operators import Heard, is_empty, node_of, until
from tests.controllers.test_disruption_repair import (
    BROKEN,
    MANY,
    SLOW,
    MendingCloud,
    make_busy_nodes,
)
from tests.controllers.test_nodetermination import pod


class Listener:
    """Keeps what was decided."""

    def __init__(self) -> None:
        self.questions: list[NodeQuestion] = []
        self.verdicts: list[DisruptionVerdict] = []

    def on_verdict(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        self.questions.append(question)
        self.verdicts.append(verdict)

    def about(self, kind: type[NodeQuestion]) -> list[DisruptionVerdict]:
        """Return the verdicts on one kind of question."""
        both = zip(self.questions, self.verdicts, strict=True)
        return [verdict for question, verdict in both if isinstance(question, kind)]

    def chosen(self, reason: DisruptionReason) -> list[str]:
        """Return the names of the chosen claims, each once."""
        names = [
            node.claim
            for verdict in self.verdicts
            for command in verdict.commands
            if command.reason is reason
            for node in command.nodes
        ]
        return list(dict.fromkeys(names))

    def refused(self, method: str) -> list[NodeRefusal]:
        """Return the refusals of one method, each once."""
        refusals = [each for verdict in self.verdicts for each in verdict.refusals]
        return list(dict.fromkeys(each for each in refusals if each.method == method))

    def again(self) -> list[DisruptionVerdict]:
        """Decide on all questions again."""
        return [decide_nodes(each) for each in self.questions]


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


def test_every_pass_is_reported_and_can_be_replayed() -> None:
    listener = Listener()

    async def story() -> None:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard()) as stage:
            stage.disruption.listen(listener.on_verdict)
            await make_nodes(world, "web-1")
            await until(lambda: is_empty(world))
        world.stop()

    run(story())

    assert listener.chosen(DisruptionReason.EMPTY) == ["web-1"]
    assert {each.why.name for verdict in listener.verdicts for each in verdict.refusals} >= {
        "NO_NODE",
        "UNINITIALIZED",
        "NOT_QUIET",
    }
    assert listener.again() == listener.verdicts


def test_a_validation_that_confirms_a_command_is_reported() -> None:
    listener = Listener()

    async def story() -> None:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard()) as stage:
            stage.disruption.listen(listener.on_verdict)
            await make_nodes(world, "web-1", "web-2")
            await until(lambda: is_empty(world))
        world.stop()

    run(story())

    (verdict,) = listener.about(ValidationQuestion)
    assert [each.claim for each in verdict.nodes] == ["web-1", "web-2"]
    assert verdict.refusals == ()
    assert listener.again() == listener.verdicts


def test_a_validation_that_finds_a_pod_is_reported_with_the_reason() -> None:
    listener = Listener()

    async def story() -> str:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard()) as stage:
            stage.disruption.listen(listener.on_verdict)
            await make_nodes(world, "web-1")
            await until(lambda: bool(listener.chosen(DisruptionReason.EMPTY)))
            world.store.create(POD, pod("a", node_of(world)))
            await until(lambda: bool(listener.about(ValidationQuestion)))
            found = node_of(world)
        world.stop()
        return found

    node = run(story())

    (verdict,) = listener.about(ValidationQuestion)
    (refusal,) = verdict.refusals
    assert verdict.commands == ()
    assert (refusal.why, refusal.node, refusal.pods) == (
        NodeReason.NOT_EMPTY,
        node,
        ("default/a",),
    )
    assert listener.again() == listener.verdicts


def test_a_method_that_found_nothing_is_asked_again_after_a_change_or_five_minutes() -> None:
    listener = Listener()

    async def story() -> tuple[list[int], int]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard()) as stage:
            stage.disruption.listen(listener.on_verdict)
            await make_nodes(world, "web-1")
            world.store.create(POD, pod("a", node_of(world)))
            await asyncio.sleep(120)
            begun = len(listener.questions)
            await asyncio.sleep(900)
            quiet = [
                number
                for number, each in enumerate(listener.questions[begun:])
                if isinstance(each, DisruptionQuestion) and not each.settled
            ]
            begun = len(listener.questions)
            world.store.create(POD, pod("b", node_of(world)))
            await asyncio.sleep(60)
            asked = [each for each in listener.questions[begun:] if not _settled(each)]
        world.stop()
        return quiet, len(asked)

    quiet, asked = run(story())

    assert [late - early for early, late in pairwise(quiet)] == [30] * (len(quiet) - 1)
    assert len(quiet) == 3
    assert asked >= 1
    assert listener.again() == listener.verdicts


def _settled(question: NodeQuestion) -> frozenset[str]:
    return question.settled if isinstance(question, DisruptionQuestion) else frozenset()


def test_repairs_are_reported_with_the_reboots_they_depend_on() -> None:
    listener = Listener()

    async def story() -> None:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        cloud = MendingCloud(world)
        async with disrupting(world, Heard(), cloud=cloud, policies=REPAIR_POLICIES) as stage:
            stage.disruption.listen(listener.on_verdict)
            await make_nodes(world, *(f"web-{number}" for number in range(10)))
            world.kubelets.trouble(node_of(world, "web-3"), SLOW)
            world.kubelets.trouble(node_of(world, "web-7"), BROKEN)
            await asyncio.sleep(900)
        world.stop()

    run(story())

    last = [each for each in listener.questions if isinstance(each, DisruptionQuestion)][-1]
    assert set(listener.chosen(DisruptionReason.UNHEALTHY)) == {"web-3", "web-7"}
    assert len(last.snapshot.repair.reboots) == 1
    assert {node.action for verdict in listener.verdicts for node in verdict.nodes} == {
        RepairAction.REBOOT,
        RepairAction.REPLACE,
    }
    assert listener.again() == listener.verdicts


def test_the_replacement_of_a_broken_node_is_reported_before_its_launch() -> None:
    listener, launched = Listener(), list[int]()

    async def story() -> None:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard(), policies=REPAIR_POLICIES) as stage:
            stage.disruption.listen(listener.on_verdict)
            stage.disruption.listen(lambda *_: launched.append(len(world.store.list(NODE_CLAIM))))
            await make_busy_nodes(world)
            world.kubelets.trouble(node_of(world), BROKEN)
            await until(lambda: "web-1" not in claims_in(world), seconds=600)
        world.stop()

    run(story())

    (repair,) = [each for each in listener.verdicts if each.method == "repair" and each.commands]
    (command,) = repair.commands
    assert [each.claim for each in command.nodes] == ["web-1"]
    assert len(command.replacements) == 1
    assert launched[listener.verdicts.index(repair)] == len(MANY)
    assert listener.again() == listener.verdicts


def test_a_broken_node_whose_pods_find_no_place_is_reported_with_the_pod() -> None:
    listener = Listener()
    stuck = pod("stuck", "")

    async def story() -> str:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, Heard(), policies=REPAIR_POLICIES) as stage:
            stage.disruption.listen(listener.on_verdict)
            await make_busy_nodes(world)
            spec = {"nodeName": node_of(world), "nodeSelector": {"kubernetes.io/arch": "s390x"}}
            world.store.create(POD, {**stuck, "spec": {**stuck["spec"], **spec}})
            world.kubelets.trouble(node_of(world), BROKEN)
            await asyncio.sleep(120)
            found = node_of(world)
        world.stop()
        return found

    node = run(story())

    (refusal,) = listener.refused("repair")
    assert (refusal.why, refusal.node, refusal.pods) == (
        NodeReason.PODS_UNPLACED,
        node,
        ("default/stuck",),
    )
    assert listener.again() == listener.verdicts


def test_a_reboot_that_cannot_be_asked_for_keeps_no_other_node_waiting() -> None:
    listener = Listener()

    async def story() -> tuple[int, int]:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        cloud, objects = MendingCloud(world), Stubborn(world.store, "web-3")
        async with disrupting(world, Heard(), objects, cloud, policies=REPAIR_POLICIES) as stage:
            stage.disruption.listen(listener.on_verdict)
            await make_nodes(world, *(f"web-{number}" for number in range(10)))
            objects.is_stubborn = True
            world.kubelets.trouble(node_of(world, "web-3"), SLOW)
            await asyncio.sleep(1)
            world.kubelets.trouble(node_of(world, "web-7"), SLOW)
            await until(lambda: bool(cloud.operations), seconds=600)
            reboots = len(stage.state.snapshot().repair.reboots)
        world.stop()
        return len(cloud.operations), reboots

    assert run(story()) == (1, 1)
    assert listener.chosen(DisruptionReason.UNHEALTHY) == ["web-3", "web-7"]
    assert listener.again() == listener.verdicts


def sized(name: str, node: str, cpu: str) -> JsonObject:
    made = pod(name, node)
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return made


class Flapping(Listener):
    """Fills the room for several nodes that were chosen together, until their validation."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self.rejected = 0

    def on_verdict(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        super().on_verdict(question, verdict)
        if isinstance(question, ValidationQuestion) and not verdict.commands:
            self.rejected += 1
            self._world.store.delete(POD, "filler", namespace="default")
        elif len(verdict.nodes) > 1:
            self._world.store.create(POD, sized("filler", node_of(self._world, "web-3"), "500m"))


def test_nodes_that_are_rejected_together_again_and_again_go_one_by_one() -> None:
    async def story() -> tuple[int, int]:
        world = World()
        world.start()
        listener = Flapping(world)
        make_pool(world, consolidationPolicy="WhenEmptyOrUnderutilized", consolidateAfter="0s")
        async with disrupting(world, Heard()) as stage:
            stage.disruption.listen(listener.on_verdict)
            await make_nodes(world, "web-1", "web-2", "web-3")
            for name in ("web-1", "web-2", "web-3"):
                world.store.create(POD, sized(f"of-{name}", node_of(world, name), "500m"))
            await until(lambda: len(claims_in(world)) < 3)
            found = listener.rejected, len(claims_in(world))
        world.stop()
        return found

    rejected, claims = run(story())

    assert rejected > 0
    assert claims == 2


def test_without_any_time_another_node_comes_first_in_each_pass() -> None:
    listener = Listener()
    names = ("web-1", "web-2", "web-3")

    async def story() -> set[str]:
        world = World()
        world.start()
        make_pool(world, consolidationPolicy="WhenEmptyOrUnderutilized", consolidateAfter="0s")
        async with disrupting(world, Heard(), decision_timeout=timedelta()) as stage:
            stage.disruption.listen(listener.on_verdict)
            await make_nodes(world, *names)
            for name in names:
                world.store.create(POD, sized(f"of-{name}", node_of(world, name), "500m"))
            await asyncio.sleep(60)
            nodes = {node_of(world, name) for name in names}
        world.stop()
        return nodes

    nodes = run(story())
    late = [
        [each.node for each in verdict.refusals if each.why is NodeReason.OUT_OF_TIME]
        for verdict in listener.about(DisruptionQuestion)
    ]

    assert [set(each) for each in late[-3:]] == [nodes] * 3
    assert {each[0] for each in late[-3:]} == nodes
