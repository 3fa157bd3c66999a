"""Command after command a cluster gets cheaper, until nothing is left to do, for ever."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest
from msgspec import Struct
from msgspec.structs import replace

from karpy.bench.consolidation import carry_out
from karpy.core.disruption.cost import Prices
from karpy.core.disruption.decide import decide_disruption
from karpy.model.commands import Command
from karpy.model.snapshot import DisruptionQuestion, Snapshot
from tests.core.disruption.draws import constrained_cluster, roomy_cluster
from tests.core.disruption.scenes import HOUR

WEEK = timedelta(days=7)
STEPS_MAX = 40
"""More commands than nodes of a drawn cluster can ever take."""


class Step(Struct, frozen=True):
    """A command, and the cluster before it and after it."""

    command: Command
    before: Snapshot
    after: Snapshot
    problems: tuple[str, ...]


def next_command(given: Snapshot) -> Command | None:
    commands = decide_disruption(DisruptionQuestion(given)).commands
    return commands[0] if commands else None


def history(given: Snapshot) -> list[Step]:
    """Carry out commands until there is none."""
    steps = list[Step]()
    while (command := next_command(given)) is not None and len(steps) < STEPS_MAX:
        applied = carry_out(given, command)
        steps.append(Step(command, given, applied.snapshot, applied.problems))
        given = applied.snapshot
    return steps


def drawn(seeds: Sequence[int]) -> Iterator[Snapshot]:
    """Draw clusters an hour after their last pod event, when every node is consolidatable."""
    for seed in seeds:
        for made in (constrained_cluster(seed), roomy_cluster(seed)):
            if any(each.claim for each in made.nodes) and not _has_overrides(made):
                yield replace(made, now=made.now + HOUR)


def _has_overrides(given: Snapshot) -> bool:
    """Say whether a type has another size in some offerings: prices alone decide nothing there."""
    return any(
        offering.capacity_override or offering.overhead_override
        for each in given.catalog.types
        for offering in each.offerings
    )


BATCHES = pytest.mark.parametrize("seeds", [range(at, at + 100) for at in range(0, 300, 100)])


@BATCHES
def test_a_cluster_comes_to_rest_and_stays_as_it_is_for_a_week(seeds: Sequence[int]) -> None:
    for given in drawn(seeds):
        steps = history(given)
        rest = steps[-1].after if steps else given

        assert len(steps) < STEPS_MAX
        assert next_command(replace(rest, now=rest.now + HOUR)) is None
        assert next_command(replace(rest, now=rest.now + WEEK)) is None


@BATCHES
def test_no_state_of_a_cluster_comes_back(seeds: Sequence[int]) -> None:
    """Each command lowers the price, or deletes a node without a price."""
    for given in drawn(seeds):
        prices = Prices(given.catalog)
        steps = history(given)
        states = [given, *(each.after for each in steps)]
        sizes = [(prices.total(each.nodes), len(each.nodes)) for each in states]

        assert sizes == sorted(set(sizes), reverse=True)


@BATCHES
def test_every_command_leaves_each_pod_a_legal_place_and_saves_what_it_claims(
    seeds: Sequence[int],
) -> None:
    # Emptiness searches no place: a pod that costs nothing to move may have none.
    problems = [
        problem
        for given in drawn(seeds)
        for each in history(given)
        for problem in each.problems
        if each.command.method != "emptiness"
    ]

    assert problems == []
