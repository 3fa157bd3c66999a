"""HTTP requests with credentials, a rate, retries, and errors that say what failed."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import aiohttp
from msgspec import Struct

from karpy import __version__
from karpy.adapters.kube.access import Access
from karpy.adapters.kube.addresses import Login, basic_authorization
from karpy.adapters.kube.auth import Credentials, RequestCredentials
from karpy.adapters.kube.calls import JSON, Call
from karpy.adapters.kube.failures import no_answer, refusal
from karpy.adapters.kube.fence import Fence, fenced_request
from karpy.adapters.kube.retry import DICE, PATIENCE, Patience, TokenBucket
from karpy.adapters.kube.tls import TlsContexts
from karpy.errors import AnswerMalformed, ClusterError, Unauthorized, Unreachable

T = TypeVar("T")

_LINE_BYTES_MAX: Final = 64 * 2**20
_ANSWER_BYTES_MAX: Final = 2**30
"""Largest answer: a list of 150,000 pods, or a page of 500 objects of etcd's largest size."""
_REFUSAL_BYTES_MAX: Final = 2**20
_READ_BYTES: Final = 2**18
_CALLS_AT_ONCE: Final = 32
"""Concurrent requests: enough for a slow server; opening a connection costs ten requests."""
_SUCCESS: Final = range(200, 300)
_BROKEN: Final = (aiohttp.ClientError, OSError, asyncio.TimeoutError)

OnAnswer = Callable[[str, str, int, float], None]
"""Called with method, path, HTTP status (0 without an answer) and seconds of a request."""


class Timeouts(Struct, frozen=True):
    """How long to wait for a server, in seconds."""

    connect: float = 10.0
    silent: float = 65.0
    """Longest silence; an API server itself ends a request after a minute, with an error."""
    total: float = 90.0
    """Longest time for a request with its whole answer, or for one line of a watch; longer than
    a server under load needs."""


TIMEOUTS: Final = Timeouts()


