import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any

import pytest

from karpy.controllers.queue import WorkQueue
from karpy.errors import Conflict, KarpyError, LimitPassed
from tests.adapters.kube.clocks import run


class Worker:
    """Takes down when each key was worked on; some keys fail a few times, some take long."""

    def __init__(self, *, fails: int = 0, takes: float = 0.0, again: float | None = None) -> None:
        self.fails = fails
        self.takes = takes
        self.again = again
        self.done: list[tuple[float, str]] = []
        self.busy: list[str] = []
        self.most_at_once = 0

    async def __call__(self, key: str) -> float | None:
        assert key not in self.busy
        self.busy.append(key)
        self.most_at_once = max(self.most_at_once, len(self.busy))
        self.done.append((round(asyncio.get_running_loop().time(), 2), key))
        await asyncio.sleep(self.takes)
        self.busy.remove(key)
        if self.fails:
            self.fails -= 1
            raise Conflict("another writer was faster")
        again, self.again = self.again, None
        return again


async def working(
    queue: WorkQueue, worker: Worker, script: Coroutine[Any, Any, None], workers: int = 1
) -> None:
    running = asyncio.create_task(queue.run(worker, workers=workers))
    await script
    queue.close()
    await running


def add_all(queue: WorkQueue, keys: str) -> None:
    for key in keys:
        queue.add(key)


def test_a_key_added_many_times_is_worked_on_once() -> None:
    async def story() -> list[tuple[float, str]]:
        queue, worker = WorkQueue(), Worker()
        queue.add("a")
        queue.add("b")
        queue.add("a")
        await working(queue, worker, asyncio.sleep(1))
        return worker.done

    assert run(story()) == [(0, "a"), (0, "b")]


def test_a_key_added_while_it_is_worked_on_is_worked_on_again_afterwards() -> None:
    async def story() -> list[tuple[float, str]]:
        queue, worker = WorkQueue(), Worker(takes=2)

        async def script() -> None:
            queue.add("a")
            await asyncio.sleep(1)
            queue.add("a")
            queue.add("a")
            await asyncio.sleep(10)

        await working(queue, worker, script(), workers=3)
        return worker.done

    assert run(story()) == [(0, "a"), (2, "a")]


def test_several_workers_share_the_keys() -> None:
    async def story() -> int:
        queue, worker = WorkQueue(), Worker(takes=1)
        add_all(queue, "abcdef")
        await working(queue, worker, asyncio.sleep(10), workers=3)
        return worker.most_at_once

    assert run(story()) == 3


def test_a_key_that_fails_comes_back_ever_later() -> None:
    async def story() -> list[float]:
        queue, worker = WorkQueue(first_pause=1, longest_pause=4), Worker(fails=4)
        queue.add("a")
        await working(queue, worker, asyncio.sleep(100))
        return [moment for moment, _ in worker.done]

    moments = run(story())

    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert [0.5 * most <= gap <= most for gap, most in zip(gaps, [1, 2, 4, 4], strict=True)] == [
        True
    ] * 4


def test_a_failure_is_reported_with_its_key() -> None:
    async def story() -> list[str]:
        queue, told = WorkQueue(), list[str]()

        def on_failure(key: str, error: KarpyError) -> None:
            told.append(f"{key}: {error.message}")

        running = asyncio.create_task(queue.run(Worker(fails=1), on_failure=on_failure))
        queue.add("a")
        await asyncio.sleep(10)
        queue.close()
        await running
        return told

    assert run(story()) == ["a: another writer was faster"]


def test_a_bug_is_reported_and_stops_no_other_key() -> None:
    async def story() -> tuple[list[str], list[str]]:
        queue, told, done = WorkQueue(), list[str](), list[str]()

        async def work(key: str) -> float | None:
            if key == "bad" and not told:
                raise ZeroDivisionError
            done.append(key)
            return None

        running = asyncio.create_task(
            queue.run(work, on_failure=lambda key, error: told.append(f"{key}: {error.code}"))
        )
        queue.add("bad")
        queue.add("good")
        await asyncio.sleep(10)
        queue.close()
        await running
        return told, done

    assert run(story()) == (["bad: KP9000"], ["good", "bad"])


def test_a_key_that_succeeded_begins_with_short_pauses_again() -> None:
    async def story() -> float:
        queue = WorkQueue(first_pause=1, longest_pause=100)
        queue.retry("a")
        queue.retry("a")
        await queue.take()
        queue.forget("a")
        queue.done("a")
        queue.retry("a")
        began = asyncio.get_running_loop().time()
        await queue.take()
        return asyncio.get_running_loop().time() - began

    assert run(story()) <= 1


def test_work_may_ask_to_be_looked_at_again() -> None:
    async def story() -> list[tuple[float, str]]:
        queue, worker = WorkQueue(), Worker(again=30)
        queue.add("a")
        await working(queue, worker, asyncio.sleep(100))
        return worker.done

    assert run(story()) == [(0, "a"), (30, "a")]


def test_of_several_times_the_earliest_counts() -> None:
    async def story() -> list[tuple[float, str]]:
        queue, worker = WorkQueue(), Worker()
        queue.add_after("a", 50)
        queue.add_after("a", 20)
        queue.add_after("a", 70)
        await working(queue, worker, asyncio.sleep(100))
        return worker.done

    assert run(story()) == [(20, "a")]


def test_a_closed_queue_finishes_what_waits_and_drops_what_is_for_later() -> None:
    async def story() -> list[str]:
        queue, worker = WorkQueue(), Worker(takes=1)
        queue.add("a")
        queue.add("b")
        queue.add_after("c", 5)
        running = asyncio.create_task(queue.run(worker))
        await asyncio.sleep(0.5)
        queue.add("a")
        queue.close()
        queue.add("d")
        queue.add_after("e", 1)
        await running
        await asyncio.sleep(10)
        return [key for _, key in worker.done]

    assert run(story()) == ["a", "b"]


def test_a_queue_that_only_grows_is_a_bug() -> None:
    async def story() -> int:
        queue = WorkQueue(keys_max=2)
        queue.add("a")
        queue.add_after("b", 1)
        with pytest.raises(LimitPassed):
            queue.add("c")
        return len(queue)

    assert run(story()) == 1
