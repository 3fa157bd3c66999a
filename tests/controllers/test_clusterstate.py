"""The snapshot of decisions: watched objects, commands and nominations."""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.codec.fields import JsonObject
from karpy.controllers.clusterstate import ClusterState, Commands, Promises
from karpy.controllers.nominations import ClaimNominations, NodeNominations
from karpy.model.commands import Command, CommandNode, Replacement, Stage
from karpy.model.kinds import NODE_CLAIM, POD
from karpy.model.nodes import Node
from karpy.model.pools import DisruptionReason
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch
from karpy.sim.world import World
from tests.builders import NOON, node, pod, snapshot
from tests.controllers.disruptions import disrupting, make_nodes, make_pool
from tests.controllers.operators import Heard, claim, context_of, node_of, until
from tests.controllers.test_provisioning import pod as pending_pod
from tests.sim.stories import living, on_virtual_time

COMMAND = Command(
    "emptiness", DisruptionReason.EMPTY, (CommandNode("n1", "web-1", "web"),), id="one"
)
LAUNCH = Launch("1", "web", (), {}, {}, ())
FIRST_COMMAND = Command(
    "drift",
    DisruptionReason.DRIFTED,
    (CommandNode("n1", "web-1", "web"), CommandNode("n2", "web-2", "web")),
    (Replacement(LAUNCH, "web-3"),),
    id="one",
)
BOTH = {"web-1", "web-2"}


class Told:
    """The port Cluster with one snapshot."""

    is_synced = True

    def __init__(self, seen: Snapshot) -> None:
        self._seen = seen

    async def wait_until_synced(self) -> None:
        return

    def snapshot(self) -> Snapshot:
        return self._seen

    async def apply(self, launch: Launch) -> str:
        return launch.name


def by_name(seen: Snapshot) -> dict[str, Node]:
    return {each.name: each for each in seen.nodes}


@on_virtual_time
async def test_a_node_goes_as_soon_as_its_command_waits_for_replacements() -> None:
    with living(World()) as world:
        make_pool(world)
        async with disrupting(world, Heard()) as stage:
            await make_nodes(world, "web-1", "web-2")
            first, second = node_of(world, "web-1"), node_of(world, "web-2")
            stage.commands.keep(replace(COMMAND, stage=Stage.TAINTING))
            early = stage.state.snapshot()
            stage.commands.keep(replace(COMMAND, stage=Stage.WAITING, begun=early.now))
            late = stage.state.snapshot()

    assert early.in_command == late.in_command == {"web-1"}
    assert [by_name(early)[each].is_deleting for each in (first, second)] == [False, False]
    assert [by_name(late)[each].is_deleting for each in (first, second)] == [True, False]


@on_virtual_time
async def test_a_node_of_a_failed_command_is_left_alone_for_a_while() -> None:
    with living(World()) as world:
        async with disrupting(world, Heard()) as stage:
            now = world.clock.now()
            stage.commands.back_off(now, ["web-1"])
            early = stage.state.snapshot().command_backoffs
            await asyncio.sleep(20)
            late = stage.state.snapshot().command_backoffs

    assert early == {"web-1": now + timedelta(seconds=20)}
    assert late == {}


@on_virtual_time
async def test_a_nomination_counts_by_the_name_of_the_node_and_of_its_claim() -> None:
    with living(World()) as world:
        make_pool(world)
        async with disrupting(world, Heard()) as stage:
            await make_nodes(world, "web-1", "web-2", "web-3")
            stage.nominations.note("web-1")
            stage.nominations.note(node_of(world, "web-2"))
            seen = by_name(stage.state.snapshot())
            nominated = [
                seen[node_of(world, name)].is_nominated(world.clock.now())
                for name in ("web-1", "web-2", "web-3")
            ]

    assert nominated == [True, True, False]


@on_virtual_time
async def test_pods_of_buffers_are_there_and_count_on_their_nodes() -> None:
    virtual = replace(pod("room"), is_virtual=True)
    async with context_of(World(), Heard()) as context:
        state = ClusterState(
            Told(snapshot(nodes=[node("a"), node("b")], pods=[pod("x")])),
            Promises(
                Commands(),
                NodeNominations(context.clock),
                ClaimNominations(context.records, context.clock),
            ),
            virtual_pods=lambda: (virtual,),
            buffer_pods={"a": 2, "b": 0}.__getitem__,
        )
        seen = state.snapshot()

    assert [each.name for each in seen.pods] == ["x", "room"]
    assert {each.name: each.buffer_pods for each in seen.nodes} == {"a": 2, "b": 0}


@on_virtual_time
async def test_nodes_of_other_providers_are_foreign() -> None:
    with living(World()) as world:
        world.store.create(NODE_CLAIM, claim())
        async with disrupting(world, Heard()) as stage:
            promises = Promises(
                stage.commands,
                stage.nominations,
                ClaimNominations(stage.context.records, world.clock),
            )
            state = ClusterState(stage.state, promises, is_ours=lambda _: False)
            await asyncio.sleep(1)
            foreign = [each.is_foreign for each in state.snapshot().nodes]

    assert foreign == [True]


@on_virtual_time
async def test_a_pod_on_its_way_to_a_node_counts_there() -> None:
    with living(World(parts=())) as world:
        world.store.create(POD, pending_pod("a", "1"))
        async with disrupting(world, Heard()) as stage:
            claim_nominations = ClaimNominations(stage.context.records, world.clock)
            state = ClusterState(
                stage.state, Promises(stage.commands, stage.nominations, claim_nominations)
            )
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(15)
            before = [each.node_name for each in state.snapshot().pods]
            claim_nominations.note("web-1", Launch("1", "web", ("default/a",), {}, {}, ()))
            after = [(each.node_name, each.is_expected) for each in state.snapshot().pods]
            name = state.snapshot().nodes[0].name

    assert before == [""]
    assert after == [(name, True)]


