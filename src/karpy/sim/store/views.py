"""The read side of the store: get, list, watch and subscriptions."""

from collections.abc import Callable, Iterator
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import POD, Kind
from karpy.model.requirements import as_integer
from karpy.ports.objects import EVERYTHING, Page, Query, WatchEvent
from karpy.sim.store.answers import bad_request, not_found
from karpy.sim.store.catalog import built_in
from karpy.sim.store.ledger import Ledger, WideCallback
from karpy.sim.store.paging import page
from karpy.sim.store.queries import Filter, read_query, select
from karpy.sim.store.registry import Registry, Served
from karpy.sim.store.tables import Callback, CommitCallbacks

Found = list[JsonObject]
Owned = list[tuple[Kind, JsonObject]]
Events = list[WatchEvent]


class StoreView:
    """Reads of objects and subscriptions to their changes."""

    def __init__(self, history: int) -> None:
        self.kinds = Registry(built_in())
        self._ledger = Ledger(history)
        self._plain: Final = {
            each.kind: self._ledger.table(each.storage)
            for each in self.kinds
            if each.from_storage is None
        }
        """The tables of the built-in kinds that are served in their stored form."""

    @property
    def version(self) -> str:
        """The version of the latest write of any kind."""
        return str(self._ledger.version)

    def find(self, kind: Kind, name: str, namespace: str = "") -> JsonObject | None:
        """Return one object, or None."""
        table = self._plain.get(kind)
        if table is not None:
            return table.get(namespace, name)
        served = self.kinds.served(kind)
        obj = self._ledger.table(served.storage).get(namespace, name)
        return None if obj is None else served.seen(obj)

    def finder(self, kind: Kind) -> Callable[[str, str], JsonObject | None]:
        """Return a fast function that finds objects of a built-in kind by namespace and name."""
        return self._plain[kind].get

    def list(self, kind: Kind, query: Query = EVERYTHING) -> Found:
        """Return objects in the order of namespace and name."""
        served = self.kinds.served(kind)
        wanted = read_query(served, query)
        return select(self._candidates(served, wanted), wanted)

    def page(self, kind: Kind, query: Query = EVERYTHING, *, limit: int, token: str = "") -> Page:
        """Return a page of a list; all pages show the version of the first one."""
        served = self.kinds.served(kind)
        wanted = read_query(served, query)
        table = self._ledger.table(served.storage)
        found = page(table, wanted, self._ledger.version, limit=limit, token=token)
        if served.from_storage is None:
            return found
        items = tuple(served.seen(each) for each in found.items)
        return Page(items, found.version, found.token, found.remaining)

    def listen(self, kind: Kind, callbacks: CommitCallbacks) -> Callable[[], None]:
        """Subscribe to a built-in kind with separate callbacks per kind of commit."""
        return self._plain[kind].listen(callbacks)

    def subscribe(self, kind: Kind, callback: Callback) -> Callable[[], None]:
        """
        Call a callback after each commit of a kind; return the function that unsubscribes.

        The callback gets the event and the object before it. It may queue work, but never write.
        """
        served = self.kinds.served(kind)
        if served.from_storage is None:
            return self._ledger.subscribe(served.storage, callback)

        def on_event(event: WatchEvent, before: JsonObject | None) -> None:
            callback(served.shown(event), None if before is None else served.seen(before))

        return self._ledger.subscribe(served.storage, on_event)

    def subscribe_all(
        self, callback: WideCallback, *, includes_statuses: bool = True
    ) -> Callable[[], None]:
        """
        Call a callback after each commit of any kind; return the function that unsubscribes.

        Commits of `set_status` can be left out.
        """
        return self._ledger.subscribe_all(callback, includes_statuses=includes_statuses)

    def by_owner(self, uid: str) -> Owned:
        """Return the objects with an owner reference to a UID."""
        return self._ledger.owned_by(uid)

    def controlled_by(self, uid: str, kind: Kind) -> Found:
        """Return the objects of a built-in kind whose controller has a UID."""
        return self._ledger.controlled_by(uid, kind)

    def pods_on(self, node: str) -> Found:
        """Return the pods bound to a node, in the order of namespace and name."""
        return list(self._ledger.pods_on(node))

    def since(self, kind: Kind, query: Query, version: str) -> Events:
        """Return the events after a version; raise Expired if it is too old."""
        served = self.kinds.served(kind)
        wanted = read_query(served, query)
        events = []
        for _, event, before in self._ledger.table(served.storage).since(read_version(version)):
            was = None if before is None else served.seen(before)
            seen = wanted.seen(served.shown(event), was)
            if seen is not None:
                events.append(seen)
        return events

    def filter(self, kind: Kind, query: Query) -> Filter:
        """Compile a query; raise BadRequest if a selector cannot be read."""
        return read_query(self.kinds.served(kind), query)

    def _candidates(self, served: Served, wanted: Filter) -> Iterator[JsonObject]:
        table = self._ledger.table(served.storage)
        name = wanted.fields.exactly("metadata.name")
        if name is not None and (wanted.namespace or not served.kind.is_namespaced):
            found = table.get(wanted.namespace, name)
            return iter(() if found is None else (served.seen(found),))
        node = wanted.fields.exactly("spec.nodeName") if served.kind == POD else None
        if node:
            return self._ledger.pods_on(node)
        if served.from_storage is None:
            return table.walk(wanted.namespace)
        return (served.seen(each) for each in table.walk(wanted.namespace))

    def _find(self, served: Served, name: str, namespace: str) -> JsonObject:
        if not namespace and served.kind.is_namespaced:
            raise bad_request(
                "an empty namespace may not be set when a resource name is provided",
                hint=f'say in which namespace {served.kind.resource} "{name}" is',
            )
        table = self._plain.get(served.kind) or self._ledger.table(served.storage)
        found = table.get(namespace, name)
        if found is None:
            raise not_found(served.kind, name)
        return found


def read_version(text: str) -> int:
    """Return a resourceVersion as a number; raise BadRequest if it is none."""
    version = as_integer(text) if text.isdecimal() else None
    if version is None:
        raise bad_request(f'Invalid value: "{text}": the resource version must be a number')
    return version
