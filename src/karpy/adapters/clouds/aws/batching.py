"""Batching: concurrent calls with the same key become one call."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from karpy.barriers import Barrier
from karpy.errors import KarpyError

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
R = TypeVar("R")

Call = Callable[[K, Sequence[T]], Awaitable[Sequence[R | BaseException]]]
"""Takes a key and the items of all callers; returns their answers in the same order."""


OnBatch = Callable[[float, int], None]
"""Called with the seconds in which a batch was gathered, and the number of its items."""


class BatchWindow(Struct, frozen=True):
    """Limits of a batch: seconds without a new caller, seconds in total, and items."""

    idle: float
    longest: float
    items: int


class _Batch(Generic[T, R]):
    def __init__(self) -> None:
        self.items: list[T] = []
        self.answers: list[asyncio.Future[R]] = []
        self.more = asyncio.Event()


class CallBatcher(Generic[K, T, R]):
    """Joins calls with the same key; each caller gets its own answer or its own error."""

    def __init__(
        self, call: Call[K, T, R], window: BatchWindow, on_batch: OnBatch = lambda *_: None
    ) -> None:
        self._call = call
        self._window = window
        self._on_batch = on_batch
        self._open: dict[K, _Batch[T, R]] = {}
        self._running: set[asyncio.Task[None]] = set()
        self.calls = 0
        """How many calls were made."""

    async def ask(self, key: K, item: T) -> R:
        """Return the answer to one item."""
        batch = self._open.get(key)
        if batch is None:
            batch = self._open[key] = _Batch()
            task = asyncio.get_running_loop().create_task(self._run(key, batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        batch.items.append(item)
        batch.answers.append(answer)
        batch.more.set()
        return await answer

    async def close(self) -> None:
        """Cancel all calls under way; their callers are cancelled, too."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _run(self, key: K, batch: _Batch[T, R]) -> None:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        try:
            await self._gather(batch)
        finally:
            if self._open.get(key) is batch:
                del self._open[key]
        self.calls += 1
        self._on_batch(loop.time() - begin, len(batch.items))
        answers: Sequence[R | BaseException] = ()
        failed: list[KarpyError] = []
        try:
            with Barrier(failed.append):
                answers = await self._call(key, batch.items)
            _resolve(batch.answers, answers or failed * len(batch.items))
        finally:
            for each in batch.answers:
                each.cancel()

    async def _gather(self, batch: _Batch[T, R]) -> None:
        """Wait until a limit of the window is reached."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._window.longest
        while len(batch.items) < self._window.items:
            batch.more.clear()
            pause = min(self._window.idle, end - loop.time())
            if pause <= 0:
                return
            try:
                async with asyncio.timeout(pause):
                    await batch.more.wait()
            except TimeoutError:
                return


def _resolve(futures: Sequence[asyncio.Future[R]], answers: Sequence[R | BaseException]) -> None:
    for future, answer in zip(futures, answers, strict=True):
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
