"""Manifests, from `kubectl get -o json` or hand-written, to one snapshot and its findings."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.codec.buffers import FoundBuffer
from karpy.codec.bystanders import Bystanders, NodeClassFound, unread_class
from karpy.codec.clusters import join_daemons, join_nodes, name_namespaces, populate
from karpy.codec.convert.clusterfile import is_cluster_file
from karpy.codec.convert.conversion import FieldChange, Note
from karpy.codec.convert.groups import is_group
from karpy.codec.convert.manifests import KARPENTER_GROUPS, carry_over
from karpy.codec.convert.neighbours import is_read_too
from karpy.codec.convert.objects import Found, has_smart_quotes, without_smart_quotes
from karpy.codec.convert.oldfields import Notes
from karpy.codec.convert.workloads import OLD_NAMES, renamed
from karpy.codec.crdfaults import custom_faults, is_custom
from karpy.codec.documents import Document, read_documents
from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.findings import CONVERTED, Finding, finding_of, note, of_problem
from karpy.codec.idle import NAMESPACED, idle_notes, notes_on
from karpy.codec.inventory import Inventory, Key
from karpy.codec.objectmeta import metadata_faults
from karpy.codec.placeholders import SIGNS, placeholder_faults
from karpy.codec.providers import provider_of_class
from karpy.codec.quotas import created_pods
from karpy.codec.storage import gather_storage, with_usual_class
from karpy.codec.treefiles import (
    BUILD_HINT,
    PATCH_HINT,
    is_kustomization,
    is_patch,
    kind_hint,
    why_unbuilt,
)
from karpy.codec.versions import check_version, is_old
from karpy.errors import ManifestInvalid, NotRead
from karpy.model.instances import Catalog
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot

_LIST: Final = "List"
_KIND_HINT: Final = "add `apiVersion` and `kind`, as in any Kubernetes manifest"
_CONVERT_HINT: Final = "convert it first: `karpy convert FILE`, for groups `--from-nodegroups`"
_LOST_HINT: Final = "see the guide on old manifests for what to write instead"
_IDENTITY: Final = frozenset({"instanceProfile", "role"})
"""Fields of a node class that do not change which pods fit on its nodes."""
_UNKNOWN_HINT: Final = "correct its name, or remove it"
_SHOWN_MAX: Final = 3


class Reading(Struct, frozen=True):
    """A snapshot of all readable objects, the problems of the others, and notes on the input."""

    snapshot: Snapshot
    problems: tuple[ManifestInvalid, ...] = ()
    notes: tuple[Finding, ...] = ()
    """Warnings and notes."""
    origins: Mapping[Key, str] = {}
    """File and document of each object."""
    node_classes: tuple[NodeClassFound, ...] = ()
    buffers: tuple[FoundBuffer, ...] = ()
    """CapacityBuffers, whose virtual pods are not in the snapshot."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, those about unreadable objects first."""
        return self.findings_beside(frozenset())

    def findings_beside(self, read: Collection[tuple[str, str]]) -> tuple[Finding, ...]:
        """Return all findings except that node classes of these groups and kinds are not read."""
        unread = [
            each
            for each in self.node_classes
            if (each.group, each.kind) not in read and not each.is_refused
        ]
        return (*map(of_problem, self.problems), *map(unread_class, unread), *self.notes)


def read_manifests(
    documents: Iterable[tuple[str, str]], catalog: Catalog, settings: Settings, now: datetime
) -> Reading:
    """
    Read documents, given as name and text.

    An object that cannot be read is left out and becomes a problem; all other objects are kept.
    """
    batch = _Batch(Inventory(catalog.well_known, now), catalog.well_known)
    for file, text in documents:
        signs = _Signs(any(map(text.__contains__, OLD_NAMES)), any(map(text.__contains__, SIGNS)))
        for document in read_documents(file, text):
            batch.add_document(document, signs)
    return batch.finish(catalog, settings, now)


class _Signs(Struct, frozen=True):
    """Whether the text of a file holds old names or placeholders: only then search its objects."""

    has_old_names: bool = False
    has_placeholders: bool = False


