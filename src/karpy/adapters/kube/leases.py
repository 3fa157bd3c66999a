"""Leader election by Lease, as client-go does it."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from datetime import datetime
from enum import Enum, auto
from typing import Final
from uuid import uuid4

from msgspec import Struct, field

from karpy.adapters.kube.fence import Fence
from karpy.adapters.kube.retry import DICE
from karpy.codec.fields import JsonObject
from karpy.errors import ClusterError, CredentialsRefused, NotFound
from karpy.model.backoff import Dice
from karpy.model.kinds import LEASE
from karpy.ports.clock import Clock
from karpy.ports.objects import Objects

KARPENTER_LEASE: Final = "karpenter-leader-election"
"""Karpenter's lease, so that Karpenter and Karpy never lead at the same time."""
_SPREAD: Final = 0.2
"""Random extra wait between tries, as a share of the retry period."""

OnTrouble = Callable[[ClusterError | CredentialsRefused], None]
"""Called with why the lease could not be read or written; the election tries again."""


def own_identity() -> str:
    """Return a unique name for this process."""
    return f"{socket.gethostname()}_{uuid4()}"


class Timing(Struct, frozen=True):
    """Periods of the election, in seconds; the defaults are Karpenter's."""

    lease: int = 15
    """After this long without a renewal another candidate may take the lease."""
    renew_deadline: float = 10.0
    """After this long without a successful renewal the leader steps down, before the lease ends."""
    retry: float = 2.0


class Candidacy(Struct, frozen=True):
    """The identity of a candidate, and the lease it competes for."""

    namespace: str
    name: str = KARPENTER_LEASE
    identity: str = field(default_factory=own_identity)
    timing: Timing = Timing()


class _Outcome(Enum):
    OURS = auto()
    TAKEN = auto()
    UNKNOWN = auto()


class Election:
    """
    A candidate for one Lease.

    The age of a lease counts from its last observed change, on the local clock, so clocks may
    differ between machines. The times in the lease are for people.

    The fence is open while no other candidate may lead: until the renew deadline after the start
    of the last successful renewal.
    """

    def __init__(
        self,
        objects: Objects,
        clock: Clock,
        candidacy: Candidacy,
        *,
        on_trouble: OnTrouble = lambda _: None,
        fence: Fence | None = None,
        dice: Dice = DICE,
    ) -> None:
        self._objects = objects
        self._clock = clock
        self._candidacy = candidacy
        self._timing = candidacy.timing
        self._on_trouble = on_trouble
        self._fence = fence or Fence()
        self._dice = dice
        self._seen: JsonObject = {}
        self._seen_at = 0.0
        self._renewed_at = 0.0
        self.is_leader = False

    @property
    def leader(self) -> str:
        """The last known leader; empty if there is none."""
        return str((self._seen.get("spec") or {}).get("holderIdentity") or "")

    async def lead(self, work: Callable[[], Awaitable[None]]) -> bool:
        """
        Wait until this candidate leads, then run the work; say whether the work has finished.

        If the lease is lost, the work is cancelled. The lease is released at the end, also after a
        cancellation, so that the next leader need not wait for its expiry.
        """
        await self.acquire()
        doing = asyncio.ensure_future(work())
        holding = asyncio.ensure_future(self.hold())
        try:
            await asyncio.wait({doing, holding}, return_when=asyncio.FIRST_COMPLETED)
            is_done = doing.done()
        finally:
            doing.cancel()
            # Hold the lease until the work has stopped; only then may another leader start.
            await asyncio.wait({doing})
            holding.cancel()
            await asyncio.wait({holding})
            await self.release()
        if is_done:
            doing.result()
        return is_done

    async def acquire(self) -> None:
        """Wait until this candidate leads."""
        while True:
            outcome = await self._try_until(self._now() + self._timing.renew_deadline)
            if outcome is _Outcome.OURS:
                break
            await asyncio.sleep(self._timing.retry * (1 + _SPREAD * self._dice()))
        self.is_leader = True

    async def hold(self) -> None:
        """Renew the lease; return when it is lost."""
        while self.is_leader:
            await asyncio.sleep(self._timing.retry)
            outcome = await self._try_until(self._renewed_at + self._timing.renew_deadline)
            is_late = self._now() >= self._renewed_at + self._timing.renew_deadline
            self.is_leader = outcome is not _Outcome.TAKEN and not is_late

    async def release(self) -> None:
        """Release the lease if this candidate holds it; if that fails, the lease expires."""
        if not self.is_leader:
            return
        self.is_leader = False
        try:
            async with asyncio.timeout(self._timing.renew_deadline):
                lease = await self._get()
                spec = lease.get("spec") or {}
                if spec.get("holderIdentity") == self._candidacy.identity:
                    now = _written(self._clock.now())
                    kept = {key: spec[key] for key in spec.keys() - {"holderIdentity"}}
                    times = {"acquireTime": now, "renewTime": now, "leaseDurationSeconds": 1}
                    await self._objects.replace(LEASE, {**lease, "spec": {**kept, **times}})
        except (ClusterError, CredentialsRefused) as error:
            self._on_trouble(error)
        except TimeoutError:
            return

    async def _try_until(self, deadline: float) -> _Outcome:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._try()
        except (ClusterError, CredentialsRefused) as error:
            self._on_trouble(error)
        except TimeoutError:
            pass
        return _Outcome.UNKNOWN

    async def _try(self) -> _Outcome:
        try:
            lease = await self._get()
        except NotFound:
            await self._write({}, self._objects.create)
            return _Outcome.OURS
        spec = lease.get("spec") or {}
        if lease != self._seen:
            self._seen, self._seen_at = lease, self._now()
        if self.leader not in {"", self._candidacy.identity} and not self._is_expired(spec):
            self._fence.close()
            return _Outcome.TAKEN
        await self._write(lease, self._objects.replace)
        return _Outcome.OURS

    async def _write(self, lease: JsonObject, write: Callable[..., Awaitable[JsonObject]]) -> None:
        """Write this candidate into the lease; its resourceVersion lets only one writer succeed."""
        # Time counts from before the write; for other candidates it counts from after the write.
        began, candidacy = self._now(), self._candidacy
        until = self._fence.now() + self._timing.renew_deadline
        now, old = _written(self._clock.now()), lease.get("spec") or {}
        is_ours = old.get("holderIdentity") == candidacy.identity
        transitions = (old.get("leaseTransitions") or 0) + (0 if is_ours or not old else 1)
        spec = {
            **old,
            "holderIdentity": candidacy.identity,
            "leaseDurationSeconds": self._timing.lease,
            "acquireTime": old.get("acquireTime", now) if is_ours else now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }
        fresh = {"metadata": {"name": candidacy.name, "namespace": candidacy.namespace}}
        self._seen = await write(LEASE, {**(lease or fresh), "spec": spec})
        self._seen_at = began
        self._renewed_at = began
        self._fence.open(until)

    async def _get(self) -> JsonObject:
        return await self._objects.get(LEASE, self._candidacy.name, self._candidacy.namespace)

    def _is_expired(self, spec: JsonObject) -> bool:
        seconds = spec.get("leaseDurationSeconds")
        lasting = seconds if isinstance(seconds, int) else self._timing.lease
        return self._now() >= self._seen_at + lasting

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
