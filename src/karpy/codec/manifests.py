"""Manifests, as `kubectl get -o json` or a hand wrote them, to one snapshot and what is wrong."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct

from karpy.codec.clusters import join_daemons, join_nodes, name_namespaces, populate
from karpy.codec.documents import Document, read_documents
from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.inventory import Inventory, Key
from karpy.codec.storage import gather_storage
from karpy.errors import ManifestInvalid
from karpy.model.instances import Catalog
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot

_LIST: Final = "List"
_KIND_HINT: Final = "add `apiVersion` and `kind`, as in any Kubernetes manifest"
_IGNORED: Final = {
    "CronJob": "a CronJob makes Jobs when its time comes; none of them was added",
    "Provisioner": "a Provisioner of karpenter.sh/v1alpha5 is not read; write it as a NodePool",
}
_SHOWN_MAX: Final = 3


class Reading(Struct, frozen=True):
    """A snapshot of all that could be read, what could not, and what to know about the rest."""

    snapshot: Snapshot
    problems: tuple[ManifestInvalid, ...] = ()
    notes: tuple[str, ...] = ()


def read_manifests(
    documents: Iterable[tuple[str, str]], catalog: Catalog, settings: Settings, now: datetime
) -> Reading:
    """
    Read documents, given as name and text.

    What cannot be read is left out and named, one problem each; everything else is kept.
    """
    batch = _Batch(Inventory(catalog.well_known, now))
    for file, text in documents:
        for document in read_documents(file, text):
            batch.add_document(document)
    return batch.finish(catalog, settings, now)


class _Batch:
    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._problems: list[ManifestInvalid] = []
        self._notes: list[str] = []
        self._skipped: Counter[str] = Counter()

    def add_document(self, document: Document | ManifestInvalid) -> None:
        if isinstance(document, ManifestInvalid):
            self._problems.append(document)
            return
        try:
            for path, value in _objects(document.value):
                self._add_object(document.where, value, path)
        except FieldInvalid as error:
            self._problems.append(_problem(document.where, error))

    def _add_object(self, where: str, value: object, path: str) -> None:
        try:
            fields = Fields(value, path)
            kind, group = fields.needed("kind"), _group(fields)
            where = f"{where}, {kind} {_name(fields)}"
            unknown = self._inventory.add(group, kind, fields)
        except FieldInvalid as error:
            self._problems.append(_problem(where, error))
            return
        if unknown is None:
            self._skipped[kind] += 1
        else:
            self._notes += [f"{where}: `{each}` is unknown and has no effect" for each in unknown]

    def finish(self, catalog: Catalog, settings: Settings, now: datetime) -> Reading:
        have = self._inventory
        have.admit()
        people = populate(have)
        snapshot = Snapshot(
            now=now,
            pods=people.pods,
            nodes=join_nodes(have),
            pools=tuple(have.pools.values()),
            daemons=join_daemons(have),
            catalog=catalog,
            overlays=tuple(have.overlays.values()),
            storage=gather_storage(people.claims, have.volumes.values(), have.classes.values()),
            namespaces=name_namespaces(have.namespaces.values(), people.pods),
            services=tuple(have.services.values()),
            controllers=people.controllers,
            budgets=tuple(have.budgets.values()),
            settings=settings,
        )
        notes = (
            *self._notes,
            *_repeated_notes(have.repeated),
            *_skipped_notes(self._skipped),
            *_stray_notes(snapshot),
        )
        return Reading(snapshot, tuple(self._problems), notes)


def _objects(value: object) -> Iterator[tuple[str, object]]:
    """Find the objects of a document: itself, the items of a List, or of a plain JSON array."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield f"[{index}]", each
        return
    root = Fields(value)
    kind = root.text("kind")
    if not kind.endswith(_LIST) or "items" not in root:
        yield "", value
        return
    # The API server leaves the kind of the items out, kubectl does not.
    defaults = {"kind": kind.removesuffix(_LIST), "apiVersion": root.text("apiVersion")}
    for index, each in enumerate(root.items("items")):
        yield f"items[{index}]", _with_defaults(each, defaults)


def _with_defaults(value: object, defaults: JsonObject) -> object:
    if isinstance(value, dict) and not value.get("kind") and defaults["kind"]:
        return {**value, **defaults}
    return value


def _group(fields: Fields) -> str:
    version = fields.text("apiVersion")
    if not version:
        fields.fail("apiVersion", "is missing", _KIND_HINT)
    return version.rpartition("/")[0]


def _name(fields: Fields) -> str:
    meta = fields.child("metadata")
    name = meta.text("name") or meta.text("generateName") or "without a name"
    namespace = meta.text("namespace")
    return f"{namespace}/{name}" if namespace else name


def _problem(where: str, error: FieldInvalid) -> ManifestInvalid:
    return ManifestInvalid(where=where, path=error.path, problem=error.problem, hint=error.hint)


def _repeated_notes(repeated: Iterable[Key]) -> Iterator[str]:
    for (kind, namespace, name), count in sorted(Counter(repeated).items()):
        shown = f"{namespace}/{name}" if namespace else name
        yield f"{kind} {shown} is there {count + 1} times; the last one counts"


def _skipped_notes(skipped: Counter[str]) -> Iterator[str]:
    for kind in sorted(_IGNORED):
        if skipped[kind]:
            yield _IGNORED[kind]
    others = [f"{skipped[kind]} {kind}" for kind in sorted(skipped) if kind not in _IGNORED]
    if others:
        yield f"left aside, since scheduling does not depend on them: {', '.join(others)}"


def _stray_notes(snapshot: Snapshot) -> Iterator[str]:
    known = {node.name for node in snapshot.nodes}
    missing = sorted({pod.node_name for pod in snapshot.pods if pod.node_name} - known)
    if missing:
        shown = ", ".join(missing[:_SHOWN_MAX])
        more = f" and {len(missing) - _SHOWN_MAX} more" if len(missing) > _SHOWN_MAX else ""
        yield f"pods are bound to nodes that are not given: {shown}{more}"
