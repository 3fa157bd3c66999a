"""Events for people: emitted once, at a limited rate, and never ahead of other requests."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final
from uuid import uuid4

from karpy.adapters.kube.retry import TokenBucket
from karpy.codec.fields import JsonObject
from karpy.codec.memos import Memo
from karpy.errors import ClusterError, CredentialsRefused
from karpy.model.kinds import EVENTS_EVENT
from karpy.model.notices import Notice
from karpy.ports.clock import Clock
from karpy.ports.objects import Objects

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
_COMPONENT: Final = "karpenter"
"""The source of events: Karpenter's own name, which tools look for."""
_WAITING_MAX: Final = 1000
_LATER_MAX: Final = 5000
_LATER_RATE: Final = (5.0, 20)
"""Rate per second and burst of notices that can wait: an event costs the API server about as much
as a pod."""
_LATER_SECONDS: Final = 0.1
_REMEMBERED_MAX: Final = 8192
"""Notices remembered to drop repetitions; a forgotten one may come again within its window."""
_NOTE_MAX: Final = 1024
"""Longest note in bytes that the API accepts."""
_NAME_MAX: Final = 200


_Queued = tuple[Notice, datetime]
OnTrouble = Callable[[Notice, ClusterError | CredentialsRefused], None]
"""Called with a notice that could not be written, and why."""


class EventRecorder:
    """
    Writes notices as events, in the background.

    `emit` never waits and never fails: it skips a notice that repeats another one within its
    window, and drops and counts a notice beyond the rate of its reason or beyond the length of the
    queue. `run` writes the others; notices that can wait come last, at a limited rate.
    """

    def __init__(
        self,
        objects: Objects,
        clock: Clock,
        *,
        instance: str,
        rates: Mapping[str, TokenBucket] | None = None,
        on_trouble: OnTrouble = lambda *_: None,
        on_drop: Callable[[], None] = lambda: None,
    ) -> None:
        self._objects = objects
        self._clock = clock
        self._instance = instance[:128]
        self._rates = rates or {}
        self._on_trouble = on_trouble
        self._on_drop = on_drop
        self._quiet_until: Memo[tuple[str, ...], float] = Memo(_REMEMBERED_MAX)
        self._waiting: deque[_Queued] = deque()
        self._later: deque[_Queued] = deque()
        self._later_pace = TokenBucket(*_LATER_RATE)
        self._wakeup = asyncio.Event()
        self._is_closed = False
        self.dropped = 0
        """How many notices were lost: too many at once, or refused by the server."""

    def emit(self, notice: Notice) -> None:
        """Queue a notice, unless it repeats one, exceeds its rate or finds the queue full."""
        if self._is_closed or self._is_repeated(notice):
            return
        rate = self._rates.get(notice.reason)
        queue, most = (
            (self._later, _LATER_MAX) if notice.can_wait else (self._waiting, _WAITING_MAX)
        )
        if len(queue) >= most or (rate is not None and not rate.has_taken()):
            self._drop()
            return
        queue.append((notice, self._clock.now()))
        self._wakeup.set()

    def close(self) -> None:
        """Accept no more notices; `run` returns once the queue is empty."""
        self._is_closed = True
        self._wakeup.set()

    async def run(self) -> None:
        """Write notices until closed."""
        while self._waiting or self._later or not self._is_closed:
            queued = self._next()
            if queued is None:
                await self._wait()
                continue
            notice, moment = queued
            try:
                await self._objects.create(EVENTS_EVENT, self._event(notice, moment))
            except (ClusterError, CredentialsRefused) as error:
                self._drop()
                self._on_trouble(notice, error)

    def _next(self) -> _Queued | None:
        if self._waiting:
            return self._waiting.popleft()
        if self._later and (self._is_closed or self._later_pace.has_taken()):
            return self._later.popleft()
        return None

    async def _wait(self) -> None:
        """Wait for the next notice, or for the rate of notices that can wait."""
        self._wakeup.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LATER_SECONDS if self._later else None):
                await self._wakeup.wait()

    def _drop(self) -> None:
        self.dropped += 1
        self._on_drop()

    def _is_repeated(self, notice: Notice) -> bool:
        if not notice.same_as:
            return False
        now = asyncio.get_running_loop().time()
        key = (notice.reason.lower(), *notice.same_as)
        until = self._quiet_until.get(key)
        if until is not None and until > now:
            return True
        self._quiet_until.put(key, now + notice.window_seconds)
        return False

    def _event(self, notice: Notice, moment: datetime) -> JsonObject:
        subject = notice.subject
        regarding = {
            "apiVersion": subject.kind.api_version,
            "kind": subject.kind.name,
            "name": subject.name,
            "namespace": subject.namespace,
            "uid": subject.uid,
        }
        return {
            "apiVersion": EVENTS_EVENT.api_version,
            "kind": EVENTS_EVENT.name,
            "metadata": {
                "name": f"{subject.name[:_NAME_MAX].rstrip('.-')}.{uuid4().hex[:16]}",
                # Events about objects without a namespace are stored in `default`, as by client-go.
                "namespace": subject.namespace or "default",
            },
            "eventTime": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": _COMPONENT,
            "reportingInstance": self._instance,
            "action": notice.action or notice.reason,
            "reason": notice.reason,
            "regarding": {key: value for key, value in regarding.items() if value},
            "note": _shortened(notice.note),
            "type": WARNING if notice.is_warning else NORMAL,
        }


def _shortened(note: str) -> str:
    if len(note.encode()) <= _NOTE_MAX:
        return note
    return note.encode()[: _NOTE_MAX - 3].decode(errors="ignore") + "..."
