"""What-if answers: where pods go without some nodes, as a full decision would place them."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from karpy.core.announcements import why
from karpy.core.scheduling.decide import decide
from karpy.core.scheduling.problem import Problem
from karpy.core.scheduling.whatif import Relocation, WhatIf
from karpy.model.settings import Packing, ReservedMode
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Nomination
from tests.fuzz.clusters import random_snapshot
from tests.reference.batch import is_protected

SEEDS = range(120)


def _full(cluster: Snapshot, gone: frozenset[str], mode: ReservedMode) -> Relocation:
    """Decide on all pods again, with the nodes deleting."""
    nodes = tuple(
        replace(each, is_deleting=True) if each.name in gone else each for each in cluster.nodes
    )
    settings = replace(cluster.settings, reserved_mode=mode, packing=Packing.KARPENTER)
    verdict = decide(replace(cluster, nodes=nodes, settings=settings))
    moved = {
        pod.key
        for pod in cluster.pods
        if pod.node_name in gone and pod.is_reschedulable and not pod.unreadable
    }
    deleting = {each.name for each in cluster.nodes if each.is_deleting}
    moved -= {
        pod.key
        for pod in cluster.pods
        if pod.node_name in deleting and pod.is_active and is_protected(pod, cluster.now)
    }
    launches = tuple(each for each in verdict.launches if moved.intersection(each.pods))
    placements = tuple(
        Nomination(each.node, keys)
        for each in verdict.nominations
        if (keys := tuple(key for key in each.pods if key in moved))
    )
    reasons = {key: why(each) for each in verdict.refusals for key in each.pods if key in moved}
    booting = {each.name for each in nodes if not each.is_initialized}
    reasons |= {
        key: f"would schedule against uninitialized node {each.node}"
        for each in placements
        if each.node in booting
        for key in each.pods
    }
    uids = {pod.key: pod.uid for pod in cluster.pods if pod.key not in moved}
    others = {
        uids[key]: each.node for each in verdict.nominations for key in each.pods if key in uids
    }
    return Relocation(
        launches,
        tuple(each.node for each in placements),
        tuple(sorted(f"{key}: {reason}" for key, reason in reasons.items())),
        placements,
        others if moved else {},
        pods=len(moved),
    )


def _without_waiting(cluster: Snapshot) -> Snapshot:
    """Leave out waiting pods: a what-if question places them first, a decision by size."""
    deleting = {each.name for each in cluster.nodes if each.is_deleting}
    stay = [
        pod
        for pod in cluster.pods
        if pod.is_virtual or (pod.node_name and pod.node_name not in deleting)
    ]
    return replace(cluster, pods=tuple(stay))


def _sets_of_nodes(cluster: Snapshot) -> Iterator[frozenset[str]]:
    """Yield each node with pods alone, then two of them together."""
    names = sorted(node.name for node in cluster.nodes)
    yield from (frozenset({name}) for name in names)
    yield from (frozenset(names[at : at + 2]) for at in range(0, len(names) - 1, 2))


@pytest.mark.parametrize("mode", ReservedMode)
@pytest.mark.parametrize("start", range(0, len(SEEDS), 20))
def test_a_what_if_answer_is_that_of_a_full_decision_without_the_nodes(
    start: int, mode: ReservedMode
) -> None:
    clusters = {seed: _without_waiting(random_snapshot(seed)) for seed in SEEDS[start : start + 20]}
    asked = {seed: WhatIf(Problem.of(each)) for seed, each in clusters.items()}

    wrong = [
        (seed, sorted(gone))
        for seed, each in clusters.items()
        for gone in _sets_of_nodes(each)
        if asked[seed].ask(gone, reserved_mode=mode, stops_early=False) != _full(each, gone, mode)
    ]

    assert wrong == []
