"""Whatever happens to the cluster, a command ends, and deletes no node too early."""

from datetime import timedelta
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.core.disruption.progress import (
    NodeChange,
    Progress,
    advance,
    fail_launch,
    start,
    with_claim_names,
)
from karpy.core.disruption.taints import find_orphaned_taints
from karpy.model.commands import Command, CommandNode, Replacement, Stage
from karpy.model.constraints import is_disrupted
from karpy.model.nodes import join_node
from karpy.model.pools import DisruptionReason
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch
from tests.builders.pods import NOON
from tests.core.disruption.scenes import cluster, node, only_claim

TICK: Final = timedelta(seconds=20)
LAUNCH: Final = Launch("web-1", "web", (), {}, {}, ())
EVENTS: Final = ("nothing", "writes fail", "one boots", "one vanishes", "a node vanishes")
QUIET: Final = ("nothing",) * 60
"""Long enough for every time-out."""


class World:
    """A cluster that carries out what a command requests, unless a test interferes."""

    def __init__(self, command: Command) -> None:
        self.now = NOON
        self.nodes = {each.claim: node(each.node) for each in command.nodes}
        self.deleted: list[str] = []
        self.early: list[str] = []
        """Nodes that were deleted before a replacement was initialized."""
        self.decisions = 0.0
        self.command = self._carry_out(start(command, self.snapshot()), "nothing")

    def snapshot(self) -> Snapshot:
        return cluster(*self.nodes.values(), now=self.now)

    def tick(self, event: str) -> None:
        """Let some time pass, and take the next step of the command."""
        self.now += TICK
        self._happen(event)
        self.command = self._carry_out(advance(self.command, self.snapshot()), event)

    def remove_orphaned_taints(self) -> None:
        """Remove the orphaned taints that a pass finds."""
        for stray, changes in list(find_orphaned_taints(self.snapshot())):
            self._write(NodeChange(stray.claim, stray.name, changes))

    def tainted(self) -> list[str]:
        """Return the nodes that are tainted but not deleted."""
        return [
            each.name
            for each in self.nodes.values()
            if not each.is_terminating and any(map(is_disrupted, each.taints))
        ]

    def _happen(self, event: str) -> None:
        booting = [name for name, each in self.nodes.items() if not each.is_initialized]
        if event == "one boots" and booting:
            self.nodes[booting[0]] = node(booting[0].removesuffix("-claim"))
        if event == "one vanishes" and booting:
            del self.nodes[booting[0]]
        known = [each.claim for each in self.command.nodes if each.claim in self.nodes]
        if event == "a node vanishes" and known:
            del self.nodes[known[0]]

    def _carry_out(self, progress: Progress, event: str) -> Command:
        self.decisions += sum(
            each.value
            for each in progress.outcome.counts
            if each.metric == "voluntary_disruption_decisions_total"
        )
        if not all(each.is_initialized for each in progress.command.replacements):
            self.early += [each.claim for each in progress.changes if each.changes.deletes_claim]
        if event == "writes fail":
            if progress.launches:
                ended = fail_launch(progress.command, self.snapshot())
                return self._carry_out(ended, "nothing")
            return progress.command
        for each in progress.changes:
            self._write(each)
        return self._launched(progress)

    def _launched(self, progress: Progress) -> Command:
        if not progress.launches:
            return progress.command
        names = [f"new-{number}-claim" for number in range(len(progress.launches))]
        for name in names:
            claim = only_claim(name.removesuffix("-claim"), initialized=False)
            self.nodes[name] = claim
        return with_claim_names(progress.command, names)

    def _write(self, change: NodeChange) -> None:
        before = self.nodes[change.claim]
        assert before.claim_record is not None
        claim = change.changes.claim or before.claim_record
        if change.changes.deletes_claim:
            self.deleted.append(change.claim)
            claim = replace(claim, meta=replace(claim.meta, deleted=self.now))
        self.nodes[change.claim] = join_node(change.changes.node or before.node_record, claim)


@st.composite
def commands(draw: st.DrawFn) -> Command:
    """Draw a command on one to three nodes, with up to two replacements."""
    names = [f"old-{number}" for number in range(draw(st.integers(1, 3)))]
    return Command(
        "drift",
        DisruptionReason.DRIFTED,
        tuple(CommandNode(each, f"{each}-claim", "web") for each in names),
        (Replacement(LAUNCH),) * draw(st.integers(0, 2)),
        id="id-1",
    )


events = st.lists(st.sampled_from(EVENTS), max_size=15)


def lived(command: Command, happening: list[str]) -> World:
    """Return the world after a command has had all the time that it may take."""
    world = World(command)
    for event in (*happening, *QUIET):
        world.tick(event)
    return world


@given(commands(), events)
@settings(max_examples=300)
def test_every_command_ends(command: Command, happening: list[str]) -> None:
    assert lived(command, happening).command.is_over


@given(commands(), events)
@settings(max_examples=300)
def test_no_node_is_deleted_before_its_replacements_are_initialized(
    command: Command, happening: list[str]
) -> None:
    assert lived(command, happening).early == []


@given(commands(), events)
@settings(max_examples=300)
def test_no_node_that_stays_is_tainted_in_the_end(command: Command, happening: list[str]) -> None:
    world = lived(command, happening)

    world.remove_orphaned_taints()

    assert world.tainted() == []


@given(commands(), events)
@settings(max_examples=300)
def test_a_decision_that_deletes_anything_is_counted_once(
    command: Command, happening: list[str]
) -> None:
    world = lived(command, happening)

    assert world.decisions <= 1.0
    assert world.decisions == 1.0 or world.deleted == []


@given(commands())
def test_a_command_that_nothing_disturbs_deletes_all_its_nodes(command: Command) -> None:
    world = lived(command, ["nothing", "one boots", "one boots"])

    assert world.command.stage is Stage.DONE
    assert sorted(world.deleted) == [each.claim for each in command.nodes]
