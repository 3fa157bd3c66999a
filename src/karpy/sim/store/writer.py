"""Creating and changing objects: defaults, admission, validation, commit."""

from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest
from karpy.model.kinds import DEPLOYMENT, NAMESPACE, POD, Kind
from karpy.sim.store.admission import Admission
from karpy.sim.store.answers import (
    FieldFault,
    FieldsInvalid,
    already_exists,
    conflict,
    stale,
    unreadable,
)
from karpy.sim.store.checks.pods import NoQuantity
from karpy.sim.store.checks.shapes import ShapeCheck
from karpy.sim.store.ledger import Ledger
from karpy.sim.store.metadata import check_metadata, compare_metadata, keep_system_fields
from karpy.sim.store.names import Names, ObjectTimes
from karpy.sim.store.ownership import UPDATE, Claim, track
from karpy.sim.store.registry import Served
from karpy.sim.store.tables import Table

_BAD_REQUEST: Final = 400
_TRIES: Final = 64
"""Attempts to draw a generated name that is not taken."""
STATUS: Final = "status"
_USUAL: Final = frozenset({"apiVersion", "kind", "metadata", "spec", STATUS})


class Write(Struct, frozen=True):
    """The options of a write."""

    subresource: str = ""
    is_dry: bool = False
    manager: str = ""
    is_patch: bool = False
    """Whether the object is the result of a patch."""
    is_apply: bool = False
    """Whether the managed fields are already set by a server-side apply."""


class _Model(Struct, frozen=True):
    """The latest pod created from an object, reused for the next pod of the same object."""

    given: JsonObject
    made: JsonObject
    changes: int
    """The change counter of admission at that time."""


