"""Handlers of delete and deletecollection."""

from aiohttp import web

from karpy.adapters.apiserver.bodies import read_delete_options
from karpy.adapters.apiserver.calls import ServedCall
from karpy.adapters.apiserver.parameters import read_listing, read_removal
from karpy.adapters.apiserver.statuses import not_allowed, success
from karpy.errors import NotFound
from karpy.model.kinds import NAMESPACE, POD


async def delete(call: ServedCall) -> web.Response:
    """Delete an object; answer with it if it is still there, else with a Status."""
    target = call.target
    if target.subresource:
        raise not_allowed()
    removal, is_dry_run = read_removal(call.params, await read_delete_options(call.request))
    before = await call.objects().get(target.kind, target.name, target.namespace)
    left = await call.backend.delete(
        target.kind, target.name, target.namespace, removal, is_dry_run=is_dry_run
    )
    if left is not None:
        return call.answer(call.shown(left))
    # For pods kube-apiserver answers with the pod, even if it is deleted at once.
    return call.answer(call.shown(before) if target.kind == POD else success(target.kind, before))


async def delete_collection(call: ServedCall) -> web.Response:
    """Delete all objects that match the selectors, and answer with them."""
    target = call.target
    is_everywhere = target.kind.is_namespaced and not target.namespace
    if is_everywhere or target.kind == NAMESPACE:
        raise not_allowed()
    removal, is_dry_run = read_removal(call.params, await read_delete_options(call.request))
    asked = read_listing(call.params, target.namespace)
    page = await call.objects().list(target.kind, asked.query, limit=asked.limit, token=asked.token)
    for obj in page.items:
        meta = obj["metadata"]
        try:
            await call.backend.delete(
                target.kind,
                meta["name"],
                meta.get("namespace") or "",
                removal,
                is_dry_run=is_dry_run,
            )
        except NotFound:
            # Deleted by garbage collection or another request.
            continue
    return call.answer(call.shown_list(page))
