"""
Pods are told which node was made for them just before it opens, so that they get there.

kube-scheduler spreads pods as it likes. What was planned to fit together then does not, and more
nodes are bought for those left over. It tries the node in `status.nominatedNodeName` first, keeps
room there free for the pod, and forgets the name when the pod does not fit: a name can help, and
cannot block. Nodes that come together open together, or the first one would have all pods tried
again, in vain for most of them.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from karpy.controllers.batching import Batcher
from karpy.core.lifecycle.outcomes import Remark
from karpy.core.seating import needs_seats, to_seat
from karpy.errors import ClusterError, Forbidden
from karpy.model.kinds import POD
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict
from karpy.ports.objects import Objects, Patch, PatchType

IDLE_SECONDS: Final = 1.5
"""Who has not come by then is not waited for."""
LONGEST_SECONDS: Final = 10.0
_OPENING_SECONDS: Final = 2.0
_AT_ONCE: Final = 50
"""So many pods are told at the same time."""

PodsOf = Callable[[str], Iterable[Pod]]
"""Returns the pods that a NodeClaim was made for."""
OnRemark = Callable[[Remark], None]


class Seating:
    """Tells pods their node, and opens nodes together that come together."""

    def __init__(self, objects: Objects, pods_of: PodsOf, on_remark: OnRemark) -> None:
        self._objects = objects
        self._pods_of = pods_of
        self._on_remark = on_remark
        self._on_open: Callable[[str], None] = lambda _: None
        self._decision: tuple[Snapshot, Verdict] | None = None
        """What was decided last, until it is known whether its pods need seats."""
        self._is_needed = False
        self._awaited: set[str] = set()
        """NodeClaims whose pods are to be told their nodes."""
        self._coming: set[str] = set()
        """NodeClaims whose nodes will open in a moment."""
        self._seated: dict[str, str] = {}
        """Nodes by their NodeClaims, until they are open."""
        self._opened: set[str] = set()
        self._opening: set[str] = set()
        """Those of them whose nodes are being opened just now."""
        self._all_open = asyncio.Event()
        self._is_allowed = True
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._batcher = Batcher(
            idle_seconds=IDLE_SECONDS,
            longest_seconds=LONGEST_SECONDS,
            is_complete=lambda: not self._coming,
        )

    def listen(self, on_open: Callable[[str], None]) -> None:
        """Tell somebody of each NodeClaim whose node may open."""
        self._on_open = on_open

    def hear(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Hear what was decided; its NodeClaims will be noted."""
        self._decision = snapshot, verdict

    def note(self, claim: str) -> None:
        """Take note of a NodeClaim that was decided on."""
        if self._decision is not None:
            # Not before the first of them is made: nobody should wait for the answer.
            self._is_needed = needs_seats(*self._decision)
            self._decision = None
        if self._is_needed:
            self._awaited.add(claim)

    def is_open(self, claim: str) -> bool:
        """Say whether a node may open for pods."""
        return claim not in self._awaited or claim in self._opened or not self._is_allowed

    def expect(self, claim: str) -> None:
        """Take note that a node will open in a moment."""
        if claim in self._awaited:
            self._coming.add(claim)

    def forget(self, claim: str) -> None:
        """Forget about a NodeClaim whose node is open, or will not be."""
        self._awaited.discard(claim)
        self._coming.discard(claim)
        self._seated.pop(claim, None)
        self._opened.discard(claim)
        self._has_opened(claim)

    def seat(self, claim: str, node: str) -> None:
        """Have the node of a NodeClaim open for its pods, with those that come with it."""
        self._coming.discard(claim)
        if claim not in self._seated:
            self._seated[claim] = node
            self._batcher.trigger(claim)

    async def wait_for_others(self, claim: str) -> None:
        """Wait, the node of a claim being open, until those are that came with it."""
        self._has_opened(claim)
        with suppress(TimeoutError):
            async with asyncio.timeout(_OPENING_SECONDS):
                await self._all_open.wait()

    async def run(self) -> None:
        """Tell pods their nodes and open these, until cancelled."""
        while True:
            claims = sorted(self._seated.keys() & await self._batcher.wait())
            # As late as possible: whoever is tried on a node that is not open yet forgets it.
            await asyncio.gather(*(self._tell_pods(claim) for claim in claims))
            self._opening = self._seated.keys() & claims
            self._opened |= self._opening
            self._all_open.clear()
            for claim in claims:
                self._on_open(claim)

    async def _tell_pods(self, claim: str) -> None:
        pods, node = to_seat(self._pods_of(claim)), self._seated[claim]
        await asyncio.gather(*(self._tell(pod, node) for pod in pods))

    def _has_opened(self, claim: str) -> None:
        self._opening.discard(claim)
        if not self._opening:
            self._all_open.set()

    async def _tell(self, pod: Pod, node: str) -> None:
        patch = Patch(PatchType.MERGE, {"status": {"nominatedNodeName": node}})
        try:
            async with self._turns:
                await self._objects.patch(
                    POD, pod.name, patch, namespace=pod.namespace, subresource="status"
                )
        except Forbidden as error:
            if self._is_allowed:
                self._is_allowed = False
                told = "pods cannot be told their nodes and go where kube-scheduler likes"
                hint = "apply deploy/rbac.yaml, or start with --disable-seating"
                self._on_remark(Remark(told, {"error": error.message, "hint": hint}, is_error=True))
        except ClusterError:
            # It is bound or gone, or it goes where it likes: no harm is done.
            return
