"""Objects of one kind by who controls them, and those that nobody controls."""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import Selector
from karpy.model.kinds import POD, Kind
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.store.store import Store
from karpy.sim.workloads.owners import (
    control_reference,
    controller_of,
    is_going,
    with_owner,
    without_owners,
)
from karpy.sim.workloads.pods import is_ready, phase_of

_RETRIED: Final = "OnFailure"
_NOTHING: Final = object()


class Listener(Struct, frozen=True):
    """Hears of the objects that one kind of owner may control."""

    kind: Kind
    changed: Callable[[str], None]
    """Takes the key of an owner whose object has changed."""
    orphaned: Callable[[JsonObject], None]
    """Takes an object that nobody controls now."""


class Family:
    """
    The children of many owners.

    Owners hear of changes that matter to them; a pod that is bound, or whose kubelet reports
    details, changes nothing for those who made it.
    """

    def __init__(self, store: Store, kind: Kind) -> None:
        self._store = store
        self._kind = kind
        self._listeners: dict[tuple[str, str], Listener] = {}
        """By group and kind of the owner."""
        self._known: dict[tuple[str, str], Listener | None] = {}
        """The same as references have it, by version and kind."""
        self._orphans: dict[str, dict[str, None]] = {}
        """The names of those that nobody controls, by namespace."""
        self._end: Callable[[], None] | None = None

    def listen(self, listener: Listener) -> None:
        """Tell a kind of owner about its children."""
        self._listeners[listener.kind.group, listener.kind.name] = listener
        self._known.clear()

    def start(self) -> None:
        """Follow the objects from now on."""
        told = self._take_status if self._kind is POD else None
        self._end = self._store.subscribe(self._kind, self._take, on_status=told)
        for obj in self._store.list(self._kind):
            if controller_of(obj) is None:
                self._remember(obj)

    def stop(self) -> None:
        """Follow nothing any more."""
        if self._end is not None:
            self._end()
            self._end = None

    def of(self, owner: JsonObject) -> list[JsonObject]:
        """Return what an owner controls."""
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
        Return what an owner controls once its selector has been obeyed.

        What it selects and nobody controls becomes its own; what it does not select any more is let
        go. An owner on its way out does neither.
        """
        children = self.of(owner)
        if selector is None:
            return children
        if is_going(owner):
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
            if orphan is None or is_going(orphan) or not may_join(orphan):
                continue
            if selector.matches(orphan["metadata"].get("labels")):
                claimed = with_owner(orphan, control_reference(kind, owner))
                adopted.append(self._store.replace(self._kind, claimed))
        return adopted

    def _take(self, event: WatchEvent, before: JsonObject | None) -> None:
        obj = event.object
        if event.type is EventType.MODIFIED and before is not None:
            if self._kind is POD and not _matters(obj, before):
                return
            self._tell_former(obj, before)
        reference = controller_of(obj)
        if reference is not None:
            if before is not None and event.type is EventType.MODIFIED:
                self._forget(obj)
            self._tell(reference, obj)
        elif event.type is EventType.DELETED:
            self._forget(obj)
        else:
            self._remember(obj)
            for listener in self._listeners.values():
                listener.orphaned(obj)

    def _take_status(self, event: WatchEvent, before: JsonObject | None) -> None:
        pod = event.object
        if before is None or not _is_news(pod, before):
            return
        reference = controller_of(pod)
        if reference is not None:
            self._tell(reference, pod)
        else:
            self._take(event, before)

    def _tell_former(self, obj: JsonObject, before: JsonObject) -> None:
        owners = obj["metadata"].get("ownerReferences")
        if owners is before["metadata"].get("ownerReferences"):
            return
        former = controller_of(before)
        if former is not None and former != controller_of(obj):
            self._tell(former, obj)

    def _tell(self, reference: JsonObject, obj: JsonObject) -> None:
        known = reference["apiVersion"], reference["kind"]
        if known not in self._known:
            group = known[0].rpartition("/")[0]
            self._known[known] = self._listeners.get((group, known[1]))
        listener = self._known[known]
        if listener is not None:
            listener.changed(f"{obj['metadata']['namespace']}/{reference['name']}")

    def _remember(self, obj: JsonObject) -> None:
        meta = obj["metadata"]
        self._orphans.setdefault(meta["namespace"], {})[meta["name"]] = None

    def _forget(self, obj: JsonObject) -> None:
        meta = obj["metadata"]
        orphans = self._orphans.get(meta["namespace"])
        if orphans:
            orphans.pop(meta["name"], None)


def _controller_uid(obj: JsonObject) -> str:
    owners = obj["metadata"]["ownerReferences"]
    if len(owners) == 1 and owners[0].get("controller"):
        only: str = owners[0]["uid"]
        return only
    reference = controller_of(obj)
    return reference["uid"] if reference else ""


def _selected(children: list[JsonObject], selector: Selector) -> list[JsonObject]:
    def is_selected(child: JsonObject) -> bool:
        return selector.matches(child["metadata"].get("labels"))

    good = _shared(children, "labels", is_selected)
    return [
        child for child in children if child["metadata"].get("labels") is good or is_selected(child)
    ]


def _shared(objects: list[JsonObject], field: str, is_good: Callable[[JsonObject], bool]) -> object:
    """Return what the first object has in a field if that is good: most others share it."""
    if objects and is_good(objects[0]):
        return objects[0]["metadata"].get(field, _NOTHING)
    return _NOTHING


def _matters(pod: JsonObject, before: JsonObject) -> bool:
    """Say whether a change of a pod means anything to those who made it."""
    meta, was = pod["metadata"], before["metadata"]
    for field in _TELLING:
        value, former = meta.get(field), was.get(field)
        if value is not former and value != former:
            return True
    return _is_news(pod, before)


def _is_news(pod: JsonObject, before: JsonObject) -> bool:
    """Say whether what a pod's status says means anything to those who made it."""
    if pod["spec"].get("restartPolicy") == _RETRIED:
        return True
    return phase_of(pod) != phase_of(before) or is_ready(pod) != is_ready(before)


_TELLING: Final = ("labels", "ownerReferences", "deletionTimestamp", "finalizers")
