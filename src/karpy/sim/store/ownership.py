"""Managed fields, and server-side apply with its conflicts."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.codec.fields import JsonObject
from karpy.codec.patches.applying import merge_applied, without_fields
from karpy.codec.patches.fieldsets import (
    FieldSet,
    all_fields,
    applied_fields,
    compare,
    difference,
    intersection,
    paths,
    union,
)
from karpy.codec.patches.schemas import Schema
from karpy.errors import Conflict
from karpy.sim.store.answers import bad_request

APPLY: Final = "Apply"
UPDATE: Final = "Update"
_BEFORE: Final = "before-first-apply"
_UNNAMED: Final = "unknown"
_CONFLICT: Final = 409
_SYSTEM: Final = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    }
)


class Claim(Struct, frozen=True):
    """The fields that one manager owns by one operation: an entry of `managedFields`."""

    manager: str
    operation: str
    version: str
    subresource: str
    time: str
    fields: FieldSet

    def is_by(self, other: "Claim") -> bool:
        """Say whether both are of the same manager and operation."""
        mine = (self.manager, self.operation, self.version, self.subresource)
        return mine == (other.manager, other.operation, other.version, other.subresource)

    @property
    def title(self) -> str:
        """The manager as named in messages about conflicts."""
        name = f'"{self.manager}"'
        if self.subresource:
            name = f'{name} with subresource "{self.subresource}"'
        return f"{name} using {self.version}" if self.operation == UPDATE else name


class ApplyConflict(Conflict):
    """Other managers own fields that an apply would change; `details` list them for clients."""

    def __init__(self, conflicts: Sequence[tuple[Claim, str]]) -> None:
        if len(conflicts) == 1:
            claim, path = conflicts[0]
            what = f"Apply failed with 1 conflict: conflict with {claim.title}: {path}"
        else:
            lines = []
            for title in dict.fromkeys(claim.title for claim, _ in conflicts):
                lines.append(f"conflicts with {title}:")
                lines += [f"- {path}" for claim, path in conflicts if claim.title == title]
            what = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
        super().__init__(
            what, status=_CONFLICT, hint="apply with force to take over the fields, or leave them"
        )
        self.details: JsonObject = {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": f"conflict with {claim.title}",
                    "field": path,
                }
                for claim, path in conflicts
            ]
        }


def track(new: JsonObject, old: JsonObject | None, claim: Claim, schema: Schema) -> JsonObject:
    """Return an object whose managed fields assign the changed fields to the writer."""
    given = new["metadata"].get("managedFields")
    if given is not None and not any(given):
        return _with_claims(new, [])
    claims = _claims(new if given is not None else old or new)
    before = {"spec": {}, "status": {}} if old is None else _owned_part(old)
    changed, removed = compare({"metadata": {}, **before}, _owned_part(new), schema)
    mine = _mine(claims, claim)
    fields = union(difference(mine.fields if mine else {}, removed), changed)
    touched = union(changed, removed)
    others = [
        replace(each, fields=difference(each.fields, touched))
        for each in claims
        if not each.is_by(claim)
    ]
    time = mine.time if mine is not None and not (changed or removed) else claim.time
    return _with_claims(new, [*others, replace(claim, fields=fields, time=time)])


def apply(
    live: JsonObject | None, config: JsonObject, claim: Claim, schema: Schema, *, is_forced: bool
) -> JsonObject:
    """
    Return an object with a configuration applied on behalf of its manager.

    Raises Conflict if other managers own fields that it would change, unless forced.
    """
    if (config.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    wanted = applied_fields(_owned_part(config), schema)
    if live is None:
        return _with_claims(config, [replace(claim, fields=wanted)])
    claims = _claims(live) or [
        Claim(_BEFORE, UPDATE, claim.version, "", "", all_fields(_owned_part(live), schema))
    ]
    mine = _mine(claims, claim)
    others = [each for each in claims if not each.is_by(claim)]
    merged = merge_applied(live, _patchable(config), schema)
    kept = wanted
    for each in others:
        kept = union(kept, each.fields)
    if mine is not None:
        gone = difference(mine.fields, kept)
        if gone:
            merged = without_fields(merged, gone, kept, schema)
    others = _settled(others, live, merged, schema, is_forced=is_forced)
    time = mine.time if mine is not None and mine.fields == wanted else claim.time
    return _with_claims(merged, [*others, replace(claim, fields=wanted, time=time)])


def _settled(
    others: list[Claim], live: JsonObject, merged: JsonObject, schema: Schema, *, is_forced: bool
) -> list[Claim]:
    """Return the entries of other managers after a change; raise Conflict if it takes fields."""
    before = {"metadata": {}, **_owned_part(live)}
    changed, removed = compare(before, _owned_part(merged), schema)
    conflicts = [
        (each, path) for each in others for path in paths(intersection(each.fields, changed))
    ]
    if conflicts and not is_forced:
        raise ApplyConflict(conflicts)
    touched = union(changed, removed)
    return [replace(each, fields=difference(each.fields, touched)) for each in others]


def _mine(claims: Sequence[Claim], claim: Claim) -> Claim | None:
    return next((each for each in claims if each.is_by(claim)), None)


def _owned_part(obj: JsonObject) -> JsonObject:
    """Return the part of an object that managers can own."""
    part = {key: value for key, value in obj.items() if key not in {"apiVersion", "kind"}}
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _SYSTEM}
    if meta:
        part["metadata"] = meta
    else:
        part.pop("metadata", None)
    return part


def _patchable(config: JsonObject) -> JsonObject:
    """Return a configuration with its preconditions and without its identity."""
    guards = {
        key: value
        for key, value in (config.get("metadata") or {}).items()
        if key in {"resourceVersion", "uid"} and value
    }
    part = _owned_part(config)
    if guards:
        part["metadata"] = {**part.get("metadata", {}), **guards}
    return part


def _claims(obj: JsonObject) -> list[Claim]:
    return [
        Claim(
            manager=each.get("manager") or "",
            operation=each.get("operation") or UPDATE,
            version=each.get("apiVersion") or "",
            subresource=each.get("subresource") or "",
            time=each.get("time") or "",
            fields=each.get("fieldsV1") or {},
        )
        for each in obj["metadata"].get("managedFields") or ()
    ]


def _with_claims(obj: JsonObject, claims: Sequence[Claim]) -> JsonObject:
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    entries = [_entry(each) for each in claims if each.fields]
    if entries:
        meta["managedFields"] = entries
    return {**obj, "metadata": meta}


def _entry(claim: Claim) -> JsonObject:
    entry: JsonObject = {
        "manager": claim.manager or _UNNAMED,
        "operation": claim.operation,
        "apiVersion": claim.version,
        "fieldsType": "FieldsV1",
        "fieldsV1": claim.fields,
    }
    if claim.time:
        entry["time"] = claim.time
    if claim.subresource:
        entry["subresource"] = claim.subresource
    return entry
