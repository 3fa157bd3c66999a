"""All objects by kind, one version counter, and what happened to them."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Final, TypeVar

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.kinds import POD, Kind
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.store.answers import too_old

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")

Callback = Callable[[WatchEvent, JsonObject | None], None]
"""Takes what happened, and the object as it was before."""
WideCallback = Callable[[Kind, WatchEvent, JsonObject | None], None]
Address = tuple[str, str]
"""Namespace and name."""

_NOTHING: Final[dict[str, JsonObject]] = {}
_NOBODY: Final[dict[Kind, dict[Address, bool]]] = {}


def unheard(event: WatchEvent, before: JsonObject | None) -> None:
    """Stand for a callback of those who do not care."""
    del event, before


class Record(Struct, frozen=True, gc=False):
    """An event as history keeps it."""

    version: int
    event: WatchEvent
    before: JsonObject | None


class Table:
    """The objects of one kind, by namespace and name, and their recent history."""

    def __init__(self, kind: Kind, history: int, floor: int) -> None:
        self.kind = kind
        self.spaces: dict[str, dict[str, JsonObject]] = {}
        self.callbacks: tuple[Callback, ...] = ()
        self.status_callbacks: tuple[Callback, ...] = ()
        """Called instead if nothing but the status was changed."""
        self._order: dict[str, list[str]] = {}
        self._history = history
        self._records: deque[Record] = deque()
        self._floor = floor
        """History is complete after this version."""

    def get(self, namespace: str, name: str) -> JsonObject | None:
        return self.spaces.get(namespace, _NOTHING).get(name)

    def put(self, namespace: str, name: str, obj: JsonObject) -> None:
        space = self.spaces.get(namespace)
        if space is None:
            space = self.spaces[namespace] = {}
        if name not in space:
            self._order.pop(namespace, None)
        space[name] = obj

    def drop(self, namespace: str, name: str) -> None:
        space = self.spaces[namespace]
        del space[name]
        self._order.pop(namespace, None)
        if not space:
            del self.spaces[namespace]

    def record(self, record: Record) -> None:
        # One goes for each that comes, so that its memory is used again while it is at hand.
        self._records.append(record)
        if len(self._records) > self._history:
            self._floor = self._records.popleft().version

    def since(self, version: int) -> list[Record]:
        """Return what happened after a version; raise Expired if that is not known any more."""
        if version < self._floor:
            raise too_old(version, self._floor)
        later = [*takewhile(lambda record: record.version > version, reversed(self._records))]
        return later[::-1]

    def walk(self, namespace: str = "") -> Iterator[JsonObject]:
        """Walk through objects in the order of their keys, as etcd does."""
        if namespace:
            yield from self._in(namespace)
            return
        # A slash follows the namespace in a key, and it sorts after `-` and `.`.
        for each in sorted(self.spaces, key=lambda space: f"{space}/"):
            yield from self._in(each)

    def _in(self, namespace: str) -> Iterator[JsonObject]:
        space = self.spaces.get(namespace, _NOTHING)
        order = self._order.get(namespace)
        if order is None:
            order = self._order[namespace] = sorted(space)
        for name in order:
            yield space[name]


class Ledger:
    """
    Commits objects and tells who listens.

    Pods are indexed by node, everything by the UIDs of its owners.
    """

    def __init__(self, history: int) -> None:
        self.version = 0
        self.after_removal: Callable[[Table, JsonObject], None] | None = None
        """Called once everybody has been told that an object is gone; may write."""
        self._history = history
        self._tables: dict[Kind, Table] = {}
        self._owned: dict[str, dict[Kind, dict[Address, bool]]] = {}
        """By the UID of the owner and by kind: what names it, and whether as its controller."""
        self._on_node: dict[str, dict[Address, None]] = {}
        self._everywhere: tuple[WideCallback, ...] = ()
        self._everywhere_of_status: tuple[WideCallback, ...] = ()

    def table(self, kind: Kind) -> Table:
        """Return the table of a kind; there is one for every kind that is ever asked for."""
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = Table(kind, self._history, 0)
        return table

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(self._tables.values())

    def add(self, table: Table, obj: JsonObject) -> JsonObject:
        """Commit an object that is not there yet."""
        return self._commit(table, EventType.ADDED, obj, None)

    def change(self, table: Table, obj: JsonObject, before: JsonObject) -> JsonObject:
        """Commit an object that is there already."""
        return self._commit(table, EventType.MODIFIED, obj, before)

    def change_status(self, table: Table, before: JsonObject, status: JsonObject) -> JsonObject:
        """Commit another status of an object that is there already."""
        self.version = number = self.version + 1
        version = str(number)
        meta = {**before["metadata"], "resourceVersion": version}
        obj = {**before, "metadata": meta, "status": status}
        table.spaces[meta.get("namespace", "")][meta["name"]] = obj
        event = WatchEvent(EventType.MODIFIED, obj, version)
        table.record(Record(number, event, before))
        for callback in table.status_callbacks:
            callback(event, before)
        for tell in self._everywhere_of_status:
            tell(table.kind, event, before)
        return obj

    def remove(self, table: Table, obj: JsonObject, before: JsonObject) -> JsonObject:
        """Commit the end of an object, with its last state."""
        gone = self._commit(table, EventType.DELETED, obj, before)
        if self.after_removal is not None:
            self.after_removal(table, gone)
        return gone

    def subscribe(
        self, kind: Kind, callback: Callback, *, on_status: Callback | None = None
    ) -> Callable[[], None]:
        """Have a callback called after each commit of a kind; what is returned ends it."""
        table = self.table(kind)
        told = callback if on_status is None else on_status
        table.callbacks = (*table.callbacks, callback)
        if told is not unheard:
            table.status_callbacks = (*table.status_callbacks, told)

        def end() -> None:
            table.callbacks = _without(table.callbacks, callback)
            table.status_callbacks = _without(table.status_callbacks, told)

        return end

    def subscribe_all(
        self, callback: WideCallback, *, hears_statuses: bool = True
    ) -> Callable[[], None]:
        """Have a callback called after each commit of any kind; what is returned ends it."""
        self._everywhere = (*self._everywhere, callback)
        if hears_statuses:
            self._everywhere_of_status = (*self._everywhere_of_status, callback)

        def end() -> None:
            self._everywhere = _without(self._everywhere, callback)
            self._everywhere_of_status = _without(self._everywhere_of_status, callback)

        return end

    def owned_by(self, uid: str) -> list[tuple[Kind, JsonObject]]:
        """Return the objects that name an owner."""
        tables = self._tables
        return [
            (kind, tables[kind].spaces[namespace][name])
            for kind, names in self._owned.get(uid, _NOBODY).items()
            for namespace, name in names
        ]

    def controlled_by(self, uid: str, kind: Kind) -> list[JsonObject]:
        """Return the objects of a kind that name an owner as their controller."""
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
        """Walk through the pods bound to a node, in the order of their keys."""
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
        if type_ is EventType.DELETED:
            table.drop(namespace, name)
            self._index(table.kind, None, before, (namespace, name))
        else:
            table.put(namespace, name, obj)
            if before is None or _is_elsewhere(obj, before):
                self._index(table.kind, obj, before, (namespace, name))
        event = WatchEvent(type_, obj, version)
        table.record(Record(number, event, before))
        for callback in table.callbacks:
            callback(event, before)
        for tell in self._everywhere:
            tell(table.kind, event, before)
        return obj

    def _index(
        self, kind: Kind, obj: JsonObject | None, before: JsonObject | None, address: Address
    ) -> None:
        owners = obj["metadata"].get("ownerReferences") if obj else None
        had = before["metadata"].get("ownerReferences") if before else None
        if owners is not had:
            for each in had or ():
                kinds = self._owned.get(each["uid"], {})
                _leave(kinds, kind, address)
                if not kinds:
                    self._owned.pop(each["uid"], None)
            for each in owners or ():
                names = self._owned.setdefault(each["uid"], {}).setdefault(kind, {})
                names[address] = bool(each.get("controller")) or names.get(address, False)
        if kind is POD:
            node = obj["spec"].get("nodeName") if obj else None
            was_on = before["spec"].get("nodeName") if before else None
            if node != was_on:
                if was_on:
                    _leave(self._on_node, was_on, address)
                if node:
                    self._on_node.setdefault(node, {})[address] = None


def _is_elsewhere(obj: JsonObject, before: JsonObject) -> bool:
    """Say whether an object may have other owners or another node than before."""
    if obj.get("spec") is not before.get("spec"):
        return True
    return obj["metadata"].get("ownerReferences") is not before["metadata"].get("ownerReferences")


def _without(callbacks: tuple[T, ...], callback: T) -> tuple[T, ...]:
    return tuple(each for each in callbacks if each is not callback)


def _leave(index: dict[K, dict[T, V]], key: K, member: T) -> None:
    members = index.get(key)
    if members is not None:
        members.pop(member, None)
        if not members:
            del index[key]
