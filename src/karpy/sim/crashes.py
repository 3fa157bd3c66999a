"""Crashes: an operator that is killed at any call or await, so that another one takes over."""

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import Context, ContextVar
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class Life:
    """
    One run of an operator, which can be killed at any call or await.

    All tasks that the operator starts belong to its life. When the life ends, they are cancelled,
    and none of their later calls through `karpy.sim.faults` reaches the world: cleanup is lost too,
    as when a process is killed.
    """

    def __init__(
        self, *, crash_at_call: int = 0, crash_at_await: int = 0, is_call_done: bool = False
    ) -> None:
        self.calls = 0
        """How many calls were made so far."""
        self.awaits = 0
        """How many steps the tasks of the operator made so far."""
        self.is_over = False
        self._crash_at_call = crash_at_call
        self._crash_at_await = crash_at_await
        self._is_call_done = is_call_done
        self._tasks: list[asyncio.Task[Any]] = []

    async def run(self, operator: Coroutine[Any, Any, None]) -> bool:
        """Run an operator to its end; say whether it crashed."""
        loop = asyncio.get_running_loop()
        mark = _LIFE.set(self)
        # The factory stays installed after this life: other lives use it, and tasks without a life
        # are not changed by it.
        loop.set_task_factory(_make_task)
        try:
            main = loop.create_task(operator, name="operator")
        finally:
            _LIFE.reset(mark)
        try:
            await asyncio.wait([main])
            if self.is_over:
                await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            self.end()
        if not main.cancelled():
            main.result()
        return self.is_over and main.cancelled()

    def end(self) -> None:
        """Kill the operator now."""
        self.is_over = True
        for task in self._tasks:
            task.cancel()

    def before_call(self) -> None:
        """Count a call that is about to be made; kill the operator if the limit is reached."""
        self._check()
        self.calls += 1
        if self.calls == self._crash_at_call and not self._is_call_done:
            self._die()

    def after_call(self) -> None:
        """Kill the operator after a call was carried out, before it gets the answer."""
        self._check()
        if self.calls == self._crash_at_call:
            self._die()

    def go_on(self) -> None:
        """Count a step of a task; kill the operator if the limit is reached."""
        if self.is_over:
            return
        self.awaits += 1
        if self.awaits == self._crash_at_await:
            self._die()

    def own(self, task: asyncio.Task[Any]) -> None:
        """Cancel a task when this life ends."""
        self._tasks.append(task)

    def _check(self) -> None:
        if self.is_over:
            raise asyncio.CancelledError

    def _die(self) -> None:
        self.end()
        raise asyncio.CancelledError


_LIFE: ContextVar[Life | None] = ContextVar("life", default=None)


def current_life() -> Life | None:
    """Return the life that the running task belongs to, None if it has none."""
    return _LIFE.get()


def _make_task(
    loop: asyncio.AbstractEventLoop,
    coro: Coroutine[object, object, T] | Generator[object, None, T],
    *,
    context: Context | None = None,
    **_: object,
) -> asyncio.Task[T]:
    life = _LIFE.get() if context is None else context.get(_LIFE)
    assert isinstance(coro, Coroutine)
    if life is None:
        return asyncio.Task(coro, loop=loop, context=context)
    task = asyncio.Task(_Counted(coro, life), loop=loop, context=context)
    life.own(task)
    return task


class _Counted(Coroutine[object, object, T]):
    """A coroutine whose steps are counted by a life."""

    def __init__(self, inner: Coroutine[object, object, T], life: Life) -> None:
        self._inner = inner
        self._life = life
        self.cr_frame = getattr(inner, "cr_frame", None)

    @property
    def cr_await(self) -> object:
        """The object that the coroutine awaits, for the message of a stalled loop."""
        return getattr(self._inner, "cr_await", None)

    def send(self, value: object) -> object:
        try:
            self._life.go_on()
        except asyncio.CancelledError as error:
            return self._inner.throw(error)
        return self._inner.send(value)

    def throw(
        self,
        typ: type[BaseException] | BaseException,
        val: object = None,
        tb: TracebackType | None = None,
    ) -> object:
        if isinstance(typ, BaseException):
            return self._inner.throw(typ)
        return self._inner.throw(typ, val, tb)

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[object, object, T]:
        return self._inner.__await__()
