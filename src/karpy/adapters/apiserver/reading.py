"""Answering get and list."""

from typing import Final

from aiohttp import web

from karpy.adapters.apiserver.calls import Call
from karpy.adapters.apiserver.parameters import NOW, read_listing
from karpy.adapters.apiserver.statuses import not_allowed
from karpy.errors import Expired, ServerFault
from karpy.ports.objects import Page

_READABLE: Final = frozenset({"", "status", "scale", "resize"})


async def get(call: Call) -> web.Response:
    """Answer with one object, or what a subresource shows of it."""
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


async def list_objects(call: Call) -> web.Response:
    """Answer with the objects of a kind, all of them or a page."""
    asked = read_listing(call.params, call.target.namespace)
    page = await call.objects().list(
        call.target.kind, asked.query, limit=asked.limit, token=asked.token
    )
    if asked.version not in NOW:
        check_reachable(asked.version, page)
        if asked.is_exact and asked.version != page.version:
            raise Expired(
                f"The resourceVersion for the provided list is too old: {asked.version}", status=410
            )
    return call.answer(call.shown_list(page))


def check_reachable(version: str, page: Page) -> None:
    """Raise ServerFault (504) if a version has not been reached yet."""
    if version.isdecimal() and page.version.isdecimal() and int(version) > int(page.version):
        raise VersionTooLarge(version, page.version)


class VersionTooLarge(ServerFault):
    """A client asks for a version that is still to come."""

    def __init__(self, asked: str, current: str) -> None:
        message = f"Too large resource version: {asked}, current: {current}"
        super().__init__(message, status=504, retry_after=1)
        self.details = {
            "causes": [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ]
        }
