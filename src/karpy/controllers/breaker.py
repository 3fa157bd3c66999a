"""Outcome of launches: pods for which nodes were launched in vain wait before the next launch."""

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import chain

from msgspec.structs import replace

from karpy.controllers.writer import Telemetry
from karpy.core.scheduling.breaker import (
    GROUPS_MAX,
    MEMORY,
    has_kept_place,
    vain_count,
    vain_remark,
    waiting_pods,
    why_vain,
    with_one_more,
)
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord
from karpy.model.snapshot import Snapshot, VainCause, VainLaunches
from karpy.model.verdicts import Launch
from karpy.ports.clock import Clock
from karpy.ports.records import Kept, Records


class Breaker:
    """
    Remembers the launches of each decision until their pods stayed bound, or were never bound.

    The state is in memory alone: a new leader begins with the shortest pause.
    """

    def __init__(
        self,
        records: Records,
        clock: Clock,
        telemetry: Telemetry,
        on_retry: Callable[[str], None],
    ) -> None:
        self._records = records
        self._clock = clock
        self._telemetry = telemetry
        self._on_retry = on_retry
        self._vain: dict[str, VainLaunches] = {}
        """By group, the latest launch in vain last."""
        self._decided = clock.now()
        self._attempts: dict[tuple[datetime, str], _Attempt] = {}
        """By decision and group, the oldest first."""
        self._by_pod: dict[str, list[_Attempt]] = {}
        self._by_claim: dict[str, list[_Attempt]] = {}
        self._news = asyncio.Event()
        records.pods.listen(self._on_pod)
        records.claims.listen(self._on_claim)

    async def run(self) -> None:
        """Trigger a decision whenever a pause is over, until cancelled."""
        checked = self._clock.now()
        while True:
            self._news.clear()
            pending = [each.retry_at for each in self._vain.values() if each.retry_at > checked]
            pause = min(pending) - self._clock.now() if pending else None
            with suppress(TimeoutError):
                async with asyncio.timeout(None if pause is None else pause.total_seconds()):
                    await self._news.wait()
            now = self._clock.now()
            for each in self._vain.values():
                if checked < each.retry_at <= now:
                    self._on_retry(each.group)
            checked = now

    def begin(self) -> None:
        """Begin a decision: the launches noted from now on belong to it."""
        self._decided = self._clock.now()

    def note(self, claim: str, launch: Launch) -> None:
        """Record the NodeClaim that was created for a launch."""
        for key in launch.pods:
            pod = self._records.pods.get(key)
            if pod is None or pod.node_name:
                continue
            place = self._decided, pod.group
            attempt = self._attempts.get(place)
            if attempt is None:
                attempt = self._attempts[place] = _Attempt(*place)
            attempt.claims.setdefault(claim, []).append(key)
            _add(self._by_pod, key, attempt)
            _add(self._by_claim, claim, attempt)

    def vain_launches(self, snapshot: Snapshot) -> tuple[VainLaunches, ...]:
        """Return the launches in vain, for whose pods the next decision may launch nothing."""
        waiting = waiting_pods(snapshot) if self._attempts or self._vain else {}
        if not waiting:
            return ()
        groups = {pod.group: pod for pod in waiting.values()}
        for group in self._judge(waiting.keys(), groups.keys(), snapshot.now):
            vain = self._vain[group]
            if group in groups and (message := groups[group].scheduler_message):
                vain = self._vain[group] = replace(vain, message=message)
            self._telemetry.count(vain_count(vain))
            self._telemetry.remark(vain_remark(vain))
        return tuple(each for each in self._vain.values() if snapshot.now < each.retry_at)

    def _judge(
        self, waiting: Collection[str], groups: Collection[str], now: datetime
    ) -> dict[str, None]:
        """Judge all launches; return the groups with a new launch in vain."""
        for group in [key for key, each in self._vain.items() if now >= each.last + MEMORY]:
            del self._vain[group]
        struck: dict[str, None] = {}
        for attempt in list(self._attempts.values()):
            if attempt.was_kept or has_kept_place(attempt.bound.values(), now):
                self._vain.pop(attempt.group, None)
                self._close(attempt)
            elif attempt.is_void or self._is_over(attempt, now):
                self._close(attempt)
            elif not attempt.bound:
                found = self._why_vain(attempt, waiting, groups)
                if found is None:
                    continue
                self._close(attempt)
                if self._count(attempt, found, now):
                    struck[attempt.group] = None
        return {each: None for each in struck if each in self._vain}

    def _why_vain(
        self, attempt: "_Attempt", waiting: Collection[str], groups: Collection[str]
    ) -> VainCause | None:
        return why_vain(
            self._pods_of(attempt),
            waiting,
            was_bound=attempt.was_bound,
            has_waiting_siblings=attempt.group in groups,
            has_claims=any(map(self._is_there, attempt.claims)),
        )

    def _count(self, attempt: "_Attempt", why: VainCause, now: datetime) -> bool:
        """Count a launch in vain, unless it was decided before the last one was known."""
        before = self._vain.get(attempt.group)
        if before is not None and attempt.decided <= before.last:
            return False
        self._vain.pop(attempt.group, None)
        self._vain[attempt.group] = with_one_more(before, attempt.group, why, now)
        if len(self._vain) > GROUPS_MAX:
            del self._vain[next(iter(self._vain))]
        self._news.set()
        return True

    def _pods_of(self, attempt: "_Attempt") -> Iterator[Pod]:
        found = (self._records.pods.get(key) for key in attempt.pods())
        return (pod for pod in found if pod is not None)

    def _is_over(self, attempt: "_Attempt", now: datetime) -> bool:
        is_empty = not attempt.was_bound and next(self._pods_of(attempt), None) is None
        return is_empty or now >= attempt.decided + MEMORY

    def _is_there(self, claim: str) -> bool:
        kept = self._records.claims.get(claim)
        return kept is not None and not kept.record.meta.is_deleting

    def _close(self, attempt: "_Attempt") -> None:
        del self._attempts[attempt.decided, attempt.group]
        for key in attempt.pods():
            _drop(self._by_pod, key, attempt)
        for claim in attempt.claims:
            _drop(self._by_claim, claim, attempt)

    def _on_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        attempts = self._by_pod.get(key)
        if attempts is None:
            return
        had, has = _is_placed(before), _is_placed(after)
        for attempt in attempts:
            if has and not had:
                attempt.bound[key] = self._clock.now()
                attempt.was_bound = True
            elif had and not has and before is not None:
                attempt.unbind(
                    before, self._clock.now(), is_moved=self._is_terminating(before.node_name)
                )

    def _is_terminating(self, node: str) -> bool:
        kept = self._records.nodes.get(node)
        return kept is None or kept.record.meta.is_deleting

    def _on_claim(
        self, name: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        last = after or before
        is_gone = after is None or after.record.meta.is_deleting
        if is_gone and last is not None and not last.record.provider_id:
            # No machine was launched for the claim: that says nothing about its pods.
            for attempt in self._by_claim.get(name, ()):
                for key in attempt.claims[name]:
                    _drop(self._by_pod, key, attempt)
                attempt.claims[name] = []


class _Attempt:
    """The launches of one decision for the pods of one group."""

    def __init__(self, decided: datetime, group: str) -> None:
        self.decided = decided
        self.group = group
        self.claims: dict[str, list[str]] = {}
        """Keys of pods, by the NodeClaim that was created for them."""
        self.bound: dict[str, datetime] = {}
        """Since when pods are bound, by key, the earliest first."""
        self.was_bound = False
        """Whether a pod was ever bound."""
        self.was_kept = False
        self.is_void = False
        """Whether the pods lost their place because the node terminates: the attempt is dropped."""

    def pods(self) -> Iterator[str]:
        """Return the keys of the pods."""
        return chain.from_iterable(self.claims.values())

    def unbind(self, pod: Pod, now: datetime, *, is_moved: bool) -> None:
        """Record that a pod is no longer bound; `is_moved` if its node terminates."""
        since = self.bound.pop(pod.key, now)
        self.was_kept = self.was_kept or pod.is_terminal or has_kept_place([since], now)
        self.is_void = is_moved and not self.bound


def _is_placed(pod: Pod | None) -> bool:
    return pod is not None and bool(pod.node_name) and not pod.is_deleting


def _add(index: dict[str, list[_Attempt]], key: str, attempt: _Attempt) -> None:
    attempts = index.setdefault(key, [])
    if attempt not in attempts:
        attempts.append(attempt)


def _drop(index: dict[str, list[_Attempt]], key: str, attempt: _Attempt) -> None:
    attempts = [each for each in index.get(key, ()) if each is not attempt]
    if attempts:
        index[key] = attempts
    else:
        index.pop(key, None)
