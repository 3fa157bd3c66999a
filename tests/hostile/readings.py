"""A mirror of what an API server sends, byte by byte."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from karpy.adapters.clock import WallClock
from karpy.adapters.kube.feed import KubeFeed
from karpy.adapters.kube.transport import Transport
from karpy.adapters.mirror.mirror import Mirror
from karpy.model.instances import Catalog
from karpy.model.kinds import Kind
from karpy.model.settings import Settings
from tests.adapters.kube.server import Answer, ScriptedServer, serving, stream, text, transport_to

_SOON: Final = 10.0


class Reports:
    """Takes down which objects could not be read."""

    def __init__(self) -> None:
        self.unreadable: list[tuple[str, str]] = []

    def take(self, kind: Kind, key: str, error: Exception) -> None:
        self.unreadable.append((f"{kind} {key}", type(error).__name__))


def answering(listed: dict[str, list[str]], watched: dict[str, list[str]]) -> Answer:
    """Answer with the JSON of objects, by the plural of their kind."""
    rest = {kind: [*lines] for kind, lines in watched.items()}

    async def answer(request: web.Request) -> web.StreamResponse:
        kind = request.path.rpartition("/")[2]
        if "watch" in request.query:
            lines = [f"{each}\n".encode() for each in rest.pop(kind, [])]
            return await stream(*lines, then="hang")(request)
        items = ", ".join(listed.get(kind, []))
        return await text(f'{{"metadata": {{"resourceVersion": "9"}}, "items": [{items}]}}')(
            request
        )

    return answer


@asynccontextmanager
async def fed(
    listed: dict[str, list[str]], watched: dict[str, list[str]] | None = None
) -> AsyncIterator[tuple[KubeFeed, Reports]]:
    """Have a feed of what a server lists and tells."""
    reports = Reports()
    async with serving() as server, _transport(server) as transport:
        server.says(answering(listed, watched or {}))
        yield KubeFeed(transport, on_unreadable=reports.take), reports


@asynccontextmanager
async def mirrored(
    listed: dict[str, list[str]], watched: dict[str, list[str]] | None = None
) -> AsyncIterator[tuple[Mirror, Reports]]:
    """Have a mirror that has listed everything."""
    async with fed(listed, watched) as (feed, reports):
        mirror = Mirror(feed, WallClock(), Catalog, Settings())
        task = asyncio.create_task(mirror.run())
        try:
            async with asyncio.timeout(_SOON):
                await mirror.wait_until_listed()
            yield mirror, reports
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def _transport(server: ScriptedServer) -> AsyncIterator[Transport]:
    transport = transport_to(server)
    try:
        yield transport
    finally:
        await transport.close()


async def reached(values: Mapping[str, object], key: str) -> None:
    """Wait until an object is known."""
    async with asyncio.timeout(_SOON):
        while True:
            if key in values:
                return
            await asyncio.sleep(0.01)
