"""Metadata of old objects, without what an API server or controller wrote into it."""

from typing import Final

from karpy.codec.convert.oldfields import OldFields
from karpy.codec.convert.workloads import renamed
from karpy.codec.fields import FieldInvalid, JsonObject
from karpy.codec.objectmeta import UNINDENTED, unknown_metadata

_BUILD: Final = "build the whole object first, as `kustomize build` does"
_WRITTEN: Final = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "selfLink",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_KEPT_BY_CONTROLLERS: Final = ("finalizers", "ownerReferences")
_STALE: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "karpenter.sh/provisioner-hash",
    "karpenter.sh/nodepool-hash",
    "karpenter.sh/nodepool-hash-version",
    "karpenter.k8s.aws/nodetemplate-hash",
    "karpenter.k8s.aws/ec2nodeclass-hash",
    "karpenter.k8s.aws/ec2nodeclass-hash-version",
    "karpenter.sh/stored-version",
    "compatibility.karpenter.k8s.aws/v1beta1-ubuntu",
    "compatibility.karpenter.sh/v1beta1-nodeclass-reference",
)


def new_object(root: OldFields, version: str, kind: str) -> JsonObject:
    """Return the head of the new object; call this before anything else of the old one is read."""
    root.carry("apiVersion", "kind")
    root.drop("status", "controllers write it")
    if "name" in root and "metadata" not in root:
        root.take("name")
        root.notes.faults.append(FieldInvalid("name", "stands outside `metadata`", UNINDENTED))
        return {"apiVersion": version, "kind": kind, "metadata": {}}
    meta = root.tried({}, _metadata_of)
    return {"apiVersion": version, "kind": kind, "metadata": meta}


def spec_of(root: OldFields) -> OldFields:
    """Return the spec of an object, which has one."""
    if "spec" not in root:
        strays = [key for key in root.obj if root.is_left(key)]
        hint = f"indent what belongs to it: {', '.join(strays)}" if strays else _BUILD
        root.fail("spec", "is missing", hint)
    return root.child("spec")


def _metadata_of(root: OldFields) -> JsonObject:
    return _metadata(root.child("metadata"))


def _metadata(meta: OldFields) -> JsonObject:
    meta.tried(None, _check_name)
    meta.drop("namespace", "objects of this kind are in no namespace")
    for key in _WRITTEN:
        meta.drop(key, "the API server writes it")
    for key in _KEPT_BY_CONTROLLERS:
        meta.drop(key, "controllers write it")
    made = meta.carry("name", "generateName")
    if labels := meta.tried({}, OldFields.texts, "labels"):
        made["labels"] = labels
    if annotations := meta.tried({}, _annotations):
        made["annotations"] = annotations
    refuse_unknown(meta)
    return made


def _check_name(meta: OldFields) -> None:
    if not meta.text("name") and "generateName" not in meta:
        meta.fail("name", "is missing", "add `metadata.name`")


def refuse_unknown(meta: OldFields) -> None:
    """Add a problem for each unknown field of metadata, such as a label outside `labels`."""
    for key, value in meta.obj.items():
        if not meta.is_left(key):
            continue
        fault = next(unknown_metadata(meta.path, {key: value}), None)
        if fault is None:
            meta.drop(key, "it has no effect here")
        else:
            meta.take(key)
            meta.notes.problems.append(fault)


def template_metadata_of(fields: OldFields) -> JsonObject:
    """Return the metadata of a template, if these fields have labels or annotations for nodes."""
    made: JsonObject = {}
    if labels := fields.texts("labels"):
        made["labels"] = labels
    if annotations := _annotations(fields):
        made["annotations"] = annotations
    return {"metadata": made} if made else {}


def _annotations(fields: OldFields) -> JsonObject:
    """Return annotations by their names of today, without those that controllers keep."""
    old = fields.child("annotations")
    for key in _STALE:
        old.drop(key, "it is about the old object, and is written anew")
    kept = {key: value for key, value in old.obj.items() if key not in _STALE}
    return renamed(kept, old.path, old.notes)
