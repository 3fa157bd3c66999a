"""A proxy before an API server that spoils its answers in one way at a time."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
from aiohttp import web

from karpy.wiring.embedded import ServedCluster
from tests.adapters.kube.server import status

_READS: Final = {"GET", "HEAD"}
_PASSED_ON: Final = ("Authorization", "Accept", "Content-Type", "User-Agent")
_SLOW_SECONDS: Final = 1.5
_DRIP_SECONDS: Final = 0.05


class FaultProxy:
    """Passes requests on to an API server; while a fault is on, the fault answers instead."""

    def __init__(self, served: ServedCluster, folder: Path) -> None:
        self._served = served
        self._folder = folder
        self._fault: Fault | None = None
        self._over = asyncio.Event()
        self._flows = asyncio.Event()
        self._flows.set()
        self._open: list[web.Request] = []
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None
        self._port = 0
        self.answered = 0
        """How many requests a fault has answered."""

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig whose server is this proxy."""
        path = self._folder / "kubeconfig"
        named: dict[str, object] = {"server": f"http://127.0.0.1:{self._port}"}
        user = {"token": self._served.token}
        context = {"cluster": "c", "user": "u"}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": named}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": context}],
        }
        path.write_text(json.dumps(document))
        return path

    def begin(self, fault: "Fault") -> None:
        """Have a fault answer from now on; answers under way break, or stand still."""
        self._over.clear()
        self._fault = fault
        if fault is frozen_streams:
            self._flows.clear()
            return
        self._break_all()

    def end(self) -> None:
        """Pass everything on again; what the fault holds back is broken off."""
        is_frozen = self._fault is frozen_streams
        self._fault = None
        self._flows.set()
        self._over.set()
        if not is_frozen:
            self._break_all()

    async def over(self) -> None:
        """Wait until the fault is over."""
        await self._over.wait()

    async def start(self) -> None:
        """Listen on loopback, on the same port each time."""
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Refuse all connections."""
        assert self._runner is not None
        assert self._session is not None
        self._break_all()
        await self._runner.cleanup()
        await self._session.close()

    async def ask(self, request: web.Request) -> aiohttp.ClientResponse:
        """Return the answer of the API server, whose body is still to be read."""
        assert self._session is not None
        kept = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        return await self._session.request(
            request.method,
            self._served.url + request.raw_path,
            data=await request.read() or None,
            headers=kept,
            ssl=ssl.create_default_context(cadata=self._served.authority),
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """Pass a request and its answer on, byte by byte."""
        async with await self.ask(request) as answer:
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            response.enable_chunked_encoding()
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await self._flows.wait()
                await response.write(chunk)
            await response.write_eof()
        return response

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self._open.append(request)
        try:
            if self._fault is None:
                return await self.forward(request)
            self.answered += 1
            return await self._fault(self, request)
        finally:
            self._open.remove(request)

    def _break_all(self) -> None:
        for request in list(self._open):
            _abort(request)


Fault = Callable[[FaultProxy, web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def proxied(served: ServedCluster, folder: Path) -> AsyncIterator[FaultProxy]:
    """Run a proxy for a while."""
    proxy = FaultProxy(served, folder)
    await proxy.start()
    try:
        yield proxy
    finally:
        proxy.end()
        await proxy.stop()


def says(code: int, reason: str, *, only: str = "", **headers: str) -> Fault:
    """Answer with a Status: to everything, to `reads`, `writes` or `watches`."""
    named = {key.replace("_", "-"): value for key, value in headers.items()}

    async def fault(proxy: FaultProxy, request: web.Request) -> web.StreamResponse:
        if only and not _IS[only](request):
            return await proxy.forward(request)
        return web.json_response(status(code, reason), status=code, headers=named)

    return fault


def body(text: str, *, content_type: str = "application/json") -> Fault:
    """Answer with success and a body that is none."""

    async def fault(_: FaultProxy, __: web.Request) -> web.StreamResponse:
        return web.Response(text=text, content_type=content_type)

    return fault


def stream(*lines: bytes, then: str = "end") -> Fault:
    """Begin each watch with some lines, then end it or fall silent; the rest is passed on."""

    async def fault(proxy: FaultProxy, request: web.Request) -> web.StreamResponse:
        if not _is_watch(request):
            return await proxy.forward(request)
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for line in lines:
            await response.write(line)
        if then == "silence":
            await proxy.over()
        return response

    return fault


async def reset(_: FaultProxy, request: web.Request) -> web.StreamResponse:
    """Break each connection without an answer."""
    _abort(request)
    return web.Response()


async def silence(proxy: FaultProxy, request: web.Request) -> web.StreamResponse:
    """Take each request and never answer."""
    await proxy.over()
    _abort(request)
    return web.Response()


async def frozen_streams(proxy: FaultProxy, request: web.Request) -> web.StreamResponse:
    """Hold all bytes back, those of answers under way as well."""
    return await proxy.forward(request)


async def slow(proxy: FaultProxy, request: web.Request) -> web.StreamResponse:
    """Answer late."""
    await asyncio.sleep(_SLOW_SECONDS)
    return await proxy.forward(request)


async def drip(proxy: FaultProxy, request: web.Request) -> web.StreamResponse:
    """Answer byte by byte."""
    async with await proxy.ask(request) as answer:
        response = web.StreamResponse(status=answer.status)
        response.enable_chunked_encoding()
        await response.prepare(request)
        async for byte in answer.content.iter_chunked(1):
            await asyncio.sleep(_DRIP_SECONDS)
            await response.write(byte)
    return response


async def cut(proxy: FaultProxy, request: web.Request) -> web.StreamResponse:
    """Break each answer in its middle."""
    async with await proxy.ask(request) as answer:
        begun = await answer.content.readany()
    response = web.StreamResponse(status=answer.status)
    response.content_length = len(begun) + 1
    await response.prepare(request)
    await response.write(begun[: len(begun) // 2])
    _abort(request)
    return response


async def lost_answers(proxy: FaultProxy, request: web.Request) -> web.StreamResponse:
    """Have writes done, and break the connection instead of saying so."""
    if _is_read(request):
        return await proxy.forward(request)
    async with await proxy.ask(request) as answer:
        await answer.read()
    _abort(request)
    return web.Response()


async def redirect(_: FaultProxy, request: web.Request) -> web.StreamResponse:
    """Send each request elsewhere."""
    return web.Response(status=302, headers={"Location": f"http://127.0.0.1:9{request.raw_path}"})


def _is_read(request: web.Request) -> bool:
    return request.method in _READS


def _is_watch(request: web.Request) -> bool:
    return "watch" in request.query


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


_IS: Final[Mapping[str, Callable[[web.Request], bool]]] = {
    "reads": _is_read,
    "writes": lambda request: not _is_read(request),
    "watches": _is_watch,
}
_GONE: Final = json.dumps({"type": "ERROR", "object": status(410, "Expired")}).encode() + b"\n"
FAULTS: Final[Mapping[str, Fault]] = {
    "connections-reset": reset,
    "no-answer": silence,
    "bytes-held-back": frozen_streams,
    "late-answers": slow,
    "dripping-answers": drip,
    "answers-cut": cut,
    "answers-to-writes-lost": lost_answers,
    "redirects": redirect,
    "200-empty": body(""),
    "200-html": body("<html>log in first</html>", content_type="text/html"),
    "200-null": body("null"),
    "401": says(401, "Unauthorized"),
    "403": says(403, "Forbidden"),
    "404": says(404, "NotFound"),
    "409-to-writes": says(409, "Conflict", only="writes"),
    "422-to-writes": says(422, "Invalid", only="writes"),
    "429-in-a-second": says(429, "TooManyRequests", Retry_After="1"),
    "500": says(500, "InternalError"),
    "503-in-an-hour": says(503, "ServiceUnavailable", Retry_After="3600"),
    "410-to-watches": says(410, "Expired", only="watches"),
    "410-in-watches": stream(_GONE),
    "garbage-in-watches": stream(b"{]\n"),
    "silent-watches": stream(then="silence"),
}
