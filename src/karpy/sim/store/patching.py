"""Patches: apply a patch of any type to an object."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.codec.patches.jsonpatch import apply_json_patch
from karpy.codec.patches.merge import merge
from karpy.codec.patches.strategic import merge_strategically
from karpy.model.kinds import Kind
from karpy.ports.objects import Patch, PatchType
from karpy.sim.store.answers import (
    FieldsInvalid,
    bad_request,
    conflict,
    required,
    unsupported_media_type,
)
from karpy.sim.store.ownership import APPLY, Claim
from karpy.sim.store.registry import Served

_JSON: Final = PatchType.JSON
_MERGE: Final = PatchType.MERGE


def patched(served: Served, obj: JsonObject, patch: Patch) -> JsonObject:
    """Return an object with a patch applied; raise BadRequest or Invalid."""
    body = patch.body
    if patch.type is _JSON:
        if not isinstance(body, list):
            raise bad_request("a JSON patch is a list of operations")
        new = apply_json_patch(obj, body)
    elif not isinstance(body, dict):
        raise bad_request("a merge patch is an object")
    elif patch.type is _MERGE:
        new = merge(obj, body)
    elif served.definition is not None:
        raise unsupported_media_type()
    else:
        new = merge_strategically(obj, body, served.schema)
    _check_identity(new, obj)
    return new


def configuration(patch: Patch) -> JsonObject:
    """Return the configuration of a server-side apply; raise BadRequest if it is no object."""
    if not isinstance(patch.body, dict):
        raise bad_request("a configuration to apply is an object")
    return patch.body


def named(served: Served, patch: Patch, name: str, namespace: str) -> JsonObject:
    """Return the configuration of a new object, with its name and namespace."""
    config = configuration(patch)
    meta = {**(config.get("metadata") or {}), "name": name}
    if namespace:
        meta["namespace"] = namespace
    if meta.get("uid"):
        why = (
            f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing "
            "object was found"
        )
        raise conflict(served.kind, name, why)
    meta.pop("resourceVersion", None)
    return relevant(served, {**config, "metadata": meta}, "")


def relevant(served: Served, config: JsonObject, subresource: str) -> JsonObject:
    """Return a configuration without the fields that its endpoint does not write."""
    if not served.has_status:
        return config
    if subresource == "status":
        kept = {"apiVersion", "kind", "metadata", "status"}
        return {key: value for key, value in config.items() if key in kept}
    return {key: value for key, value in config.items() if key != "status"}


def applier(served: Served, patch: Patch, subresource: str, now: str) -> Claim:
    """Return the field manager of a server-side apply; raise Invalid if it is not given."""
    if not patch.manager:
        raise FieldsInvalid(_OPTIONS, "", [required("fieldManager", "is required for apply patch")])
    return Claim(patch.manager, APPLY, served.kind.api_version, subresource, now, {})


_OPTIONS: Final = Kind("meta.k8s.io", "v1", "PatchOptions", "patchoptions")


def _check_identity(new: JsonObject, old: JsonObject) -> None:
    meta, before = new.get("metadata"), old["metadata"]
    if meta is before:
        return
    if not isinstance(meta, dict):
        raise bad_request("the patch leaves no metadata")
    name = meta.get("name") or before["name"]
    if name != before["name"]:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({before['name']})"
        )
    namespace, where = meta.get("namespace") or "", before.get("namespace") or ""
    if namespace and namespace != where:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
