"""Seeded faults injected between an operator and its world."""

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
from karpy.sim.draws import SeededDraws

T = TypeVar("T")

WRITES: Final = ("create", "replace", "patch", "delete")
"""The calls to an API server that write."""


class InjectedFault(Struct, frozen=True):
    """What goes wrong, at which calls, and how often."""

    error: Callable[[], KarpyError] | None = None
    """None: the call succeeds, possibly late."""
    calls: tuple[str, ...] = ()
    """Names of methods of the port, such as `patch` or `launch`; empty means all."""
    kind: Kind | None = None
    """Only calls for objects of this kind."""
    nth: int = 0
    """Only the n-th of these calls, counted from one; 0 means each of them."""
    percent: int = 100
    """How often the fault happens, drawn by seed."""
    delay_seconds: float = 0.0
    is_answer_lost: bool = False
    """The call is carried out; only its answer is lost."""


def conflict() -> KarpyError:
    """Return the error of a write with an outdated resourceVersion."""
    return Conflict("the object has been modified; this is a seeded fault", status=409)


def server_fault() -> KarpyError:
    """Return the error of an API server that failed."""
    return ServerFault("etcdserver: request timed out; this is a seeded fault", status=500)


def unreachable() -> KarpyError:
    """Return the error of a connection that broke."""
    return Unreachable("connection reset by peer; this is a seeded fault")


def throttled() -> KarpyError:
    """Return the error of too many requests."""
    return Throttled("too many requests; this is a seeded fault", status=429, retry_after=1.0)


def cloud_unavailable() -> KarpyError:
    """Return the error of a cloud that does not answer."""
    return CloudUnavailable(call="any", problem="request limit exceeded; this is a seeded fault")


def no_capacity() -> KarpyError:
    """Return the error of a cloud that is sold out."""
    return NoCapacity(claim="any", options=0)


class Faults:
    """Decides by seed which calls fail, and records all calls."""

    def __init__(self, *faults: InjectedFault, seed: int = 0) -> None:
        self._draws = SeededDraws("faults", seed)
        self._faults = [*faults]
        self._counts = [0 for _ in faults]
        self.history: list[str] = []
        """Every call so far, with its fault."""

    def add(self, fault: InjectedFault) -> None:
        """Add a fault from now on."""
        self._faults.append(fault)
        self._counts.append(0)

    def clear(self) -> None:
        """Remove all faults."""
        self._faults.clear()
        self._counts.clear()

    async def around(self, call: str, kind: Kind | None, do: Callable[[], Awaitable[T]]) -> T:
        """Make a call with the fault drawn for it."""
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

    def strike(self, call: str, kind: Kind | None) -> InjectedFault | None:
        """Return the fault of the next call of a name, None for success; the first one counts."""
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

    def _happens(self, fault: InjectedFault) -> bool:
        return self._draws.happens(fault.percent)


def _word(fault: InjectedFault) -> str:
    return type(fault.error()).__name__ if fault.error else f"{fault.delay_seconds:g} s late"
