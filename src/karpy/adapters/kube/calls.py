"""Requests to an API server as values: method, path, parameters, body, and words for messages."""

from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from karpy.adapters.kube.retry import Repeat
from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest
from karpy.model.kinds import Kind
from karpy.ports.objects import Patch, PatchType, Query, Removal

JSON: Final = "application/json"
_SUBRESOURCES: Final = {
    "eviction": ("policy/v1", "Eviction"),
    "binding": ("v1", "Binding"),
    "scale": ("autoscaling/v1", "Scale"),
}
_encoder: Final = msgspec.json.Encoder()


class Call(Struct, frozen=True):
    """One request."""

    method: str
    path: str
    what: str
    """What the request does, as messages say it after `cannot`: "get pods `shop/web-1`"."""
    params: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str = JSON
    repeat: Repeat = Repeat.ALWAYS


class Target(Struct, frozen=True):
    """An object, or a subresource of it."""

    kind: Kind
    name: str
    namespace: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        tail = f"/{quote(self.name, safe='')}" if self.name else ""
        if self.subresource:
            tail += f"/{self.subresource}"
        return collection_path(self.kind, self.namespace) + tail

    def describe(self, verb: str) -> str:
        """Say what a request does, for messages; raise BadRequest if the namespace is missing."""
        kind = f"{self.kind}/{self.subresource}" if self.subresource else str(self.kind)
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        what = f"{verb} {kind} `{name}`"
        if self.kind.is_namespaced and not self.namespace:
            raise BadRequest(f"cannot {what}: it has no namespace", hint="say in which one it is")
        return what


class WriteOptions(Struct, frozen=True):
    """Options of a write: field manager, field validation, dry run."""

    manager: str
    field_validation: str = ""
    is_dry_run: bool = False

    @property
    def params(self) -> tuple[tuple[str, str], ...]:
        params = [("fieldManager", self.manager)] if self.manager else []
        if self.field_validation:
            params.append(("fieldValidation", self.field_validation))
        if self.is_dry_run:
            params.append(("dryRun", "All"))
        return tuple(params)


def collection_path(kind: Kind, namespace: str = "") -> str:
    """Return the path of all objects of a kind, or of its objects in one namespace."""
    if kind.is_namespaced and namespace:
        return f"{kind.path}/namespaces/{quote(namespace, safe='')}/{kind.plural}"
    return f"{kind.path}/{kind.plural}"


def get_call(kind: Kind, name: str, namespace: str) -> Call:
    """Return the request for one object."""
    target = Target(kind, _require_name(kind, name, "get"), namespace)
    return Call("GET", target.path, target.describe("get"))


def list_call(kind: Kind, query: Query, *, limit: int = 0, token: str = "") -> Call:
    """Return the request for a page of a list, or for the whole list."""
    params = _selectors(query)
    if limit:
        params.append(("limit", str(limit)))
    if token:
        params.append(("continue", token))
    what = f"list {kind}{_where(query)}"
    return Call("GET", collection_path(kind, query.namespace), what, tuple(params))


def watch_call(kind: Kind, query: Query, *, since: str, seconds: int | None) -> Call:
    """Return the request for a watch."""
    params = _selectors(query)
    params += [("watch", "true"), ("allowWatchBookmarks", "true"), ("resourceVersion", since)]
    if seconds is not None:
        params.append(("timeoutSeconds", str(seconds)))
    what = f"watch {kind}{_where(query)}"
    return Call("GET", collection_path(kind, query.namespace), what, tuple(params))


def create_call(kind: Kind, obj: JsonObject, subresource: str, options: WriteOptions) -> Call:
    """Return the request that creates an object, or a subresource of the object that it names."""
    name, namespace = _name(obj), _namespace(kind, obj)
    target = Target(kind, name, namespace, subresource)
    if subresource:
        what, path = target.describe("create"), target.path
    else:
        meta = obj.get("metadata") or {}
        shown = Target(kind, name or f"{meta.get('generateName', '')}…", namespace)
        what, path = shown.describe("create"), collection_path(kind, namespace)
    repeat = Repeat.NEVER if subresource == "eviction" else Repeat.IF_NOT_SERVED
    body = _encoder.encode(_complete(kind, obj, subresource))
    return Call("POST", path, what, options.params, body, repeat=repeat)


def replace_call(kind: Kind, obj: JsonObject, subresource: str, options: WriteOptions) -> Call:
    """Return the request that replaces an object."""
    name = _require_name(kind, _name(obj), "replace")
    target = Target(kind, name, _namespace(kind, obj), subresource)
    body = _encoder.encode(_complete(kind, obj, subresource))
    return Call("PUT", target.path, target.describe("replace"), options.params, body)


def patch_call(target: Target, patch: Patch, options: WriteOptions) -> Call:
    """Return the request that patches an object."""
    _require_name(target.kind, target.name, "patch")
    params, body = options.params, patch.body
    if patch.type is PatchType.APPLY:
        assert isinstance(body, dict)
        body = _complete(target.kind, body, target.subresource)
        if patch.is_forced:
            params = (*params, ("force", "true"))
    # A JSON patch may add an item to a list, once each time that the patch is sent.
    is_once = patch.type is PatchType.JSON
    return Call(
        "PATCH",
        target.path,
        target.describe("patch"),
        params,
        _encoder.encode(body),
        patch.type.value,
        Repeat.IF_NOT_SERVED if is_once else Repeat.ALWAYS,
    )


def delete_call(target: Target, removal: Removal) -> Call:
    """Return the request that deletes an object."""
    _require_name(target.kind, target.name, "delete")
    options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if removal.grace_seconds is not None:
        options["gracePeriodSeconds"] = removal.grace_seconds
    if removal.propagation:
        options["propagationPolicy"] = removal.propagation
    guards = {"uid": removal.uid, "resourceVersion": removal.version}
    if any(guards.values()):
        options["preconditions"] = {key: value for key, value in guards.items() if value}
    return Call("DELETE", target.path, target.describe("delete"), body=_encoder.encode(options))


def _complete(kind: Kind, obj: JsonObject, subresource: str) -> JsonObject:
    """Return the object with its apiVersion and kind, which custom resources must state."""
    version, name = _SUBRESOURCES.get(subresource, (kind.api_version, kind.name))
    return {"apiVersion": version, "kind": name, **obj}


def _selectors(query: Query) -> list[tuple[str, str]]:
    params = [("labelSelector", query.labels)] if query.labels else []
    if query.fields:
        params.append(("fieldSelector", query.fields))
    return params


def _where(query: Query) -> str:
    return f" in `{query.namespace}`" if query.namespace else ""


def _name(obj: JsonObject) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def _namespace(kind: Kind, obj: JsonObject) -> str:
    return str((obj.get("metadata") or {}).get("namespace") or "") if kind.is_namespaced else ""


def _require_name(kind: Kind, name: str, verb: str) -> str:
    """Return the name; raise BadRequest if it is empty: the path would mean all objects."""
    if not name:
        raise BadRequest(f"cannot {verb} {kind}: no name is given", hint="set `metadata.name`")
    return name
