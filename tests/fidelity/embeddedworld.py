"""The embedded scheduler, on virtual time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, Kind
from karpy.sim.clock import LoopClock
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.scheduler.provisioner import Provisioner
from karpy.sim.scheduler.scheduler import Scheduler
from karpy.sim.store.store import Store
from tests.fidelity.worlds import Storage, World

_START: Final = datetime(2026, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def embedded_world() -> AsyncIterator[World]:
    """Open a world with only a scheduler and a volume provisioner."""
    clock = LoopClock(_START)
    store = Store(clock)
    parts = (Scheduler(store, clock), Provisioner(store))
    for part in parts:
        part.start()
    world = _EmbeddedWorld(EmbeddedObjects(store))
    try:
        async with world.opened():
            yield world
    finally:
        for part in parts:
            part.stop()


class _EmbeddedWorld(World):
    """A world that can copy the storage of another."""

    async def furnish(self, storage: Storage) -> None:
        """Replace all volumes and claims by those of another world."""
        mine = await self.storage()
        await self._delete_all(PERSISTENT_VOLUME_CLAIM, mine.claims)
        await self._delete_all(PERSISTENT_VOLUME, mine.volumes)
        uids = {}
        for claim in storage.claims:
            made = await self._copy(PERSISTENT_VOLUME_CLAIM, claim)
            uids[claim["metadata"]["uid"]] = made["metadata"]["uid"]
        for volume in storage.volumes:
            await self._copy(PERSISTENT_VOLUME, _renamed(volume, uids))

    async def _copy(self, kind: Kind, obj: JsonObject) -> JsonObject:
        known = {"name", "namespace", "labels", "annotations"}
        meta = {key: value for key, value in obj["metadata"].items() if key in known}
        made = await self.objects.create(kind, {**obj, "metadata": meta})
        status = obj.get("status") or {}
        return await self.objects.replace(kind, {**made, "status": status}, subresource="status")


def _renamed(volume: JsonObject, uids: dict[str, str]) -> JsonObject:
    """Return a volume that refers to its claim by the UID in this world."""
    spec = volume["spec"]
    reference = spec.get("claimRef") or {}
    if reference.get("uid") not in uids:
        return volume
    return {**volume, "spec": {**spec, "claimRef": {**reference, "uid": uids[reference["uid"]]}}}
