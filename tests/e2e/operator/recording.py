"""A proxy for an API server that records the time of each write."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from time import monotonic
from typing import Final

import aiohttp
from aiohttp import web
from msgspec import Struct

from karpy.adapters.controlplane.plane import ControlPlane

_READS: Final = frozenset({"GET", "HEAD"})
_HOP: Final = frozenset({"host", "connection", "transfer-encoding", "content-length"})


class Written(Struct, frozen=True):
    """A write request."""

    at: float
    method: str
    path: str


class Recorder:
    """The writes through a proxy, except those of leases, and the proxy's address."""

    def __init__(self) -> None:
        self.url = ""
        self.is_ready = Event()
        self.close: Callable[[], object] = lambda: None
        self.written: list[Written] = []

    def note(self, method: str, path: str) -> None:
        if method not in _READS and "/leases" not in path:
            self.written.append(Written(monotonic(), method, path))


@contextmanager
def recording(plane: ControlPlane) -> Iterator[Recorder]:
    """Run a proxy in a thread."""
    recorder = Recorder()
    thread = Thread(target=lambda: asyncio.run(_serve(plane, recorder)), daemon=True)
    thread.start()
    recorder.is_ready.wait()
    try:
        yield recorder
    finally:
        recorder.close()
        thread.join()


async def _serve(plane: ControlPlane, recorder: Recorder) -> None:
    context = ssl.create_default_context(cadata=plane.authority)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        plane.server, connector=connector, timeout=timeout, auto_decompress=False
    ) as session:

        async def forward(request: web.Request) -> web.StreamResponse:
            recorder.note(request.method, request.path)
            headers = [each for each in request.headers.items() if each[0].lower() not in _HOP]
            async with session.request(
                request.method, request.raw_path, data=await request.read(), headers=headers
            ) as answer:
                shown = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP}
                response = web.StreamResponse(status=answer.status, headers=shown)
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                return response

        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", forward)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        recorder.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        is_over = asyncio.Event()
        recorder.close = partial(asyncio.get_running_loop().call_soon_threadsafe, is_over.set)
        recorder.is_ready.set()
        await is_over.wait()
        await runner.cleanup()
