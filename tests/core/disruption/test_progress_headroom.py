from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from karpy.core.disruption.progress import FORMING_TIME, Headroom, advance, find_headroom
from karpy.model.commands import Command, CommandNode, Replacement, Stage
from karpy.model.nodes import Node
from karpy.model.pools import DisruptionReason
from karpy.model.verdicts import Launch, LaunchOption
from tests.builders import NOON, catalog, node, pool, snapshot

SMALL = LaunchOption("m.large", 100_000, "zone-a", "on-demand")
LARGE = LaunchOption("m.xlarge", 200_000, "zone-a", "on-demand")
COMMAND = Command(
    "drift",
    DisruptionReason.DRIFTED,
    (CommandNode("old", "old-claim", "default"),),
    (Replacement(Launch("default-0", "default", (), {}, {}, (SMALL, LARGE))),),
    begun=NOON,
)
OLD = node("old")


def headroom(limits: Mapping[str, str], *others: Node, command: Command = COMMAND) -> Headroom:
    pools = [pool(limits=limits), pool("other", limits={"cpu": "1"})]
    return find_headroom(command, snapshot(nodes=(OLD, *others), pools=pools))


def test_the_types_are_as_large_as_said() -> None:
    sizes = {each.name: each.capacity["cpu"] for each in catalog().types}

    assert (sizes[SMALL.instance_type], sizes[LARGE.instance_type]) == (2000, 4000)


@pytest.mark.parametrize(
    ("limits", "others", "exceeded"),
    [
        ({}, (), ""),
        ({"cpu": "4"}, (), ""),
        ({"cpu": "3"}, (), "default"),
        ({"cpu": "8"}, (node("a"),), ""),
        ({"cpu": "7"}, (node("a"),), "default"),
        ({"cpu": "4"}, (node("a", deleting=True),), ""),
        ({"cpu": "4"}, (node("a", pool="other"),), ""),
        ({"nodes": "1"}, (), ""),
        ({"nodes": "1"}, (node("a"),), "default"),
        ({"cpu": "100", "nodes": "1"}, (node("a"),), "default"),
    ],
)
def test_the_largest_type_of_a_replacement_must_fit_beside_all_nodes_that_stay(
    limits: Mapping[str, str], others: tuple[Node, ...], exceeded: str
) -> None:
    assert headroom(limits, *others) == Headroom(exceeded)


def test_the_headroom_is_unknown_until_all_machines_are_launched() -> None:
    coming = replace(node("a"), capacity={"nodes": 1})

    assert headroom({"cpu": "100"}, coming) == Headroom(is_known=False)
    assert headroom({}, coming) == Headroom()


def test_a_replacement_of_a_static_pool_is_not_limited_here() -> None:
    launch = Launch("default-0", "default", (), {}, {}, ())
    command = replace(COMMAND, replacements=(Replacement(launch),))

    assert headroom({"nodes": "1"}, node("a"), command=command) == Headroom()


@pytest.mark.parametrize(
    ("others", "stage", "launches"),
    [
        ((), Stage.LAUNCHING, 1),
        ((replace(node("a"), capacity={"nodes": 1}),), Stage.LAUNCHING, 0),
        ((node("a"),), Stage.FAILED, 0),
    ],
    ids=["room", "not known yet", "no room any more"],
)
def test_a_replacement_is_launched_only_within_the_limits_of_now(
    others: tuple[Node, ...], stage: Stage, launches: int
) -> None:
    command = replace(COMMAND, stage=Stage.LAUNCHING)
    seen = snapshot(nodes=(OLD, *others), pools=[pool(limits={"cpu": "4"})])

    progress = advance(command, seen)

    assert progress.command.stage is stage
    assert len(progress.launches) == launches


def test_a_command_without_its_machine_fails_in_the_end() -> None:
    coming = replace(node("a"), capacity={"nodes": 1})
    seen = snapshot(nodes=(OLD, coming), pools=[pool(limits={"cpu": "4"})])
    command = replace(COMMAND, stage=Stage.LAUNCHING)

    progress = advance(command, replace(seen, now=NOON + 2 * FORMING_TIME))

    assert progress.command.stage is Stage.FAILED