class Transport:
    """
    One cluster as one user, over HTTP.

    Requests beyond the rate wait. After a 401 the credentials are renewed once. Failures are
    raised as ClusterError, or as CredentialsRefused if there are no credentials.
    """

    def __init__(
        self,
        access: Access,
        credentials: Credentials,
        *,
        limit: TokenBucket | None = None,
        patience: Patience = PATIENCE,
        timeouts: Timeouts = TIMEOUTS,
        on_answer: OnAnswer | None = None,
    ) -> None:
        self._server = access.endpoint.server
        self._tls_name = access.endpoint.tls_name or None
        self._proxy = access.endpoint.proxy or None
        self._proxy_headers = _proxy_headers(access.endpoint.proxy_login)
        self._credentials = credentials
        self._tls = TlsContexts(access)
        self._limit = limit
        self._patience = patience
        self._timeouts = timeouts
        self._on_answer = on_answer
        self._slots = asyncio.Semaphore(_CALLS_AT_ONCE)
        self._request_class: type[aiohttp.ClientRequest] = aiohttp.ClientRequest
        self._session: aiohttp.ClientSession | None = None

    def fence(self, fence: Fence) -> None:
        """Send writes, first tries and repetitions, only while a fence is open."""
        assert self._session is None, "requests may be on their way"
        self._request_class = fenced_request(fence)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def send(self, call: Call) -> bytes:
        """Return the body of the answer; repeat the request after temporary failures."""
        began, tried = _now(), 0
        while True:
            tried += 1
            try:
                return await self._send_once(call)
            except ClusterError as error:
                pause = self._patience.pause(tried, error, call.repeat, DICE)
                if pause is None or _now() - began >= self._timeouts.total:
                    raise
            await asyncio.sleep(pause)

    async def lines(self, call: Call, idle_seconds: float) -> AsyncGenerator[bytes, None]:
        """
        Yield the lines of a streamed answer, as they come.

        Raises Unreachable if nothing comes for too long, if a line takes too long or if the last
        line is cut off.
        """
        async with await self._with_identity(lambda who: self._open(call, who, idle_seconds)) as (
            response
        ):
            pieces: list[bytes] = []
            size, began = 0, 0.0
            try:
                async for chunk in response.content.iter_any():
                    *ends, rest = chunk.split(b"\n")
                    for end in ends:
                        line = b"".join((*pieces, end)) if pieces else end
                        pieces.clear()
                        size = 0
                        if line:
                            yield line
                    if rest:
                        began = began if pieces else _now()
                        pieces.append(rest)
                        size += len(rest)
                    if size > _LINE_BYTES_MAX:
                        raise AnswerMalformed(f"cannot {call.what}: a line of it has no end")
                    if pieces and _now() - began > self._timeouts.total:
                        raise self._too_slow(call)
            except _BROKEN as error:
                raise no_answer(call.what, self._server, error) from error
            if pieces:
                raise Unreachable(f"cannot {call.what}: {self._server} ended amid a line")

    async def _send_once(self, call: Call) -> bytes:
        async with self._slots:
            return await self._with_identity(lambda who: self._answer(call, who))

    async def _with_identity(self, ask: Callable[[RequestCredentials], Awaitable[T]]) -> T:
        """Ask once the rate allows it; ask again with renewed credentials if they are refused."""
        if self._limit is not None:
            await self._limit.take()
        identity = await self._credentials.identity()
        try:
            return await ask(identity)
        except Unauthorized:
            renewed = await self._credentials.renewed(identity)
            if renewed == identity:
                raise
        return await ask(renewed)

    async def _answer(self, call: Call, identity: RequestCredentials) -> bytes:
        """Return the whole body of a successful answer."""
        async with self._in_time(call):
            response = await self._request_checked(call, identity, self._timeouts.silent)
            return await self._body(call, response, _ANSWER_BYTES_MAX)

    async def _open(
        self, call: Call, identity: RequestCredentials, silent_seconds: float
    ) -> aiohttp.ClientResponse:
        """Return a successful answer whose body is not yet read."""
        async with self._in_time(call):
            return await self._request_checked(call, identity, silent_seconds)

    async def _request_checked(
        self, call: Call, identity: RequestCredentials, silent_seconds: float
    ) -> aiohttp.ClientResponse:
        response = await self._request(call, identity, silent_seconds)
        if response.status in _SUCCESS:
            return response
        body = await self._body(call, response, _REFUSAL_BYTES_MAX)
        body = _without_credentials(body, response.request_info.headers.get("Authorization", ""))
        raise refusal(call.what, response.status, body, response.headers.get("Retry-After", ""))

    async def _body(self, call: Call, response: aiohttp.ClientResponse, most: int) -> bytes:
        async with response:
            pieces, size = [], 0
            try:
                async for chunk in response.content.iter_any():
                    pieces.append(chunk)
                    size += len(chunk)
                    if size > most:
                        raise AnswerMalformed(
                            f"cannot {call.what}: the answer has more than {most:,} bytes"
                        )
            except _BROKEN as error:
                raise no_answer(call.what, self._server, error) from error
        return b"".join(pieces)

    @asynccontextmanager
    async def _in_time(self, call: Call) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeouts.total):
                yield
        except TimeoutError as error:
            raise self._too_slow(call) from error

    def _too_slow(self, call: Call) -> Unreachable:
        return Unreachable(
            f"cannot {call.what}: {self._server} did not answer in full "
            f"within {self._timeouts.total:g} s"
        )

    async def _request(
        self, call: Call, identity: RequestCredentials, silent_seconds: float
    ) -> aiohttp.ClientResponse:
        if self._on_answer is None:
            return await self._ask(call, identity, silent_seconds)
        began, status = time.perf_counter(), 0
        try:
            response = await self._ask(call, identity, silent_seconds)
            status = response.status
        finally:
            self._on_answer(call.method, call.path, status, time.perf_counter() - began)
        return response

    async def _ask(
        self, call: Call, identity: RequestCredentials, silent_seconds: float
    ) -> aiohttp.ClientResponse:
        is_secure = self._server.startswith("https")
        headers = [*identity.headers, ("Accept", JSON)]
        if not is_secure:
            # Without TLS there is no tunnel: the proxy reads the headers of the request.
            headers += self._proxy_headers.items()
        if identity.authorization:
            headers.append(("Authorization", identity.authorization))
        if call.body:
            headers.append(("Content-Type", call.content_type))
        try:
            return await self._opened_session().request(
                call.method,
                self._server + call.path,
                params=call.params,
                data=call.body or None,
                headers=headers,
                ssl=self._tls.context(identity) if is_secure else True,
                server_hostname=self._tls_name,
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self._timeouts.connect, sock_read=silent_seconds
                ),
            )
        except _BROKEN as error:
            raise no_answer(call.what, self._server, error) from error

    def _opened_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # Watches keep their connections; with a limit, other requests would wait for them.
                connector=aiohttp.TCPConnector(limit=0),
                request_class=self._request_class,
                cookie_jar=aiohttp.DummyCookieJar(),
                # Within a data centre, compression costs more than the bytes it saves.
                headers={"User-Agent": f"karpy/{__version__}", "Accept-Encoding": "identity"},
                read_bufsize=_READ_BYTES,
            )
        return self._session


def _now() -> float:
    return asyncio.get_running_loop().time()


def _proxy_headers(login: Login | None) -> dict[str, str]:
    return {} if login is None else {"Proxy-Authorization": basic_authorization(login)}


def _without_credentials(body: bytes, authorization: str) -> bytes:
    """Return an answer without the credentials of the request, which some proxies echo."""
    credentials = authorization.partition(" ")[2].encode()
    return body.replace(credentials, b"(withheld)") if credentials else body
