"""Emptiness and consolidation compared with the slow reference, which shares no code."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction

import pytest

from karpy.core.disruption.candidates import Candidate, find_candidates
from karpy.core.disruption.consolidation import Consolidation, find_eligible
from karpy.core.disruption.cost import POD
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import DisruptionMethod
from karpy.core.disruption.methods.emptiness import Emptiness
from karpy.core.disruption.methods.multinode import MultiNodeConsolidation
from karpy.core.disruption.methods.singlenode import SingleNodeConsolidation
from karpy.model.commands import Command
from karpy.model.snapshot import Snapshot
from tests.core.disruption.draws import (
    constrained_cluster,
    nodes_allowed,
    roomy_cluster,
    waiting_cluster,
)
from tests.reference import consolidation as law

Draw = Callable[[int], Snapshot]
Answer = tuple[tuple[str, ...], tuple[str, ...], int]
"""The nodes of a command, the types of its replacement, and what it saves."""

WORLDS = pytest.mark.parametrize(
    ("draw", "seeds"),
    [
        *((constrained_cluster, range(at, at + 300)) for at in range(0, 900, 300)),
        (roomy_cluster, range(300)),
        (waiting_cluster, range(300)),
    ],
)


def clusters(draw: Draw, seeds: Iterable[int]) -> Iterator[tuple[int, Snapshot]]:
    for seed in seeds:
        made = draw(seed)
        if any(each.claim for each in made.nodes):
            yield seed, made


def answer(command: Command | None) -> Answer | None:
    if command is None:
        return None
    options = (option for each in command.replacements for option in each.launch.options)
    types = tuple(each.instance_type for each in options)
    return tuple(each.node for each in command.nodes), types, command.savings


def lawful(command: law.Command | None) -> Answer | None:
    return None if command is None else (command.nodes, command.types, command.savings)


def proposed(method: DisruptionMethod, given: Snapshot) -> Answer | None:
    commands = method.propose(Evaluation(given)).commands
    return answer(commands[0] if commands else None)


@WORLDS
def test_candidates_their_prices_and_costs_are_those_of_the_reference(
    draw: Draw, seeds: Sequence[int]
) -> None:
    wrong = [
        seed
        for seed, given in clusters(draw, seeds)
        if [(each.name, each.price, Fraction(each.moving_cost, POD)) for each in candidates(given)]
        != [(each.name, each.price, each.cost) for each in law.find_candidates(given)]
    ]

    assert wrong == []


def candidates(given: Snapshot) -> Sequence[Candidate]:
    return find_candidates(Evaluation(given)).candidates


@WORLDS
def test_every_node_and_every_few_together_have_the_moves_of_the_reference(
    draw: Draw, seeds: Sequence[int]
) -> None:
    wrong = []
    for seed, given in clusters(draw, seeds):
        evaluation = Evaluation(given)
        eligible = find_eligible(evaluation, "").candidates
        by_law = [
            each for each in law.find_candidates(given) if law.may_be_consolidated(each, given)
        ]
        moves = Consolidation(evaluation, "", "")
        assert [each.name for each in eligible] == [each.name for each in by_law]
        wrong += [
            (seed, sorted(eligible[each].name for each in chosen))
            for chosen in _choices(len(eligible))
            if answer(moves.move([eligible[each] for each in chosen]).command)
            != lawful(law.command_for(given, [by_law[each] for each in chosen]))
        ]

    assert wrong == []


def _choices(count: int) -> Iterator[Sequence[int]]:
    """Choose each candidate alone, each with the next, and all together."""
    yield from ([each] for each in range(count))
    yield from ([each, each + 1] for each in range(count - 1))
    if count > 2:
        yield range(count)


@WORLDS
def test_emptiness_and_a_single_node_are_those_of_the_reference(
    draw: Draw, seeds: Sequence[int]
) -> None:
    wrong = []
    for seed, given in clusters(draw, seeds):
        allowed = dict(nodes_allowed(given))
        expected = law.empty_nodes(given, allowed), law.single_node(given, allowed)
        found = proposed(Emptiness(), given), proposed(SingleNodeConsolidation(), given)
        if found != (lawful(expected[0]), lawful(expected[1])):
            wrong.append(seed)

    assert wrong == []


@WORLDS
def test_several_nodes_save_as_much_as_those_of_the_reference(
    draw: Draw, seeds: Sequence[int]
) -> None:
    wrong = []
    for seed, given in clusters(draw, seeds):
        expected = lawful(law.several_nodes(given, dict(nodes_allowed(given))))
        found = proposed(MultiNodeConsolidation(), given)
        least = 0 if expected is None else expected[2]
        if (found is None and expected is not None) or (found is not None and found[2] < least):
            wrong.append(seed)
        if found is not None and found != expected:
            chosen = [each for each in law.find_candidates(given) if each.name in found[0]]
            again = lawful(law.command_for(given, chosen))
            if again is None or (set(again[0]), *again[1:]) != (set(found[0]), *found[1:]):
                wrong.append(seed)

    assert wrong == []