class _Batch:
    def __init__(self, inventory: Inventory, well_known: frozenset[str]) -> None:
        self._inventory = inventory
        self._well_known = well_known
        self._ours: list[Found] = []
        """Objects of Karpenter's API groups, converted together: old ones refer to each other."""
        self._beside: list[Found] = []
        """Objects of other groups that the conversion of old objects reads."""
        self._problems: list[ManifestInvalid] = []
        self._notes: list[Finding] = []
        self._bystanders = Bystanders()
        self._origins: dict[Key, str] = {}

    def add_document(self, document: Document | ManifestInvalid, signs: _Signs) -> None:
        if isinstance(document, ManifestInvalid):
            self._problems.append(document)
            return
        if is_patch(document.value):
            fault = FieldInvalid("", "is a patch, not an object", PATCH_HINT)
            self._refuse(document.where, fault)
            return
        try:
            for path, value in _objects(document.value):
                self._add_object(document, value, path, signs)
        except FieldInvalid as error:
            self._refuse(document.where, error)

    def _add_object(self, document: Document, value: object, path: str, signs: _Signs) -> None:
        where = document.where
        try:
            fields = self._headed(document, Fields(value, path))
            if fields is None:
                return
            kind, version = fields.text("kind"), _version(fields)
            where = f"{where}, {kind} {_name(fields)}"
            check_version(version, kind)
        except FieldInvalid as error:
            self._refuse(where, error)
            return
        found = Found(document.file, where, fields.obj, path)
        if found.group in KARPENTER_GROUPS:
            self._ours.append(found)
            return
        if is_read_too(found.kind, found.name):
            self._beside.append(found)
        if signs.has_old_names:
            notes = Notes(where)
            found = replace(found, value=renamed(found.value, path, notes))
            # Skip notes on texts that mention an old label: kube-scheduler does not read them.
            self._notes += [
                _changed(each) for each in notes.all if each.change is not FieldChange.LOST
            ]
        if self._is_refused(found, signs):
            return
        self._read(found)

    def _headed(self, document: Document, fields: Fields) -> Fields | None:
        """Return the fields of an object with a kind; None for a kustomization."""
        if is_kustomization(document.file, fields.obj):
            why = why_unbuilt(fields.obj)
            message = "a kustomization names files and is no object itself"
            finding = note("LEFT_ASIDE", message, where=document.where)
            if why:
                error = NotRead(problem=f"is not built: {why}", hint=BUILD_HINT)
                finding = finding_of(error, where=document.where, is_warning=True, is_left_out=True)
            self._notes.append(finding)
            return None
        if has_smart_quotes(fields.obj):
            notes = Notes(document.where)
            fields = Fields(without_smart_quotes(fields.obj, "", notes), fields.path)
            self._notes += map(_changed, notes.all)
        if not fields.text("kind") and (is_cluster_file(fields.obj) or is_group(fields.obj)):
            fields.fail("", "holds no objects yet", _CONVERT_HINT)
        if not fields.text("kind"):
            fields.fail("kind", "is missing", kind_hint(document.file))
        return fields

    def _is_refused(self, found: Found, signs: _Signs) -> bool:
        """Say whether an API server would refuse an object, and record its problems if so."""
        faults: Sequence[FieldInvalid] = ()
        if is_custom(found.version, found.kind):
            faults = custom_faults(found.value, self._well_known)
        elif self._inventory.knows(found.group, found.kind):
            faults = list(metadata_faults(found.value))
            if signs.has_placeholders:
                faults = [*placeholder_faults(found.value), *faults]
        for each in faults:
            self._refuse(found.where, each.within(found.path))
        return bool(faults)

    def _read(self, found: Found) -> None:
        fields = Fields(found.value, found.path)
        self._origins[_key(found.kind, fields)] = found.where
        try:
            unknown = self._inventory.add(found.group, found.kind, fields)
        except FieldInvalid as error:
            self._refuse(found.where, error)
            return
        if unknown is None:
            self._bystanders.add(found.group, found.kind, fields, found.where)
            return
        self._notes += [_unknown_field(found.where, each) for each in unknown]
        self._notes += notes_on(found.kind, fields, found.where)

    def _refuse(self, where: str, error: FieldInvalid) -> None:
        self._problems += [_problem(where, each) for each in (error, *error.others)]

    def _carry_over(self) -> None:
        """Read the objects of Karpenter's groups; convert old versions first."""
        if not any(is_old(each.version, each.kind) for each in self._ours):
            for each in self._ours:
                if self._is_refused(each, _Signs()):
                    self._keep_class(each)
                else:
                    self._read(each)
            return
        for draft in carry_over(self._ours, self._beside):
            self._problems += draft.problems
            self._notes += map(_changed, draft.notes)
            for obj in draft.objects:
                found = Found(draft.file, draft.where, obj)
                if draft.is_filled_in or not any(placeholder_faults(obj.get("spec"))):
                    self._read(found)
                else:
                    self._keep_class(found)

    def _keep_class(self, found: Found) -> None:
        """Keep a refused node class: its NodePools get such nodes once it is corrected."""
        if provider_of_class(found.group, found.kind) is not None:
            self._bystanders.add_class(
                found.group, found.kind, found.value, found.where, is_refused=True
            )

    def finish(self, catalog: Catalog, settings: Settings, now: datetime) -> Reading:
        self._carry_over()
        have = self._inventory
        have.admit()
        population = populate(have)
        pods, refused = created_pods(population.pods, have.quotas.values(), self._origins)
        classes, assumed = with_usual_class(population.claims, have.classes.values())
        snapshot = Snapshot(
            now=now,
            pods=pods,
            nodes=join_nodes(have),
            pools=tuple(have.pools.values()),
            daemons=join_daemons(have),
            catalog=catalog,
            overlays=tuple(have.overlays.values()),
            storage=gather_storage(population.claims, have.volumes.values(), classes),
            namespaces=name_namespaces(have.namespaces.values(), population.pods),
            services=tuple(have.services.values()),
            controllers=population.controllers,
            budgets=tuple(have.budgets.values()),
            settings=settings,
        )
        buffers = tuple(self._find_buffers())
        notes = (
            *self._notes,
            *self._bystanders.findings(),
            *_repeated_notes(have.repeated),
            *idle_notes(have.workloads.values()),
            *refused,
            *_priority_notes(snapshot),
            *_assumed_notes(assumed),
            *_stray_notes(snapshot),
        )
        return Reading(
            snapshot,
            tuple(self._problems),
            notes,
            self._origins,
            tuple(self._bystanders.node_classes),
            buffers,
        )

    def _find_buffers(self) -> Iterator[FoundBuffer]:
        """Return each CapacityBuffer with the workload or template it refers to, if readable."""
        for key, record in self._inventory.buffers.items():
            where, source = self._origins[key], None
            try:
                source = self._inventory.source_of(record)
            except FieldInvalid as error:
                kind, source_key = record.source
                name = source_key.partition("/")[2]
                self._refuse(self._origins[kind, record.namespace, name], error)
            yield FoundBuffer(record, source, where)


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