def numbered_pod(node: str = "") -> JsonObject:
    """Build the first pod of a StatefulSet."""
    made = pending_pod("db-0", "1")
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1"}
    made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    made["spec"] |= {"nodeName": node, "terminationGracePeriodSeconds": 0}
    return made


@on_virtual_time
async def test_a_replacement_keeps_the_place_of_a_pod_until_its_successor_is_bound() -> None:
    with living(World(parts=())) as world:
        world.store.create(POD, numbered_pod("old"))
        async with disrupting(world, Heard()) as stage:
            state, found = stage.state, []

            async def look() -> None:
                await asyncio.sleep(1)
                found.append([(each.node_name, each.is_expected) for each in state.snapshot().pods])

            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(15)
            state.note_replacement("web-1", Launch("1", "web", ("default/db-0",), {}, {}, ()))
            name = state.snapshot().nodes[0].name
            await look()
            world.store.delete(POD, "db-0", namespace="default")
            await look()
            world.store.create(POD, numbered_pod())
            await look()
            await asyncio.sleep(10)
            await look()
            world.store.delete(POD, "db-0", namespace="default")
            await look()
            world.store.create(POD, numbered_pod(name))
            await look()
            world.store.delete(POD, "db-0", namespace="default")
            await look()

    kept = [(name, True)]
    assert found == [[("old", False)], kept, kept, [("", False)], kept, [(name, False)], []]


@on_virtual_time
async def test_a_replacement_that_is_gone_keeps_no_place() -> None:
    with living(World(parts=())) as world:
        world.store.create(POD, numbered_pod("old"))
        async with disrupting(world, Heard()) as stage:
            world.store.create(NODE_CLAIM, claim())
            await asyncio.sleep(15)
            launch = Launch("1", "web", ("default/db-0",), {}, {}, ())
            stage.state.note_replacement("web-1", launch)
            world.store.delete(POD, "db-0", namespace="default")
            world.store.delete(NODE_CLAIM, "web-1")
            await asyncio.sleep(1)
            deleting = list(stage.state.snapshot().pods)
            await until(lambda: not world.store.list(NODE_CLAIM))
            await asyncio.sleep(1)
            gone = list(stage.state.snapshot().pods)

    assert (deleting, gone) == ([], [])


@on_virtual_time
async def test_reboots_are_remembered_until_they_count_no_more() -> None:
    async with disrupting(World(), Heard()) as stage:
        stage.state.note_reboot("u1", NOON, NOON - timedelta(hours=24))
        stage.state.note_reboot("u1", NOON + timedelta(hours=1), NOON - timedelta(hours=23))
        twice = stage.state.snapshot().repair.reboots
        stage.state.note_reboot("u2", NOON + timedelta(hours=25), NOON + timedelta(minutes=30))
        later = stage.state.snapshot().repair.reboots

    assert twice == {"u1": (NOON, NOON + timedelta(hours=1))}
    assert later == {
        "u1": (NOON + timedelta(hours=1),),
        "u2": (NOON + timedelta(hours=25),),
    }


def holding(stage: Stage) -> Commands:
    commands = Commands()
    commands.keep(replace(FIRST_COMMAND, stage=stage))
    return commands


@pytest.mark.parametrize(
    ("stage", "disrupting", "deleting", "is_forming"),
    [
        (Stage.PROPOSED, set(), set(), True),
        (Stage.TAINTING, BOTH, set(), True),
        (Stage.LAUNCHING, BOTH, set(), True),
        (Stage.WAITING, BOTH, BOTH, False),
    ],
)
def test_the_nodes_of_a_command_are_in_no_other_and_go_once_replacements_are_launched(
    stage: Stage, disrupting: set[str], deleting: set[str], *, is_forming: bool
) -> None:
    commands = holding(stage)

    assert commands.claims == BOTH
    assert commands.disrupting == disrupting
    assert commands.deleting == deleting
    assert commands.is_forming is is_forming
    assert commands.replacements == {"web-3"}


@pytest.mark.parametrize("stage", [Stage.DONE, Stage.ABANDONED, Stage.FAILED])
def test_a_command_that_is_over_is_dropped(stage: Stage) -> None:
    commands = holding(Stage.WAITING)

    commands.keep(replace(FIRST_COMMAND, stage=stage))

    assert (len(commands), commands.claims) == (0, frozenset())


def test_nodes_are_left_alone_for_longer_each_time_a_command_fails() -> None:
    commands, now, pauses = Commands(), NOON, []
    for _ in range(7):
        commands.back_off(now, ["web-1"])
        until = commands.backoffs(now)["web-1"]
        pauses.append((until - now).total_seconds())
        now = until

    assert pauses == [20, 40, 80, 160, 320, 600, 600]
    assert commands.backoffs(now) == {}


def test_a_failure_long_ago_is_forgotten() -> None:
    commands, later = Commands(), NOON + timedelta(hours=2)
    commands.back_off(NOON, ["web-1"])
    commands.back_off(NOON, ["web-1"])
    commands.backoffs(later)

    commands.back_off(later, ["web-1"])

    assert commands.backoffs(later) == {"web-1": later + timedelta(seconds=20)}
