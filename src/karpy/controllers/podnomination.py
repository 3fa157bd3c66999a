"""Give pods the name of the node that was made for them; withdraw a name given in vain."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from karpy.barriers import Barrier
from karpy.controllers.context import ControllerContext
from karpy.controllers.queue import OnFailure, WorkQueue
from karpy.core.lifecycle.changes import Remark
from karpy.core.lifecycle.registration import GatePolicy
from karpy.core.nominations import PATIENCE, is_in_vain, pods_to_nominate, without_node
from karpy.errors import ClusterError, Forbidden
from karpy.model.kinds import POD
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict
from karpy.ports.objects import Objects, Patch, PatchType

IDLE_SECONDS: Final = 1.5
"""Longest wait for sibling nodes."""
LONGEST_SECONDS: Final = 10.0
_OPENING_SECONDS: Final = 2.0
_AT_ONCE: Final = 16
"""So many pods are told at the same time."""

PodsOf = Callable[[str], Iterable[Pod]]
"""Returns the pods that a NodeClaim was made for."""
OnRemark = Callable[[Remark], None]


class PodNominator:
    """
    Tells pods their node, and says when nodes may open.

    Nodes that come together open together, as soon as their pods have the names: a pod that is
    tried before loses its name. Nodes whose pods get no name open last, else pods change places.
    """

    def __init__(
        self,
        objects: Objects,
        pods_of: PodsOf,
        on_remark: OnRemark,
        on_failure: OnFailure = lambda *_: None,
    ) -> None:
        self._objects = objects
        self._pods_of = pods_of
        self._on_remark = on_remark
        self._on_failure = on_failure
        self._on_call: Callable[[str], None] = lambda _: None
        self._decision: tuple[Snapshot, Verdict] | None = None
        """What was decided last, until it is known whom to tell."""
        self._told: frozenset[str] = frozenset()
        """The pods of that decision who should know their node."""
        self._awaited: dict[str, frozenset[str]] = {}
        """By NodeClaims whose nodes are not open yet, the keys of pods that are to be told."""
        self._there: dict[str, str] = {}
        """Nodes that stand ready, by their NodeClaims, until they are open."""
        self._called: set[str] = set()
        self._arrivals, self._progress = asyncio.Event(), asyncio.Event()
        self._is_allowed = True
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def listen(self, on_call: Callable[[str], None]) -> None:
        """Call a function with each NodeClaim whose node may open."""
        self._on_call = on_call

    def hear(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Hear what was decided; its NodeClaims will be noted."""
        self._decision = snapshot, verdict

    def note(self, claim: str, launch: Launch) -> None:
        """Take note of a NodeClaim that was decided on."""
        if self._decision is not None:
            # Not before the first of them is made: no launch waits for the answer.
            self._told = pods_to_nominate(*self._decision)
            self._decision = None
        if self._told and self._is_allowed:
            self._awaited[claim] = self._told.intersection(launch.pods)

    def door(self, claim: str) -> GatePolicy:
        """Say whether a node may open for pods."""
        if claim in self._called:
            return GatePolicy.CALLED
        return GatePolicy.HELD if claim in self._awaited and self._is_allowed else GatePolicy.FREE

    def arrive(self, claim: str, node: str) -> None:
        """Have the node of a NodeClaim open for its pods, once it is its turn."""
        if claim in self._awaited and claim not in self._there:
            self._there[claim] = node
            self._arrivals.set()
            self._progress.set()

    def forget(self, claim: str) -> None:
        """Forget about a NodeClaim whose node is open, or will not be."""
        self._awaited.pop(claim, None)
        self._there.pop(claim, None)
        self._called.discard(claim)
        self._progress.set()

    async def run(self) -> None:
        """Tell pods their nodes and open these, until cancelled."""
        # Some may stand ready already if this was begun before and failed.
        if self._there.keys() - self._called:
            self._arrivals.set()
        while True:
            await self._arrivals.wait()
            self._arrivals.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_SECONDS):
                    await self._gather()
            nodes = {claim: self._there[claim] for claim in self._there.keys() - self._called}
            await self._tell_all(nodes)
            firm = [claim for claim in nodes if self._awaited.get(claim)]
            # Pods without a name must find the others in their places.
            await self._open(firm)
            await self._open(nodes.keys() - firm)

    async def _gather(self) -> None:
        """Wait as long as nodes come of which some are there."""
        while self._there.keys() < self._awaited.keys():
            self._progress.clear()
            async with asyncio.timeout(IDLE_SECONDS):
                await self._progress.wait()

    async def _tell_all(self, nodes: Mapping[str, str]) -> None:
        """Tell pods, the last first: the first are tried most, and forget where they cannot go."""
        told = [
            (pod, node)
            for claim, node in nodes.items()
            for pod in without_node(self._pods_of(claim))
            if pod.key in self._awaited.get(claim, ())
        ]
        told.sort(key=lambda each: each[0].created, reverse=True)
        await asyncio.gather(*(self._tell_one(pod, node) for pod, node in told))

    async def _open(self, claims: Collection[str]) -> None:
        """Have nodes opened, and wait for that, but not for ever."""
        due = sorted(self._awaited.keys() & claims)
        self._called.update(due)
        for claim in due:
            self._on_call(claim)
        with suppress(TimeoutError):
            async with asyncio.timeout(_OPENING_SECONDS):
                while not self._called.isdisjoint(due):
                    self._progress.clear()
                    await self._progress.wait()

    async def _tell_one(self, pod: Pod, node: str) -> None:
        """Tell a pod; one that cannot be told must not keep the nodes of others closed."""
        with Barrier(partial(self._on_failure, pod.key)):
            await self._tell(pod, node)

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
                hint = "apply deploy/rbac.yaml, or start with --nominate-pods Never"
                self._on_remark(Remark(told, {"error": error.message, "hint": hint}, is_error=True))
        except ClusterError:
            # It is bound or gone, or it goes where it likes: no harm is done.
            return


