"""Commands under way, and how long nodes are left alone after one that failed."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.controllers.clusterstate import Commands
from karpy.model.commands import Command, CommandNode, Replacement, Stage
from karpy.model.pools import DisruptionReason
from karpy.model.verdicts import Launch
from tests.builders import NOON

LAUNCH = Launch("1", "web", (), {}, {}, ())
COMMAND = Command(
    "drift",
    DisruptionReason.DRIFTED,
    (CommandNode("n1", "web-1", "web"), CommandNode("n2", "web-2", "web")),
    (Replacement(LAUNCH, "web-3"),),
    id="one",
)
BOTH = {"web-1", "web-2"}


def holding(stage: Stage) -> Commands:
    commands = Commands()
    commands.keep(replace(COMMAND, stage=stage))
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

    commands.keep(replace(COMMAND, stage=stage))

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
