"""The controller `provisioner`: triggers, the batch, and the decision that creates NodeClaims."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from karpy.barriers import Barrier
from karpy.controllers.context import decide_in_time
from karpy.controllers.queue import UNOBSERVED, OnFailure
from karpy.core.announcements import (
    launch_notices,
    names_real_pods,
    nomination_notices,
    pool_notices,
    refusal_notices,
)
from karpy.core.nominations import with_untried
from karpy.core.scheduling.decide import decide_guarded
from karpy.errors import Bug, KarpyError
from karpy.model.backoff import Backoff
from karpy.model.constraints import DISRUPTED_TAINT, is_gate
from karpy.model.notices import Notice
from karpy.model.pods import Pod
from karpy.model.records import NodeRecord
from karpy.model.settings import Options
from karpy.model.snapshot import Snapshot, VainLaunches
from karpy.model.verdicts import Launch, Nomination, Verdict
from karpy.ports.clock import Clock
from karpy.ports.cluster import Cluster
from karpy.ports.notices import Notices
from karpy.ports.observers import Observer, ReconcileResult
from karpy.ports.records import Kept, Records

_DECISION: Final = "decision"
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
AGAIN: Final = timedelta(seconds=10)
"""Interval at which pods that are still pending trigger another decision."""

OnPod = Callable[[Pod], None]
"""Called with a pod that triggers a decision for the first time."""


class Audience(Protocol):
    """Receives decisions about pods, and their outcome."""

    def deciding(self, snapshot: Snapshot) -> None:
        """Take in the snapshot of a decision that is about to be made."""

    def decided(self, snapshot: Snapshot, verdict: Verdict, duration: timedelta) -> None:
        """Take in a decision, its snapshot, and how long it took."""

    def vain_launches(self, snapshot: Snapshot) -> tuple[VainLaunches, ...]:
        """Return the launches in vain, for whose pods the next decision may launch nothing."""

    def nominated(self, nomination: Nomination, claim: str) -> None:
        """Take in a nomination, and the NodeClaim of its node, empty if it has none."""

    def launched(self, claim: str, launch: Launch) -> None:
        """Take in the NodeClaim that was created for a launch."""

    def failed(self, launch: Launch, error: KarpyError) -> None:
        """Take in a launch whose NodeClaim could not be created; its pods trigger again."""


class DecisionGuard(Struct, frozen=True):
    """The time limit of decisions, and the receivers of their failures and measurements."""

    timeout: timedelta = Options().decision_timeout
    on_failure: OnFailure = lambda *_: None
    observer: Observer = UNOBSERVED


UNGUARDED: Final = DecisionGuard()


class Batcher:
    """Collects triggers until none arrives for the idle time, or the longest time is over."""

    def __init__(self, *, idle_seconds: float = 1.0, longest_seconds: float = 10.0) -> None:
        self._idle = idle_seconds
        self._longest = longest_seconds
        self._triggers: set[str] = set()
        self._news = asyncio.Event()

    def trigger(self, uid: str) -> None:
        """Ask for a decision by the UID of an object; a repeated UID extends no batch."""
        if uid not in self._triggers:
            self._triggers.add(uid)
            self._news.set()

    def prolong(self, uid: str) -> None:
        """Extend an open batch by a pod that is decided with it; open no batch."""
        if self._triggers:
            self.trigger(uid)

    async def wait(self) -> frozenset[str]:
        """Wait for a first trigger and the ones that follow it; return the UIDs of the batch."""
        if not self._triggers:
            self._news.clear()
            await self._news.wait()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._longest
        while True:
            self._news.clear()
            left = min(self._idle, end - loop.time())
            if left <= 0:
                break
            try:
                async with asyncio.timeout(left):
                    await self._news.wait()
            except TimeoutError:
                break
        batch = frozenset(self._triggers)
        self._triggers.clear()
        return batch


class ProvisioningController:
    """Observe, decide, apply. core.scheduling decides what to launch."""

    def __init__(
        self,
        cluster: Cluster,
        batcher: Batcher,
        notices: Notices,
        clock: Clock,
        audience: Audience,
        guard: DecisionGuard = UNGUARDED,
    ) -> None:
        self._cluster = cluster
        self._batcher = batcher
        self._notices = notices
        self._clock = clock
        self._audience = audience
        self._guard = guard

    async def run(self) -> None:
        """Decide about every batch, until cancelled; repeat a decision that fails."""
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            await self._batcher.wait()
            # Differs: a batch of pods that ends before the cluster state is synced: Karpenter drops
            # the batch, and its pods trigger again ten seconds later; Karpy keeps it and decides as
            # soon as the last NodeClaim has its machine.
            await self._cluster.wait_until_synced()
            with Barrier(self._fail):
                await self.reconcile()
                backoff.reset()
                continue
            await asyncio.sleep(backoff.next_pause())
            self._batcher.trigger(_DECISION)

    async def reconcile(self) -> Verdict | None:
        """Decide once; return None if the cluster state is not synced."""
        if not self._cluster.is_synced:
            return None
        self._guard.observer.take(_DECISION)
        verdict = await self._decide_and_act()
        self._guard.observer.finish(_DECISION, ReconcileResult.SUCCESS)
        return verdict

    async def _decide_and_act(self) -> Verdict:
        audience = self._audience
        snapshot = with_untried(self._cluster.snapshot())
        vain = audience.vain_launches(snapshot)
        snapshot = replace(snapshot, vain_launches=vain) if vain else snapshot
        began = self._clock.now()
        with self._barrier("question"):
            audience.deciding(snapshot)
        decision = partial(decide_guarded, snapshot)
        verdict, culprits = await decide_in_time(decision, self._guard.timeout.total_seconds())
        for pod, error in culprits:
            self._guard.on_failure(pod.key, error)
        with self._barrier("verdict"):
            audience.decided(snapshot, verdict, self._clock.now() - began)
        pods = {pod.key: pod for pod in _undecided(snapshot)}
        self._announce(snapshot, verdict, pods)
        await asyncio.gather(*(self._launch(launch, pods) for launch in verdict.launches))
        return verdict

    def _announce(self, snapshot: Snapshot, verdict: Verdict, pods: dict[str, Pod]) -> None:
        claims = {node.name: node.claim for node in snapshot.nodes}
        for nomination in verdict.nominations:
            if names_real_pods(nomination, pods):
                claim = claims.get(nomination.node, "")
                with self._barrier(nomination.node):
                    self._audience.nominated(nomination, claim)
                    self._publish(nomination_notices(nomination, claim, pods))
        with self._barrier("refusals"):
            self._publish(chain(refusal_notices(verdict, pods), pool_notices(verdict)))

    def _publish(self, notices: Iterable[Notice]) -> None:
        for notice in notices:
            self._notices.emit(notice)

    async def _launch(self, launch: Launch, pods: dict[str, Pod]) -> None:
        # A launch that fails must not end the other launches; its pods trigger again.
        with Barrier(partial(self._fail_launch, launch)):
            claim = await self._cluster.apply(launch)
            with self._barrier(claim):
                self._audience.launched(claim, launch)
                self._publish(launch_notices(launch.pods, claim, pods))

    def _fail_launch(self, launch: Launch, error: KarpyError) -> None:
        if isinstance(error, Bug):
            self._guard.on_failure(launch.name, error)
        with self._barrier(launch.name):
            self._audience.failed(launch, error)

    def _fail(self, error: KarpyError) -> None:
        result = ReconcileResult.BUG if isinstance(error, Bug) else ReconcileResult.ERROR
        self._guard.observer.finish(_DECISION, result)
        self._guard.on_failure(_DECISION, error)

    def _barrier(self, what: str) -> Barrier:
        """Stop the error of a listener, so that the decision is still carried out."""
        return Barrier(partial(self._guard.on_failure, what))


def _undecided(snapshot: Snapshot) -> Iterator[Pod]:
    """Return the pods that a verdict may name: unbound pods, and pods of deleting nodes."""
    deleting = {node.name for node in snapshot.nodes if node.is_deleting}
    return (pod for pod in snapshot.pods if not pod.node_name or pod.node_name in deleting)


class Triggers:
    """Triggers decisions for pending pods and disrupted nodes, at once and every ten seconds."""

    def __init__(
        self, records: Records, batcher: Batcher, *, on_new_pod: OnPod = lambda _: None
    ) -> None:
        self._batcher = batcher
        self._on_new_pod = on_new_pod
        self._waiting: dict[str, str] = {}
        """UIDs of pods by key, and of nodes by name: only keys of pods have a slash."""
        records.pods.listen(self._on_pod)
        records.nodes.listen(self._on_node)
        for pod in records.pods.all():
            self._on_pod(pod.key, None, pod)
        for kept in records.nodes.all():
            self._on_node(kept.record.name, None, kept)

    async def run(self) -> None:
        """Trigger again for all that still wait, until cancelled."""
        while True:
            await asyncio.sleep(AGAIN.total_seconds())
            for uid in self._waiting.values():
                self._batcher.trigger(uid)

    def _trigger_waiting(self) -> None:
        """Trigger a decision if anything waits; one UID suffices for the whole batch."""
        uid = next(iter(self._waiting.values()), None)
        if uid is not None:
            self._batcher.trigger(uid)

    def _on_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        if after is None or not after.is_provisionable:
            self._waiting.pop(key, None)
            if after is not None and after.node_name and before and not before.node_name:
                # A pending pod may have been nominated to the room that this pod has taken.
                self._trigger_waiting()
            if after is not None and after.is_untried:
                # Pods that kube-scheduler has not tried yet extend an open batch.
                self._batcher.prolong(after.uid)
            return
        if self._waiting.get(key) != after.uid:
            self._on_new_pod(after)
        elif before is not None and _is_same_but_for_message(before, after):
            return
        self._ask(key, after.uid)

    def _on_node(
        self, key: str, before: Kept[NodeRecord] | None, after: Kept[NodeRecord] | None
    ) -> None:
        del before
        if after is None or not _is_disrupted(after.record):
            self._waiting.pop(key, None)
        else:
            self._ask(key, after.record.meta.uid)

    def _ask(self, key: str, uid: str) -> None:
        self._waiting[key] = uid
        self._batcher.trigger(uid)


def _is_same_but_for_message(before: Pod, after: Pod) -> bool:
    """Say whether only the message of kube-scheduler differs, which no decision reads."""
    return before == replace(after, scheduler_message=before.scheduler_message)


def _is_disrupted(node: NodeRecord) -> bool:
    return any(taint.key == DISRUPTED_TAINT and not is_gate(taint) for taint in node.taints)
