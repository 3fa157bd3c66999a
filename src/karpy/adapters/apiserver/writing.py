"""Handlers of create, replace and patch."""

from typing import Final

from aiohttp import web

from karpy.adapters.apiserver.bodies import read_object, read_patch
from karpy.adapters.apiserver.calls import ServedCall
from karpy.adapters.apiserver.statuses import not_allowed
from karpy.adapters.apiserver.targets import ServedTarget
from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest, NotFound
from karpy.ports.objects import Patch, PatchType

_CREATED: Final = 201
_OK: Final = 200
_MADE_BY_POST: Final = frozenset({"eviction", "binding"})


async def create(call: ServedCall) -> web.Response:
    """Create an object; or evict or bind the pod in the path."""
    target = call.target
    is_deed = target.subresource in _MADE_BY_POST
    if bool(target.name) != is_deed or (target.kind.is_namespaced and not target.namespace):
        raise not_allowed()
    options = call.writing("CreateOptions")
    received = await read_object(call.request, target, options.validation)
    made = await call.objects(options.manager).create(
        target.kind,
        _placed(received.object, target),
        subresource=target.subresource,
        dry_run=options.is_dry_run,
    )
    shown = made if is_deed else call.shown(made)
    return call.answer(shown, status=_CREATED, warnings=received.warnings)


async def bind(call: ServedCall) -> web.Response:
    """Bind the pod that a Binding names, by the older way without a subresource."""
    options = call.writing("CreateOptions")
    received = await read_object(call.request, call.target, options.validation)
    made = await call.objects(options.manager).create(
        call.target.kind,
        _placed(received.object, call.target),
        subresource="binding",
        dry_run=options.is_dry_run,
    )
    return call.answer(made, status=_CREATED, warnings=received.warnings)


async def replace(call: ServedCall) -> web.Response:
    """Replace an object."""
    target = call.target
    _check_changeable(target)
    options = call.writing("UpdateOptions")
    received = await read_object(call.request, target, options.validation)
    made = await call.objects(options.manager).replace(
        target.kind,
        _placed(received.object, target),
        subresource=target.subresource,
        dry_run=options.is_dry_run,
    )
    return call.answer(_shown(call, made), warnings=received.warnings)


async def patch(call: ServedCall) -> web.Response:
    """Patch an object; a server-side apply may create it."""
    target = call.target
    _check_changeable(target)
    options = call.writing("PatchOptions")
    change, warnings = await read_patch(call.request, target, options)
    objects = call.objects(options.manager)
    status = _OK
    if change.type is PatchType.APPLY:
        change = _placed_patch(change, target)
        try:
            await objects.get(target.kind, target.name, target.namespace)
        except NotFound:
            status = _CREATED
    made = await objects.patch(
        target.kind,
        target.name,
        change,
        namespace=target.namespace,
        subresource=target.subresource,
        dry_run=options.is_dry_run,
    )
    return call.answer(_shown(call, made), status=status, warnings=warnings)


def _shown(call: ServedCall, made: JsonObject) -> JsonObject:
    return made if call.target.subresource == "scale" else call.shown(made)


def _check_changeable(target: ServedTarget) -> None:
    if not target.name or target.subresource in _MADE_BY_POST:
        raise not_allowed()


def _placed_patch(patch: Patch, target: ServedTarget) -> Patch:
    assert isinstance(patch.body, dict)
    return Patch(patch.type, _placed(patch.body, target), patch.manager, patch.is_forced)


def _placed(obj: JsonObject, target: ServedTarget) -> JsonObject:
    """Return an object with the name and namespace of its path; raise BadRequest."""
    given = obj.get("metadata") or {}
    meta = dict(given)
    if target.name:
        name = meta.setdefault("name", target.name) or target.name
        if name != target.name:
            why = f"the name of the object ({name}) does not match the name on the URL"
            raise BadRequest(f"{why} ({target.name})", status=400)
        meta["name"] = name
    if target.namespace:
        if (meta.get("namespace") or target.namespace) != target.namespace:
            raise BadRequest(
                "the namespace of the provided object does not match the namespace sent on the "
                "request",
                status=400,
            )
        meta["namespace"] = target.namespace
    return obj if meta == given else {**obj, "metadata": meta}
