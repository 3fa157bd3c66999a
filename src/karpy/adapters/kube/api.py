"""An API server over HTTP."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from math import ceil
from typing import Final

from karpy.adapters.kube.calls import (
    Target,
    WriteOptions,
    create_call,
    delete_call,
    get_call,
    list_call,
    patch_call,
    replace_call,
    watch_call,
)
from karpy.adapters.kube.failures import refusal_in_stream
from karpy.adapters.kube.transport import Transport
from karpy.adapters.kube.wire import (
    BY_TYPE,
    ERROR,
    decode_event,
    decode_object,
    decode_plain_page,
)
from karpy.codec.fields import JsonObject
from karpy.errors import AnswerMalformed
from karpy.model.kinds import Kind
from karpy.ports.objects import (
    EVERYTHING,
    GRACEFULLY,
    Page,
    Patch,
    Query,
    Removal,
    WatchEvent,
)

IDLE_SECONDS: Final = 150.0
"""Longest silence of a watch, in which the API server sends a bookmark about every minute."""


class KubeApi:
    """
    The port Objects, over HTTP.

    Each call for a namespaced kind needs a namespace, except `list` and `watch`. A watch is one
    connection: it also ends when the server closes it, which is no error.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        manager: str = "karpy",
        field_validation: str = "",
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._transport = transport
        self._manager = manager
        self._field_validation = field_validation
        self._idle_seconds = idle_seconds

    async def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject:
        call = get_call(kind, name, namespace)
        return decode_object(call.what, await self._transport.send(call))

    async def list(
        self, kind: Kind, query: Query = EVERYTHING, *, limit: int = 0, token: str = ""
    ) -> Page:
        call = list_call(kind, query, limit=limit, token=token)
        page = decode_plain_page(call.what, await self._transport.send(call))
        for obj in page.items or ():
            # The items of a list come without apiVersion and kind.
            obj.setdefault("apiVersion", kind.api_version)
            obj.setdefault("kind", kind.name)
        return Page(
            items=tuple(sorted(page.items or (), key=_place)),
            version=page.metadata.resource_version,
            token=page.metadata.token,
            remaining=page.metadata.remaining_item_count,
        )

    async def watch(
        self,
        kind: Kind,
        query: Query = EVERYTHING,
        *,
        since: str,
        seconds: float | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        timeout = None if seconds is None else max(1, ceil(seconds))
        call = watch_call(kind, query, since=since, seconds=timeout)
        end = None if seconds is None else asyncio.get_running_loop().time() + seconds
        async with aclosing(self._transport.lines(call, self._idle_seconds)) as lines:
            while (line := await _next_line(lines, end)) is not None:
                raw = decode_event(call.what, line)
                if raw.type == ERROR:
                    raise refusal_in_stream(call.what, raw.object)
                if (kind_of_event := BY_TYPE.get(raw.type)) is not None:
                    obj = decode_object(call.what, raw.object)
                    yield WatchEvent(kind_of_event, obj, _version(call.what, obj))

    async def create(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        call = create_call(kind, obj, subresource, self._write_options(is_dry_run=dry_run))
        return decode_object(call.what, await self._transport.send(call))

    async def replace(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        call = replace_call(kind, obj, subresource, self._write_options(is_dry_run=dry_run))
        return decode_object(call.what, await self._transport.send(call))

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        options = WriteOptions(patch.manager, self._field_validation, dry_run)
        call = patch_call(Target(kind, name, namespace, subresource), patch, options)
        return decode_object(call.what, await self._transport.send(call))

    async def delete(
        self, kind: Kind, name: str, *, namespace: str = "", removal: Removal = GRACEFULLY
    ) -> None:
        await self._transport.send(delete_call(Target(kind, name, namespace), removal))

    def _write_options(self, *, is_dry_run: bool) -> WriteOptions:
        return WriteOptions(self._manager, self._field_validation, is_dry_run)


async def _next_line(lines: AsyncIterator[bytes], end: float | None) -> bytes | None:
    try:
        async with asyncio.timeout_at(end):
            return await anext(lines)
    except (StopAsyncIteration, TimeoutError):
        return None


def _place(obj: JsonObject) -> tuple[str, str]:
    meta = obj.get("metadata") or {}
    return meta.get("namespace") or "", meta.get("name") or ""


def _version(what: str, obj: JsonObject) -> str:
    version = (obj.get("metadata") or {}).get("resourceVersion")
    if not isinstance(version, str):
        raise AnswerMalformed(f"cannot {what}: an object of it has no version")
    return version
