"""A handful of stories; `make swarm` plays more of them."""

from dataclasses import replace

import pytest

from tests.swarm.play import play, random_story


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_all_ends_well(seed: int) -> None:
    ending = play(random_story(seed))

    assert ending.findings == []


@pytest.mark.parametrize("seed", range(2))
def test_a_pod_that_gets_nowhere_is_launched_for_ever_more_rarely_and_all_else_runs(
    seed: int,
) -> None:
    story = replace(random_story(seed), is_shunning=True, seconds=1800)

    assert play(story).findings == []


def test_the_same_seed_tells_the_same_story() -> None:
    first, second = (play(random_story(3), is_told=True).timeline for _ in range(2))

    assert first == second
