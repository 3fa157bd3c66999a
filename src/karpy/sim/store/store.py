"""The object store of the embedded cluster."""

from typing import Final

from msgspec import structs

from karpy.codec.fields import JsonObject
from karpy.model.kinds import CUSTOM_RESOURCE, NAMESPACE, NODE, POD, Kind
from karpy.ports.clock import Clock
from karpy.ports.objects import (
    GRACEFULLY,
    Patch,
    PatchType,
    Removal,
)
from karpy.sim.store.admission import Admission
from karpy.sim.store.answers import not_found
from karpy.sim.store.bindings import placed_on
from karpy.sim.store.customs import Customs, ValidatorFactory
from karpy.sim.store.names import Names, ObjectTimes
from karpy.sim.store.namespaces import Namespaces
from karpy.sim.store.ownership import apply
from karpy.sim.store.patching import applier, configuration, named, patched, relevant
from karpy.sim.store.quotas import Quotas
from karpy.sim.store.registry import Served
from karpy.sim.store.remover import Remover
from karpy.sim.store.subresources import Subresources
from karpy.sim.store.system import founding_objects, service_account
from karpy.sim.store.tables import Table
from karpy.sim.store.views import StoreView
from karpy.sim.store.writer import STATUS, StoreWriter, Write, check_guard

_APPLY: Final = PatchType.APPLY


class Store(StoreView):
    """
    Objects with the semantics of an API server: versions, conflicts, finalizers, watches.

    Synchronous and for one thread. Neither side may change an object that was passed or returned.
    Errors are those of `karpy.ports.objects.Objects`, with the messages of Kubernetes.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        seed: int = 0,
        history: int = 10_000,
        validator: ValidatorFactory | None = None,
        taints_nodes: bool = False,
    ) -> None:
        super().__init__(history)
        self._with_plain_status: Final = {
            kind: table
            for kind, table in self._plain.items()
            if self.kinds.served(kind).has_plain_status
        }
        self._times = ObjectTimes(clock)
        self.quotas: Final = Quotas(self._ledger)
        admission = Admission(self._ledger, self.quotas, taints_nodes=taints_nodes)
        self._writer = StoreWriter(self._ledger, Names(seed), self._times, admission)
        self._remover = Remover(self._ledger, self._times)
        self._namespaces = Namespaces(self._ledger, self.kinds, self._remover)
        self._customs = Customs(self._ledger, self.kinds, self._remover, self._times, validator)
        definitions = self.kinds.served(CUSTOM_RESOURCE)
        self.kinds.add(structs.replace(definitions, validator=self._customs))
        self._subresources = Subresources(self._ledger, self._writer, self._remover, self._times)
        self._ledger.after_removal = self._after_removal
        for kind, obj in founding_objects():
            self.create(kind, obj)

    def get(
        self, kind: Kind, name: str, namespace: str = "", *, subresource: str = ""
    ) -> JsonObject:
        """Return one object, or its scale; raise NotFound."""
        served = self.kinds.served(kind)
        obj = self._find(served, name, namespace)
        if subresource:
            return self._subresources.read(served, obj, subresource)
        return served.seen(obj)

    def create(
        self,
        kind: Kind,
        obj: JsonObject,
        *,
        subresource: str = "",
        dry_run: bool = False,
        manager: str = "",
    ) -> JsonObject:
        """Create an object, evict a pod or bind one."""
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
        """Replace an object; raise Conflict if a given resourceVersion is outdated."""
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

        A fast path of `replace` for simulated controllers, which write well-formed statuses.
        """
        table = self._with_plain_status.get(kind) or self._table_if_shared(kind, obj, status)
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

    def delete_pod(self, pod: JsonObject, grace_seconds: int | None = None) -> JsonObject | None:
        """
        Delete a pod that was just read.

        A fast path of `delete` for simulated controllers.
        """
        meta = pod["metadata"]
        name, namespace = meta["name"], meta["namespace"]
        table = self._plain[POD]
        if table.get(namespace, name) is pod and "finalizers" not in meta:
            return self._remover.remove_pod(table, pod, grace_seconds)
        removal = Removal(grace_seconds=grace_seconds, uid=meta["uid"])
        return self.delete(POD, name, namespace=namespace, removal=removal)

    def bind(self, pod: JsonObject, node: str) -> None:
        """
        Bind a pod that was just read.

        A fast path of creating a binding, for the simulated scheduler.
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
        """Patch an object; a server-side apply creates it if it does not exist."""
        served = self.kinds.served(kind)
        if patch.type is _APPLY:
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
        """Delete an object; return it while finalizers or a grace period hold it, else None."""
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

    def _table_if_shared(self, kind: Kind, obj: JsonObject, status: JsonObject) -> Table | None:
        """Return the table of a kind if no checked part of the status changes, else None."""
        fields = self.kinds.served(kind).rules.status_fields
        had = obj.get(STATUS) or {}
        is_shared = fields and all(field in had and had[field] is status[field] for field in fields)
        return self._plain.get(kind) if is_shared else None

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
