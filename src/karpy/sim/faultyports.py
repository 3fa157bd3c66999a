"""The ports, with injected faults."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Final, TypeVar

from karpy.codec.fields import JsonObject
from karpy.errors import Expired
from karpy.model.instances import Catalog
from karpy.model.kinds import Kind
from karpy.model.nodes import RepairPolicy
from karpy.model.records import ClaimRecord
from karpy.ports.cloud import CloudProvider, LaunchSpec, Machine
from karpy.ports.objects import (
    EVERYTHING,
    GRACEFULLY,
    Change,
    EventType,
    Feed,
    Objects,
    Page,
    Patch,
    Query,
    Reader,
    Removal,
    Synced,
    WatchEvent,
)
from karpy.sim.crashes import current_life
from karpy.sim.faults import Faults

T = TypeVar("T")

_GONE: Final = 410


class FaultyObjects:
    """
    An API server whose calls fail as `Faults` says.

    A fault of `event` ends a watch: the event and all later ones are dropped, and the watch raises
    Expired, or the error of the fault. A fault of `watch` fails the start of a watch.
    """

    def __init__(self, objects: Objects, faults: Faults) -> None:
        self._objects = objects
        self._faults = faults

    async def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject:
        """Return one object as it is now."""
        do = partial(self._objects.get, kind, name, namespace)
        return await self._faults.around("get", kind, do)

    async def list(
        self, kind: Kind, query: Query = EVERYTHING, *, limit: int = 0, token: str = ""
    ) -> Page:
        """Return objects in the order of namespace and name, all of them or page by page."""
        do = partial(self._objects.list, kind, query, limit=limit, token=token)
        return await self._faults.around("list", kind, do)

    async def watch(
        self,
        kind: Kind,
        query: Query = EVERYTHING,
        *,
        since: str,
        seconds: float | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """Yield the events after a version, until a fault ends the watch."""
        await self._faults.around("watch", kind, _nothing)
        async for event in self._objects.watch(kind, query, since=since, seconds=seconds):
            if event.type is not EventType.BOOKMARK:
                await self._let_pass(kind)
            yield event

    async def create(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        """Add an object; evict a pod or bind one with a subresource."""
        do = partial(self._objects.create, kind, obj, subresource=subresource, dry_run=dry_run)
        return await self._faults.around("create", kind, do)

    async def replace(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        """Write an object anew; with a `resourceVersion` only if that is still the current one."""
        do = partial(self._objects.replace, kind, obj, subresource=subresource, dry_run=dry_run)
        return await self._faults.around("replace", kind, do)

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
        """Change an object; APPLY adds it if it is not there."""
        do = partial(
            self._objects.patch,
            kind,
            name,
            patch,
            namespace=namespace,
            subresource=subresource,
            dry_run=dry_run,
        )
        return await self._faults.around("patch", kind, do)

    async def delete(
        self, kind: Kind, name: str, *, namespace: str = "", removal: Removal = GRACEFULLY
    ) -> None:
        """Delete an object, or mark it so while finalizers or its grace period hold it."""
        do = partial(self._objects.delete, kind, name, namespace=namespace, removal=removal)
        await self._faults.around("delete", kind, do)

    async def _let_pass(self, kind: Kind) -> None:
        _stop_if_dead()
        fault = self._faults.strike("event", kind)
        if fault is None:
            return
        if fault.delay_seconds:
            await asyncio.sleep(fault.delay_seconds)
        if fault.error is not None:
            raise fault.error()
        if not fault.delay_seconds:
            raise Expired(
                f"too old resource version of {kind}; this is a seeded fault", status=_GONE
            )


class FaultyFeed:
    """
    A feed that lags: a fault of `event` with a delay holds back all later changes.

    A feed reconnects by itself: of lost connections its listeners see only the delay.
    """

    def __init__(self, feed: Feed, faults: Faults) -> None:
        self._feed = feed
        self._faults = faults

    async def follow(
        self, kind: Kind, reader: Reader[T], query: Query = EVERYTHING
    ) -> AsyncIterator[Change[T] | Synced]:
        """Yield every object, then Synced, then every change, some of them late."""
        async for change in self._feed.follow(kind, reader, query):
            _stop_if_dead()
            fault = self._faults.strike("event", kind)
            if fault is not None and fault.delay_seconds:
                await asyncio.sleep(fault.delay_seconds)
            yield change


class FaultyCloud:
    """A cloud whose calls fail as `Faults` says."""

    def __init__(self, cloud: CloudProvider, faults: Faults) -> None:
        self._cloud = cloud
        self._faults = faults

    @property
    def name(self) -> str:
        """The name of the provider in metrics and logs."""
        return self._cloud.name

    def start(self) -> None:
        """Start the background work of the provider."""
        self._cloud.start()

    async def close(self) -> None:
        """Stop the background work of the provider."""
        await self._cloud.close()

    def catalog(self) -> Catalog:
        """Return all instance types, including those that are sold out now."""
        return self._cloud.catalog()

    async def launch(self, spec: LaunchSpec) -> Machine:
        """Start one machine; raise NoCapacity if every option is sold out."""
        return await self._faults.around("launch", None, partial(self._cloud.launch, spec))

    async def terminate(self, provider_id: str) -> None:
        """Terminate a machine; raise MachineNotFound once it is gone."""
        do = partial(self._cloud.terminate, provider_id)
        await self._faults.around("terminate", None, do)

    async def machine(self, provider_id: str) -> Machine:
        """Return one machine; raise MachineNotFound if it is gone."""
        return await self._faults.around("machine", None, partial(self._cloud.machine, provider_id))

    async def machines(self) -> Sequence[Machine]:
        """List the machines that carry this cluster's tag."""
        return await self._faults.around("machines", None, self._cloud.machines)

    async def drift(self, claim: ClaimRecord) -> str:
        """Return the reason why a claim's machine differs from its node class; empty if not."""
        return await self._faults.around("drift", None, partial(self._cloud.drift, claim))

    @property
    def repair_policies(self) -> tuple[RepairPolicy, ...]:
        """The node conditions that make a node unhealthy."""
        return self._cloud.repair_policies

    async def reboot(self, provider_id: str, operation: str) -> None:
        """Reboot a machine."""
        do = partial(self._cloud.reboot, provider_id, operation)
        await self._faults.around("reboot", None, do)


async def _nothing() -> None:
    return


def _stop_if_dead() -> None:
    life = current_life()
    if life is not None and life.is_over:
        raise asyncio.CancelledError
