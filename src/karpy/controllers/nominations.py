"""Where pods are expected: NodeClaims made for them, nodes, and the node names they are given."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from karpy.barriers import Barrier
from karpy.controllers.context import ControllerContext
from karpy.controllers.queue import OnFailure, WorkQueue
from karpy.core.lifecycle.changes import Remark
from karpy.core.lifecycle.conditions import INITIALIZED
from karpy.core.lifecycle.registration import GatePolicy
from karpy.core.nominations import PATIENCE, is_in_vain, pods_to_nominate, settling, without_node
from karpy.errors import ClusterError, Forbidden
from karpy.model.kinds import POD
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict
from karpy.ports.clock import Clock
from karpy.ports.objects import Objects, Patch, PatchType
from karpy.ports.records import Kept, Records

LEAST_WINDOW: Final = timedelta(seconds=10)
_BATCHES: Final = 2
IDLE_SECONDS: Final = 1.5
"""Longest wait for sibling nodes."""
LONGEST_SECONDS: Final = 10.0
_OPENING_SECONDS: Final = 2.0
_AT_ONCE: Final = 16
"""So many pods are patched at the same time."""

PodsOf = Callable[[str], Iterable[Pod]]
"""Returns the pods that a NodeClaim was made for."""
OnRemark = Callable[[Remark], None]


class NodeNominations:
    """
    Remembers which nodes, and NodeClaims in flight, are about to get pods.

    Disruption leaves such a node alone: its pods are not bound yet, but will be.
    """

    def __init__(self, clock: Clock, batch_max: timedelta = timedelta(seconds=10)) -> None:
        self._clock = clock
        self._window = max(_BATCHES * batch_max, LEAST_WINDOW)
        self._until: dict[str, datetime] = {}

    def note(self, name: str) -> None:
        """Take note that pods are expected on a node, from now on for a while."""
        now = self._clock.now()
        # Taken out and put in again: so the first one is always the first to end.
        self._until.pop(name, None)
        self._until[name] = now + self._window
        while self._until[first := next(iter(self._until))] <= now:
            del self._until[first]

    def until(self, *names: str) -> datetime | None:
        """Say until when pods are expected on a node, by its name or that of its NodeClaim."""
        return max((self._until[each] for each in names if each in self._until), default=None)


BINDING_TIME: Final = timedelta(seconds=10)
"""Within that kube-scheduler has tried every pod again after its node is ready."""
STARTING_TIME: Final = timedelta(seconds=20)
"""A pod that does not run by then has reasons of its own."""
_COUNTING_PERIOD: Final = timedelta(seconds=1)
_BEFORE_RUNNING: Final = ("", "Pending")

OnLost = Callable[[str], None]
"""Called with the UID of a pod whose NodeClaim is gone: it needs another one."""


class ClaimNominations:
    """Remembers the pods of a launch for as long as its NodeClaim is there."""

    def __init__(self, records: Records, clock: Clock, on_lost: OnLost = lambda _: None) -> None:
        self._records = records
        self._clock = clock
        self._on_lost = on_lost
        self._pods: dict[str, tuple[str, ...]] = {}
        self._counted, self._is_busy = datetime.min.replace(tzinfo=UTC), False
        records.claims.listen(self._hear_claim)

    def note(self, claim: str, launch: Launch) -> None:
        """Take note of the NodeClaim that a launch has become."""
        self._pods[claim] = launch.pods

    def add(self, claim: str, pods: tuple[str, ...]) -> None:
        """Take note of pods that will find room on a NodeClaim made for others."""
        if claim in self._pods:
            still = (pod.key for pod in self.pods_of(claim) if not pod.node_name)
            self._pods[claim] = tuple(dict.fromkeys((*still, *pods)))

    def pods_of(self, claim: str) -> list[Pod]:
        """Return the pods that a NodeClaim was made for, as they are now."""
        found = (self._records.pods.get(key) for key in self._pods.get(claim, ()))
        return [pod for pod in found if pod is not None]

    def awaits(self, claim: str) -> bool:
        """Say whether pods are on their way to the node of a NodeClaim."""
        is_due = claim in self._pods and self._is_due(claim)
        return is_due and any(not pod.node_name for pod in self.pods_of(claim))

    def is_busy(self) -> bool:
        """Say whether pods are on their way anywhere or start; the answer may be a second old."""
        now = self._clock.now()
        if now >= self._counted + _COUNTING_PERIOD:
            self._counted, self._is_busy = now, any(map(self._is_starting, self._pods))
        return self._is_busy

    def places(self) -> Mapping[str, str]:
        """Say by NodeClaim where pods are about to go: those whose node is not there for long."""
        due = [claim for claim in self._pods if self._is_due(claim)]
        return {pod.key: claim for claim in due for pod in self.pods_of(claim) if not pod.node_name}

    def settling(self) -> frozenset[str]:
        """Return the NodeClaims of which others, made together with them, are about to open."""
        kept = (self._records.claims.get(claim) for claim in self._pods)
        return settling([each.record for each in kept if each is not None], self._clock.now())

    def _is_starting(self, claim: str) -> bool:
        is_due = self._is_due(claim, STARTING_TIME)
        return is_due and any(pod.phase in _BEFORE_RUNNING for pod in self.pods_of(claim))

    def _is_due(self, claim: str, patience: timedelta = BINDING_TIME) -> bool:
        kept = self._records.claims.get(claim)
        if kept is None or kept.record.meta.is_deleting:
            # One that was just made is not told of yet.
            return kept is None
        said = kept.record.conditions.get(INITIALIZED)
        if said is None or not said.is_true:
            return True
        return self._clock.now() < said.changed + patience

    def _hear_claim(
        self, key: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        del before
        if after is None:
            lost = self.pods_of(key)
            self._pods.pop(key, None)
            for pod in lost:
                if pod.is_provisionable:
                    self._on_lost(pod.uid)


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
        """What was decided last, until its pods are known."""
        self._told: frozenset[str] = frozenset()
        """The pods of that decision that get the name of their node."""
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
                message = "pods cannot be nominated and go where kube-scheduler places them"
                hint = "apply deploy/rbac.yaml, or start with --nominate-pods Never"
                self._on_remark(
                    Remark(message, {"error": error.message, "hint": hint}, is_error=True)
                )
        except ClusterError:
            # It is bound or gone, or it is on another node: no harm is done.
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
        is_emptying = any(pod.is_deleting for pod in self._context.records.pods.by_index(name))
        claim = claims[0].record if claims else None
        return is_in_vain(claim, is_emptying=is_emptying, now=self._context.clock.now())

    def _hear_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        told = "" if before is None else before.nominated_node
        if after is not None and _waits(after) and after.nominated_node != told:
            self._queue.add_after(key, PATIENCE.total_seconds())


def _waits(pod: Pod) -> bool:
    return bool(pod.nominated_node) and not pod.node_name and pod.is_active
