"""What is common to all objects: names, labels, owners, and who may change what of it."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.syntax import is_label_key, is_label_value
from karpy.sim.store.answers import Fault, forbidden_field, invalid, required

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
_KEY_RULE: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
IMMUTABLE: Final = "field is immutable"


@lru_cache(maxsize=4096)
def why_no_label(text: str) -> str | None:
    """Say why a text cannot be a DNS label, or None."""
    if len(text) > _LABEL_MAX:
        return f"must be no more than {_LABEL_MAX} bytes"
    return None if _LABEL.fullmatch(text) else _LABEL_RULE


@lru_cache(maxsize=4096)
def why_no_subdomain(text: str) -> str | None:
    """Say why a text cannot be the name of most objects, or None."""
    if len(text) > _SUBDOMAIN_MAX:
        return f"must be no more than {_SUBDOMAIN_MAX} bytes"
    return None if _SUBDOMAIN.fullmatch(text) else _SUBDOMAIN_RULE


def check_metadata(meta: JsonObject, *, is_name_label: bool) -> Iterator[Fault]:
    """Name what is wrong with the metadata of an object."""
    name = meta.get("name")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        why = why_no_label(name) if is_name_label else why_no_subdomain(name)
        if why:
            yield invalid("metadata.name", name, why)
    if labels := meta.get("labels"):
        yield from check_labels(labels, "metadata.labels")
    if annotations := meta.get("annotations"):
        yield from _check_annotations(annotations)
    if owners := meta.get("ownerReferences"):
        yield from _check_owners(owners)
    for index, finalizer in enumerate(meta.get("finalizers") or ()):
        if not is_label_key(finalizer):
            yield invalid(f"metadata.finalizers[{index}]", finalizer, _KEY_RULE)


def check_labels(labels: JsonObject, path: str) -> Iterator[Fault]:
    """Name what is wrong with labels."""
    for key, value in labels.items():
        if not is_label_key(key):
            yield invalid(path, key, _KEY_RULE)
        if not isinstance(value, str) or not is_label_value(value):
            yield invalid(path, value, _VALUE_RULE)


def _check_annotations(annotations: JsonObject) -> Iterator[Fault]:
    size = 0
    for key, value in annotations.items():
        if not is_label_key(key.lower()):
            yield invalid("metadata.annotations", key, _KEY_RULE)
        if not isinstance(value, str):
            yield invalid("metadata.annotations", value, "must be text")
            continue
        size += len(key) + len(value)
    if size > _ANNOTATIONS_MAX:
        yield Fault(
            "metadata.annotations", f"Too long: may not be more than {_ANNOTATIONS_MAX} bytes"
        )


def _check_owners(owners: list[JsonObject]) -> Iterator[Fault]:
    for index, owner in enumerate(owners):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                path = f"metadata.ownerReferences[{index}].{field}"
                yield invalid(path, "", "must not be empty")
    controllers = [each for each in owners if each.get("controller")]
    if len(controllers) > 1:
        first, second = (f"{each['kind']}/{each['name']}" for each in controllers[:2])
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{first} and {second}"
        )
        yield invalid("metadata.ownerReferences", "", why)


def keep_system_fields(meta: JsonObject, old: JsonObject) -> JsonObject:
    """Return changed metadata with what only the server may change taken from the old."""
    kept = {**meta, "name": old["name"]}
    for field in _SYSTEM:
        if field in old:
            kept[field] = old[field]
        else:
            kept.pop(field, None)
    return kept


_SYSTEM: Final = (
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def compare_metadata(meta: JsonObject, old: JsonObject) -> Iterator[Fault]:
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
