"""The handler of watch: one line of JSON for each event."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final

import msgspec
from aiohttp import web

from karpy.adapters.apiserver.calls import HEADERS, ServedCall
from karpy.adapters.apiserver.negotiation import View
from karpy.adapters.apiserver.parameters import NOW, Watching, read_watching
from karpy.adapters.apiserver.reading import check_reachable
from karpy.adapters.apiserver.statuses import failure
from karpy.codec.fields import JsonObject
from karpy.errors import ClusterError, Expired
from karpy.ports.objects import EventType, WatchEvent

_USUAL_SECONDS: Final = 1800.0
_INITIAL_END: Final = {"k8s.io/initial-events-end": "true"}
_TURNS_TO_FAIL: Final = 3
"""Turns of the event loop in which an invalid watch fails, before the answer starts."""

_encode = msgspec.json.Encoder().encode


async def watch(call: ServedCall) -> web.StreamResponse:
    """Stream the events of a watch, until the client disconnects or the time is over."""
    options = read_watching(call.params, call.target.namespace)
    response = web.StreamResponse(headers=HEADERS)
    response.content_type = "application/json"
    async with aclosing(_events(call, options)) as events:
        first = asyncio.ensure_future(anext(events, None))
        try:
            await _raise_refusal(first)
            await response.prepare(call.request)
            await _stream(call, response, first, events)
            await response.write_eof()
        except ConnectionError:
            # The client has disconnected.
            return response
        finally:
            await _cancel(first)
    return response


async def _cancel(first: "asyncio.Future[WatchEvent | None]") -> None:
    """Cancel the wait for the first event, so that its source can be closed."""
    if not first.done():
        first.cancel()
        await asyncio.wait([first])
    elif not first.cancelled():
        first.exception()


async def _raise_refusal(first: "asyncio.Future[WatchEvent | None]") -> None:
    """Raise the error of an invalid request; an expired version is reported in the stream."""
    for _ in range(_TURNS_TO_FAIL):
        await asyncio.sleep(0)
    error = first.exception() if first.done() else None
    if isinstance(error, ClusterError) and not isinstance(error, Expired):
        raise error


async def _stream(
    call: ServedCall,
    response: web.StreamResponse,
    first: "asyncio.Future[WatchEvent | None]",
    events: AsyncIterator[WatchEvent],
) -> None:
    is_first = True
    try:
        event = await first
        while event is not None:
            await response.write(_line(call, event, is_first=is_first))
            is_first = False
            event = await anext(events, None)
    except ClusterError as error:
        status = failure(error, call.target.kind)
        await response.write(_encode({"type": "ERROR", "object": status}) + b"\n")


async def _events(call: ServedCall, options: Watching) -> AsyncGenerator[WatchEvent, None]:
    objects, kind = call.objects(), call.target.kind
    since = options.version
    if options.sends_initial or (options.sends_initial is None and since in NOW):
        page = await objects.list(kind, options.query)
        if since not in NOW:
            check_reachable(since, page)
        since = page.version
        for obj in page.items:
            yield WatchEvent(EventType.ADDED, obj, obj["metadata"]["resourceVersion"])
        if options.sends_initial and options.has_bookmarks:
            yield _initial_end(call, since)
    elif since in NOW:
        since = (await objects.list(kind, options.query, limit=1)).version
    seconds = options.seconds or _USUAL_SECONDS
    async with _closing(
        objects.watch(kind, options.query, since=since, seconds=seconds)
    ) as changes:
        async for event in changes:
            if event.type is not EventType.BOOKMARK or options.has_bookmarks:
                yield event


@asynccontextmanager
async def _closing(events: AsyncIterator[WatchEvent]) -> AsyncIterator[AsyncIterator[WatchEvent]]:
    """Close a generator of events at the end, without waiting for the garbage collector."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


def _initial_end(call: ServedCall, version: str) -> WatchEvent:
    kind = call.target.kind
    obj: JsonObject = {
        "kind": kind.name,
        "apiVersion": kind.api_version,
        "metadata": {"resourceVersion": version, "annotations": _INITIAL_END},
    }
    return WatchEvent(EventType.BOOKMARK, obj, version)


def _line(call: ServedCall, event: WatchEvent, *, is_first: bool) -> bytes:
    obj = event.object
    if call.form.view is not View.WHOLE:
        obj = call.shown(obj, is_first=is_first)
    return _encode({"type": event.type.value, "object": obj}) + b"\n"
