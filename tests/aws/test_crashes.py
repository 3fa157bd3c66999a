"""An operator killed at a call to AWS: the next one finishes, and leaves nothing behind."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import pytest

from karpy.model.kinds import DEPLOYMENT, EC2_NODE_CLASS, NODE_POOL, Kind
from karpy.sim.crashes import Life
from karpy.sim.faults import Faults
from karpy.sim.loop import run
from tests.aws.manifests import ec2_node_class, ec2_pool
from tests.aws.stage import AwsStage, aws_stage
from tests.scenarios.manifests import deployment

T = TypeVar("T")

FAMILY: Final = ("c6a",)
SECONDS_UNTIL_COLLECTED: Final = 300
BEFORE: Final = "before it reaches AWS"
AFTER: Final = "before its answer is seen"
SHIFTS: Final = 4
"""So many tests share the calls, for several cores."""


class Deadly(Faults):
    """Ends a life at the n-th call."""

    def __init__(self, nth: int, when: str) -> None:
        super().__init__()
        self.life = Life()
        self.calls: list[str] = []
        self._nth = nth
        self._when = when

    async def around(self, call: str, kind: Kind | None, do: Callable[[], Awaitable[T]]) -> T:
        if self.life.is_over:
            return await super().around(call, kind, do)
        self.calls.append(call)
        is_last = len(self.calls) == self._nth
        if is_last and self._when == BEFORE:
            self._die()
        answer = await super().around(call, kind, do)
        if is_last:
            self._die()
        return answer

    def _die(self) -> None:
        self.life.end()
        raise asyncio.CancelledError


async def story(nth: int, when: str) -> list[str]:
    """Have a machine come and everything go, with a death on the way; return the calls made."""
    deadly = Deadly(nth, when)
    async with aws_stage(FAMILY, has_operator=False) as stage:
        stage.aws_faults = deadly
        stage.hire(deadly.life)
        succession = asyncio.create_task(_succeed(stage))
        stage.apply(EC2_NODE_CLASS, ec2_node_class())
        stage.apply(NODE_POOL, ec2_pool())
        stage.apply(DEPLOYMENT, deployment(replicas=2))
        await stage.until_running("inflate", 2)
        await stage.until(lambda: len(stage.ec2.alive()) == 1, SECONDS_UNTIL_COLLECTED)
        [claim] = stage.claims
        [instance] = stage.ec2.alive()
        assert claim["status"]["providerID"].endswith(instance["InstanceId"])
        assert stage.ec2.launched <= 2

        stage.delete(DEPLOYMENT, "inflate")
        stage.delete(NODE_POOL, "default")
        stage.delete(EC2_NODE_CLASS, "default")
        await stage.until(lambda: not stage.store.list(EC2_NODE_CLASS))
        await stage.until_clean()
        succession.cancel()
    return deadly.calls


async def _succeed(stage: AwsStage) -> None:
    await stage.died()
    stage.hire()


def test_the_story_without_a_death_starts_one_machine() -> None:
    calls = run(story(0, BEFORE))

    assert calls.count("CreateFleet") == 2, "one is a dry run"
    assert calls.count("TerminateInstances") == 1


@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize("shift", range(SHIFTS))
def test_the_next_leader_finishes_the_work_of_a_crashed_one(when: str, shift: int) -> None:
    calls = len(run(story(0, BEFORE)))

    for nth in range(1 + shift, calls + 1, SHIFTS):
        run(story(nth, when))
