"""Nominations: pods promised to NodeClaims and nodes, and `status.nominatedNodeName` of pods."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from karpy.barriers import Barrier
from karpy.controllers.context import ControllerContext
from karpy.controllers.queue import OnFailure, WorkQueue
from karpy.core.lifecycle.changes import Remark
from karpy.core.lifecycle.conditions import INITIALIZED
from karpy.core.lifecycle.registration import GatePolicy
from karpy.core.nominations import (
    PATIENCE,
    Predecessor,
    is_in_vain,
    pods_to_nominate,
    settling,
    without_node,
)
from karpy.errors import ClusterError, Forbidden
from karpy.model.kinds import POD
from karpy.model.pods import STATEFUL_SET, Pod
from karpy.model.records import ClaimRecord
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Verdict
from karpy.ports.clock import Clock
from karpy.ports.objects import Objects, Patch, PatchType
from karpy.ports.records import Kept, Records

LEAST_WINDOW: Final = timedelta(seconds=10)
_BATCHES: Final = 2
IDLE_SECONDS: Final = 1.5
"""Longest wait for the next sibling node to become ready."""
LONGEST_SECONDS: Final = 10.0
"""Longest wait for all sibling nodes together."""
_OPENING_SECONDS: Final = 2.0
_AT_ONCE: Final = 16
"""Pods patched concurrently."""

PodsOf = Callable[[str], Iterable[Pod]]
"""Returns the pods that a NodeClaim was created for."""
OnRemark = Callable[[Remark], None]


class NodeNominations:
    """
    Remembers until when nodes, and NodeClaims without a node, count as nominated.

    Disruption leaves a nominated node alone: its pods are not bound yet.
    """

    def __init__(self, clock: Clock, batch_max: timedelta = timedelta(seconds=10)) -> None:
        self._clock = clock
        self._window = max(_BATCHES * batch_max, LEAST_WINDOW)
        self._until: dict[str, datetime] = {}

    def note(self, name: str) -> None:
        """Count a node, or a NodeClaim, by its name as nominated for the nomination window."""
        now = self._clock.now()
        # Re-insert the name so that the dict stays ordered by expiry.
        self._until.pop(name, None)
        self._until[name] = now + self._window
        while self._until[first := next(iter(self._until))] <= now:
            del self._until[first]

    def until(self, *names: str) -> datetime | None:
        """Return until when a node is nominated, by its name or that of its NodeClaim."""
        return max((self._until[each] for each in names if each in self._until), default=None)


BINDING_TIME: Final = timedelta(seconds=10)
"""Longest time in which kube-scheduler retries a pod after its node is ready."""
STARTING_TIME: Final = timedelta(seconds=20)
"""Time after the initialization of a node in which its pods still count as starting."""
_COUNTING_PERIOD: Final = timedelta(seconds=1)
_BEFORE_RUNNING: Final = ("", "Pending")

OnLost = Callable[[str], None]
"""Called with the UID of a pending pod whose NodeClaim is gone: it needs another NodeClaim."""


class ClaimNominations:
    """Remembers the pods of a launch for as long as its NodeClaim exists."""

    def __init__(self, records: Records, clock: Clock, on_lost: OnLost = lambda _: None) -> None:
        self._records = records
        self._clock = clock
        self._on_lost = on_lost
        self._pods: dict[str, tuple[str, ...]] = {}
        self._predecessors: dict[str, Predecessor] = {}
        """By the key of the pod, until its successor is bound."""
        self._replacements: dict[str, frozenset[str]] = {}
        """The groups of the StatefulSet pods that each replacement was launched for, by claim."""
        self._counted, self._is_busy = datetime.min.replace(tzinfo=UTC), False
        records.claims.listen(self._on_claim)
        records.pods.listen(self._on_pod)

    def note(self, claim: str, launch: Launch) -> None:
        """Nominate the pods of a launch to the NodeClaim that was created for it."""
        self._pods[claim] = launch.pods

    def note_replacement(self, claim: str, launch: Launch) -> None:
        """Keep places on a replacement for the pods of StatefulSets that it is launched for."""
        found = [self._records.pods.get(key) for key in launch.pods]
        pods = [
            pod
            for pod in found
            if pod is not None and pod.node_name and pod.is_owned_by(STATEFUL_SET)
        ]
        if pods:
            self._replacements[claim] = frozenset(pod.group for pod in pods)
            self._predecessors.update((pod.key, Predecessor(pod, (claim,))) for pod in pods)

    def predecessors(self) -> list[Predecessor]:
        """Return the pods of StatefulSets that have ended without a successor yet."""
        return [
            replace(each, claims=(*each.claims, *self._replacements_of(each.pod.group)))
            for key, each in self._predecessors.items()
            if each.ended is not None and self._records.pods.get(key) is None
        ]

    def add(self, claim: str, pods: tuple[str, ...]) -> None:
        """Nominate further pods to a NodeClaim that was created for other pods."""
        if claim in self._pods:
            unbound = (pod.key for pod in self.pods_of(claim) if not pod.node_name)
            self._pods[claim] = tuple(dict.fromkeys((*unbound, *pods)))

    def pods_of(self, claim: str) -> list[Pod]:
        """Return the pods nominated to a NodeClaim, in their present state."""
        found = (self._records.pods.get(key) for key in self._pods.get(claim, ()))
        return [pod for pod in found if pod is not None]

    def has_unbound_pods(self, claim: str) -> bool:
        """Say whether a nominated pod of a NodeClaim is not bound and may still be."""
        is_due = claim in self._pods and self._is_due(claim)
        return is_due and any(not pod.node_name for pod in self.pods_of(claim))

    def is_busy(self) -> bool:
        """Say whether any nominated pod is pending or starting; the answer may be a second old."""
        now = self._clock.now()
        if now >= self._counted + _COUNTING_PERIOD:
            self._counted, self._is_busy = now, any(map(self._is_starting, self._pods))
        return self._is_busy

    def places(self) -> Mapping[str, str]:
        """Return the NodeClaim of each unbound nominated pod, by the key of the pod."""
        due = [claim for claim in self._pods if self._is_due(claim)]
        places = {
            pod.key: claim for claim in due for pod in self.pods_of(claim) if not pod.node_name
        }
        return {**self._places_of_successors(), **places}

    def settling(self) -> frozenset[str]:
        """Return the NodeClaims of decisions of which a node is about to open."""
        kept = (self._records.claims.get(claim) for claim in self._pods)
        return settling([each.record for each in kept if each is not None], self._clock.now())

    def _replacements_of(self, group: str) -> list[str]:
        return sorted(claim for claim, groups in self._replacements.items() if group in groups)

    def _places_of_successors(self) -> dict[str, str]:
        """Return the NodeClaim of each successor that was created a moment ago."""
        since, places = self._clock.now() - BINDING_TIME, {}
        for key, each in self._predecessors.items():
            pod = self._records.pods.get(key)
            if pod is None or pod.uid == each.pod.uid or pod.node_name:
                continue
            if pod.created > since:
                places[key] = each.claims[0]
        return places

    def _is_starting(self, claim: str) -> bool:
        is_due = self._is_due(claim, STARTING_TIME)
        return is_due and any(pod.phase in _BEFORE_RUNNING for pod in self.pods_of(claim))

    def _is_due(self, claim: str, patience: timedelta = BINDING_TIME) -> bool:
        kept = self._records.claims.get(claim)
        if kept is None or kept.record.meta.is_deleting:
            # The watch has not delivered a NodeClaim that was just created.
            return kept is None
        initialized = kept.record.conditions.get(INITIALIZED)
        if initialized is None or not initialized.is_true:
            return True
        return self._clock.now() < initialized.changed + patience

    def _on_claim(
        self, key: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        del before
        if after is None:
            lost = self.pods_of(key)
            self._pods.pop(key, None)
            for pod in lost:
                if pod.is_provisionable:
                    self._on_lost(pod.uid)
            known = self._predecessors.items()
            self._predecessors = {name: each for name, each in known if key not in each.claims}
            self._replacements.pop(key, None)

    def _on_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        del before
        known = self._predecessors.get(key)
        if known is None:
            return
        if after is None:
            self._predecessors[key] = replace(known, ended=self._clock.now())
        elif after.uid != known.pod.uid and after.node_name:
            del self._predecessors[key]


class PodNominator:
    """
    Sets `nominatedNodeName` of pods, and decides when the gate of their nodes opens.

    Nodes of one decision open together, once their pods are nominated: kube-scheduler clears the
    nomination of a pod that it tries before the node is open. Nodes whose pods are not nominated
    open last, since their pods could otherwise take room of the nominated ones.
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
        self._on_open: Callable[[str], None] = lambda _: None
        self._decision: tuple[Snapshot, Verdict] | None = None
        """The last decision, until `_to_nominate` is computed from it."""
        self._to_nominate: frozenset[str] = frozenset()
        """Keys of the pods of the last decision that are to be nominated."""
        self._awaited: dict[str, frozenset[str]] = {}
        """Keys of the pods to nominate, by NodeClaim whose node is not open yet."""
        self._ready: dict[str, str] = {}
        """Names of ready nodes whose gate is still closed, by NodeClaim."""
        self._opening: set[str] = set()
        """NodeClaims whose node may open: the gate is about to be removed."""
        self._readiness, self._progress = asyncio.Event(), asyncio.Event()
        self._is_allowed = True
        self._slots = asyncio.Semaphore(_AT_ONCE)

    def listen(self, on_open: Callable[[str], None]) -> None:
        """Call a function with the name of each NodeClaim whose node may open."""
        self._on_open = on_open

    def on_decision(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Keep a decision; `note` is called for each of its NodeClaims."""
        self._decision = snapshot, verdict

    def note(self, claim: str, launch: Launch) -> None:
        """Take note of a NodeClaim that was created for a launch of the last decision."""
        if self._decision is not None:
            # Computed after the first NodeClaim is created, so that no launch waits for it.
            self._to_nominate = pods_to_nominate(*self._decision)
            self._decision = None
        if self._to_nominate and self._is_allowed:
            self._awaited[claim] = self._to_nominate.intersection(launch.pods)

    def gate_policy(self, claim: str) -> GatePolicy:
        """Return when the gate of a NodeClaim's node is to be removed."""
        if claim in self._opening:
            return GatePolicy.NOMINATED
        return GatePolicy.HELD if claim in self._awaited and self._is_allowed else GatePolicy.FREE

    def note_ready(self, claim: str, node: str) -> None:
        """Take note that the node of a NodeClaim is ready; it opens once its pods are nominated."""
        if claim in self._awaited and claim not in self._ready:
            self._ready[claim] = node
            self._readiness.set()
            self._progress.set()

    def forget(self, claim: str) -> None:
        """Drop a NodeClaim whose node is open, or will never be."""
        self._awaited.pop(claim, None)
        self._ready.pop(claim, None)
        self._opening.discard(claim)
        self._progress.set()

    async def run(self) -> None:
        """Nominate pods to ready nodes, then open the nodes, until cancelled."""
        # A run that failed may have left nodes that are ready and closed.
        if self._ready.keys() - self._opening:
            self._readiness.set()
        while True:
            await self._readiness.wait()
            self._readiness.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_SECONDS):
                    await self._gather()
            nodes = {claim: self._ready[claim] for claim in self._ready.keys() - self._opening}
            await self._nominate_all(nodes)
            nominated = [claim for claim in nodes if self._awaited.get(claim)]
            # Pods without a nomination must find the nominated pods in their places.
            await self._open(nominated)
            await self._open(nodes.keys() - nominated)

    async def _gather(self) -> None:
        """Wait until all sibling nodes are ready; raise TimeoutError if none is for a while."""
        while self._ready.keys() < self._awaited.keys():
            self._progress.clear()
            async with asyncio.timeout(IDLE_SECONDS):
                await self._progress.wait()

    async def _nominate_all(self, nodes: Mapping[str, str]) -> None:
        """Nominate pods, newest first: the oldest are retried most, and may lose a nomination."""
        pairs = [
            (pod, node)
            for claim, node in nodes.items()
            for pod in without_node(self._pods_of(claim))
            if pod.key in self._awaited.get(claim, ())
        ]
        pairs.sort(key=lambda each: each[0].created, reverse=True)
        await asyncio.gather(*(self._nominate(pod, node) for pod, node in pairs))

    async def _open(self, claims: Collection[str]) -> None:
        """Have the gates of nodes removed; wait for that, but no longer than two seconds."""
        due = sorted(self._awaited.keys() & claims)
        self._opening.update(due)
        for claim in due:
            self._on_open(claim)
        with suppress(TimeoutError):
            async with asyncio.timeout(_OPENING_SECONDS):
                while not self._opening.isdisjoint(due):
                    self._progress.clear()
                    await self._progress.wait()

    async def _nominate(self, pod: Pod, node: str) -> None:
        """Nominate a pod; a failure is reported and must not keep other nodes closed."""
        with Barrier(partial(self._on_failure, pod.key)):
            await self._patch_pod(pod, node)

    async def _patch_pod(self, pod: Pod, node: str) -> None:
        patch = Patch(PatchType.MERGE, {"status": {"nominatedNodeName": node}})
        try:
            async with self._slots:
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
            # The pod is gone or changed meanwhile: kube-scheduler places it without a nomination.
            return


