"""What became of launches: pods that nodes are launched for in vain have to wait for the next."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import chain, islice
from typing import Final

from msgspec.structs import replace

from karpy.barriers import Barrier
from karpy.codec.pods import scheduler_message
from karpy.controllers.writer import Telling
from karpy.core.scheduling.breaker import (
    GROUPS_MAX,
    MEMORY,
    is_kept,
    one_more,
    vain_count,
    vain_remark,
    waiting_pods,
    why_vain,
)
from karpy.model.kinds import POD
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord
from karpy.model.snapshot import Snapshot, VainCause, VainLaunches
from karpy.model.verdicts import Launch
from karpy.ports.clock import Clock
from karpy.ports.objects import Objects
from karpy.ports.records import Kept, Records

_ASKED_MAX: Final = 16
"""For so many groups a decision asks what kube-scheduler says; the others wait for the next one."""
_ASKING_SECONDS: Final = 1.0
"""A decision waits no longer than that for the answers."""


class Breaker:
    """
    Remembers the launches of each decision until their pods have kept a place, or got none.

    All it knows is in memory: the next leader begins anew, with the shortest pause.
    """

    def __init__(
        self,
        records: Records,
        objects: Objects,
        clock: Clock,
        telling: Telling,
        on_retry: Callable[[str], None],
    ) -> None:
        self._records = records
        self._objects = objects
        self._clock = clock
        self._telling = telling
        self._on_retry = on_retry
        self._vain: dict[str, VainLaunches] = {}
        """By group; the one that was in vain last is the last."""
        self._unasked: dict[str, None] = {}
        """Groups of which it is not known yet what kube-scheduler says."""
        self._decided = clock.now()
        self._attempts: dict[tuple[datetime, str], _Attempt] = {}
        """By decision and group, the oldest first."""
        self._by_pod: dict[str, list[_Attempt]] = {}
        self._by_claim: dict[str, list[_Attempt]] = {}
        self._news = asyncio.Event()
        records.pods.listen(self._hear_pod)
        records.claims.listen(self._hear_claim)

    async def run(self) -> None:
        """Ask for a decision whenever a pause is over, until cancelled."""
        told = self._clock.now()
        while True:
            self._news.clear()
            coming = [each.retry_at for each in self._vain.values() if each.retry_at > told]
            pause = min(coming) - self._clock.now() if coming else None
            with suppress(TimeoutError):
                async with asyncio.timeout(None if pause is None else pause.total_seconds()):
                    await self._news.wait()
            now = self._clock.now()
            for each in self._vain.values():
                if told < each.retry_at <= now:
                    self._on_retry(each.group)
            told = now

    def begin(self) -> None:
        """Take note that a decision was made; its NodeClaims will be noted."""
        self._decided = self._clock.now()

    def note(self, claim: str, launch: Launch) -> None:
        """Take note of the NodeClaim that a launch has become."""
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

    async def vain_launches(self, snapshot: Snapshot) -> tuple[VainLaunches, ...]:
        """Say for which pods of a snapshot, about to be decided on, nothing may be launched."""
        waiting = waiting_pods(snapshot) if self._attempts or self._vain else {}
        if not waiting:
            return ()
        groups = {pod.group: pod for pod in waiting.values()}
        struck = self._judge(waiting.keys(), groups.keys(), snapshot.now)
        self._unasked = dict.fromkeys((*struck, *(self._unasked.keys() & self._vain.keys())))
        await self._ask([groups[each] for each in self._unasked if each in groups])
        for group in struck:
            self._telling.count(vain_count(self._vain[group]))
            self._telling.remark(vain_remark(self._vain[group]))
        return tuple(each for each in self._vain.values() if snapshot.now < each.retry_at)

    def _judge(
        self, waiting: Collection[str], groups: Collection[str], now: datetime
    ) -> dict[str, None]:
        """Find out what became of launches; return the groups that one was in vain for."""
        for group in [key for key, each in self._vain.items() if now >= each.last + MEMORY]:
            del self._vain[group]
        struck: dict[str, None] = {}
        for attempt in list(self._attempts.values()):
            if attempt.was_kept or is_kept(attempt.bound.values(), now):
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
            has_heirs=attempt.group in groups,
            has_claims=any(map(self._is_there, attempt.claims)),
        )

    def _count(self, attempt: "_Attempt", why: VainCause, now: datetime) -> bool:
        """Count a launch in vain; but once alone those made before the last was known to be so."""
        before = self._vain.get(attempt.group)
        if before is not None and attempt.decided <= before.last:
            return False
        self._vain.pop(attempt.group, None)
        self._vain[attempt.group] = one_more(before, attempt.group, why, now)
        if len(self._vain) > GROUPS_MAX:
            del self._vain[next(iter(self._vain))]
        self._news.set()
        return True

    async def _ask(self, pods: Iterable[Pod]) -> None:
        """Ask what kube-scheduler says of pods, but not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_ASKING_SECONDS):
                await asyncio.gather(*(self._ask_one(pod) for pod in islice(pods, _ASKED_MAX)))

    async def _ask_one(self, pod: Pod) -> None:
        # Without an answer, or with one that cannot be read, the refusal names our side alone.
        with Barrier(lambda _: None):
            obj = await self._objects.get(POD, pod.name, namespace=pod.namespace)
            message, vain = scheduler_message(obj), self._vain.get(pod.group)
            if message and vain is not None:
                self._vain[pod.group] = replace(vain, message=message)
                self._unasked.pop(pod.group, None)

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

    def _hear_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        attempts = self._by_pod.get(key)
        if attempts is None:
            return
        had, has = _is_placed(before), _is_placed(after)
        for attempt in attempts:
            if has and not had:
                attempt.bound[key] = self._clock.now()
                attempt.was_bound = True
            elif had and not has and before is not None:
                attempt.leave(
                    before, self._clock.now(), is_moved=self._is_leaving(before.node_name)
                )

    def _is_leaving(self, node: str) -> bool:
        kept = self._records.nodes.get(node)
        return kept is None or kept.record.meta.is_deleting

    def _hear_claim(
        self, name: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        last = after or before
        is_gone = after is None or after.record.meta.is_deleting
        if is_gone and last is not None and not last.record.provider_id:
            # The cloud had nothing to sell: no machine was launched.
            for attempt in self._by_claim.get(name, ()):
                for key in attempt.claims[name]:
                    _drop(self._by_pod, key, attempt)
                attempt.claims[name] = []


class _Attempt:
    """The launches that one decision made for the pods of one group."""

    def __init__(self, decided: datetime, group: str) -> None:
        self.decided = decided
        self.group = group
        self.claims: dict[str, list[str]] = {}
        """Keys of pods by the NodeClaim made for them."""
        self.bound: dict[str, datetime] = {}
        """Since when pods have a node, the first ones first."""
        self.was_bound = False
        """Whether a pod had a node that it should not have lost."""
        self.was_kept = False
        self.is_void = False
        """Whether its pods have lost their node with the node itself: that says nothing of them."""

    def pods(self) -> Iterator[str]:
        """Give the keys of the pods."""
        return chain.from_iterable(self.claims.values())

    def leave(self, pod: Pod, now: datetime, *, is_moved: bool) -> None:
        """Take note that a pod is not on its node any more, which may be leaving itself."""
        since = self.bound.pop(pod.key, now)
        self.was_kept = self.was_kept or pod.is_terminal or is_kept([since], now)
        self.is_void = is_moved and not self.bound


def _is_placed(pod: Pod | None) -> bool:
    return pod is not None and bool(pod.node_name) and not pod.is_deleting


def _add(index: dict[str, list[_Attempt]], key: str, attempt: _Attempt) -> None:
    there = index.setdefault(key, [])
    if attempt not in there:
        there.append(attempt)


def _drop(index: dict[str, list[_Attempt]], key: str, attempt: _Attempt) -> None:
    there = [each for each in index.get(key, ()) if each is not attempt]
    if there:
        index[key] = there
    else:
        index.pop(key, None)
