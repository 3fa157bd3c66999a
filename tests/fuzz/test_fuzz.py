"""Decisions on a few hundred random clusters; `python -m tests.fuzz` tries more."""

import pytest

from karpy.model.settings import Packing
from tests.fuzz.clusters import random_snapshot, raw_snapshot
from tests.fuzz.judge import DECIDE, judge, missing

SEEDS = 400
SEEDS_PER_TEST = 20


@pytest.mark.parametrize("start", range(0, SEEDS, SEEDS_PER_TEST))
def test_every_decision_follows_the_law(start: int) -> None:
    assert DECIDE not in missing(), "there is no solver yet"

    wrong = {
        f"python -m tests.fuzz --seed {seed}": [str(finding) for finding in findings]
        for seed in range(start, start + SEEDS_PER_TEST)
        if (findings := judge(raw_snapshot(seed)))
    }

    assert wrong == {}


@pytest.mark.parametrize("start", range(0, SEEDS // 2, SEEDS_PER_TEST))
def test_every_decision_that_looks_for_the_cheapest_plan_follows_the_law(start: int) -> None:
    wrong = {
        f"python -m tests.fuzz --seed {seed} --packing cheapest": [
            str(finding) for finding in findings
        ]
        for seed in range(start, start + SEEDS_PER_TEST)
        if (findings := judge(raw_snapshot(seed, Packing.CHEAPEST)))
    }

    assert wrong == {}


def test_a_seed_gives_the_same_cluster_every_time() -> None:
    assert random_snapshot(7) == random_snapshot(7)
    assert random_snapshot(7) != random_snapshot(8)
