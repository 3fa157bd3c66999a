"""Pending pods become NodeClaims."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from karpy.controllers.batching import Batcher
from karpy.core.announcements import (
    launch_notices,
    nomination_notices,
    pool_notices,
    refusal_notices,
)
from karpy.core.provisioning.decide import decide
from karpy.errors import ClusterError
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict
from karpy.ports.cluster import Cluster
from karpy.ports.journal import Journal
from karpy.ports.notices import Notices

TRIGGER_AGAIN: Final = timedelta(seconds=10)
_PODS_ON_THE_LOOP_MAX: Final = 1000
"""Decisions about more pods than this are made off the loop, which must not stand still."""

OnNomination = Callable[[str], None]
"""Is told the name of a node or NodeClaim that pods are expected on."""
OnFailure = Callable[[Launch, ClusterError], None]
"""Is told of a launch whose NodeClaim could not be made."""


class ProvisioningController:
    """Observe, decide, apply. What to launch is decided in core.provisioning."""

    def __init__(
        self,
        cluster: Cluster,
        batcher: Batcher,
        notices: Notices,
        journal: Journal,
        *,
        on_nomination: OnNomination = lambda _: None,
        on_failure: OnFailure = lambda *_: None,
    ) -> None:
        self._cluster = cluster
        self._batcher = batcher
        self._notices = notices
        self._journal = journal
        self._on_nomination = on_nomination
        self._on_failure = on_failure

    async def run(self) -> None:
        """Decide for every batch, until cancelled."""
        while True:
            await self._batcher.wait()
            await self.reconcile()

    async def reconcile(self) -> Verdict | None:
        """
        Decide once; None if the cluster is not known well enough.

        Then the batch is let go: pods that still wait ask again within seconds.
        """
        if not self._cluster.is_synced:
            return None
        snapshot = self._cluster.snapshot()
        verdict = await _decide(snapshot)
        self._journal.record(snapshot, verdict)
        pods = {pod.key: pod for pod in snapshot.pods if not pod.node_name}
        self._tell(snapshot, verdict, pods)
        await asyncio.gather(*(self._launch(launch, pods) for launch in verdict.launches))
        return verdict

    def _tell(self, snapshot: Snapshot, verdict: Verdict, pods: dict[str, Pod]) -> None:
        claims = {node.name: node.claim for node in snapshot.nodes}
        for nomination in verdict.nominations:
            self._on_nomination(nomination.node)
            claim = claims.get(nomination.node, "")
            for notice in nomination_notices(nomination, claim, pods):
                self._notices.tell(notice)
        for notice in (*refusal_notices(verdict, pods), *pool_notices(verdict)):
            self._notices.tell(notice)

    async def _launch(self, launch: Launch, pods: dict[str, Pod]) -> None:
        try:
            claim = await self._cluster.apply(launch)
        except ClusterError as error:
            # The others must not suffer for it; its pods ask again.
            self._on_failure(launch, error)
            return
        self._on_nomination(claim)
        for notice in launch_notices(launch.pods, claim, pods):
            self._notices.tell(notice)


async def _decide(snapshot: Snapshot) -> Verdict:
    pending = sum(not pod.node_name for pod in snapshot.pods)
    if pending > _PODS_ON_THE_LOOP_MAX:
        return await asyncio.to_thread(decide, snapshot)
    return decide(snapshot)
