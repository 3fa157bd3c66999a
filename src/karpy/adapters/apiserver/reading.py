"""Handlers of get and list."""

from typing import Final

from aiohttp import web

from karpy.adapters.apiserver.calls import ServedCall
from karpy.adapters.apiserver.parameters import NOW, read_listing
from karpy.adapters.apiserver.statuses import not_allowed
from karpy.errors import Expired, ServerFault
from karpy.ports.objects import Page

_READABLE: Final = frozenset({"", "status", "scale", "resize"})


async def get(call: ServedCall) -> web.Response:
    """Answer with an object or a subresource of it."""
    target = call.target
    if target.subresource not in _READABLE:
        raise not_allowed()
    if target.subresource:
        found = await call.backend.read(
            target.kind, target.name, target.namespace, subresource=target.subresource
        )
        return call.answer(found if target.subresource == "scale" else call.shown(found))
    return call.answer(
        call.shown(await call.objects().get(target.kind, target.name, target.namespace))
    )


async def list_objects(call: ServedCall) -> web.Response:
    """Answer with a list, or a page of it."""
    options = read_listing(call.params, call.target.namespace)
    page = await call.objects().list(
        call.target.kind, options.query, limit=options.limit, token=options.token
    )
    if options.version not in NOW:
        check_reachable(options.version, page)
        if options.is_exact and options.version != page.version:
            raise Expired(
                f"The resourceVersion for the provided list is too old: {options.version}",
                status=410,
            )
    return call.answer(call.shown_list(page))


def check_reachable(version: str, page: Page) -> None:
    """Raise ServerFault (504) if the requested version is newer than the page."""
    if version.isdecimal() and page.version.isdecimal() and int(version) > int(page.version):
        raise VersionTooLarge(version, page.version)


class VersionTooLarge(ServerFault):
    """A client requests a resource version that the server has not reached."""

    def __init__(self, options: str, current: str) -> None:
        message = f"Too large resource version: {options}, current: {current}"
        super().__init__(message, status=504, retry_after=1)
        self.details = {
            "causes": [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ]
        }
