"""The object store of the embedded cluster."""

from collections.abc import Callable, Iterator
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import CUSTOM_RESOURCE, NAMESPACE, NODE, POD, Kind
from karpy.ports.clock import Clock
from karpy.ports.objects import (
    EVERYTHING,
    GRACEFULLY,
    Page,
    Patch,
    PatchType,
    Query,
    Removal,
    WatchEvent,
)
from karpy.sim.store.admission import Admission
from karpy.sim.store.answers import bad_request, not_found
from karpy.sim.store.bindings import placed_on
from karpy.sim.store.catalog import built_in
from karpy.sim.store.customs import Customs, ValidatorFactory
from karpy.sim.store.ledger import Ledger, WideCallback
from karpy.sim.store.names import Names, Times
from karpy.sim.store.namespaces import Namespaces
from karpy.sim.store.ownership import apply
from karpy.sim.store.paging import page
from karpy.sim.store.patching import applier, configuration, named, patched, relevant
from karpy.sim.store.queries import Filter, read_query, select
from karpy.sim.store.registry import Registry, Served
from karpy.sim.store.remover import Remover
from karpy.sim.store.subresources import Subresources
from karpy.sim.store.system import founding_objects, service_account
from karpy.sim.store.tables import Callback, Ears, Table
from karpy.sim.store.writer import STATUS, Write, Writer, check_guard

Found = list[JsonObject]
Owned = list[tuple[Kind, JsonObject]]
Events = list[WatchEvent]


