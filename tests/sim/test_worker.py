import asyncio
from itertools import pairwise

from karpy.errors import Conflict
from karpy.sim.worker import Worker
from tests.sim.stories import on_virtual_time

FAR = 1000.0


class Diary:
    """Work that records its times, and fails a given number of times."""

    def __init__(self, failures: int = 0) -> None:
        self.entries: list[tuple[str, float]] = []
        self.failures = failures

    def work(self, key: str) -> float | None:
        self.entries.append((key, asyncio.get_running_loop().time()))
        if len(self.entries) <= self.failures:
            raise Conflict("somebody was faster", status=409)
        return None


@on_virtual_time
async def test_a_key_added_twice_is_looked_at_once() -> None:
    diary = Diary()
    worker = Worker(diary.work)

    worker.add("a")
    worker.add("b")
    worker.add("a")
    await asyncio.sleep(1)

    assert diary.entries == [("a", 0), ("b", 0)]


@on_virtual_time
async def test_keys_come_when_they_are_due_and_then_in_the_order_of_calls() -> None:
    diary = Diary()
    worker = Worker(diary.work)

    worker.add_after("c", 2)
    worker.add_after("b", 1)
    worker.add_after("a", 2)
    await asyncio.sleep(FAR)

    assert diary.entries == [("b", 1), ("c", 2), ("a", 2)]


@on_virtual_time
async def test_the_earliest_of_several_times_counts() -> None:
    diary = Diary()
    worker = Worker(diary.work)

    worker.add_after("a", 5)
    worker.add_after("a", 3)
    worker.add_after("a", 8)
    await asyncio.sleep(FAR)

    assert diary.entries == [("a", 3)]


@on_virtual_time
async def test_a_key_may_come_again_at_a_time_it_once_had() -> None:
    diary = Diary()
    worker = Worker(diary.work)
    worker.add_after("a", 5)
    worker.add_after("a", 3)
    await asyncio.sleep(4)

    worker.add_after("a", 1)
    await asyncio.sleep(FAR)

    assert diary.entries == [("a", 3), ("a", 5)]


@on_virtual_time
async def test_what_fails_is_tried_again_ever_more_slowly() -> None:
    diary = Diary(failures=3)
    worker = Worker(diary.work)

    worker.add("a")
    await asyncio.sleep(FAR)

    times = [when for _, when in diary.entries]
    pauses = [round(later - earlier, 6) for earlier, later in pairwise(times)]
    assert pauses == [0.1, 0.2, 0.4]


@on_virtual_time
async def test_a_stopped_worker_forgets_everything() -> None:
    diary = Diary()
    worker = Worker(diary.work)
    worker.add("a")
    worker.add_after("b", 1)

    worker.stop()
    worker.add("c")
    await asyncio.sleep(FAR)

    assert diary.entries == []