def _version(fields: Fields) -> str:
    version = fields.text("apiVersion")
    if not version:
        fields.fail("apiVersion", "is missing", _KIND_HINT)
    return version


def _changed(change: Note) -> Finding:
    """Return the finding for a field that a conversion has changed."""
    if change.change is FieldChange.LOST:
        error = NotRead(problem=f"is lost: {change.text}", hint=_LOST_HINT)
        may_matter = change.path.rpartition(".")[2] not in _IDENTITY
        return finding_of(
            error,
            where=change.where,
            path=change.path,
            is_warning=True,
            is_left_out=may_matter,
        )
    message = f"is {change.change.value}: {change.text}"
    return note(CONVERTED, message, where=change.where, path=change.path)


def _name(fields: Fields) -> str:
    meta = fields.child("metadata")
    name = meta.text("name") or meta.text("generateName") or "without a name"
    namespace = meta.text("namespace")
    return f"{namespace}/{name}" if namespace else name


def _problem(where: str, error: FieldInvalid) -> ManifestInvalid:
    return ManifestInvalid(where=where, path=error.path, problem=error.problem, hint=error.hint)


def _key(kind: str, fields: Fields) -> Key:
    meta = fields.child("metadata")
    namespace = meta.text("namespace")
    if not namespace and kind in NAMESPACED:
        namespace = "default"
    return kind, namespace, meta.text("name")


def _unknown_field(where: str, path: str) -> Finding:
    error = NotRead(problem="is unknown and has no effect", hint=_UNKNOWN_HINT)
    return finding_of(error, where=where, path=path, is_warning=True, is_left_out=True)


def _repeated_notes(repeated: Iterable[Key]) -> Iterator[Finding]:
    for (kind, namespace, name), count in sorted(Counter(repeated).items()):
        shown = f"{namespace}/{name}" if namespace else name
        message = f"is there {count + 1} times; the last one counts"
        yield note("REPEATED", message, where=f"{kind} {shown}")


def _assumed_notes(names: Sequence[str]) -> Iterator[Finding]:
    if names:
        message = (
            f"no StorageClass could be read; claims take a usual one ({_few(names)}), which makes"
            " volumes in the zone of their pod"
        )
        yield note("USUAL_STORAGE_CLASS", message, hint="add the StorageClass to the input")


def _priority_notes(snapshot: Snapshot) -> Iterator[Finding]:
    """Mention pending pods for which kube-scheduler may preempt running pods."""
    running = [each for each in snapshot.pods if each.node_name and each.is_active]
    lowest = min((each.disruption.priority for each in running), default=None)
    above = [
        each.key
        for each in snapshot.pods
        if lowest is not None and not each.node_name and each.disruption.priority > lowest
    ]
    if above:
        message = (
            f"pods have a higher priority than some that run: {_few(above)}; kube-scheduler may end"
            " those for them, which the answer does not count on, as Karpenter does not"
        )
        yield note("PRIORITY", message)


def _stray_notes(snapshot: Snapshot) -> Iterator[Finding]:
    known = {node.name for node in snapshot.nodes}
    missing = sorted({pod.node_name for pod in snapshot.pods if pod.node_name} - known)
    if missing:
        message = f"pods are bound to nodes that are not given: {_few(missing)}"
        yield note("NODES_NOT_GIVEN", message, hint="add the Nodes to the input")


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return ", ".join(names[:_SHOWN_MAX]) + more
