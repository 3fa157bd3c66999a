"""Validation of metadata, and its immutable fields."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.labelselectors import LABEL_KEY_RULE, LABEL_VALUE_RULE
from karpy.codec.syntax import is_label_key, is_label_value
from karpy.sim.store.answers import FieldFault, forbidden_field, invalid, required
from karpy.sim.store.sharing import remembered

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN: Final = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_LABEL_MAX: Final = 63
_SUBDOMAIN_MAX: Final = 253
_ANNOTATIONS_MAX: Final = 256 * 1024
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
IMMUTABLE: Final = "field is immutable"


@lru_cache(maxsize=4096)
def why_no_label(text: str) -> str | None:
    """Return why a text is no DNS label, or None."""
    if len(text) > _LABEL_MAX:
        return f"must be no more than {_LABEL_MAX} bytes"
    if "." in text:
        return "must not contain dots"
    return None if _LABEL.fullmatch(text) else _LABEL_RULE


@lru_cache(maxsize=4096)
def why_no_subdomain(text: str) -> str | None:
    """Return why a text is no DNS subdomain, as most names must be, or None."""
    if len(text) > _SUBDOMAIN_MAX:
        return f"must be no more than {_SUBDOMAIN_MAX} bytes"
    return None if _SUBDOMAIN.fullmatch(text) else _SUBDOMAIN_RULE


def check_metadata(
    meta: JsonObject, *, is_name_label: bool, is_custom: bool = False
) -> Iterator[FieldFault]:
    """Yield the faults of the metadata of an object."""
    name = meta.get("name")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        why = why_no_label(name) if is_name_label else why_no_subdomain(name)
        if why:
            yield invalid("metadata.name", name, why)
    if base := meta.get("generateName"):
        why = why_no_subdomain(f"{base[:-1]}a" if base.endswith("-") else base)
        if why:
            yield invalid("metadata.generateName", base, why)
    # Pods of one workload share their labels, annotations and owner references.
    if labels := meta.get("labels"):
        yield from _label_faults(labels)
    if annotations := meta.get("annotations"):
        yield from _annotation_faults(annotations)
    if owners := meta.get("ownerReferences"):
        yield from _owner_faults(owners)
    if finalizers := meta.get("finalizers"):
        yield from _check_finalizers(finalizers, is_custom=is_custom)


def check_labels(labels: JsonObject, path: str) -> Iterator[FieldFault]:
    """Yield the faults of labels."""
    for key, value in labels.items():
        if not is_label_key(key):
            yield invalid(path, key, LABEL_KEY_RULE)
        if not isinstance(value, str) or not is_label_value(value):
            yield invalid(path, value, LABEL_VALUE_RULE)


def _check_annotations(annotations: JsonObject) -> list[FieldFault]:
    faults = []
    size = 0
    for key, value in annotations.items():
        if not is_label_key(key.lower()):
            faults.append(invalid("metadata.annotations", key, LABEL_KEY_RULE))
        if not isinstance(value, str):
            faults.append(invalid("metadata.annotations", value, "must be text"))
            continue
        size += len(key) + len(value)
    if size > _ANNOTATIONS_MAX:
        why = f"Too long: may not be more than {_ANNOTATIONS_MAX} bytes"
        faults.append(FieldFault("metadata.annotations", why))
    return faults


def _check_finalizers(finalizers: list[str], *, is_custom: bool) -> Iterator[FieldFault]:
    for index, finalizer in enumerate(finalizers):
        if not is_label_key(finalizer):
            yield invalid("metadata.finalizers", finalizer, LABEL_KEY_RULE)
        if not is_custom and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", finalizer, why)


def _check_owners(owners: list[JsonObject]) -> list[FieldFault]:
    faults = []
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                what = "version must not be empty" if field == "apiVersion" else "must not be empty"
                faults.append(invalid(f"metadata.ownerReferences.{field}", "", what))
    controllers = [each for each in owners if each.get("controller")]
    if len(controllers) > 1:
        first, second = (f"{each['kind']}/{each['name']}" for each in controllers[:2])
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{first} and {second}"
        )
        faults.append(invalid("metadata.ownerReferences", "", why))
    return faults


def _label_problems(labels: JsonObject) -> list[FieldFault]:
    return list(check_labels(labels, "metadata.labels"))


_label_faults: Final = remembered(_label_problems)
_annotation_faults: Final = remembered(_check_annotations)
_owner_faults: Final = remembered(_check_owners)


def keep_system_fields(meta: JsonObject, old: JsonObject) -> JsonObject:
    """Return changed metadata with the fields that only the server sets taken from the old."""
    kept = {**meta, "name": old["name"]}
    for field in _SYSTEM:
        if field in old:
            kept[field] = old[field]
        else:
            kept.pop(field, None)
    return without_empty(kept)


def without_empty(meta: JsonObject) -> JsonObject:
    """Return metadata without labels, annotations and lists that are empty or null."""
    empty = [field for field in _LEFT_OUT if field in meta and not meta[field]]
    return {key: meta[key] for key in meta if key not in empty} if empty else meta


_LEFT_OUT: Final = ("labels", "annotations", "finalizers", "ownerReferences", "generateName")


_SYSTEM: Final = (
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def compare_metadata(meta: JsonObject, old: JsonObject) -> Iterator[FieldFault]:
    """Name what of the metadata must not have changed."""
    if "deletionTimestamp" not in old:
        return
    known = old.get("finalizers") or ()
    added = [each for each in meta.get("finalizers") or () if each not in known]
    if added:
        names = ", ".join(f'"{each}"' for each in added)
        yield forbidden_field(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, found new "
            f"finalizers []string{{{names}}}",
        )
