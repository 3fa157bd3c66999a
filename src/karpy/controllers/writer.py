"""Write the changes of a reconcile: patches, statuses, deletions, then events and counts."""

import asyncio
from typing import Protocol
from weakref import WeakValueDictionary

from karpy.codec.fields import JsonObject
from karpy.codec.records import Writes, claim_writes, node_writes, pool_writes
from karpy.core.lifecycle.changes import Changes, Count, Remark
from karpy.errors import Conflict, NotFound
from karpy.model.kinds import NODE, NODE_CLAIM, NODE_POOL, Kind
from karpy.model.records import ClaimRecord, Identity, NodeRecord, PoolRecord
from karpy.ports.notices import Notices
from karpy.ports.objects import Objects, Patch, PatchType, Removal
from karpy.ports.records import Kept


async def write_status(
    objects: Objects, kind: Kind, meta: Identity, status: JsonObject | None, *, namespace: str = ""
) -> bool:
    """
    Write a patch of a status; None writes nothing.

    Return False after a conflict: the object must be reconciled again. For an object that is gone,
    return True.
    """
    if status is None:
        return True
    patch = Patch(PatchType.MERGE, status)
    try:
        await objects.patch(kind, meta.name, patch, namespace=namespace, subresource="status")
    except Conflict:
        return False
    except NotFound:
        return True
    return True


class Telemetry(Protocol):
    """Reports what happened to metrics and logs."""

    def count(self, count: Count) -> None:
        """Count something that happened."""

    def remark(self, remark: Remark) -> None:
        """Write a line to the log."""


class Cache(Protocol):
    """The cache of watched objects, which takes in our own writes before a watch delivers them."""

    def is_current(self, kind: Kind, meta: Identity) -> bool:
        """Say whether an object is the newest version that the cache has."""

    def note_written(self, kind: Kind, obj: JsonObject) -> None:
        """Take in an object as a write of ours has returned it."""


class NoCache:
    """A cache without objects, for which every version is current."""

    def is_current(self, kind: Kind, meta: Identity) -> bool:
        """Say yes."""
        del self, kind, meta
        return True

    def note_written(self, kind: Kind, obj: JsonObject) -> None:
        """Ignore the object."""


class Writer:
    """
    Carries out the changes that a reconcile results in.

    After a conflict nothing more is written, and the next reconcile sees the write of the other
    writer. An object that is gone needs no write, but a claim is not written after a node that is
    gone. All other errors are raised.

    Several controllers write the same object, one after the other. A write with an outdated version
    is dropped before it reaches the API server, where a refused write costs as much as a good one.
    """

    def __init__(
        self,
        objects: Objects,
        notices: Notices,
        telemetry: Telemetry,
        cache: Cache | None = None,
    ) -> None:
        self._objects = objects
        self._notices = notices
        self._telemetry = telemetry
        self._cache = cache or NoCache()
        self._locks: WeakValueDictionary[tuple[Kind, str], asyncio.Lock] = WeakValueDictionary()
        """Locks of objects that are being written, kept alive by the tasks that use them."""

    async def carry_out(
        self,
        outcome: Changes,
        *,
        claim: Kept[ClaimRecord] | None = None,
        node: Kept[NodeRecord] | None = None,
        pool: Kept[PoolRecord] | None = None,
    ) -> bool:
        """
        Write, delete, then report; say whether everything was written.

        The Node comes first, and the first failed write ends the rest: a claim must not say that
        its node is registered before the node is written.
        """
        if outcome.node is not None and node is not None:
            writes = node_writes(node.record, outcome.node, node.obj)
            is_alone = outcome.claim is None or claim is None
            if not await self._write(NODE, node.record.meta, writes, may_be_gone=is_alone):
                return False
        if outcome.claim is not None and claim is not None:
            writes = claim_writes(claim.record, outcome.claim)
            if not await self._write(NODE_CLAIM, claim.record.meta, writes):
                return False
        if outcome.pool is not None and pool is not None:
            writes = pool_writes(pool.record, outcome.pool)
            if not await self._write(NODE_POOL, pool.record.meta, writes):
                return False
        return await self._end(outcome, claim, node)

    async def _end(
        self, outcome: Changes, claim: Kept[ClaimRecord] | None, node: Kept[NodeRecord] | None
    ) -> bool:
        """Delete what is to be deleted, then report."""
        is_deleted = True
        if outcome.deletes_claim and claim is not None:
            is_deleted = await self._delete(NODE_CLAIM, claim.record.meta)
        if outcome.deletes_node and node is not None:
            is_deleted = await self._delete(NODE, node.record.meta) and is_deleted
        if is_deleted:
            self._report(outcome)
        return is_deleted

    async def _write(
        self, kind: Kind, meta: Identity, writes: Writes, *, may_be_gone: bool = True
    ) -> bool:
        if writes.main is None and writes.status is None:
            return True
        async with self._lock(kind, meta.name):
            if not self._cache.is_current(kind, meta):
                return False
            try:
                self._cache.note_written(kind, await self._patch(kind, meta, writes))
            except Conflict:
                return False
            except NotFound:
                return may_be_gone
        return True

    async def _patch(self, kind: Kind, meta: Identity, writes: Writes) -> JsonObject:
        written: JsonObject = {}
        status = writes.status
        if writes.main is not None:
            patch = Patch(PatchType.MERGE, _guarded_like(writes.main, status))
            written = await self._objects.patch(kind, meta.name, patch)
            status = _guarded_by(status, written["metadata"]["resourceVersion"])
        if status is not None:
            patch = Patch(PatchType.MERGE, status)
            written = await self._objects.patch(kind, meta.name, patch, subresource="status")
        return written

    def _lock(self, kind: Kind, name: str) -> asyncio.Lock:
        """Return the lock under which one controller at a time writes an object."""
        lock = self._locks.get((kind, name))
        if lock is None:
            lock = self._locks[kind, name] = asyncio.Lock()
        return lock

    async def _delete(self, kind: Kind, meta: Identity) -> bool:
        try:
            await self._objects.delete(kind, meta.name, removal=Removal(uid=meta.uid))
        except Conflict:
            # Another object has the name by now: the UID does not match.
            return False
        except NotFound:
            return True
        return True

    def _report(self, outcome: Changes) -> None:
        for notice in outcome.notices:
            self._notices.emit(notice)
        for count in outcome.counts:
            self._telemetry.count(count)
        for remark in outcome.remarks:
            self._telemetry.remark(remark)


def _guarded_like(main: JsonObject, status: JsonObject | None) -> JsonObject:
    """Guard the main patch by the version of the status patch that follows, if that has one."""
    guard = (status or {}).get("metadata") or {}
    return {**main, "metadata": {**main.get("metadata", {}), **guard}}


def _guarded_by(status: JsonObject | None, version: str) -> JsonObject | None:
    """Guard a guarded status by the version that our main patch has just created."""
    if status is None or "metadata" not in status:
        return status
    return {**status, "metadata": {"resourceVersion": version}}
