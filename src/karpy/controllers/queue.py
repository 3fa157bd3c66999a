"""Work of controllers: a queue with one worker per key and with backoff, and periodic work."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Final

from karpy.barriers import Barrier
from karpy.errors import KarpyError, LimitPassed
from karpy.model.backoff import Backoff
from karpy.ports.observers import Observer, ReconcileResult

_KEYS_MAX: Final = 2_000_000

Work = Callable[[str], Awaitable[float | None]]
"""Reconciles one object; returns after how many seconds to reconcile it again."""
OnFailure = Callable[[str, KarpyError], None]
"""Called with the key that failed and the error; the key is retried."""


class Unobserved:
    """The port Observer for work that is not measured: ignores every call."""

    def set_workers(self, workers: int) -> None:
        """Ignore the number of workers."""

    def add(self, key: str) -> None:
        """Ignore a key that is queued."""

    def take(self, key: str) -> None:
        """Ignore a key that is taken."""

    def finish(self, key: str, result: ReconcileResult) -> None:
        """Ignore the result of a key."""

    def put_off(self, key: str) -> None:
        """Ignore a key that is delayed."""


UNOBSERVED: Final = Unobserved()


class WorkQueue:
    """
    Keys of objects to reconcile.

    A key that is added many times before its turn is reconciled once. A key that is added while it
    is reconciled is reconciled again afterwards, never by two workers at once. A key that failed,
    also by a bug, is retried with growing pauses until it succeeds.
    """

    def __init__(
        self,
        observer: Observer = UNOBSERVED,
        *,
        first_pause: float = 0.1,
        longest_pause: float = 10.0,
        keys_max: int = _KEYS_MAX,
    ) -> None:
        self._observer = observer
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._keys_max = keys_max
        self._waiting: deque[str] = deque()
        self._is_waiting: set[str] = set()
        self._busy: set[str] = set()
        self._again: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._news = asyncio.Event()
        self._is_closed = False

    def __len__(self) -> int:
        """Count the keys that wait for a worker; delayed keys do not count."""
        return len(self._waiting)

    def add(self, key: str) -> None:
        """Queue a key; it is reconciled as soon as a worker is free."""
        if self._is_closed:
            return
        if key in self._busy:
            self._again.add(key)
        elif key not in self._is_waiting:
            self._check_room()
            self._is_waiting.add(key)
            self._waiting.append(key)
            self._observer.add(key)
            self._news.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Queue a key after a delay; the earliest of several times counts."""
        if self._is_closed:
            return
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        else:
            self._check_room()
        self._timers[key] = loop.call_later(seconds, self._ring, key)
        self._observer.put_off(key)

    def retry(self, key: str) -> None:
        """Queue a key that failed, after a longer delay each time."""
        backoff = self._backoffs.get(key)
        if backoff is None:
            backoff = self._backoffs[key] = Backoff(self._first_pause, self._longest_pause)
        self.add_after(key, backoff.next_pause())

    def forget(self, key: str) -> None:
        """Reset the backoff of a key that has succeeded."""
        self._backoffs.pop(key, None)

    async def take(self) -> str | None:
        """Wait for a key and hold it until `done`; return None once closed and empty."""
        while not self._waiting:
            if self._is_closed:
                return None
            self._news.clear()
            await self._news.wait()
        key = self._waiting.popleft()
        self._is_waiting.remove(key)
        self._busy.add(key)
        return key

    def done(self, key: str) -> None:
        """Release a key; queue it again if it was added meanwhile."""
        self._busy.discard(key)
        if key in self._again:
            self._again.remove(key)
            self.add(key)

    def close(self) -> None:
        """Take no more keys; queued keys are still reconciled, delayed ones are dropped."""
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._again.clear()
        self._news.set()

    async def run(
        self, work: Work, *, workers: int = 1, on_failure: OnFailure = lambda *_: None
    ) -> None:
        """Reconcile keys, several at a time, until the queue is closed and empty."""
        self._observer.set_workers(workers)
        # One task per key: thousands of idle workers would all wake up at every change.
        free = asyncio.Semaphore(workers)
        async with asyncio.TaskGroup() as group:
            while True:
                await free.acquire()
                key = await self.take()
                if key is None:
                    return
                task = group.create_task(self._serve(key, work, on_failure), name=key)
                task.add_done_callback(lambda _: free.release())

    async def _serve(self, key: str, work: Work, on_failure: OnFailure) -> None:
        self._observer.take(key)
        try:
            with Barrier(partial(self._fail, key, on_failure)):
                again = await work(key)
                self._observer.finish(
                    key, ReconcileResult.SUCCESS if again is None else ReconcileResult.AGAIN
                )
                self.forget(key)
                if again is not None:
                    self.add_after(key, again)
        except asyncio.CancelledError:
            # The key is reconciled by the next run of the queue.
            self._again.add(key)
            raise
        finally:
            self.done(key)

    def _fail(self, key: str, on_failure: OnFailure, error: KarpyError) -> None:
        self._observer.finish(key, ReconcileResult.of(error))
        self.retry(key)
        on_failure(key, error)

    def _ring(self, key: str) -> None:
        del self._timers[key]
        self.add(key)

    def _check_room(self) -> None:
        if len(self._waiting) + len(self._timers) >= self._keys_max:
            raise LimitPassed(what=f"{self._keys_max} keys wait in a queue to be worked on")


async def every(
    period: timedelta,
    work: Callable[[], Awaitable[None]],
    on_failure: OnFailure,
    *,
    often: tuple[int, timedelta] = (0, timedelta()),
    observer: Observer = UNOBSERVED,
) -> None:
    """Repeat work until cancelled; `often` has the number and period of the first rounds."""
    count, short = often
    observer.set_workers(1)
    while True:
        failed: list[KarpyError] = []
        observer.take("")
        with Barrier(failed.append):
            await work()
        for each in failed:
            observer.finish("", ReconcileResult.of(each))
            on_failure("", each)
        if not failed:
            observer.finish("", ReconcileResult.AGAIN)
        count -= not failed
        await asyncio.sleep((short if count > 0 else period).total_seconds())


def barrier_of(on_failure: OnFailure, key: str) -> Barrier:
    """Return a barrier that reports the failure of one object, by its key."""
    return Barrier(partial(on_failure, key))
