"""All objects by kind, with one version counter and the history of events."""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from karpy.codec.fields import JsonObject
from karpy.model.kinds import POD, Kind
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.store.tables import Callback, CommitCallbacks, Table, without

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")

WideCallback = Callable[[Kind, WatchEvent, JsonObject | None], None]
Address = tuple[str, str]
"""Namespace and name."""

# Looking up a member of an enumeration takes longer than comparing it.
_ADDED: Final = EventType.ADDED
_MODIFIED: Final = EventType.MODIFIED
_DELETED: Final = EventType.DELETED
_NOTHING: Final[JsonObject] = {"metadata": {}, "spec": {}}
"""Stands for an object that does not exist."""
_NOBODY: Final[dict[Kind, dict[Address, bool]]] = {}


class Ledger:
    """
    Commits objects and calls listeners.

    Pods are indexed by node, all objects by the UIDs of their owners.
    """

    def __init__(self, history: int) -> None:
        self.version = 0
        self.after_removal: Callable[[Table, JsonObject], None] | None = None
        """Called after all listeners of a deletion; may write."""
        self._history = history
        self._tables: dict[Kind, Table] = {}
        self._owned: dict[str, dict[Kind, dict[Address, bool]]] = {}
        """By owner UID and kind: the dependents, and whether the owner is their controller."""
        self._on_node: dict[str, dict[Address, None]] = {}
        self._everywhere: tuple[WideCallback, ...] = ()
        self._everywhere_of_status: tuple[WideCallback, ...] = ()

    def table(self, kind: Kind) -> Table:
        """Return the table of a kind, created on the first call."""
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = Table(kind, self._history)
        return table

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(self._tables.values())

    def add(self, table: Table, obj: JsonObject) -> JsonObject:
        """Commit a new object."""
        return self._commit(table, _ADDED, obj, None)

    def change(self, table: Table, obj: JsonObject, before: JsonObject) -> JsonObject:
        """Commit a changed object."""
        return self._commit(table, _MODIFIED, obj, before)

    def change_status(self, table: Table, before: JsonObject, status: JsonObject) -> JsonObject:
        """Commit another status of an existing object."""
        self.version = number = self.version + 1
        version = str(number)
        meta = {**before["metadata"], "resourceVersion": version}
        obj = {**before, "metadata": meta, "status": status}
        table.spaces[meta.get("namespace", "")][meta["name"]] = obj
        event = WatchEvent(_MODIFIED, obj, version)
        table.records.append((number, event, before))
        for callback in table.on_status:
            callback(event, before)
        for wide_callback in self._everywhere_of_status:
            wide_callback(table.kind, event, before)
        return obj

    def remove(self, table: Table, obj: JsonObject, before: JsonObject) -> JsonObject:
        """Commit the deletion of an object, with its last state."""
        gone = self._commit(table, _DELETED, obj, before)
        if self.after_removal is not None:
            self.after_removal(table, gone)
        return gone

    def subscribe(self, kind: Kind, callback: Callback) -> Callable[[], None]:
        """Call a callback after each commit of a kind; return the function that unsubscribes."""
        return self.table(kind).listen(CommitCallbacks(callback, callback, callback, callback))

    def subscribe_all(
        self, callback: WideCallback, *, includes_statuses: bool = True
    ) -> Callable[[], None]:
        """Call a callback after each commit; return the function that unsubscribes."""
        self._everywhere = (*self._everywhere, callback)
        if includes_statuses:
            self._everywhere_of_status = (*self._everywhere_of_status, callback)

        def end() -> None:
            self._everywhere = without(self._everywhere, callback)
            self._everywhere_of_status = without(self._everywhere_of_status, callback)

        return end

    def owned_by(self, uid: str) -> list[tuple[Kind, JsonObject]]:
        """Return the objects with an owner reference to a UID."""
        tables = self._tables
        return [
            (kind, tables[kind].spaces[namespace][name])
            for kind, names in self._owned.get(uid, _NOBODY).items()
            for namespace, name in names
        ]

    def controlled_by(self, uid: str, kind: Kind) -> list[JsonObject]:
        """Return the objects of a kind whose controller has a UID."""
        spaces = self.table(kind).spaces
        names = self._owned.get(uid, _NOBODY).get(kind)
        if names is None:
            return []
        return [
            spaces[namespace][name]
            for (namespace, name), is_controller in names.items()
            if is_controller
        ]

    def pods_on(self, node: str) -> Iterator[JsonObject]:
        """Yield the pods bound to a node, in the order of their keys."""
        table = self.table(POD)
        for namespace, name in sorted(self._on_node.get(node, ()), key="/".join):
            pod = table.get(namespace, name)
            assert pod is not None
            yield pod

    def _commit(
        self, table: Table, type_: EventType, obj: JsonObject, before: JsonObject | None
    ) -> JsonObject:
        self.version = number = self.version + 1
        version = str(number)
        meta = {**obj["metadata"], "resourceVersion": version}
        obj = {**obj, "metadata": meta}
        namespace, name = meta.get("namespace", ""), meta["name"]
        if before is None:
            callbacks = table.on_added
            table.put(namespace, name, obj)
            self._index(table.kind, obj, _NOTHING, (namespace, name))
        elif type_ is _DELETED:
            callbacks = table.on_removed
            table.drop(namespace, name)
            self._index(table.kind, _NOTHING, before, (namespace, name))
        else:
            callbacks = table.on_changed
            table.spaces[namespace][name] = obj
            if _is_elsewhere(obj, before):
                self._index(table.kind, obj, before, (namespace, name))
        event = WatchEvent(type_, obj, version)
        table.records.append((number, event, before))
        for callback in callbacks:
            callback(event, before)
        for wide_callback in self._everywhere:
            wide_callback(table.kind, event, before)
        return obj

    def _index(self, kind: Kind, obj: JsonObject, before: JsonObject, address: Address) -> None:
        """Update the indexes by owner and by node."""
        owners = obj["metadata"].get("ownerReferences")
        had = before["metadata"].get("ownerReferences")
        if owners is not had:
            if had:
                self._disown(kind, had, address)
            for each in owners or ():
                names = self._owned.setdefault(each["uid"], {}).setdefault(kind, {})
                names[address] = bool(each.get("controller")) or names.get(address, False)
        if kind == POD:
            node, was_on = obj["spec"].get("nodeName"), before["spec"].get("nodeName")
            if node != was_on:
                if was_on:
                    _leave(self._on_node, was_on, address)
                if node:
                    self._on_node.setdefault(node, {})[address] = None

    def _disown(self, kind: Kind, owners: list[JsonObject], address: Address) -> None:
        for each in owners:
            kinds = self._owned.get(each["uid"], {})
            _leave(kinds, kind, address)
            if not kinds:
                self._owned.pop(each["uid"], None)


def _is_elsewhere(obj: JsonObject, before: JsonObject) -> bool:
    """Say whether an object may have other owners or another node than before."""
    if obj.get("spec") is not before.get("spec"):
        return True
    return obj["metadata"].get("ownerReferences") is not before["metadata"].get("ownerReferences")


def _leave(index: dict[K, dict[T, V]], key: K, member: T) -> None:
    members = index.get(key)
    if members is not None:
        members.pop(member, None)
        if not members:
            del index[key]