_FIELD: Final = "/status/nominatedNodeName"


class NominationWithdrawal:
    """
    Takes a name back that kube-scheduler did not act on; decisions leave pods alone that have one.

    kube-scheduler does so by itself. Other schedulers may not know what the name means.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = WorkQueue(context.observer)
        context.records.pods.listen(self._hear_pod)
        for pod in context.records.pods.all():
            self._hear_pod(pod.key, None, pod)

    async def run(self) -> None:
        """Take names back, until cancelled."""
        await self._queue.run(self.reconcile, on_failure=self._context.on_failure)

    async def reconcile(self, key: str) -> float | None:
        """Look at one pod; return after how long to look again."""
        pod = self._context.records.pods.get(key)
        if pod is None or not _waits(pod):
            return None
        if not self._is_in_vain(pod.nominated_node):
            return PATIENCE.total_seconds()
        taken_back = [
            {"op": "test", "path": _FIELD, "value": pod.nominated_node},
            {"op": "remove", "path": _FIELD},
        ]
        patch = Patch(PatchType.JSON, taken_back)
        try:
            await self._context.objects.patch(
                POD, pod.name, patch, namespace=pod.namespace, subresource="status"
            )
        except ClusterError:
            # Another writer was faster, or it is forbidden; the pod is looked at again.
            return PATIENCE.total_seconds()
        return None

    def _is_in_vain(self, name: str) -> bool:
        node = self._context.records.nodes.get(name)
        claims = [] if node is None else self._context.claims_of(node.record)
        if node is not None and not claims:
            # It is not a node of ours: no pod got its name from here.
            return False
        is_emptying = any(pod.is_deleting for pod in self._context.records.pods.under(name))
        claim = claims[0].record if claims else None
        return is_in_vain(claim, is_emptying=is_emptying, now=self._context.clock.now())

    def _hear_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        told = "" if before is None else before.nominated_node
        if after is not None and _waits(after) and after.nominated_node != told:
            self._queue.add_after(key, PATIENCE.total_seconds())


def _waits(pod: Pod) -> bool:
    return bool(pod.nominated_node) and not pod.node_name and pod.is_active
