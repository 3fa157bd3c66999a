"""Namespaces: creation, protection and deletion."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import NAMESPACE
from karpy.ports.objects import Removal
from karpy.sim.store.answers import forbidden
from karpy.sim.store.ledger import Ledger
from karpy.sim.store.registry import Registry
from karpy.sim.store.remover import Remover
from karpy.sim.store.tables import Table

ALWAYS: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_IMMORTAL: Final = frozenset({"default", "kube-public", "kube-system"})
_BACKGROUND: Final = Removal(propagation="Background")


class Namespaces:
    """Deletes the content of deleting namespaces, and removes them once they are empty."""

    def __init__(self, ledger: Ledger, kinds: Registry, remover: Remover) -> None:
        self._ledger = ledger
        self._kinds = kinds
        self._remover = remover
        self._closing: set[str] = set()
        self._emptying: set[str] = set()

    def check_deletable(self, name: str) -> None:
        """Raise Forbidden for the namespaces that cannot be deleted."""
        if name in _IMMORTAL:
            raise forbidden(NAMESPACE, name, "this namespace may not be deleted")

    def empty(self, name: str) -> JsonObject | None:
        """Delete all objects of a namespace; return it while some are left, else None."""
        self._closing.add(name)
        self._emptying.add(name)
        for served in self._kinds:
            if not served.kind.is_namespaced or served.kind != served.storage:
                continue
            for obj in list(self._ledger.table(served.storage).walk(name)):
                self._remover.remove(served, obj, _BACKGROUND)
        self._emptying.discard(name)
        self._end_if_empty(name)
        return self._ledger.table(NAMESPACE).get("", name)

    def on_removed(self, table: Table, obj: JsonObject) -> None:
        """Remove the deleting namespace of a removed object if it was the last one."""
        namespace = obj["metadata"].get("namespace")
        if namespace in self._closing and namespace not in self._emptying:
            self._end_if_empty(namespace)
        if table.kind == NAMESPACE:
            self._closing.discard(obj["metadata"]["name"])

    def _end_if_empty(self, name: str) -> None:
        if any(name in table.spaces for table in self._ledger.tables):
            return
        table = self._ledger.table(NAMESPACE)
        found = table.get("", name)
        if found is None:
            return
        done = {**found, "spec": {}}
        if found["metadata"].get("finalizers"):
            self._ledger.change(table, done, found)
            return
        self._ledger.remove(table, done, found)


def begin_namespace(obj: JsonObject) -> JsonObject:
    """Give a new namespace its finalizer, its label and its phase."""
    meta = obj["metadata"]
    labels = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}
    spec = obj.get("spec") or {}
    finalizers = list(dict.fromkeys([*(spec.get("finalizers") or ()), "kubernetes"]))
    return {
        **obj,
        "metadata": {**meta, "labels": labels},
        "spec": {**spec, "finalizers": finalizers},
        "status": {"phase": "Active"},
    }


def keep_finalizers(new: JsonObject, old: JsonObject) -> JsonObject:
    """Keep the finalizers in `spec`: only the `finalize` subresource writes them."""
    return {**new, "spec": old.get("spec") or {}}


def default_namespace(obj: JsonObject) -> JsonObject:
    """Set the label with the name of a namespace."""
    meta = obj["metadata"]
    labels = meta.get("labels") or {}
    name = meta["name"]
    if labels.get("kubernetes.io/metadata.name") == name:
        return obj
    return {
        **obj,
        "metadata": {**meta, "labels": {**labels, "kubernetes.io/metadata.name": name}},
    }
