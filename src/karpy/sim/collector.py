"""The garbage collector: deletes objects whose owners are gone."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.errors import NotFound
from karpy.model.kinds import Kind
from karpy.ports.objects import EventType, Removal, WatchEvent
from karpy.sim.store.registry import BACKGROUND, ORPHAN
from karpy.sim.store.remover import FOREGROUND, FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from karpy.sim.store.store import Store
from karpy.sim.worker import Worker
from karpy.sim.workloads.owners import is_deleting, without_finalizer, without_owners

_DELETED: Final = EventType.DELETED
_UNKNOWN_KIND_SECONDS: Final = 600.0
"""Pause before an owner of a kind that is not served is looked up again."""


class _Owners(Struct, frozen=True):
    """The owners of an object: present, gone, or waiting for their dependents."""

    solid: tuple[str, ...]
    gone: tuple[str, ...]
    waiting: tuple[str, ...]
    """Deleting in the foreground: waiting until their dependents are gone."""


class _Unresolvable(Exception):
    """Whether an owner exists cannot be determined."""

    def __init__(self, *, is_final: bool) -> None:
        super().__init__()
        self.is_final = is_final


class Collector:
    """
    Deletes objects whose owners are all gone, in the background or before their owners.

    An owner with another UID is gone, and so is one in another namespace.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._worker = Worker(self._work)
        self._addresses: dict[str, tuple[Kind, str, str]] = {}
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._waiting: dict[str, tuple[Kind, JsonObject]] = {}
        """Objects that wait until their dependents are gone, by UID."""
        self._solid: tuple[list[JsonObject], str] | None = None
        """Owner references found valid in a namespace, cleared when an object is deleted."""
        self._end: Callable[[], None] | None = None

    def start(self) -> None:
        """Check every object now, and again whenever it changes."""
        self._end = self._store.subscribe_all(self._on_event, includes_statuses=False)
        for served in self._store.kinds:
            if served.kind == served.storage:
                for obj in self._store.list(served.kind):
                    self._look_at(served.kind, obj)

    def stop(self) -> None:
        """Stop collecting."""
        if self._end is not None:
            self._end()
            self._end = None
        self._worker.stop()

    def _on_event(self, kind: Kind, event: WatchEvent, before: JsonObject | None) -> None:
        obj = event.object
        meta = obj["metadata"]
        owners = meta.get("ownerReferences")
        if event.type is _DELETED:
            self._solid = None
            for dependent_kind, dependent in self._store.by_owner(meta["uid"]):
                self._add(dependent_kind, dependent)
            if self._waiting:
                self._waiting.pop(meta["uid"], None)
                self._recheck_waiting(owners)
            return
        had = None if before is None else before["metadata"].get("ownerReferences")
        if had is not owners:
            if had and self._waiting:
                self._recheck_waiting(had)
            self._look_at(kind, obj)
        elif "deletionTimestamp" in meta and "finalizers" in meta:
            self._look_at(kind, obj)

    def _look_at(self, kind: Kind, obj: JsonObject) -> None:
        """Queue an object that may have to be deleted or released."""
        meta = obj["metadata"]
        if is_deleting(obj):
            finalizers = meta.get("finalizers") or ()
            if FOREGROUND_FINALIZER in finalizers:
                self._solid = None
                self._waiting[meta["uid"]] = kind, obj
            if ORPHAN_FINALIZER in finalizers or FOREGROUND_FINALIZER in finalizers:
                self._add(kind, obj)
            return
        references = meta.get("ownerReferences")
        if not references:
            return
        owned = references, meta.get("namespace")
        if owned == self._solid:
            return
        try:
            owners = self._classified(obj)
        except _Unresolvable:
            self._add(kind, obj)
            return
        if owners.gone or owners.waiting:
            self._add(kind, obj)
        else:
            self._solid = owned

    def _recheck_waiting(self, references: list[JsonObject] | None) -> None:
        """Queue the owners that wait for the deletion of an object."""
        for reference in references or ():
            found = self._waiting.get(reference["uid"])
            if found is not None:
                self._add(*found)

    def _add(self, kind: Kind, obj: JsonObject) -> None:
        meta = obj["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        key = f"{kind.resource}/{namespace}/{name}"
        self._addresses[key] = (kind, namespace, name)
        self._worker.add(key)

    def _work(self, key: str) -> float | None:
        kind, namespace, name = self._addresses[key]
        if kind not in self._store.kinds:
            return None
        obj = self._store.find(kind, name, namespace)
        if obj is None:
            del self._addresses[key]
            return None
        if is_deleting(obj):
            self._finish(kind, obj)
            return None
        if not obj["metadata"].get("ownerReferences"):
            return None
        try:
            owners = self._classified(obj)
        except _Unresolvable as error:
            return None if error.is_final else _UNKNOWN_KIND_SECONDS
        self._judge(kind, obj, owners)
        return None

    def _finish(self, kind: Kind, obj: JsonObject) -> None:
        """Process the finalizers `orphan` and `foregroundDeletion` of a deleting object."""
        finalizers = obj["metadata"].get("finalizers") or ()
        uid = obj["metadata"]["uid"]
        dependents = self._store.by_owner(uid)
        if ORPHAN_FINALIZER in finalizers:
            for dependent_kind, dependent in dependents:
                self._store.replace(dependent_kind, without_owners(dependent, {uid}))
            self._store.replace(kind, without_finalizer(obj, ORPHAN_FINALIZER))
        elif FOREGROUND_FINALIZER in finalizers:
            if not any(_blocks(dependent, uid) for _, dependent in dependents):
                self._store.replace(kind, without_finalizer(obj, FOREGROUND_FINALIZER))
            for dependent_kind, dependent in dependents:
                if not _is_waiting(dependent):
                    self._add(dependent_kind, dependent)

    def _judge(self, kind: Kind, obj: JsonObject, owners: _Owners) -> None:
        lost = {*owners.gone, *owners.waiting}
        if not lost:
            return
        if owners.solid:
            self._store.replace(kind, without_owners(obj, lost))
            return
        finalizers = obj["metadata"].get("finalizers") or ()
        dependents = self._store.by_owner(obj["metadata"]["uid"])
        if owners.waiting and dependents:
            if any(_is_waiting(each) for _, each in dependents):
                # Owners that own each other would wait for each other for ever.
                obj = self._store.replace(kind, _unblocked(obj))
            self._delete(kind, obj, FOREGROUND)
        elif ORPHAN_FINALIZER in finalizers:
            self._delete(kind, obj, ORPHAN)
        else:
            is_foreground = FOREGROUND_FINALIZER in finalizers
            self._delete(kind, obj, FOREGROUND if is_foreground else BACKGROUND)

    def _delete(self, kind: Kind, obj: JsonObject, propagation: str) -> None:
        meta = obj["metadata"]
        removal = Removal(uid=meta["uid"], version=meta["resourceVersion"], propagation=propagation)
        namespace = meta.get("namespace", "")
        try:
            self._store.delete(kind, meta["name"], namespace=namespace, removal=removal)
        except NotFound:
            return

    def _classified(self, obj: JsonObject) -> _Owners:
        solid, gone, waiting = [], [], []
        for reference in obj["metadata"]["ownerReferences"]:
            found = self._owner(obj, reference)
            uid = reference["uid"]
            if found is None:
                gone.append(uid)
            elif _is_waiting(found[1]):
                waiting.append(uid)
            else:
                solid.append(uid)
        return _Owners(tuple(solid), tuple(gone), tuple(waiting))

    def _owner(self, obj: JsonObject, reference: JsonObject) -> tuple[Kind, JsonObject] | None:
        """Find an owner, None if it is gone; raise _Unresolvable if it cannot be looked up."""
        kind = self._kind(reference)
        namespace = obj["metadata"].get("namespace", "")
        if kind.is_namespaced and not namespace:
            raise _Unresolvable(is_final=True)
        owner = self._store.find(kind, reference["name"], namespace if kind.is_namespaced else "")
        if owner is None or owner["metadata"]["uid"] != reference["uid"]:
            return None
        return kind, owner

    def _kind(self, reference: JsonObject) -> Kind:
        key = (reference["apiVersion"], reference["kind"])
        kind = self._kinds.get(key)
        if kind is None or kind not in self._store.kinds:
            served = self._store.kinds.by_name(*key)
            if served is None:
                raise _Unresolvable(is_final=False)
            kind = self._kinds[key] = served.kind
        return kind


def _is_waiting(obj: JsonObject) -> bool:
    """Say whether an object is deleting in the foreground."""
    return is_deleting(obj) and FOREGROUND_FINALIZER in (obj["metadata"].get("finalizers") or ())


def _blocks(dependent: JsonObject, uid: str) -> bool:
    return any(
        each["uid"] == uid and each.get("blockOwnerDeletion")
        for each in dependent["metadata"].get("ownerReferences") or ()
    )


def _unblocked(obj: JsonObject) -> JsonObject:
    meta = obj["metadata"]
    owners = [{**each, "blockOwnerDeletion": False} for each in meta["ownerReferences"]]
    return {**obj, "metadata": {**meta, "ownerReferences": owners}}
