"""A scripted HTTP server on loopback, with optional TLS, in place of an API server."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Struct

from karpy.adapters.kube.access import Access, Endpoint, User
from karpy.adapters.kube.auth import Credentials, FixedCredentials
from karpy.adapters.kube.retry import Patience, TokenBucket
from karpy.adapters.kube.transport import OnAnswer, Timeouts, Transport
from karpy.codec.fields import JsonObject

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

NOBODY: Final = User()
PATIENCE: Final = Patience(tries=3, first_seconds=0.001, longest_seconds=0.002)
TIMEOUTS: Final = Timeouts(connect=2.0, silent=2.0)


class Request(Struct, frozen=True):
    """A request that the server received."""

    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body: Any


class ScriptedServer:
    """Answers each request with the next answer of its script; the last answer repeats."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._context = context
        self._runner: web.AppRunner | None = None
        self.port = 0
        self.script: list[Answer] = []
        self.asked: list[Request] = []

    @property
    def url(self) -> str:
        scheme = "https" if self._context else "http"
        return f"{scheme}://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [each.path for each in self.asked]

    def says(self, *answers: Answer) -> None:
        self.script = list(answers)

    async def start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._context)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.asked.append(
            Request(
                request.method,
                request.raw_path.partition("?")[0],
                dict(request.query),
                dict(request.headers),
                msgspec.json.decode(body) if body else None,
            )
        )
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return await answer(request)


@asynccontextmanager
async def serving(context: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
    """Run a scripted server while the context is open."""
    server = ScriptedServer(context)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def access_to(
    server: ScriptedServer,
    user: User = NOBODY,
    *,
    ca_pem: str = "",
    is_verified: bool = True,
    tls_name: str = "",
    proxy: str = "",
) -> Access:
    endpoint = Endpoint(server.url, ca_pem, is_verified, tls_name, proxy)
    return Access(endpoint, user, "default", "kubeconfig")


def transport_to(
    server: ScriptedServer,
    credentials: Credentials | None = None,
    *,
    limit: TokenBucket | None = None,
    patience: Patience = PATIENCE,
    on_answer: OnAnswer | None = None,
) -> Transport:
    return Transport(
        access_to(server),
        credentials or FixedCredentials(NOBODY),
        limit=limit,
        patience=patience,
        timeouts=TIMEOUTS,
        on_answer=on_answer,
    )


def json(obj: object, status: int = 200, **headers: str) -> Answer:
    """Answer with an object."""
    return text(msgspec.json.encode(obj).decode(), status, **headers)


def text(body: str, status: int = 200, **headers: str) -> Answer:
    """Answer with a text."""
    named = {key.replace("_", "-"): value for key, value in headers.items()}

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body, headers=named)

    return answer


def failure(code: int, reason: str, message: str = "no", **details: object) -> Answer:
    """Answer with a Status."""
    return json(status(code, reason, message, **details), code)


def status(code: int, reason: str, message: str = "no", **details: object) -> JsonObject:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
        "details": details,
    }


def stream(*events: object, then: str = "end") -> Answer:
    """Answer with lines; then end, fall silent (`hang`) or break the connection (`cut`)."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for event in events:
            line = event if isinstance(event, bytes) else msgspec.json.encode(event) + b"\n"
            await response.write(line)
        if then == "hang":
            await asyncio.sleep(60)
        if then == "cut":
            assert request.transport is not None
            # Let the lines reach the client before the connection breaks.
            await asyncio.sleep(0.02)
            request.transport.abort()
        return response

    return answer


async def hang(_: web.Request) -> web.StreamResponse:
    """Never answer."""
    await asyncio.sleep(60)
    return web.Response()


async def drop(request: web.Request) -> web.StreamResponse:
    """Break the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def pod(name: str, version: str, **fields: object) -> JsonObject:
    return {
        "metadata": {"name": name, "namespace": "shop", "resourceVersion": version},
        **fields,
    }


def event(kind: str, obj: JsonObject) -> JsonObject:
    return {"type": kind, "object": obj}


def bookmark(version: str) -> JsonObject:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": version}})


def page(*items: JsonObject, version: str, token: str = "") -> Answer:
    meta = {"resourceVersion": version, **({"continue": token} if token else {})}
    return json({"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": list(items)})
