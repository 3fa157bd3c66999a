"""A handful of stories; `make swarm` plays more of them."""

from dataclasses import replace

import pytest

from tests.swarm.play import play, random_story


@pytest.mark.parametrize("seed", range(8))
def test_every_law_holds_in_a_random_story(seed: int) -> None:
    ending = play(random_story(seed))

    assert ending.findings == []


@pytest.mark.parametrize("seed", range(2))
def test_launches_for_an_unplaceable_pod_become_rarer_and_other_pods_run(
    seed: int,
) -> None:
    story = replace(random_story(seed), has_closed_pool=True, seconds=1800)

    assert play(story).findings == []


def test_equal_seeds_give_equal_stories() -> None:
    first, second = (play(random_story(3), has_timeline=True).timeline for _ in range(2))

    assert first == second
