from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.model.commands import Command, CommandNode, DisruptionVerdict, Replacement, Stage
from karpy.model.nodes import RepairAction
from karpy.model.pools import DisruptionReason
from karpy.model.verdicts import Launch, LaunchOption

A = CommandNode("a", "a-claim", "web", 1_000_000, 2)
B = CommandNode("b", "b-claim", "batch", 4_000_000)
REPLACEMENT = Replacement(
    Launch("web-1", "web", (), {}, {}, (LaunchOption("small", 250_000, "zone-a", "spot"),))
)
UNPRICED = Replacement(Launch("web-1", "web", (), {}, {}, ()))
COMMAND = Command("emptiness", DisruptionReason.EMPTY, (B, A), id="id-1")
REBOOT = replace(COMMAND, nodes=(replace(A, action=RepairAction.REBOOT),))


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (COMMAND, "delete: nodepools=[batch,web]: [b, a] (savings: $5.00)"),
        (
            replace(COMMAND, replacements=(REPLACEMENT,)),
            "replace: nodepools=[batch,web]: [b, a] -> [1 replacement] (savings: $4.75)",
        ),
        (
            replace(COMMAND, nodes=(A,), replacements=(REPLACEMENT, REPLACEMENT)),
            "replace: nodepools=[web]: [a] -> [2 replacements] (savings: $0.50)",
        ),
        (
            replace(COMMAND, nodes=(A,), terminates_first="static-at-limit"),
            "terminate-first: nodepools=[web]: [a] (savings: $1.00)",
        ),
        (REBOOT, "reboot: nodepools=[web]: [a] (savings: $0.00)"),
        (replace(COMMAND, nodes=()), "no-op: nodepools=[]: [] (savings: $0.00)"),
        (
            replace(COMMAND, nodes=(A,), replacements=(UNPRICED,)),
            "replace: nodepools=[web]: [a] -> [1 replacement] (savings: $0.00)",
        ),
    ],
)
def test_a_command_is_written_as_logs_of_karpenter_have_it(command: Command, text: str) -> None:
    assert str(command) == f"Empty/id-1: {text}"
    assert command.decision == text.partition(":")[0]


def test_a_replacement_that_is_dearer_costs_more_than_it_saves() -> None:
    """Drift and repair replace nodes at any price."""
    cheap = replace(A, price=100_000)

    assert replace(COMMAND, nodes=(cheap,), replacements=(REPLACEMENT,)).savings == -150_000


@pytest.mark.parametrize(
    ("stage", "is_forming", "is_over", "is_deleting"),
    [
        (Stage.PROPOSED, True, False, False),
        (Stage.TAINTING, True, False, False),
        (Stage.LAUNCHING, True, False, False),
        (Stage.WAITING, False, False, True),
        (Stage.DONE, False, True, False),
        (Stage.ABANDONED, False, True, False),
        (Stage.FAILED, False, True, False),
    ],
)
def test_a_stage_says_whether_others_may_be_proposed_and_pods_need_another_node(
    stage: Stage, *, is_forming: bool, is_over: bool, is_deleting: bool
) -> None:
    command, claims = replace(COMMAND, stage=stage), frozenset({"a-claim", "b-claim"})

    assert (command.is_forming, command.is_over) == (is_forming, is_over)
    assert command.deleting == (claims if is_deleting else frozenset())
    assert command.claims == (frozenset() if is_over else claims)


def test_only_a_reboot_keeps_its_node() -> None:
    assert REBOOT.is_reboot
    assert not COMMAND.is_reboot
    assert replace(A, drain_bound=timedelta()).action is RepairAction.REPLACE


def test_a_verdict_has_the_nodes_of_all_its_commands() -> None:
    commands = (replace(COMMAND, nodes=(A,)), replace(COMMAND, nodes=(B,)))

    assert DisruptionVerdict("static-drift", commands).nodes == (A, B)
