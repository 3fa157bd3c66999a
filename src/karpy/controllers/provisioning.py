"""Pending pods become NodeClaims."""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from karpy.barriers import Barrier
from karpy.controllers.offloading import decide_in_time
from karpy.controllers.queue import UNOBSERVED, OnFailure
from karpy.controllers.triggers import Batcher
from karpy.core.announcements import (
    is_awaited,
    launch_notices,
    nomination_notices,
    pool_notices,
    refusal_notices,
)
from karpy.core.nominations import with_untried
from karpy.core.scheduling.decide import decide_apart
from karpy.errors import Bug, KarpyError
from karpy.model.backoff import Backoff
from karpy.model.notices import Notice
from karpy.model.pods import Pod
from karpy.model.settings import Options
from karpy.model.snapshot import Snapshot, VainLaunches
from karpy.model.verdicts import Launch, Nomination, Verdict
from karpy.ports.clock import Clock
from karpy.ports.cluster import Cluster
from karpy.ports.notices import Notices
from karpy.ports.observers import Observer, ReconcileResult

_DECISION: Final = "decision"
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0


class Audience(Protocol):
    """Hears of decisions and of what becomes of them."""

    def deciding(self, snapshot: Snapshot) -> None:
        """Hear what is about to be decided on."""

    def decided(self, snapshot: Snapshot, verdict: Verdict, duration: timedelta) -> None:
        """Hear what was decided, on what, and how long that took."""

    async def vain_launches(self, snapshot: Snapshot) -> tuple[VainLaunches, ...]:
        """Say for which pods of a snapshot, about to be decided on, nothing may be launched."""

    def nominated(self, nomination: Nomination, claim: str) -> None:
        """Hear of a node, there or in flight, that pods are expected on, and of its NodeClaim."""

    def launched(self, claim: str, launch: Launch) -> None:
        """Hear of the NodeClaim that a launch has become."""

    def failed(self, launch: Launch, error: KarpyError) -> None:
        """Hear of a launch whose NodeClaim could not be made; its pods ask again."""


class Guard(Struct, frozen=True):
    """What sees to it that decisions come to an end, and hears of those that fail."""

    timeout: timedelta = Options().decision_timeout
    on_failure: OnFailure = lambda *_: None
    observer: Observer = UNOBSERVED


UNGUARDED: Final = Guard()


class ProvisioningController:
    """Observe, decide, apply. What to launch is decided in core.scheduling."""

    def __init__(
        self,
        cluster: Cluster,
        batcher: Batcher,
        notices: Notices,
        clock: Clock,
        audience: Audience,
        guard: Guard = UNGUARDED,
    ) -> None:
        self._cluster = cluster
        self._batcher = batcher
        self._notices = notices
        self._clock = clock
        self._audience = audience
        self._guard = guard

    async def run(self) -> None:
        """Decide for every batch, until cancelled; one that fails is decided about again."""
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            await self._batcher.wait()
            # Differs: a batch of pods that ends before the state of the cluster is known: Karpenter
            # drops it, and the pods are seen again ten seconds later; Karpy waits and decides as
            # soon as the last NodeClaim has its machine.
            await self._cluster.wait_until_synced()
            with Barrier(self._fail):
                await self.reconcile()
                backoff.reset()
                continue
            await asyncio.sleep(backoff.next_pause())
            self._batcher.trigger(_DECISION)

    async def reconcile(self) -> Verdict | None:
        """Decide once; None if the cluster is not known well enough."""
        if not self._cluster.is_synced:
            return None
        self._guard.observer.take(_DECISION)
        verdict = await self._decide_and_act()
        self._guard.observer.finish(_DECISION, ReconcileResult.SUCCESS)
        return verdict

    async def _decide_and_act(self) -> Verdict:
        audience = self._audience
        snapshot = with_untried(self._cluster.snapshot())
        vain = await audience.vain_launches(snapshot)
        snapshot = replace(snapshot, vain_launches=vain) if vain else snapshot
        began = self._clock.now()
        with self._barrier("question"):
            audience.deciding(snapshot)
        decision = partial(decide_apart, snapshot)
        verdict, culprits = await decide_in_time(decision, self._guard.timeout.total_seconds())
        for pod, error in culprits:
            self._guard.on_failure(pod.key, error)
        with self._barrier("verdict"):
            audience.decided(snapshot, verdict, self._clock.now() - began)
        pods = {pod.key: pod for pod in _undecided(snapshot)}
        self._tell(snapshot, verdict, pods)
        await asyncio.gather(*(self._launch(launch, pods) for launch in verdict.launches))
        return verdict

    def _tell(self, snapshot: Snapshot, verdict: Verdict, pods: dict[str, Pod]) -> None:
        claims = {node.name: node.claim for node in snapshot.nodes}
        for nomination in verdict.nominations:
            if is_awaited(nomination, pods):
                claim = claims.get(nomination.node, "")
                with self._barrier(nomination.node):
                    self._audience.nominated(nomination, claim)
                    self._tell_all(nomination_notices(nomination, claim, pods))
        with self._barrier("refusals"):
            self._tell_all(chain(refusal_notices(verdict, pods), pool_notices(verdict)))

    def _tell_all(self, notices: Iterable[Notice]) -> None:
        for notice in notices:
            self._notices.tell(notice)

    async def _launch(self, launch: Launch, pods: dict[str, Pod]) -> None:
        # The others must not suffer for one that fails; its pods ask again.
        with Barrier(partial(self._fail_launch, launch)):
            claim = await self._cluster.apply(launch)
            with self._barrier(claim):
                self._audience.launched(claim, launch)
                self._tell_all(launch_notices(launch.pods, claim, pods))

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
        """Keep the error of a listener away from what was decided."""
        return Barrier(partial(self._guard.on_failure, what))


def _undecided(snapshot: Snapshot) -> Iterator[Pod]:
    """Return the pods that a verdict may name: those without a node, and those that lose theirs."""
    leaving = {node.name for node in snapshot.nodes if node.is_deleting}
    return (pod for pod in snapshot.pods if not pod.node_name or pod.node_name in leaving)
