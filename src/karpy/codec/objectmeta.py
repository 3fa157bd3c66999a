"""The faults of an object's metadata: its name, labels and annotations."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import partial
from typing import Final

from karpy.codec.constraints import KEY_HINT, check_label
from karpy.codec.fields import FieldInvalid, Fields, JsonObject, caught, describe, shown
from karpy.codec.syntax import is_label_key, is_label_value

METADATA: Final = frozenset(
    {
        "annotations",
        "clusterName",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_NAME: Final = re.compile(
    r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*", re.ASCII
)
_LABEL_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)
_NAME_MAX: Final = 253
_NAMESPACE_MAX: Final = 63
_NAME_HINT: Final = "use lower-case letters, digits, `-` and `.`, as in `web-1`"
UNINDENTED: Final = "indent it: it belongs below `metadata`"


def metadata_faults(obj: JsonObject, path: str = "") -> Iterator[FieldInvalid]:
    """List what an API server would refuse in the metadata of an object."""
    meta = obj.get("metadata")
    if meta is None:
        meta = {}
    if not isinstance(meta, dict):
        hint = "write it as `name: value` pairs"
        yield FieldInvalid(_below(path, "metadata"), f"is {describe(meta)}, not an object", hint)
        return
    name = meta.get("name")
    if not _is_plain(meta, name):
        fields = Fields(obj, path).child("metadata")
        yield from unknown_metadata(fields.path, meta)
        yield from _name_faults(fields, obj)
        yield from _label_faults(fields)


def unknown_metadata(path: str, meta: JsonObject) -> Iterator[FieldInvalid]:
    """List the fields of metadata, of an object or of a template, that Kubernetes does not have."""
    for key, value in meta.items():
        if key in METADATA:
            continue
        near = get_close_matches(str(key), METADATA, 1, 0.75)
        hint = "remove it"
        if near:
            hint = f"write `{near[0]}`"
        elif isinstance(value, str | int | float):
            hint = label_hint(str(key))
        yield FieldInvalid(_below(path, str(key)), "is no field of metadata", hint)


def label_hint(key: str) -> str:
    """Return the hint for a field that may be meant as a label."""
    return f"indent it below `labels`, if `{key}` is to be a label; otherwise remove it"


def _is_plain(meta: JsonObject, name: object) -> bool:
    """Say quickly whether metadata is valid, as nearly all is."""
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    return (
        METADATA.issuperset(meta)
        and _is_label_name(name)
        and _is_label_name(meta.get("namespace") or "default")
        and isinstance(labels, dict)
        and all(
            isinstance(key, str)
            and isinstance(value, str)
            and is_label_key(key)
            and is_label_value(value)
            for key, value in labels.items()
        )
        and isinstance(annotations, dict)
        and all(
            isinstance(key, str) and isinstance(value, str) and is_label_key(key)
            for key, value in annotations.items()
        )
    )


def _is_label_name(name: object) -> bool:
    return (
        isinstance(name, str) and len(name) <= _NAMESPACE_MAX and bool(_LABEL_NAME.fullmatch(name))
    )


def _name_faults(fields: Fields, obj: JsonObject) -> Iterator[FieldInvalid]:
    meta = fields.obj
    if not meta.get("name") and not meta.get("generateName"):
        if "name" in obj:
            yield FieldInvalid("name", "stands outside `metadata`", UNINDENTED)
        else:
            yield FieldInvalid(f"{fields.path}.name", "is missing", "add `name`")
    for key, most in (("name", _NAME_MAX), ("namespace", _NAMESPACE_MAX)):
        value = meta.get(key)
        if value is None or value == "":
            continue
        at = f"{fields.path}.{key}"
        if not isinstance(value, str):
            yield FieldInvalid(at, f"is {describe(value)}, not text", f'quote it: `"{value}"`')
        elif len(value) > most:
            yield FieldInvalid(at, f"is longer than {most} characters", "choose a shorter one")
        elif not _NAME.fullmatch(value) or (key == "namespace" and "." in value):
            yield FieldInvalid(at, f"is `{shown(value)}`, which is no name", _NAME_HINT)


def _label_faults(fields: Fields) -> Iterator[FieldInvalid]:
    for key in ("labels", "annotations"):
        faults = list(caught(partial(fields.labels, key)))
        yield from faults
        if faults:
            continue
        child = fields.child(key)
        for name in child.obj:
            if key == "labels":
                yield from caught(partial(check_label, child, name))
            elif not is_label_key(name.lower()):
                at = f"{child.path}[{name}]"
                yield FieldInvalid(at, f"is `{name}`, which is no key", KEY_HINT)


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
