"""Seeded faults between an operator and its world."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from msgspec import Struct

from karpy.errors import (
    CloudUnavailable,
    Conflict,
    KarpyError,
    NoCapacity,
    ServerFault,
    Throttled,
    Unreachable,
)
from karpy.model.kinds import Kind
from karpy.sim.crashes import current_life
from karpy.sim.draws import Draws

T = TypeVar("T")

WRITES: Final = ("create", "replace", "patch", "delete")
"""The calls of an API server that change something."""


class Fault(Struct, frozen=True):
    """What goes wrong, at which calls, and how often."""

    error: Callable[[], KarpyError] | None = None
    """None lets the call succeed; it may still be slow."""
    calls: tuple[str, ...] = ()
    """Names of methods of the port, such as `patch` or `launch`; empty means all."""
    kind: Kind | None = None
    """Only calls about objects of this kind."""
    nth: int = 0
    """Only the n-th of these calls, counted from one; 0 means each of them."""
    percent: int = 100
    """How often, by seed."""
    delay_seconds: float = 0.0
    is_answer_lost: bool = False
    """The call is done all the same; only its answer is lost."""


def conflict() -> KarpyError:
    """Return the error of a write that another write has overtaken."""
    return Conflict("the object has been modified; this is a seeded fault", status=409)


def server_fault() -> KarpyError:
    """Say that the API server failed."""
    return ServerFault("etcdserver: request timed out; this is a seeded fault", status=500)


def unreachable() -> KarpyError:
    """Say that the connection broke."""
    return Unreachable("connection reset by peer; this is a seeded fault")


def throttled() -> KarpyError:
    """Say that there are too many requests."""
    return Throttled("too many requests; this is a seeded fault", status=429, retry_after=1.0)


def cloud_unavailable() -> KarpyError:
    """Say that the cloud does not answer."""
    return CloudUnavailable(call="any", problem="request limit exceeded; this is a seeded fault")


def no_capacity() -> KarpyError:
    """Say that everything is sold out."""
    return NoCapacity(claim="any", options=0)


class Faults:
    """Decides by seed what goes wrong, and remembers what did."""

    def __init__(self, *faults: Fault, seed: int = 0) -> None:
        self._draws = Draws("faults", seed)
        self._faults = [*faults]
        self._counts = [0 for _ in faults]
        self.history: list[str] = []
        """Every call so far, with what went wrong."""

    def add(self, fault: Fault) -> None:
        """Have something else go wrong from now on."""
        self._faults.append(fault)
        self._counts.append(0)

    def clear(self) -> None:
        """Let everything go well from now on."""
        self._faults.clear()
        self._counts.clear()

    async def around(self, call: str, kind: Kind | None, do: Callable[[], Awaitable[T]]) -> T:
        """Make a call, as well as it goes."""
        life = current_life()
        if life is not None:
            life.before_call()
        fault = self.strike(call, kind)
        if fault is not None and fault.delay_seconds:
            await asyncio.sleep(fault.delay_seconds)
        if fault is not None and fault.error is not None and not fault.is_answer_lost:
            raise fault.error()
        answer = await do()
        if life is not None:
            life.after_call()
        if fault is not None and fault.error is not None:
            raise fault.error()
        return answer

    def strike(self, call: str, kind: Kind | None) -> Fault | None:
        """Return what goes wrong with the next call of a name; the first fault counts."""
        found = None
        for index, fault in enumerate(self._faults):
            if (fault.calls and call not in fault.calls) or fault.kind not in {None, kind}:
                continue
            self._counts[index] += 1
            is_its_turn = fault.nth in {0, self._counts[index]}
            if found is None and is_its_turn and self._happens(fault):
                found = fault
        what = call if kind is None else f"{call} {kind}"
        self.history.append(what if found is None else f"{what}: {_word(found)}")
        return found

    def _happens(self, fault: Fault) -> bool:
        return self._draws.happens(fault.percent)


def _word(fault: Fault) -> str:
    return type(fault.error()).__name__ if fault.error else f"{fault.delay_seconds:g} s late"
