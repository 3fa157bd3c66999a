"""The HTTP API of Kubernetes: dispatches requests to handlers, and turns errors into Statuses."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final

from aiohttp import web

from karpy.adapters.apiserver import deleting, reading, writing
from karpy.adapters.apiserver.backend import Backend
from karpy.adapters.apiserver.calls import ServedCall, json_response
from karpy.adapters.apiserver.containers import (
    leads_into_containers,
    no_containers,
    no_metrics,
    no_tokens,
)
from karpy.adapters.apiserver.documents import Documents
from karpy.adapters.apiserver.extras import BINDINGS, METRICS, REVIEWS
from karpy.adapters.apiserver.negotiation import negotiate
from karpy.adapters.apiserver.parameters import check_headers, is_watch
from karpy.adapters.apiserver.reviews import answer_review
from karpy.adapters.apiserver.statuses import failure, not_allowed, nothing_there
from karpy.adapters.apiserver.targets import Place, ServedTarget, place_of, target_of
from karpy.adapters.apiserver.watching import watch
from karpy.errors import BadRequest, ClusterError, ServerFault, Unauthorized, Unexpected
from karpy.model.kinds import POD, SERVICE_ACCOUNT, Kind
from karpy.ports.clock import Clock

BODY_MAX: Final = 3 * 2**20
"""Largest body of a request, as in kube-apiserver: twice etcd's default limit."""

Answer = Callable[[ServedCall], Awaitable[web.StreamResponse]]
Report = Callable[[BaseException], None]
"""Called with unexpected errors, of which the client gets a short message only."""

_OF_ONE: Final[Mapping[str, Answer]] = {
    "GET": reading.get,
    "HEAD": reading.get,
    "POST": writing.create,
    "PUT": writing.replace,
    "PATCH": writing.patch,
    "DELETE": deleting.delete,
}
_OF_MANY: Final[Mapping[str, Answer]] = {
    "GET": reading.list_objects,
    "HEAD": reading.list_objects,
    "POST": writing.create,
    "DELETE": deleting.delete_collection,
}
_HEALTH: Final = frozenset({"healthz", "livez", "readyz"})
_IN_CORE: Final = 2
_IN_GROUP: Final = 3
"""Number of parts of a path that name group and version."""


class HttpApi:
    """Handles the requests of an API server."""

    def __init__(
        self, backend: Backend, clock: Clock, token: str, report: Report | None = None
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._token = token
        self._report = report
        self._documents = Documents(backend)
        self._watches: set[asyncio.Task[object]] = set()

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(client_max_size=BODY_MAX)
        app.router.add_route("*", "/{path:.*}", self._answer)
        app.on_shutdown.append(self._end_watches)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        with _ErrorAnswers(self._report) as errors:
            return await self._dispatch(request)
        return errors.answer

    async def _dispatch(self, request: web.Request) -> web.StreamResponse:
        parts = [part for part in request.path.split("/") if part]
        first = parts[0] if parts else ""
        if first in _HEALTH:
            return web.Response(text="ok")
        if parts == ["version"]:
            return self._documents.version()
        self._check_token(request)
        check_headers(request.headers)
        if first == "api" and len(parts) > _IN_CORE:
            return await self._serve(request, "", parts[1], "/".join(parts[_IN_CORE:]))
        if first == "apis" and len(parts) > _IN_GROUP:
            return await self._serve(request, parts[1], parts[2], "/".join(parts[_IN_GROUP:]))
        return self._documents.answer(request, parts)

    def _check_token(self, request: web.Request) -> None:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        given_bytes = given.strip().encode(errors="surrogateescape")
        is_ours = hmac.compare_digest(given_bytes, self._token.encode())
        if scheme.lower() != "bearer" or not is_ours:
            raise Unauthorized("Unauthorized", status=401)

    async def _serve(
        self, request: web.Request, group: str, version: str, rest: str
    ) -> web.StreamResponse:
        place = place_of(rest)
        special = await self._serve_special(request, group, version, place)
        if special is not None:
            return special
        target = target_of(place, group, version, self._backend.resources())
        form = negotiate(request.headers.get("Accept", ""))
        call = ServedCall(request, self._backend, self._clock, target, form)
        try:
            return await self._handle(call)
        except ClusterError as error:
            return _refusal(error, target.kind, target.name)

    async def _handle(self, call: ServedCall) -> web.StreamResponse:
        method, target = call.request.method, call.target
        if method == "GET" and not target.name and is_watch(call.params):
            return await self._watch(call)
        answer = (_OF_ONE if target.name else _OF_MANY).get(method)
        if answer is None:
            raise not_allowed()
        return await answer(call)

    async def _watch(self, call: ServedCall) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._watches.add(task)
        try:
            return await watch(call)
        finally:
            self._watches.discard(task)

    async def _end_watches(self, _app: web.Application) -> None:
        for task in tuple(self._watches):
            task.cancel()

    async def _serve_special(
        self, request: web.Request, group: str, version: str, place: Place
    ) -> web.StreamResponse | None:
        """Answer a request that is not about a stored object; return None if it is about one."""
        kind = Kind(group, version, "", place.plural)
        if any(_is_at(each.kind, kind) for each in METRICS):
            raise no_metrics()
        found = next((each.kind for each in REVIEWS if _is_at(each.kind, kind)), None)
        if found is not None:
            return await answer_review(request, found, self._token)
        if _is_at(BINDINGS.kind, kind):
            return await self._bind(request, place)
        if _is_at(POD, kind) and leads_into_containers(place.subresource):
            await self._backend.acting_as("").get(POD, place.name, place.namespace)
            raise no_containers(place.subresource, place.name)
        if _is_at(SERVICE_ACCOUNT, kind) and place.subresource == "token":
            raise no_tokens(place.name)
        return None

    async def _bind(self, request: web.Request, place: Place) -> web.StreamResponse:
        if request.method != "POST" or place.name:
            raise not_allowed()
        pods = next((each for each in self._backend.resources() if each.kind == POD), None)
        if pods is None:
            raise nothing_there()
        form = negotiate(request.headers.get("Accept", ""))
        target = ServedTarget(pods, place.namespace, "", "binding")
        return await writing.bind(ServedCall(request, self._backend, self._clock, target, form))


class _ErrorAnswers(AbstractContextManager["_ErrorAnswers"]):
    """Turns each exception into an answer, so that the client always gets one."""

    def __init__(self, report: Report | None) -> None:
        self.answer = web.Response()
        self._report = report

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        match error:
            case ClusterError():
                self.answer = _refusal(error)
            case web.HTTPException():
                self.answer = _refusal(BadRequest(error.reason, status=error.status))
            case web.RequestPayloadError():
                what = "the body of the request cannot be read: its encoding is broken"
                self.answer = _refusal(BadRequest(what, status=400))
            case ConnectionError() | None:
                return False
            case Exception():
                if self._report is not None:
                    self._report(error)
                message = Unexpected(error=error).message
                self.answer = _refusal(ServerFault(message, status=500))
            case _:
                return False
        return True


def _is_at(served: Kind, asked: Kind) -> bool:
    return (served.group, served.version, served.plural) == (
        asked.group,
        asked.version,
        asked.plural,
    )


def _refusal(error: ClusterError, kind: Kind | None = None, name: str = "") -> web.Response:
    status = failure(error, kind, name)
    response = json_response(status, status=status["code"])
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(int(error.retry_after))
    return response
