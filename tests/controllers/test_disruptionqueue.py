"""Commands are carried out; a failure ends one command and delays no other node."""

import asyncio

import pytest

from karpy.core.disruption import decide
from karpy.core.disruption.candidates import DisruptionClass
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal, Validation
from karpy.errors import Unexpected
from karpy.model.commands import Command
from karpy.model.kinds import (
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    NODE,
    NODE_CLAIM,
    NODE_POOL,
    POD,
    Kind,
)
from karpy.model.labels import INSTANCE_TYPE
from karpy.model.pools import DisruptionReason
from karpy.ports.objects import EVERYTHING, Page, Patch, PatchType, Query
from karpy.sim.faults import Faults, InjectedFault, server_fault
from karpy.sim.faultyports import FaultyFeed, FaultyObjects
from karpy.sim.loop import run
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.world import World
from tests.controllers.disruptions import (
    claims_in,
    disrupting,
    leaving,
    make_nodes,
    make_pool,
    tainted,
)
from tests.controllers.operators import Heard, claim, conditions, is_empty, is_ready, node_of, until
from tests.controllers.test_disruption_repair import (
    MANY,
    make_busy_nodes,
    running_pods,
    web,
)
from tests.controllers.test_disruption_verdicts import Listener
from tests.controllers.test_nodetermination import PROTECTED, budget, pod

NO_CLAIMS = InjectedFault(server_fault, ("create",), NODE_CLAIM)


def drift(world: World, *names: str) -> None:
    """Have the cloud say that nodes differ from what is asked for."""
    for name in names:
        world.cloud.set_drift(name, "ImageDrift")
        # The next reconcile of a claim may be minutes away.
        touched = {"metadata": {"annotations": {"example.com/touched": "yes"}}}
        world.store.patch(NODE_CLAIM, name, Patch(PatchType.MERGE, touched))


def replacements(world: World) -> list[str]:
    return [name for name in claims_in(world) if name not in MANY]


def test_a_drifted_node_goes_once_its_replacement_is_initialized() -> None:
    heard = Heard()

    async def story() -> tuple[list[bool], list[str], int]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, heard):
            await make_busy_nodes(world)
            drift(world, "web-1")
            await until(lambda: bool(leaving(world)))
            there = [is_ready(world, name) for name in replacements(world)]
            await until(lambda: "web-1" not in claims_in(world))
            await until(lambda: running_pods(world) == len(MANY))
            found = there, tainted(world), len(world.store.list(NODE))
        world.stop()
        return found

    assert run(story()) == ([True], [], len(MANY))
    assert heard.failures == []
    created = [each for each in heard.counts if each.metric == "nodeclaims_created_total"]
    assert [each.labels["reason"] for each in created] == ["drifted"]


def test_without_its_replacement_a_node_is_opened_again_and_others_have_their_turn() -> None:
    heard, faults, listener = Heard(), Faults(), Listener()

    async def story() -> tuple[list[str], list[str], list[str]]:
        world = World()
        world.start()
        make_pool(world, {"nodes": "1"})
        objects = FaultyObjects(world.objects, faults)
        async with disrupting(world, heard, objects) as stage:
            stage.disruption.listen(listener.on_verdict)
            await make_busy_nodes(world)
            faults.add(NO_CLAIMS)
            drift(world, "web-1", "web-2")
            await asyncio.sleep(60)
            tried = listener.chosen(DisruptionReason.DRIFTED)
            held = tainted(world)
            reason = [conditions(world, each).get("DisruptionReason", "") for each in tried]
            faults.clear()
            await until(lambda: not {"web-1", "web-2"} & {*claims_in(world)})
        world.stop()
        return tried, held, reason

    tried, held, reason = run(story())

    assert tried == ["web-1", "web-2"]
    assert (held, reason) == ([], ["", ""])
    assert heard.counted("voluntary_disruption_queue_failures_total") >= 2
    assert listener.again() == listener.verdicts


def test_replacements_come_together_or_not_at_all() -> None:
    faults, listener = Faults(), Listener()

    async def story() -> tuple[list[str], bool]:
        world = World()
        world.start()
        make_pool(world)
        objects = FaultyObjects(world.objects, faults)
        async with disrupting(world, Heard(), objects) as stage:
            stage.disruption.listen(listener.on_verdict)
            await make_nodes(world, "web-1")
            world.store.create(DEPLOYMENT, web(2, cpu="600m"))
            await until(lambda: running_pods(world) == 2)
            allow_only(world, "c-1x-amd64-linux")
            before = len(faults.history)
            faults.add(InjectedFault(server_fault, ("create",), NODE_CLAIM, nth=2))
            drift(world, "web-1")
            await until(
                lambda: bool([each for each in faults.history if "delete nodeclaims" in each])
            )
            await asyncio.sleep(5)
            calls = [each for each in faults.history[before:] if "nodeclaims" in each]
            await until(lambda: "web-1" not in claims_in(world))
        world.stop()
        return [each for each in calls if not each.startswith("patch")], is_empty(world)

    calls, _ = run(story())

    first = next(command for each in listener.verdicts for command in each.commands)
    assert len(first.replacements) == 2
    assert [each.partition(" ")[0] for each in calls] == ["create", "create", "delete"]


