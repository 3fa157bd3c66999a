"""An event loop on which waiting takes no time."""

import asyncio
import gc
import selectors
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from pathlib import PurePath
from types import CodeType
from typing import Any, Final, Protocol, TypeAlias, TypeVar, TypeVarTuple

from karpy.errors import LimitPassed, SimulationStalled

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

STEPS_MAX: Final = 1_000_000
SECONDS_MAX: Final = 400 * 24 * 3600.0
"""More than a year: a longer wait is a deadlock."""
_DEPTH_MAX: Final = 100
_OBJECTS_PER_LOOK: Final = 200_000
_LIBRARY: Final = PurePath(asyncio.__file__).parent
_BELOW: Final = {"cr_frame": "cr_await", "gi_frame": "gi_yieldfrom", "ag_frame": "ag_await"}
"""The attributes of coroutines and generators with their frame and with what they await."""


class _HasFileno(Protocol):
    def fileno(self) -> int: ...


_File: TypeAlias = int | _HasFileno


class VirtualLoop(asyncio.SelectorEventLoop):
    """
    Jump to the next timer instead of sleeping; a week passes in milliseconds.

    The time is in seconds since the loop was made. Calls run in the same order every time. A
    function for another thread is called on this thread; sockets, pipes and other threads never
    wake the loop. An error in a callback, which other loops only log, ends the loop.
    """

    def __init__(self, *, steps_max: int = STEPS_MAX, seconds_max: float = SECONDS_MAX) -> None:
        self.elapsed = 0.0
        self.failure: BaseException | None = None
        super().__init__(_JumpingSelector(self, steps_max, seconds_max))

    def time(self) -> float:
        """Return the seconds since the loop was made."""
        return self.elapsed

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Call a function on this thread, at once: threads would finish in any order."""
        del executor
        answer: asyncio.Future[T] = self.create_future()
        answer.set_result(func(*args))
        return answer

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Store the error of a callback, so that the loop ends with it."""
        error = context.get("exception")
        if isinstance(error, BaseException) and "handle" in context:
            self.failure = self.failure or error
        else:
            super().call_exception_handler(context)


def run(
    coroutine: Coroutine[Any, Any, T],
    *,
    steps_max: int = STEPS_MAX,
    seconds_max: float = SECONDS_MAX,
) -> T:
    """Run a coroutine to its end on virtual time, as `asyncio.run` does in real time."""

    def make() -> VirtualLoop:
        return VirtualLoop(steps_max=steps_max, seconds_max=seconds_max)

    # Objects of a world are trees that share branches, without cycles. Searching them for cycles at
    # the default thresholds takes an eighth of the time.
    pace = gc.get_threshold()
    gc.set_threshold(_OBJECTS_PER_LOOK, *pace[1:])
    try:
        with asyncio.Runner(loop_factory=make) as runner:
            return runner.run(coroutine)
    finally:
        gc.set_threshold(*pace)


class _JumpingSelector(selectors.BaseSelector):
    """The selector of the loop: advances the time instead of waiting."""

    def __init__(self, loop: VirtualLoop, steps_max: int, seconds_max: float) -> None:
        self._loop = loop
        self._steps_max = steps_max
        self._seconds_max = seconds_max
        self._steps = 0
        self._keys: dict[_File, selectors.SelectorKey] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        loop = self._loop
        if loop.failure is not None:
            error, loop.failure = loop.failure, None
            raise error
        if timeout is None:
            raise SimulationStalled(waiting=_waiting(loop))
        if timeout > 0:
            loop.elapsed += timeout
            self._steps = 0
            if loop.elapsed > self._seconds_max:
                limit, self._seconds_max = self._seconds_max, loop.elapsed + self._seconds_max
                self._give_up(f"{limit:g} s have passed")
            return []
        self._steps += 1
        if self._steps > self._steps_max:
            self._steps = 0
            self._give_up(
                f"{self._steps_max} steps at one instant, {loop.elapsed:g} s after the start"
            )
        return []

    def _give_up(self, why: str) -> None:
        tasks = "".join(f"\n  {line}" for line in _waiting(self._loop))
        raise LimitPassed(what=f"{why}; these tasks are not done:{tasks}")

    def register(self, fileobj: _File, events: int, data: object = None) -> selectors.SelectorKey:
        fd = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        return key

    def unregister(self, fileobj: _File) -> selectors.SelectorKey:
        return self._keys.pop(fileobj if isinstance(fileobj, int) else fileobj.fileno())

    def get_map(self) -> Mapping[_File, selectors.SelectorKey]:
        return self._keys


def _waiting(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Name the tasks of a loop, and the line of our code at which each one waits."""
    return sorted(_where(task) for task in asyncio.all_tasks(loop))


def _where(task: asyncio.Task[Any]) -> str:
    place = _place(task.get_coro())
    if place is None:
        return f"`{task.get_name()}`, not begun"
    code, line = place
    return f"`{task.get_name()}` in `{code.co_qualname}` ({PurePath(code.co_filename).name}:{line})"


def _place(awaited: object) -> tuple[CodeType, int] | None:
    """Follow what a coroutine awaits, down to the last line that is not asyncio's own."""
    found = None
    for _ in range(_DEPTH_MAX):
        name = next((each for each in _BELOW if getattr(awaited, each, None) is not None), None)
        if name is None:
            return found
        frame = getattr(awaited, name)
        if PurePath(frame.f_code.co_filename).parent != _LIBRARY:
            found = frame.f_code, frame.f_lineno
        awaited = getattr(awaited, _BELOW[name])
    return found