class StoreWriter:
    """Creates and changes objects as an API server does."""

    def __init__(
        self, ledger: Ledger, names: Names, times: ObjectTimes, admission: Admission
    ) -> None:
        self._ledger = ledger
        self._names = names
        self._times = times
        self._admission = admission
        self._shapes: dict[Kind, ShapeCheck] = {}
        self._model: _Model | None = None
        """The latest pod with a generated name: pods of one workload are created in a row."""

    def create(self, served: Served, obj: JsonObject, write: Write) -> JsonObject:
        """Add an object."""
        kind = served.storage
        table = self._ledger.table(kind)
        self._check_shape(served, obj)
        draft = self._begin(served, table, obj)
        rules = served.rules
        if rules.default is not None:
            draft = rules.default(draft)
        draft = self._admission.on_create(kind, draft)
        if rules.begin is not None:
            draft = rules.begin(draft)
        if served.validator is not None:
            draft = served.validator.admit(draft, None)
        self._check(served, draft, [])
        self._admission.check_new(kind, draft)
        meta = draft["metadata"]
        if table.get(meta.get("namespace", ""), meta["name"]) is not None:
            raise already_exists(kind, meta["name"])
        if write.manager and not write.is_apply:
            draft = track(draft, None, self._claim(served, write), served.schema)
        if write.is_dry:
            return draft
        if kind is POD and not write.manager and not (obj.get("metadata") or {}).get("name"):
            self._model = _Model(obj, draft, self._admission.changes)
        return self._ledger.add(table, draft)

    def add_pod_like(self, obj: JsonObject) -> JsonObject | None:
        """Create a pod from the same object as the latest one; None if the object differs."""
        model = self._model
        if model is None or model.given is not obj or model.changes != self._admission.changes:
            return None
        table, meta = self._ledger.table(POD), model.made["metadata"]
        if self._admission.counts_pods(meta["namespace"]):
            return None
        own = {
            **meta,
            "name": self._name(table, meta["namespace"], meta["generateName"]),
            "uid": self._names.uid(),
            "creationTimestamp": self._times.text(),
        }
        return self._ledger.add(table, {**model.made, "metadata": own})

    def change(self, served: Served, new: JsonObject, old: JsonObject, write: Write) -> JsonObject:
        """Replace an object, and remove it if it is deleting and nothing holds it any more."""
        try:
            self._check_shape(served, new, old)
        except BadRequest as error:
            if not write.is_patch:
                raise
            fault = FieldFault("patch", f"Invalid value: {error.message}")
            raise FieldsInvalid(served.kind, old["metadata"]["name"], [fault]) from error
        new = self._settle(served, new, old, write)
        if "managedFields" in old["metadata"] and not write.is_apply:
            new = track(new, old, self._claim(served, write), served.schema)
        if new == old:
            return old
        if write.is_dry:
            return new
        table = self._ledger.table(served.storage)
        return self.finish(table, new, old)

    def finish(self, table: Table, new: JsonObject, old: JsonObject) -> JsonObject:
        """Commit a change; remove a deleting object that nothing holds any more."""
        if is_released(new["metadata"]) and not _is_namespace_in_use(table, new):
            return self._ledger.remove(table, new, old)
        return self._ledger.change(table, new, old)

    def finalize(self, served: Served, new: JsonObject, old: JsonObject) -> JsonObject:
        """Commit the finalizers of a namespace; remove it once it has none."""
        table = self._ledger.table(served.storage)
        if is_released(new["metadata"]) and not (new.get("spec") or {}).get("finalizers"):
            return self._ledger.remove(table, new, old)
        return self._ledger.change(table, new, old)

    def _claim(self, served: Served, write: Write) -> Claim:
        now = self._times.text()
        version = served.kind.api_version
        return Claim(write.manager, UPDATE, version, write.subresource, now, {})

    def _check_shape(self, served: Served, obj: JsonObject, old: JsonObject | None = None) -> None:
        kind = served.storage
        shapes = self._shapes.get(kind)
        if shapes is None:
            shapes = self._shapes[kind] = ShapeCheck(kind)
        shapes.check(obj, old)

    def _begin(self, served: Served, table: Table, obj: JsonObject) -> JsonObject:
        kind = served.storage
        given = obj.get("metadata") or {}
        if given.get("resourceVersion"):
            raise BadRequest(
                "resourceVersion should not be set on objects to be created",
                status=_BAD_REQUEST,
                hint="leave `metadata.resourceVersion` out",
            )
        namespace = given.get("namespace") or ""
        name = given.get("name") or self._name(table, namespace, given.get("generateName"))
        meta: JsonObject = {"name": name}
        for field in ("generateName", "namespace", "labels", "annotations"):
            if value := given.get(field):
                meta[field] = value
        meta["uid"] = self._names.uid()
        meta["creationTimestamp"] = self._times.text()
        if served.has_generation:
            meta["generation"] = 1
        for field in ("ownerReferences", "finalizers", "managedFields"):
            if value := given.get(field):
                meta[field] = value
        draft = {**obj, "apiVersion": kind.api_version, "kind": kind.name, "metadata": meta}
        if served.has_status and not served.rules.keeps_status:
            draft.pop("status", None)
        return draft

    def _name(self, table: Table, namespace: str, base: str | None) -> str:
        if not base:
            return ""
        for _ in range(_TRIES):
            name = self._names.complete(base)
            if table.get(namespace, name) is None:
                return name
        raise already_exists(table.kind, base)

    def _settle(self, served: Served, new: JsonObject, old: JsonObject, write: Write) -> JsonObject:
        kind = served.storage
        old_meta = old["metadata"]
        new_meta = new.get("metadata") or {}
        if new_meta is not old_meta:
            check_guard(served, new_meta, old_meta, is_guarded=False)
            new_meta = keep_system_fields(new_meta, old_meta)
        if served.has_status:
            new = _separate(served, new, new_meta, old, write.subresource)
        else:
            new = {
                **new,
                "apiVersion": old["apiVersion"],
                "kind": old["kind"],
                "metadata": new_meta,
            }
        new_meta = new["metadata"]
        is_body_changed = _is_body_changed(served, new, old)
        if is_body_changed:
            if served.rules.keep is not None:
                new = served.rules.keep(new, old)
            if served.rules.default is not None:
                new = served.rules.default(new)
            new = self._admission.on_change(kind, new, old)
            is_body_changed = _is_body_changed(served, new, old)
        if served.validator is not None:
            new = served.validator.admit(new, old, subresource=write.subresource)
            is_body_changed = _is_body_changed(served, new, old)
        if is_body_changed or new_meta is not old_meta:
            self._check_change(served, new, old, is_body_changed=is_body_changed)
        is_status = write.subresource == STATUS
        if served.has_generation and not is_status and _needs_generation(served, new, old):
            meta = new["metadata"]
            new = {**new, "metadata": {**meta, "generation": old_meta.get("generation", 0) + 1}}
        return new

    def _check_change(
        self, served: Served, new: JsonObject, old: JsonObject, *, is_body_changed: bool
    ) -> None:
        faults = list(compare_metadata(new["metadata"], old["metadata"]))
        if is_body_changed and served.rules.compare is not None:
            faults.extend(served.rules.compare(new, old))
        self._check(served, new, faults, is_body_changed=is_body_changed)

    def _check(
        self,
        served: Served,
        obj: JsonObject,
        faults: list[FieldFault],
        *,
        is_body_changed: bool = True,
    ) -> None:
        rules = served.rules
        meta = obj["metadata"]
        is_custom = served.definition is not None
        is_label = rules.is_name_label
        faults.extend(check_metadata(meta, is_name_label=is_label, is_custom=is_custom))
        if is_body_changed and rules.check is not None:
            try:
                faults.extend(rules.check(obj))
            except NoQuantity as error:
                raise unreadable(served.kind, str(error)) from error
        if faults:
            raise FieldsInvalid(served.kind, meta.get("name") or "", faults)


