"""The base class of all workload controllers."""

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar, Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import Selector, selector_of
from karpy.model.kinds import Kind
from karpy.ports.clock import Clock
from karpy.ports.objects import Query, WatchEvent
from karpy.sim.store.names import ObjectTimes
from karpy.sim.store.paging import key_of
from karpy.sim.store.sharing import remembered
from karpy.sim.store.store import Store
from karpy.sim.worker import Worker
from karpy.sim.workloads.family import Family, Listener
from karpy.sim.workloads.recorder import NORMAL, WARNING, WorkloadEvents

_read_selector: Final = remembered(selector_of)


class WorkloadContext(Struct, frozen=True):
    """The store, the clock and the indexes that all workload controllers share."""

    store: Store
    clock: Clock
    recorder: WorkloadEvents | None
    """None: no Events are recorded."""
    pods: Family
    replica_sets: Family
    revisions: Family
    jobs: Family
    patience_seconds: float = 0.0
    """Delay of a reconcile after a change of a child, to batch further changes."""


class Controller:
    """
    Reconciles the objects of one kind.

    `reconcile` is called for an object whenever the object or one of its children has changed, for
    one object at a time.
    """

    kind: ClassVar[Kind]
    component: ClassVar[str]
    follows_own_writes: ClassVar[bool] = False
    """Whether changes of children made during `reconcile` queue their owner again."""

    def __init__(self, context: WorkloadContext) -> None:
        self.context = context
        self.store = context.store
        self._find = context.store.finder(self.kind)
        self._times = ObjectTimes(context.clock)
        self.worker = Worker(self._work)
        self._ends: list[Callable[[], None]] = []
        self._is_writing = False
        self._families: list[Family] = []

    def start(self) -> None:
        """Reconcile every object now, and again whenever it changes."""
        self._ends.append(self.store.subscribe(self.kind, self._on_event))
        for obj in self.store.list(self.kind):
            self.worker.add(key_of(obj))

    def stop(self) -> None:
        """Stop reconciling."""
        for end in self._ends:
            end()
        self._ends.clear()
        self.worker.stop()

    def reconcile(self, obj: JsonObject) -> float | None:
        """Reconcile one object; return after how many seconds to do so again, or None."""
        raise NotImplementedError

    def forget(self, key: str) -> None:
        """Drop the state of an object that was deleted."""

    def now(self) -> datetime:
        """Return the time."""
        return self.context.clock.now()

    def now_text(self) -> str:
        """Return the time in the format of the API."""
        return self._times.text()

    def follow(self, family: Family) -> None:
        """Queue an owner when one of its children changes, or an orphan matches its selector."""
        family.listen(Listener(self.kind, self._on_child_changed, self._on_orphan))
        if not self.follows_own_writes:
            self._families.append(family)

    def selector(self, obj: JsonObject) -> Selector | None:
        """Return the selector of an object for its children, None if it has none."""
        raw = obj["spec"].get("selector")
        return None if raw is None else _read_selector(raw)

    def write_status(self, obj: JsonObject, status: JsonObject) -> JsonObject:
        """Write a status if it has changed; return the object."""
        if status == obj.get("status"):
            return obj
        self._is_writing = True
        try:
            return self.store.set_status(self.kind, obj, status)
        finally:
            self._is_writing = False

    def write(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        """Write an object of this kind without queueing it for that change."""
        self._is_writing = True
        try:
            return self.store.replace(self.kind, obj, subresource=subresource)
        finally:
            self._is_writing = False

    def record_normal(self, obj: JsonObject, reason: str, message: str) -> None:
        """Record a Normal event of an object."""
        if self.context.recorder is not None:
            self.context.recorder.record(obj, self.component, (NORMAL, reason, message))

    def record_warning(self, obj: JsonObject, reason: str, message: str) -> None:
        """Record a Warning event of an object."""
        if self.context.recorder is not None:
            self.context.recorder.record(obj, self.component, (WARNING, reason, message))

    def _work(self, key: str) -> float | None:
        namespace, _, name = key.rpartition("/")
        obj = self._find(namespace, name)
        if obj is None:
            self.forget(key)
            return None
        for family in self._families:
            family.at_work = obj["metadata"]["uid"]
        try:
            return self.reconcile(obj)
        finally:
            for family in self._families:
                family.at_work = ""

    def _on_child_changed(self, key: str) -> None:
        if self.context.patience_seconds:
            self.worker.add_after(key, self.context.patience_seconds)
        else:
            self.worker.add(key)

    def _on_event(self, event: WatchEvent, before: JsonObject | None) -> None:
        del before
        if not self._is_writing:
            self.worker.add(key_of(event.object))

    def _on_orphan(self, orphan: JsonObject) -> None:
        meta = orphan["metadata"]
        for each in self.store.list(self.kind, Query(namespace=meta["namespace"])):
            selector = self.selector(each)
            if selector is not None and selector.rules and selector.matches(meta.get("labels")):
                self.worker.add(key_of(each))