_FIELD: Final = "/status/nominatedNodeName"


class NominationWithdrawal:
    """
    Clears a `nominatedNodeName` of ours that the scheduler did not act on.

    Decisions skip nominated pods, so that a stale nomination would leave a pod pending.
    kube-scheduler clears nominations itself; other schedulers may not know the field.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = WorkQueue(context.observer)
        context.records.pods.listen(self._on_pod)
        for pod in context.records.pods.all():
            self._on_pod(pod.key, None, pod)

    async def run(self) -> None:
        """Clear stale nominations, until cancelled."""
        await self._queue.run(self.reconcile, on_failure=self._context.on_failure)

    async def reconcile(self, key: str) -> float | None:
        """Check the nomination of one pod; return after how long to check again."""
        pod = self._context.records.pods.get(key)
        if pod is None or not _is_nominated(pod):
            return None
        if not self._is_stale(pod.nominated_node):
            return PATIENCE.total_seconds()
        cleared = [
            {"op": "test", "path": _FIELD, "value": pod.nominated_node},
            {"op": "remove", "path": _FIELD},
        ]
        patch = Patch(PatchType.JSON, cleared)
        try:
            await self._context.objects.patch(
                POD, pod.name, patch, namespace=pod.namespace, subresource="status"
            )
        except ClusterError:
            # Another writer was faster, or the patch is forbidden: check again later.
            return PATIENCE.total_seconds()
        return None

    def _is_stale(self, name: str) -> bool:
        node = self._context.records.nodes.get(name)
        claims = [] if node is None else self._context.claims_of(node.record)
        if node is not None and not claims:
            # The node has no NodeClaim: Karpy nominates no pod to it.
            return False
        is_emptying = any(pod.is_deleting for pod in self._context.records.pods.by_index(name))
        claim = claims[0].record if claims else None
        return is_in_vain(claim, is_emptying=is_emptying, now=self._context.clock.now())

    def _on_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        previous = "" if before is None else before.nominated_node
        if after is not None and _is_nominated(after) and after.nominated_node != previous:
            self._queue.add_after(key, PATIENCE.total_seconds())


def _is_nominated(pod: Pod) -> bool:
    return bool(pod.nominated_node) and not pod.node_name and pod.is_active
