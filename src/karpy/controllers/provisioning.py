"""Pending pods become NodeClaims."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import Final, Protocol

from msgspec.structs import replace

from karpy.controllers.batching import Batcher
from karpy.core.announcements import (
    is_awaited,
    launch_notices,
    nomination_notices,
    pool_notices,
    refusal_notices,
)
from karpy.core.passengers import with_expected, with_passengers
from karpy.core.provisioning.decide import decide
from karpy.errors import ClusterError
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot
from karpy.model.vain import VainLaunches
from karpy.model.verdicts import Launch, Nomination, Verdict
from karpy.ports.clock import Clock
from karpy.ports.cluster import Cluster
from karpy.ports.notices import Notices

_PODS_ON_THE_LOOP_MAX: Final = 1000
"""Decisions about more pods than this are made off the loop, which must not stand still."""


class Audience(Protocol):
    """Hears of decisions and of what becomes of them."""

    def deciding(self, snapshot: Snapshot) -> None:
        """Hear what is about to be decided on."""

    def decided(self, snapshot: Snapshot, verdict: Verdict, duration: timedelta) -> None:
        """Hear what was decided, on what, and how long that took."""

    def places(self) -> Mapping[str, str]:
        """Say by NodeClaim where pods are about to go that were decided about before."""

    def settling(self) -> Collection[str]:
        """Return the NodeClaims of which others, made together with them, are about to open."""

    async def vain_launches(self, snapshot: Snapshot) -> tuple[VainLaunches, ...]:
        """Say for which pods of a snapshot, about to be decided on, nothing may be launched."""

    def nominated(self, nomination: Nomination, claim: str) -> None:
        """Hear of a node, there or in flight, that pods are expected on, and of its NodeClaim."""

    def launched(self, claim: str, launch: Launch) -> None:
        """Hear of the NodeClaim that a launch has become."""

    def failed(self, launch: Launch, error: ClusterError) -> None:
        """Hear of a launch whose NodeClaim could not be made; its pods ask again."""


class ProvisioningController:
    """Observe, decide, apply. What to launch is decided in core.provisioning."""

    def __init__(
        self,
        cluster: Cluster,
        batcher: Batcher,
        notices: Notices,
        clock: Clock,
        audience: Audience,
    ) -> None:
        self._cluster = cluster
        self._batcher = batcher
        self._notices = notices
        self._clock = clock
        self._audience = audience

    async def run(self) -> None:
        """Decide for every batch, until cancelled."""
        while True:
            await self._batcher.wait()
            # Differs: Karpenter lets a batch go that comes too early, and its pods ask again ten
            # seconds later. We decide as soon as the last claim has its machine.
            await self._cluster.wait_until_synced()
            await self.reconcile()

    async def reconcile(self) -> Verdict | None:
        """Decide once; None if the cluster is not known well enough."""
        if not self._cluster.is_synced:
            return None
        audience = self._audience
        places, settling = audience.places(), audience.settling()
        seen = with_expected(self._cluster.snapshot(), places, settling)
        snapshot = with_passengers(seen)
        vain = await audience.vain_launches(snapshot)
        snapshot = replace(snapshot, vain_launches=vain) if vain else snapshot
        began = self._clock.now()
        audience.deciding(snapshot)
        verdict = await _decide(snapshot)
        audience.decided(snapshot, verdict, self._clock.now() - began)
        pods = {pod.key: pod for pod in _undecided(snapshot)}
        self._tell(snapshot, verdict, pods)
        await asyncio.gather(*(self._launch(launch, pods) for launch in verdict.launches))
        return verdict

    def _tell(self, snapshot: Snapshot, verdict: Verdict, pods: dict[str, Pod]) -> None:
        claims = {node.name: node.claim for node in snapshot.nodes}
        for nomination in verdict.nominations:
            if not is_awaited(nomination, pods):
                continue
            claim = claims.get(nomination.node, "")
            self._audience.nominated(nomination, claim)
            for notice in nomination_notices(nomination, claim, pods):
                self._notices.tell(notice)
        for notice in (*refusal_notices(verdict, pods), *pool_notices(verdict)):
            self._notices.tell(notice)

    async def _launch(self, launch: Launch, pods: dict[str, Pod]) -> None:
        try:
            claim = await self._cluster.apply(launch)
        except ClusterError as error:
            # The others must not suffer for it; its pods ask again.
            self._audience.failed(launch, error)
            return
        self._audience.launched(claim, launch)
        for notice in launch_notices(launch.pods, claim, pods):
            self._notices.tell(notice)


def _undecided(snapshot: Snapshot) -> Iterator[Pod]:
    """Return the pods that a verdict may name: those without a node, and those that lose theirs."""
    leaving = {node.name for node in snapshot.nodes if node.is_deleting}
    return (pod for pod in snapshot.pods if not pod.node_name or pod.node_name in leaving)


async def _decide(snapshot: Snapshot) -> Verdict:
    pending = sum(not pod.node_name for pod in snapshot.pods)
    if pending > _PODS_ON_THE_LOOP_MAX:
        return await asyncio.to_thread(decide, snapshot)
    return decide(snapshot)
