"""The kube-scheduler of the embedded cluster."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.errors import ClusterError
from karpy.model.kinds import (
    CSI_NODE,
    NAMESPACE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SERVICE,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
)
from karpy.ports.clock import Clock
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.scheduler.binder import MISHAP, UNSCHEDULABLE, Binder, Waiting
from karpy.sim.scheduler.claims import key_of
from karpy.sim.scheduler.defaults import default_spreads
from karpy.sim.scheduler.nodes import NodeTable
from karpy.sim.scheduler.placement import Failed, Placement
from karpy.sim.scheduler.podinfos import PodInfo
from karpy.sim.scheduler.queue import Pending, Queue
from karpy.sim.scheduler.recorder import Recorder
from karpy.sim.scheduler.refusals import (
    POD_AFFINITY,
    VOLUME_BINDING,
    VOLUME_LIMITS,
    VOLUME_RESTRICTIONS,
    VOLUME_ZONE,
)
from karpy.sim.scheduler.roster import Rosters
from karpy.sim.scheduler.surroundings import Surroundings
from karpy.sim.scheduler.terms import Spread
from karpy.sim.scheduler.tracker import Tracker
from karpy.sim.scheduler.wants import Wants
from karpy.sim.store.store import Store

_PODS_IN_A_ROW: Final = 64
"""Pods tried before other tasks of the loop run."""
_VETO: Final = "sim.karpy.dev/unschedulable"
"""A pod with this annotation is not scheduled; the value is the message of the refusal."""
_SECONDS_FOR_VOLUMES: Final = 600.0
_OF_STORAGE: Final = frozenset({VOLUME_BINDING, VOLUME_LIMITS, VOLUME_RESTRICTIONS, VOLUME_ZONE})
_STORAGE: Final = (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    CSI_NODE,
    VOLUME_ATTACHMENT,
)


class Scheduler:
    """
    Binds pods to nodes by the rules of kube-scheduler 1.36 with its default profile.

    Pods that name another scheduler are ignored. `start` and `stop` are called on a running loop;
    equal objects in equal order are bound the same way every time.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        name: str = "default-scheduler",
        has_events: bool = True,
    ) -> None:
        self._store = store
        self._table = NodeTable()
        self._queue = Queue()
        self._tracker = Tracker(store, self._table, self._queue, name, self._wake)
        rosters = Rosters(self._table, self._surround)
        self._placement = Placement(store, clock, self._table, rosters, self._tracker)
        self._binder = Binder(
            store, clock, Recorder(store, clock, name) if has_events else None, name
        )
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._waiting: dict[str, Waiting] = {}
        self._deadlines: dict[str, asyncio.TimerHandle] = {}
        self._ends: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Schedule the pods that are pending now and later."""
        self._loop = asyncio.get_running_loop()
        self._tracker.time = self._loop.time
        store = self._store
        for namespace in store.list(NAMESPACE):
            meta = namespace["metadata"]
            self._namespaces[meta["name"]] = meta.get("labels") or {}
        self._ends = [
            *self._tracker.start(),
            store.subscribe(NAMESPACE, self._on_namespace),
            store.subscribe(SERVICE, self._on_service),
            *(store.subscribe(kind, self._on_storage) for kind in _STORAGE),
        ]
        self._wake()

    def stop(self) -> None:
        """Stop scheduling."""
        for end in self._ends:
            end()
        self._ends = []
        timers = [self._handle, self._timer, *self._deadlines.values()]
        for timer in timers:
            if timer is not None:
                timer.cancel()
        self._handle = self._timer = self._loop = None
        self._deadlines.clear()

    def _wake(self) -> None:
        if self._loop is not None and self._handle is None:
            self._handle = self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._handle = None
        assert self._loop is not None
        self._queue.ring(self._loop.time())
        self._finish_waiting()
        self._report_untried()
        for _ in range(_PODS_IN_A_ROW):
            pending = self._queue.pop()
            if pending is None:
                break
            self._try(pending)
        if self._queue.is_ready:
            self._wake()
        else:
            self._sleep()

    def _sleep(self) -> None:
        """Set a timer to the end of the next backoff."""
        assert self._loop is not None
        when = self._queue.next_time
        if self._timer is not None:
            if when is not None and self._timer.when() == when:
                return
            self._timer.cancel()
            self._timer = None
        if when is not None:
            self._timer = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._wake()

    def _try(self, pending: Pending) -> None:
        pod = pending.pod
        try:
            found = self._vetoed(pod) or self._placement.decide(pod)
            if isinstance(found, Failed):
                self._fail(pending, found)
            elif found.plan is not None and (found.plan.bindings or found.plan.provisions):
                self._wait(self._binder.ask_for_volumes(pod, found.node.name, found.plan))
            else:
                self._binder.bind(pod, found.node.name)
        except ClusterError as error:
            self._retry_after_error(
                pending, f'running Bind plugin "DefaultBinder": {error.message}'
            )

    def _vetoed(self, pod: PodInfo) -> Failed | None:
        why = (pod.obj["metadata"].get("annotations") or {}).get(_VETO)
        nodes = self._table.count
        return None if why is None else Failed(f"0/{nodes} nodes are available: {nodes} {why}.")

    def _fail(self, pending: Pending, failed: Failed) -> None:
        pod = pending.pod
        assert self._loop is not None
        self._queue.park(pending, failed.plugins, self._loop.time())
        if failed.candidate is not None:
            node = failed.candidate.node.name
            self._binder.release(self._tracker.nominees_of(node), pod.priority)
        self._binder.refuse(pod, failed.message, failed.nominated, UNSCHEDULABLE)
        if failed.candidate is not None:
            self._binder.preempt(pod, failed.candidate)

    def _retry_after_error(self, pending: Pending, message: str) -> None:
        """Retry a pod later after an unexpected error."""
        if pending.pod.key in self._queue:
            assert self._loop is not None
            self._queue.retry(pending, self._loop.time())
            self._binder.refuse(pending.pod, message, "", MISHAP)

    def _wait(self, waiting: Waiting) -> None:
        assert self._loop is not None
        key = waiting.pod.key
        self._tracker.assume(waiting.pod, waiting.node)
        self._waiting[key] = waiting
        self._deadlines[key] = self._loop.call_later(
            _SECONDS_FOR_VOLUMES, self._give_up, key, "context deadline exceeded"
        )
        self._wake()

    def _finish_waiting(self) -> None:
        for key, waiting in list(self._waiting.items()):
            if not self._tracker.is_assumed(key):
                self._end_waiting(key)
            elif self._binder.has_volumes(waiting):
                self._end_waiting(key)
                try:
                    self._binder.bind(waiting.pod, waiting.node)
                except ClusterError as error:
                    self._return(waiting, f'running Bind plugin "DefaultBinder": {error.message}')
            elif problem := self._binder.why_no_volumes(waiting):
                self._give_up(key, problem)

    def _give_up(self, key: str, problem: str) -> None:
        waiting = self._waiting[key]
        self._end_waiting(key)
        text = f'running PreBind plugin "VolumeBinding": binding volumes: {problem}'
        self._return(waiting, text)

    def _return(self, waiting: Waiting, message: str) -> None:
        """Put an assumed pod back into the queue."""
        pod = self._tracker.unassume(waiting.pod.key)
        if pod is None:
            return
        pod.node = ""
        self._queue.add(pod)
        pending = self._queue.get(pod.key)
        assert pending is not None
        self._retry_after_error(pending, message)
        self._wake()

    def _end_waiting(self, key: str) -> None:
        del self._waiting[key]
        self._deadlines.pop(key).cancel()

    def _report_untried(self) -> None:
        """Write the conditions of gated and unreadable pods."""
        gated, self._tracker.gated = self._tracker.gated, {}
        for key in gated:
            obj = self._pod(key)
            if obj is not None:
                self._binder.gate(obj)
        unreadable, self._tracker.unreadable = self._tracker.unreadable, {}
        for key, problem in unreadable.items():
            obj = self._pod(key)
            if obj is not None and not obj["spec"].get("nodeName"):
                self._binder.report(obj, problem)

    def _pod(self, key: str) -> JsonObject | None:
        namespace, _, name = key.partition("/")
        return self._store.find(POD, name, namespace)

    def _surround(self, wants: Wants) -> Surroundings:
        return Surroundings(wants, self._table, self._namespaces, self._defaults)

    def _defaults(self, wants: Wants) -> tuple[Spread, ...]:
        return default_spreads(self._store, wants)

    def _on_namespace(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        meta = event.object["metadata"]
        labels = None if event.type is EventType.DELETED else meta.get("labels") or {}
        if labels == self._namespaces.get(meta["name"]):
            return
        if labels is None:
            del self._namespaces[meta["name"]]
        else:
            self._namespaces[meta["name"]] = labels
        self._placement.forget()
        self._tracker.wake_for(frozenset({POD_AFFINITY}))

    def _on_service(self, event: WatchEvent, before: JsonObject | None) -> None:
        def selector(obj: JsonObject | None) -> object:
            return ((obj or {}).get("spec") or {}).get("selector")

        now = None if event.type is EventType.DELETED else event.object
        if selector(now) != selector(before):
            self._placement.forget()

    def _on_storage(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        self._tracker.wake_for(_OF_STORAGE)
        kind = event.object.get("kind")
        if self._waiting and kind == PERSISTENT_VOLUME_CLAIM.name:
            key = key_of(event.object)
            if any(key in waiting.claims for waiting in self._waiting.values()):
                self._wake()