class Store:
    """
    Objects with the semantics of an API server: versions, conflicts, finalizers, watches.

    Synchronous and for one thread. What is given or returned is never changed by either side.
    Errors are those of `karpy.ports.objects.Objects`, in Kubernetes' own words.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        seed: int = 0,
        history: int = 10_000,
        validator: ValidatorFactory | None = None,
    ) -> None:
        self.kinds = Registry(built_in())
        self._ledger = Ledger(history)
        self._plain: Final = {
            each.kind: self._ledger.table(each.storage)
            for each in self.kinds
            if each.from_storage is None
        }
        """The tables of the kinds that are always served, and shown as they are kept."""
        self._with_plain_status: Final = {
            kind: table
            for kind, table in self._plain.items()
            if self.kinds.served(kind).has_plain_status
        }
        self._times = Times(clock)
        admission = Admission(self._ledger)
        self._writer = Writer(self._ledger, Names(seed), self._times, admission)
        self._remover = Remover(self._ledger, self._times)
        self._namespaces = Namespaces(self._ledger, self.kinds, self._remover)
        self._customs = Customs(self._ledger, self.kinds, self._remover, self._times, validator)
        self._subresources = Subresources(self._ledger, self._writer, self._remover, self._times)
        self._ledger.after_removal = self._after_removal
        for kind, obj in founding_objects():
            self.create(kind, obj)

    @property
    def version(self) -> str:
        """The version of the latest write of any kind."""
        return str(self._ledger.version)

    def get(
        self, kind: Kind, name: str, namespace: str = "", *, subresource: str = ""
    ) -> JsonObject:
        """Return one object, or its scale; raise NotFound."""
        served = self.kinds.served(kind)
        obj = self._find(served, name, namespace)
        if subresource:
            return self._subresources.read(served, obj, subresource)
        return served.seen(obj)

    def find(self, kind: Kind, name: str, namespace: str = "") -> JsonObject | None:
        """Return one object, or None."""
        table = self._plain.get(kind)
        if table is not None:
            return table.get(namespace, name)
        served = self.kinds.served(kind)
        obj = self._ledger.table(served.storage).get(namespace, name)
        return None if obj is None else served.seen(obj)

    def finder(self, kind: Kind) -> Callable[[str, str], JsonObject | None]:
        """Return what finds an object of a built-in kind by namespace and name, again and again."""
        return self._plain[kind].get

    def list(self, kind: Kind, query: Query = EVERYTHING) -> Found:
        """Return objects in the order of namespace and name."""
        served = self.kinds.served(kind)
        wanted = read_query(served, query)
        return select(self._candidates(served, wanted), wanted)

    def page(self, kind: Kind, query: Query = EVERYTHING, *, limit: int, token: str = "") -> Page:
        """Return a page of a list; all pages show the moment of the first one."""
        served = self.kinds.served(kind)
        wanted = read_query(served, query)
        table = self._ledger.table(served.storage)
        found = page(table, wanted, self._ledger.version, limit=limit, token=token)
        if served.from_storage is None:
            return found
        items = tuple(served.seen(each) for each in found.items)
        return Page(items, found.version, found.token, found.remaining)

    def create(
        self,
        kind: Kind,
        obj: JsonObject,
        *,
        subresource: str = "",
        dry_run: bool = False,
        manager: str = "",
    ) -> JsonObject:
        """Add an object, evict a pod or bind one."""
        if kind is POD and not (subresource or dry_run or manager):
            again = self._writer.add_pod_like(obj)
            if again is not None:
                return again
        served = self.kinds.served(kind)
        write = Write(subresource, dry_run, manager)
        if subresource:
            meta = obj.get("metadata") or {}
            pod = self._find(served, meta.get("name") or "", meta.get("namespace") or "")
            return self._subresources.create(served, pod, obj, write)
        served.check_type(obj)
        made = self._writer.create(served, served.stored(obj), write)
        if not dry_run:
            made = self._after_creation(served, made)
        return served.seen(made)

    def replace(
        self,
        kind: Kind,
        obj: JsonObject,
        *,
        subresource: str = "",
        dry_run: bool = False,
        manager: str = "",
    ) -> JsonObject:
        """Write an object anew; with a resourceVersion only if it is still that one."""
        served = self.kinds.served(kind)
        meta = obj.get("metadata") or {}
        old = self._find(served, meta.get("name") or "", meta.get("namespace") or "")
        write = Write(subresource, dry_run, manager)
        if self._subresources.replaces(served, subresource):
            return self._subresources.replace(served, obj, old, write)
        served.check_type(obj)
        check_guard(served, meta, old["metadata"], is_guarded=served.rules.is_guarded)
        return self._change(served, served.stored(obj), old, write)

    def set_status(self, kind: Kind, obj: JsonObject, status: JsonObject) -> JsonObject:
        """
        Replace the status of an object that was just read.

        Does what `replace` does, in a fraction of the time where nothing else can change; for those
        who live in the cluster and write statuses that are well formed.
        """
        table = self._with_plain_status.get(kind)
        meta = obj["metadata"]
        if (
            table is None
            or "managedFields" in meta
            or table.get(meta.get("namespace", ""), meta["name"]) is not obj
        ):
            return self.replace(kind, {**obj, STATUS: status}, subresource=STATUS)
        if status == obj.get(STATUS):
            return obj
        if "deletionTimestamp" in meta:
            return self._writer.finish(table, {**obj, STATUS: status}, obj)
        return self._ledger.change_status(table, obj, status)

    def bind(self, pod: JsonObject, node: str) -> None:
        """
        Bind a pod that was just read.

        Does what creating a binding does, in a fraction of the time; for the scheduler.
        """
        meta = pod["metadata"]
        table = self._plain[POD]
        if table.get(meta["namespace"], meta["name"]) is pod:
            self._ledger.change(table, placed_on(pod, node, self._times.text()), pod)
            return
        identity = {key: meta[key] for key in ("name", "namespace", "uid")}
        target = {"kind": NODE.name, "name": node}
        self.create(POD, {"metadata": identity, "target": target}, subresource="binding")

    def patch(
        self,
        kind: Kind,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        """Change an object; a server-side apply adds it if it is not there."""
        served = self.kinds.served(kind)
        if patch.type is PatchType.APPLY:
            write = Write(subresource, dry_run, patch.manager, is_patch=True, is_apply=True)
            return self._apply(served, (namespace, name), patch, write)
        write = Write(subresource, dry_run, patch.manager, is_patch=True)
        old = self._find(served, name, namespace)
        if self._subresources.replaces(served, subresource):
            scale = self._subresources.read(served, old, subresource)
            new = patched(served, scale, patch)
            return self._subresources.replace(served, new, old, write)
        new = patched(served, served.seen(old), patch)
        return self._change(served, served.stored(new), old, write)

    def delete(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str = "",
        removal: Removal = GRACEFULLY,
        dry_run: bool = False,
    ) -> JsonObject | None:
        """Delete an object; return it as long as something holds it, None once it is gone."""
        served = self.kinds.served(kind)
        obj = self._find(served, name, namespace)
        if kind == NAMESPACE:
            self._namespaces.check_deletable(name)
        elif kind == CUSTOM_RESOURCE and not dry_run:
            obj = self._customs.hold(obj)
        left = self._remover.remove(served, obj, removal, is_dry=dry_run)
        if left is None or dry_run:
            return left
        if kind == NAMESPACE:
            left = self._namespaces.empty(name)
        elif kind == CUSTOM_RESOURCE:
            left = self._customs.empty(left)
        return None if left is None else served.seen(left)

    def listen(self, kind: Kind, ears: Ears) -> Callable[[], None]:
        """Subscribe to a built-in kind, with another callback for every kind of commit."""
        return self._plain[kind].listen(ears)

    def subscribe(self, kind: Kind, callback: Callback) -> Callable[[], None]:
        """
        Have a callback called after each commit; what is returned ends it.

        It gets the event and the object before it. It may remember work, never write.
        """
        served = self.kinds.served(kind)
        if served.from_storage is None:
            return self._ledger.subscribe(served.storage, callback)

        def tell(event: WatchEvent, before: JsonObject | None) -> None:
            callback(served.shown(event), None if before is None else served.seen(before))

        return self._ledger.subscribe(served.storage, tell)

    def subscribe_all(
        self, callback: WideCallback, *, hears_statuses: bool = True
    ) -> Callable[[], None]:
        """
        Have a callback called after each commit of any kind; what is returned ends it.

        Those of `set_status` may be left out.
        """
        return self._ledger.subscribe_all(callback, hears_statuses=hears_statuses)

    def by_owner(self, uid: str) -> Owned:
        """Return the objects that name an owner."""
        return self._ledger.owned_by(uid)

    def controlled_by(self, uid: str, kind: Kind) -> Found:
        """Return the objects of a built-in kind that name an owner as their controller."""
        return self._ledger.controlled_by(uid, kind)

    def pods_on(self, node: str) -> Found:
        """Return the pods bound to a node, in the order of namespace and name."""
        return list(self._ledger.pods_on(node))

    def since(self, kind: Kind, query: Query, version: str) -> Events:
        """Return what happened after a version; raise Expired if that is too long ago."""
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
        """Make a query ready to be asked many times; raise BadRequest if it makes no sense."""
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

    def _apply(
        self, served: Served, key: tuple[str, str], patch: Patch, write: Write
    ) -> JsonObject:
        namespace, name = key
        old = self._ledger.table(served.storage).get(namespace, name)
        if old is None and write.subresource:
            raise not_found(served.kind, name)
        claim = applier(served, patch, write.subresource, self._times.text())
        if old is None:
            config = named(served, patch, name, namespace)
            new = apply(None, config, claim, served.schema, is_forced=patch.is_forced)
            made = self._writer.create(served, served.stored(new), write)
            return served.seen(made if write.is_dry else self._after_creation(served, made))
        if self._subresources.replaces(served, write.subresource):
            scale = self._subresources.read(served, old, write.subresource)
            merged = {**scale, "spec": {**scale["spec"], **configuration(patch).get("spec", {})}}
            return self._subresources.replace(served, merged, old, write)
        config = relevant(served, configuration(patch), write.subresource)
        new = apply(served.seen(old), config, claim, served.schema, is_forced=patch.is_forced)
        return self._change(served, served.stored(new), old, write)

    def _change(self, served: Served, new: JsonObject, old: JsonObject, write: Write) -> JsonObject:
        changed = self._writer.change(served, new, old, write)
        if served.kind == CUSTOM_RESOURCE and not write.is_dry and changed is not old:
            changed = self._customs.define(changed)
        return served.seen(changed)

    def _after_creation(self, served: Served, made: JsonObject) -> JsonObject:
        if served.kind == CUSTOM_RESOURCE:
            return self._customs.define(made)
        if served.kind == NAMESPACE:
            self.create(*service_account(made["metadata"]["name"]))
        return made

    def _after_removal(self, table: Table, obj: JsonObject) -> None:
        self._namespaces.on_removed(table, obj)
        self._customs.on_removed(table, obj)


def read_version(text: str) -> int:
    """Read a resourceVersion; raise BadRequest if it is none."""
    if not text.isascii() or not text.isdecimal():
        raise bad_request(f'Invalid value: "{text}": the resource version must be a number')
    return int(text)
