"""An index of the objects of one kind by controller, with the orphans."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import Selector
from karpy.model.kinds import POD, Kind
from karpy.ports.objects import WatchEvent
from karpy.sim.store.sharing import remembered
from karpy.sim.store.store import Store
from karpy.sim.store.tables import CommitCallbacks
from karpy.sim.workloads.owners import (
    control_reference,
    controller_of,
    is_deleting,
    with_owner,
    without_owners,
)
from karpy.sim.workloads.pods import has_news

_RETRIED: Final = "OnFailure"
_NOTHING: Final = object()
_NO_STATUS: Final[JsonObject] = {}


class Listener(Struct, frozen=True):
    """The callbacks of a controller for changes of the children of its kind."""

    kind: Kind
    changed: Callable[[str], None]
    """Called with the key of an owner whose child has changed."""
    orphaned: Callable[[JsonObject], None]
    """Called with an object without a controller."""


class Family:
    """
    The children of all owners, for one kind of children.

    Listeners are called for relevant changes only: the binding of a pod, or details in its status,
    do not matter to its controller.
    """

    def __init__(self, store: Store, kind: Kind) -> None:
        self._store = store
        self._kind = kind
        self.at_work = ""
        """The UID of the owner being reconciled: its own changes of children are not reported."""
        self._listeners: dict[tuple[str, str], Listener] = {}
        """Listeners by group and kind of the owner."""
        self._listener = cache(self._find_listener)
        self._orphans: dict[str, dict[str, None]] = {}
        """The names of orphans, by namespace."""
        self._end: Callable[[], None] | None = None

    def listen(self, listener: Listener) -> None:
        """Register the listener of a kind of owners."""
        self._listeners[listener.kind.group, listener.kind.name] = listener
        self._listener.cache_clear()

    def start(self) -> None:
        """Index existing objects, and follow their changes."""
        status = self._on_status if self._kind is POD else self._on_change
        callbacks = CommitCallbacks(self._on_event, self._on_change, status, self._on_deleted)
        self._end = self._store.listen(self._kind, callbacks)
        for obj in self._store.list(self._kind):
            if controller_of(obj) is None:
                self._remember(obj)

    def stop(self) -> None:
        """Stop following objects."""
        if self._end is not None:
            self._end()
            self._end = None

    def of(self, owner: JsonObject) -> list[JsonObject]:
        """Return the children of an owner."""
        return self._store.controlled_by(owner["metadata"]["uid"], self._kind)

    def claimed(
        self,
        kind: Kind,
        owner: JsonObject,
        selector: Selector | None,
        *,
        may_join: Callable[[JsonObject], bool] = lambda _: True,
    ) -> list[JsonObject]:
        """
        Return the children of an owner after adoption and release by its selector.

        Orphans that match the selector are adopted; children that do not match are released. A
        deleting owner does neither.
        """
        children = self.of(owner)
        if selector is None:
            return children
        if is_deleting(owner):
            return _selected(children, selector)
        kept = _selected(children, selector)
        if len(kept) != len(children):
            names = {each["metadata"]["name"] for each in kept}
            self._release(
                (each for each in children if each["metadata"]["name"] not in names), owner
            )
        adopted = self._adopted(kind, owner, selector, may_join)
        return kept + adopted if adopted else kept

    def _release(self, children: Iterable[JsonObject], owner: JsonObject) -> None:
        uid = owner["metadata"]["uid"]
        for child in children:
            self._store.replace(self._kind, without_owners(child, {uid}))

    def _adopted(
        self,
        kind: Kind,
        owner: JsonObject,
        selector: Selector,
        may_join: Callable[[JsonObject], bool],
    ) -> list[JsonObject]:
        if not selector.rules:
            return []
        namespace = owner["metadata"]["namespace"]
        adopted = []
        for name in list(self._orphans.get(namespace, ())):
            orphan = self._store.find(self._kind, name, namespace)
            if orphan is None or is_deleting(orphan) or not may_join(orphan):
                continue
            if selector.matches(orphan["metadata"].get("labels")):
                claimed = with_owner(orphan, control_reference(kind, owner))
                adopted.append(self._store.replace(self._kind, claimed))
        return adopted

    def _on_event(self, event: WatchEvent, _: JsonObject | None = None) -> None:
        obj = event.object
        reference = controller_of(obj)
        if reference is not None:
            self._notify(reference, obj)
        else:
            self._remember(obj)
            for listener in self._listeners.values():
                listener.orphaned(obj)

    def _on_change(self, event: WatchEvent, before: JsonObject | None) -> None:
        obj = event.object
        if before is not None:
            if self._kind is POD and not _matters(obj, before):
                return
            self._notify_former(obj, before)
        if self._orphans and controller_of(obj) is not None:
            self._forget(obj)
        self._on_event(event)

    def _on_status(self, event: WatchEvent, before: JsonObject | None) -> None:
        if before is not None and _is_news(event.object, before):
            self._on_event(event)

    def _on_deleted(self, event: WatchEvent, _: JsonObject | None) -> None:
        obj = event.object
        reference = controller_of(obj)
        if reference is not None:
            self._notify(reference, obj)
        else:
            self._forget(obj)

    def _notify_former(self, obj: JsonObject, before: JsonObject) -> None:
        owners = obj["metadata"].get("ownerReferences")
        if owners is before["metadata"].get("ownerReferences"):
            return
        former = controller_of(before)
        if former is not None and former != controller_of(obj):
            self._notify(former, obj)

    def _notify(self, reference: JsonObject, obj: JsonObject) -> None:
        if reference["uid"] == self.at_work:
            return
        listener = self._listener(reference["apiVersion"], reference["kind"])
        if listener is not None:
            listener.changed(f"{obj['metadata']['namespace']}/{reference['name']}")

    def _find_listener(self, version: str, kind: str) -> Listener | None:
        return self._listeners.get((version.rpartition("/")[0], kind))

    def _remember(self, obj: JsonObject) -> None:
        meta = obj["metadata"]
        self._orphans.setdefault(meta["namespace"], {})[meta["name"]] = None

    def _forget(self, obj: JsonObject) -> None:
        meta = obj["metadata"]
        orphans = self._orphans.get(meta["namespace"])
        if orphans:
            orphans.pop(meta["name"], None)


def _selected(children: list[JsonObject], selector: Selector) -> list[JsonObject]:
    is_meant = _judge(selector)
    # Pods of one template share one labels object.
    shared = children[0]["metadata"].get("labels") if children else None
    good = shared if shared and is_meant(shared) else _NOTHING
    return [
        child
        for child in children
        if (labels := child["metadata"].get("labels")) is good or is_meant(labels)
    ]


def _judge_labels(selector: Selector) -> Callable[[dict[str, str] | None], bool]:
    return remembered(selector.matches)


_judge: Final = remembered(_judge_labels)
"""Returns the cached matcher of a selector."""


def _matters(pod: JsonObject, before: JsonObject) -> bool:
    """Say whether a change of a pod matters to its controller."""
    meta, was = pod["metadata"], before["metadata"]
    if "deletionTimestamp" in meta and meta["deletionTimestamp"] != was.get("deletionTimestamp"):
        return True
    is_shared = (
        meta.get("labels") is was.get("labels")
        and meta.get("ownerReferences") is was.get("ownerReferences")
        and meta.get("finalizers") is was.get("finalizers")
    )
    if not is_shared and any(meta.get(field) != was.get(field) for field in _TELLING):
        return True
    return _is_news(pod, before)


def _is_news(pod: JsonObject, before: JsonObject) -> bool:
    """Say whether a change of a pod's status matters to its controller."""
    if pod["spec"].get("restartPolicy") == _RETRIED:
        return True
    return has_news(pod.get("status") or _NO_STATUS, before.get("status") or _NO_STATUS)


_TELLING: Final = ("labels", "ownerReferences", "finalizers")