def allow_only(world: World, instance_type: str) -> None:
    """Let the NodePool make nodes of one type only from now on."""
    wanted = [{"key": INSTANCE_TYPE, "operator": "In", "values": [instance_type]}]
    body = {"spec": {"template": {"spec": {"requirements": wanted}}}}
    world.store.patch(NODE_POOL, "web", Patch(PatchType.MERGE, body))


def test_a_budget_of_pods_that_is_spent_for_a_moment_delays_a_drain_and_ends_no_command() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], bool, int]:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="Never")
        async with disrupting(world, heard):
            await make_busy_nodes(world)
            world.store.create(DISRUPTION_BUDGET, budget("web", len(MANY) - 1))
            await asyncio.sleep(1)
            drift(world, "web-1")
            await until(lambda: bool(replacements(world)))
            tighten(world, len(MANY))
            await until(lambda: is_ready(world, replacements(world)[0]))
            await asyncio.sleep(60)
            drained = leaving(world)
            tighten(world, len(MANY) - 1)
            await until(lambda: "web-1" not in claims_in(world))
            await until(lambda: running_pods(world) == len(MANY))
            found = drained, bool(tainted(world)), len(replacements(world))
        world.stop()
        return found

    assert run(story()) == (["web-1"], False, 1)
    assert heard.counted("voluntary_disruption_queue_failures_total") == 0


def tighten(world: World, least: int) -> None:
    """Have the PodDisruptionBudget ask for so many pods."""
    patch = Patch(PatchType.MERGE, {"spec": {"minAvailable": least}})
    world.store.patch(DISRUPTION_BUDGET, "web", patch, namespace="default")


def test_a_pod_that_must_not_be_disrupted_ends_a_command_even_if_its_replacement_is_there() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], bool]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, heard):
            await make_busy_nodes(world)
            drift(world, "web-1")
            await until(lambda: bool(replacements(world)))
            late = pod("late", node_of(world), annotations=PROTECTED)
            world.store.create(POD, late)
            await asyncio.sleep(120)
            found = claims_in(world), node_of(world) in tainted(world)
        world.stop()
        return found

    claims, is_held = run(story())

    assert set(MANY) <= set(claims)
    assert not is_held


def test_while_the_api_server_does_not_know_of_a_replacement_a_command_waits() -> None:
    """A watch that lags behind must not look like a replacement that was deleted."""
    heard, faults = Heard(), Faults()

    async def story() -> tuple[int, bool]:
        world = World()
        world.start()
        make_pool(world)
        feed = FaultyFeed(world.objects, faults)
        async with disrupting(world, heard, feed=feed) as stage:
            await make_busy_nodes(world)
            drift(world, "web-1")
            await until(lambda: len(stage.commands) > 0)
            faults.add(InjectedFault(calls=("event",), kind=NODE_CLAIM, delay_seconds=30))
            await asyncio.sleep(20)
            held = len(stage.commands)
            faults.clear()
            await until(lambda: "web-1" not in claims_in(world))
        world.stop()
        return held, "web-1" in claims_in(world)

    assert run(story()) == (1, False)
    assert heard.counted("voluntary_disruption_queue_failures_total") == 0


class Broken:
    """A method with a bug."""

    name = "broken"
    reason = DisruptionReason.UNDERUTILIZED
    consolidation_type = ""
    disruption_class = DisruptionClass.GRACEFUL
    is_validated = True

    def propose(self, evaluation: Evaluation) -> Proposal:
        raise ZeroDivisionError(evaluation.now)

    def validate(self, command: Command, evaluation: Evaluation) -> Validation:
        raise ZeroDivisionError(command.id, evaluation.now)


def test_a_method_with_a_mistake_keeps_no_other_from_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = Heard()
    monkeypatch.setattr(decide, "METHODS", (Broken(), *decide.METHODS))

    async def story() -> bool:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, heard):
            await make_nodes(world, "web-1")
            await until(lambda: is_empty(world))
        world.stop()
        return is_empty(world)

    assert run(story())
    assert {type(each) for each in heard.failures} == {Unexpected}


class Mistaken(EmbeddedObjects):
    """An API server whose list of pods raises a bug."""

    async def list(
        self, kind: Kind, query: Query = EVERYTHING, *, limit: int = 0, token: str = ""
    ) -> Page:
        if kind == POD:
            raise ZeroDivisionError
        return await super().list(kind, query, limit=limit, token=token)


def test_a_command_with_a_mistake_is_given_up_and_comes_again_ever_later() -> None:
    heard = Heard()

    async def story() -> tuple[list[str], list[str]]:
        world = World()
        world.start()
        make_pool(world)
        async with disrupting(world, heard, Mistaken(world.store)):
            await make_nodes(world, "web-1")
            await asyncio.sleep(3600)
            found = claims_in(world), tainted(world)
        world.stop()
        return found

    assert run(story()) == (["web-1"], [])
    assert {type(each) for each in heard.failures} == {Unexpected}
    assert 5 < len(heard.failures) < 15


def test_a_drifted_node_is_replaced_though_some_node_is_always_empty() -> None:
    async def story() -> bool:
        world = World()
        world.start()
        make_pool(world, consolidateAfter="0s")
        async with disrupting(world, Heard()):
            await make_busy_nodes(world)
            drift(world, "web-1")
            for number in range(40):
                world.store.create(NODE_CLAIM, claim(f"empty-{number}"))
                await asyncio.sleep(8)
            found = "web-1" in claims_in(world)
        world.stop()
        return found

    assert not run(story())
