"""Answering watch: one line of JSON for each change."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final

import msgspec
from aiohttp import web

from karpy.adapters.apiserver.calls import HEADERS, Call
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
"""So many turns of the loop a watch gets to say that it cannot be."""

_encode = msgspec.json.Encoder().encode


async def watch(call: Call) -> web.StreamResponse:
    """Tell what happens, until the client has enough or the time is over."""
    asked = read_watching(call.params, call.target.namespace)
    response = web.StreamResponse(headers=HEADERS)
    response.content_type = "application/json"
    async with aclosing(_events(call, asked)) as events:
        first = asyncio.ensure_future(anext(events, None))
        try:
            await _look_for_refusal(first)
            await response.prepare(call.request)
            await _tell(call, response, first, events)
            await response.write_eof()
        except ConnectionError:
            # The client has enough.
            return response
        finally:
            await _end(first)
    return response


async def _end(first: "asyncio.Future[WatchEvent | None]") -> None:
    """Drop an event that is no longer awaited, so that its source can be closed."""
    if not first.done():
        first.cancel()
        await asyncio.wait([first])
    elif not first.cancelled():
        first.exception()


async def _look_for_refusal(first: "asyncio.Future[WatchEvent | None]") -> None:
    """Raise what is wrong with the request itself; an expired version is reported in the stream."""
    for _ in range(_TURNS_TO_FAIL):
        await asyncio.sleep(0)
    error = first.exception() if first.done() else None
    if isinstance(error, ClusterError) and not isinstance(error, Expired):
        raise error


async def _tell(
    call: Call,
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


async def _events(call: Call, asked: Watching) -> AsyncGenerator[WatchEvent, None]:
    objects, kind = call.objects(), call.target.kind
    since = asked.version
    if asked.sends_initial or (asked.sends_initial is None and since in NOW):
        page = await objects.list(kind, asked.query)
        if since not in NOW:
            check_reachable(since, page)
        since = page.version
        for obj in page.items:
            yield WatchEvent(EventType.ADDED, obj, obj["metadata"]["resourceVersion"])
        if asked.sends_initial and asked.has_bookmarks:
            yield _initial_end(call, since)
    elif since in NOW:
        since = (await objects.list(kind, asked.query, limit=1)).version
    seconds = asked.seconds or _USUAL_SECONDS
    async with _closing(objects.watch(kind, asked.query, since=since, seconds=seconds)) as changes:
        async for event in changes:
            if event.type is not EventType.BOOKMARK or asked.has_bookmarks:
                yield event


@asynccontextmanager
async def _closing(events: AsyncIterator[WatchEvent]) -> AsyncIterator[AsyncIterator[WatchEvent]]:
    """Close a stream at once and not when the garbage collector finds it, if it can be closed."""
    try:
        yield events
    finally:
        if isinstance(events, AsyncGenerator):
            await events.aclose()


def _initial_end(call: Call, version: str) -> WatchEvent:
    kind = call.target.kind
    obj: JsonObject = {
        "kind": kind.name,
        "apiVersion": kind.api_version,
        "metadata": {"resourceVersion": version, "annotations": _INITIAL_END},
    }
    return WatchEvent(EventType.BOOKMARK, obj, version)


def _line(call: Call, event: WatchEvent, *, is_first: bool) -> bytes:
    obj = event.object
    if call.form.view is not View.WHOLE:
        obj = call.shown(obj, is_first=is_first)
    return _encode({"type": event.type.value, "object": obj}) + b"\n"
