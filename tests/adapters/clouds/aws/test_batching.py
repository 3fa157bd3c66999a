import asyncio
from collections.abc import Sequence

import pytest

from karpy.adapters.clouds.aws.batching import BatchWindow, CallBatcher
from karpy.adapters.clouds.aws.soldout import Lapsing
from karpy.errors import CloudUnavailable, Unexpected
from karpy.sim.clock import LoopClock
from karpy.sim.loop import run
from tests.adapters.clouds.aws.accounts import START

WINDOW = BatchWindow(idle=0.1, longest=1.0, items=5)


class Doubler:
    """Answers with twice the item, and remembers what came together."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.batches: list[tuple[str, list[int]]] = []
        self._problem = problem

    async def __call__(self, key: str, items: Sequence[int]) -> Sequence[int | BaseException]:
        self.batches.append((key, list(items)))
        await asyncio.sleep(1)
        if self._problem is not None:
            raise self._problem
        return [ValueError("odd") if each % 2 else each * 2 for each in items]


def test_calls_that_come_together_are_made_as_one() -> None:
    doubler = Doubler()

    async def story() -> list[int]:
        batcher: CallBatcher[str, int, int] = CallBatcher(doubler, WINDOW)
        return await asyncio.gather(*(batcher.ask("a", each) for each in (2, 4)))

    assert run(story()) == [4, 8]
    assert doubler.batches == [("a", [2, 4])]


def test_keys_are_kept_apart_and_a_full_batch_goes_at_once() -> None:
    doubler = Doubler()

    async def story() -> float:
        batcher: CallBatcher[str, int, int] = CallBatcher(doubler, WINDOW)
        asked = [batcher.ask("a", 2) for _ in range(5)] + [batcher.ask("b", 4)]
        begin = asyncio.get_running_loop().time()
        first = asyncio.gather(*asked[:5])
        last = asyncio.ensure_future(asked[5])
        await first
        took = asyncio.get_running_loop().time() - begin
        await last
        return took

    took = run(story())

    assert sorted(doubler.batches) == [("a", [2] * 5), ("b", [4])]
    assert took == pytest.approx(1.0)


def test_a_batch_ends_although_callers_keep_coming() -> None:
    doubler = Doubler()

    async def story() -> None:
        batcher: CallBatcher[str, int, int] = CallBatcher(doubler, BatchWindow(0.1, 1.0, 1000))
        tasks = []
        for _ in range(30):
            tasks.append(asyncio.ensure_future(batcher.ask("a", 2)))
            await asyncio.sleep(0.05)
        await asyncio.gather(*tasks)

    run(story())

    assert len(doubler.batches) == 2


def test_each_caller_gets_its_own_error() -> None:
    async def story() -> list[object]:
        batcher: CallBatcher[str, int, int] = CallBatcher(Doubler(), WINDOW)
        asked = (batcher.ask("a", each) for each in (2, 3))
        return await asyncio.gather(*asked, return_exceptions=True)

    first, second = run(story())

    assert first == 4
    assert isinstance(second, ValueError)


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (CloudUnavailable(call="x", problem="y"), CloudUnavailable),
        (LookupError("slip"), Unexpected),
    ],
)
def test_a_call_that_fails_fails_for_all(problem: Exception, kind: type[Exception]) -> None:
    async def story() -> list[object]:
        batcher: CallBatcher[str, int, int] = CallBatcher(Doubler(problem), WINDOW)
        asked = (batcher.ask("a", each) for each in (2, 4))
        return await asyncio.gather(*asked, return_exceptions=True)

    assert [type(each) for each in run(story())] == [kind, kind]


def test_closing_cancels_who_waits() -> None:
    async def story() -> bool:
        batcher: CallBatcher[str, int, int] = CallBatcher(Doubler(), WINDOW)
        task = asyncio.ensure_future(batcher.ask("a", 2))
        await asyncio.sleep(0.5)
        await batcher.close()
        await asyncio.wait([task])
        return task.cancelled()

    assert run(story())


def test_what_is_sold_out_is_asked_for_again_after_three_minutes() -> None:
    async def story() -> list[bool]:
        kept: Lapsing[str] = Lapsing(LoopClock(START))
        kept.add("a")
        kept.add("b")
        kept.discard("b")
        told = ["a" in kept, "b" in kept]
        await asyncio.sleep(179)
        told.append(kept.members() == {"a"})
        await asyncio.sleep(2)
        return [*told, "a" in kept, bool(kept.members())]

    assert run(story()) == [True, False, True, False, False]