def check_guard(served: Served, new: JsonObject, old: JsonObject, *, is_guarded: bool) -> None:
    """Raise Conflict if the resourceVersion or the UID differs."""
    version = new.get("resourceVersion")
    name = old["name"]
    if version:
        if version != old["resourceVersion"]:
            raise stale(served.kind, name)
    elif is_guarded:
        fault = FieldFault(
            "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
        )
        raise FieldsInvalid(served.kind, name, [fault], title=served.kind.resource)
    uid = new.get("uid")
    if uid and uid != old["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
        raise conflict(served.kind, name, why)


def is_released(meta: JsonObject) -> bool:
    """Say whether no finalizer and no grace period holds a deleting object."""
    return (
        "deletionTimestamp" in meta
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
    )


def _is_namespace_in_use(table: Table, obj: JsonObject) -> bool:
    return table.kind == NAMESPACE and bool((obj.get("spec") or {}).get("finalizers"))


def _separate(
    served: Served, new: JsonObject, new_meta: JsonObject, old: JsonObject, subresource: str
) -> JsonObject:
    """Combine the status of one object with the rest of another, as the endpoint requires."""
    if subresource != STATUS:
        kept = {**new, "apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": new_meta}
        return _with(kept, STATUS, old.get(STATUS))
    meta = _status_metadata(served, new_meta, old["metadata"])
    return _with({**old, "metadata": meta}, STATUS, new.get(STATUS))


def _status_metadata(served: Served, new: JsonObject, old: JsonObject) -> JsonObject:
    if new is old:
        return old
    if served.definition is not None:
        return _with(old, "managedFields", new.get("managedFields"))
    if served.kind == POD:
        return _with(new, "ownerReferences", old.get("ownerReferences"))
    if served.kind == DEPLOYMENT:
        return _with(new, "labels", old.get("labels"))
    return new


def _with(obj: JsonObject, key: str, value: object) -> JsonObject:
    if value is None:
        return {name: each for name, each in obj.items() if name != key} if key in obj else obj
    return obj if obj.get(key) is value else {**obj, key: value}


def _is_body_changed(served: Served, new: JsonObject, old: JsonObject) -> bool:
    """Say whether a part that is checked differs; shared parts make this cheap."""
    if served.rules.keeps_status and new.get(STATUS) != old.get(STATUS):
        return True
    return _is_spec_changed(new, old)


def _is_spec_changed(new: JsonObject, old: JsonObject) -> bool:
    """Say whether any field except metadata and status differs."""
    if new.get("spec") is not old.get("spec") and new.get("spec") != old.get("spec"):
        return True
    if new.keys() <= _USUAL and old.keys() <= _USUAL:
        return False
    return any(new.get(key) != old.get(key) for key in {**new, **old} if key not in _USUAL)


def _needs_generation(served: Served, new: JsonObject, old: JsonObject) -> bool:
    if served.kind == DEPLOYMENT and new["metadata"] is not old["metadata"]:
        annotations = new["metadata"].get("annotations")
        if annotations != old["metadata"].get("annotations"):
            return True
    if not served.has_status and new.get(STATUS) != old.get(STATUS):
        return True
    return _is_spec_changed(new, old)
