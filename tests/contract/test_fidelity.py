"""Random clusters on which the embedded scheduler, kube-scheduler and the core agree."""

from dataclasses import replace
from pathlib import Path

import pytest

from karpy.adapters.controlplane.plane import ControlPlane
from karpy.sim.loop import run
from tests.fidelity.clusters import Cluster, random_cluster
from tests.fidelity.embeddedworld import embedded_world
from tests.fidelity.judge import examine
from tests.fidelity.known import Known
from tests.fidelity.realworld import real_world
from tests.fidelity.stories import Difference, Step, ask_together, follow
from tests.fidelity.worlds import Answer

SEEDS = 300
SEEDS_PER_TEST = 30
PAGE = Path(__file__).parents[2] / "docs/fidelity.md"


@pytest.mark.parametrize("start", range(0, SEEDS, SEEDS_PER_TEST))
async def test_every_pod_is_answered_alike(control_plane: ControlPlane, start: int) -> None:
    async with real_world(control_plane) as real:
        outcomes = {
            f"python -m tests.fidelity --seed {seed}": await examine(real, random_cluster(seed))
            for seed in range(start, start + SEEDS_PER_TEST)
        }

    wrong = {
        seed: [str(each) for each in outcome.findings]
        for seed, outcome in outcomes.items()
        if outcome.findings
    }
    assert wrong == {}


def test_a_seed_gives_the_same_cluster_every_time() -> None:
    assert random_cluster(7) == random_cluster(7)
    assert random_cluster(7) != random_cluster(8)


async def led(cluster: Cluster) -> list[Step]:
    """Return the steps of the embedded scheduler."""
    async with embedded_world() as world:
        await world.settle(cluster)
        return await ask_together(world, cluster)


async def followed(cluster: Cluster, steps: list[Step]) -> list[Difference]:
    """Repeat steps on the embedded scheduler, and return the differences."""
    async with embedded_world() as world:
        await world.settle(cluster)
        return await follow(world, steps)


def test_a_scheduler_agrees_with_itself() -> None:
    steps = run(led(random_cluster(0)))

    differences = run(followed(random_cluster(0), steps))

    assert differences == []


@pytest.mark.parametrize("wrong", [Answer(why="no"), Answer("s0-n2")])
def test_a_wrong_answer_is_one_difference(wrong: Answer) -> None:
    steps = run(led(random_cluster(0)))
    mistaken = replace(steps[1], answer=wrong)

    differences = run(followed(random_cluster(0), [steps[0], mistaken, *steps[2:]]))

    assert differences == [Difference(mistaken, steps[1].answer)]


def test_every_known_difference_is_explained() -> None:
    page = PAGE.read_text(encoding="utf-8")

    missing = [each.name for each in Known if f"| `{each.name}` | {each.value}" not in page]

    assert missing == []
