"""Objects in memory: the part of an API server that elections and events need."""

import asyncio
from collections.abc import AsyncIterator

from karpy.codec.fields import JsonObject
from karpy.errors import AlreadyExists, Conflict, NotFound, ServerFault
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


class SmallStore:
    """Objects by name, with versions; tests can make its calls fail or hang."""

    def __init__(self) -> None:
        self.objects: dict[str, JsonObject] = {}
        self.writes: list[tuple[float, JsonObject]] = []
        self.is_failing = False
        self.is_hanging = False

    async def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject:
        await self._answer()
        if name not in self.objects:
            raise NotFound(f"there is no {kind} {namespace}/{name}")
        return self.objects[name]

    async def create(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        del subresource, dry_run
        await self._answer()
        if obj["metadata"]["name"] in self.objects:
            raise AlreadyExists(f"there is such a {kind}")
        return self._write(obj)

    async def replace(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        del subresource, dry_run
        await self._answer()
        meta = obj["metadata"]
        if self.objects[meta["name"]]["metadata"]["resourceVersion"] != meta["resourceVersion"]:
            raise Conflict(f"the {kind} has changed")
        return self._write(obj)

    async def _answer(self) -> None:
        await asyncio.sleep(3600 if self.is_hanging else 0.01)
        if self.is_failing:
            raise ServerFault("no etcd")

    def _write(self, obj: JsonObject) -> JsonObject:
        version = str(len(self.writes) + 1)
        written = {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}
        self.objects[obj["metadata"]["name"]] = written
        self.writes.append((round(asyncio.get_running_loop().time(), 1), written))
        return written

    async def list(
        self, kind: Kind, query: Query = EVERYTHING, *, limit: int = 0, token: str = ""
    ) -> Page:
        raise NotImplementedError

    def watch(
        self,
        kind: Kind,
        query: Query = EVERYTHING,
        *,
        since: str,
        seconds: float | None = None,
    ) -> AsyncIterator[WatchEvent]:
        raise NotImplementedError

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
        raise NotImplementedError

    async def delete(
        self, kind: Kind, name: str, *, namespace: str = "", removal: Removal = GRACEFULLY
    ) -> None:
        raise NotImplementedError
