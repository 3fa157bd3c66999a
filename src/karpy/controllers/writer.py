"""Write what an outcome asks for: differences, statuses, deletions, notices."""

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

    Return False after a conflict: the object must be reconciled again. An object that is gone needs
    no status.
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


class Telling(Protocol):
    """Reports what happened to metrics and logs."""

    def count(self, count: Count) -> None:
        """Count something that happened."""

    def remark(self, remark: Remark) -> None:
        """Write a line to the log."""


class Memory(Protocol):
    """What is known of objects, and learns of a write before any watch tells."""

    def is_current(self, kind: Kind, meta: Identity) -> bool:
        """Say whether nothing newer is known of an object."""

    def note_written(self, kind: Kind, obj: JsonObject) -> None:
        """Take note of what an object has become by a write of ours."""


class Oblivion:
    """Knows nothing, and takes whatever it is shown for the newest."""

    def is_current(self, kind: Kind, meta: Identity) -> bool:
        """Say yes."""
        del self, kind, meta
        return True

    def note_written(self, kind: Kind, obj: JsonObject) -> None:
        """Forget it."""


class Writer:
    """
    Makes objects what an outcome says they should be.

    Another writer may have been faster (Conflict): then nothing is written, and the next look
    sees what they did. What is gone already needs nothing, but nothing is said of it on a claim,
    either. All else is raised.

    Several controllers look after one object. They write one after the other, and the late one
    notices before asking the API server: a refused write costs as much as a good one.
    """

    def __init__(
        self,
        objects: Objects,
        notices: Notices,
        telling: Telling,
        memory: Memory | None = None,
    ) -> None:
        self._objects = objects
        self._notices = notices
        self._telling = telling
        self._memory = memory or Oblivion()
        self._turns: WeakValueDictionary[tuple[Kind, str], asyncio.Lock] = WeakValueDictionary()
        """Writers and those that wait hold on to their lock; nothing else does."""

    async def carry_out(
        self,
        outcome: Changes,
        *,
        claim: Kept[ClaimRecord] | None = None,
        node: Kept[NodeRecord] | None = None,
        pool: Kept[PoolRecord] | None = None,
    ) -> bool:
        """
        Write, delete, then tell; say whether everything was written.

        The Node comes first, and nothing after what could not be written: a claim that says its
        node is registered must not be believed before the node is.
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
        """Delete what is to be deleted, and tell."""
        is_deleted = True
        if outcome.deletes_claim and claim is not None:
            is_deleted = await self._delete(NODE_CLAIM, claim.record.meta)
        if outcome.deletes_node and node is not None:
            is_deleted = await self._delete(NODE, node.record.meta) and is_deleted
        if is_deleted:
            self._tell(outcome)
        return is_deleted

    async def _write(
        self, kind: Kind, meta: Identity, writes: Writes, *, may_be_gone: bool = True
    ) -> bool:
        if writes.main is None and writes.status is None:
            return True
        async with self._turn(kind, meta.name):
            if not self._memory.is_current(kind, meta):
                return False
            try:
                self._memory.note_written(kind, await self._patch(kind, meta, writes))
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

    def _turn(self, kind: Kind, name: str) -> asyncio.Lock:
        """Return what sees to it that only one writes to an object at a time."""
        turn = self._turns.get((kind, name))
        if turn is None:
            turn = self._turns[kind, name] = asyncio.Lock()
        return turn

    async def _delete(self, kind: Kind, meta: Identity) -> bool:
        try:
            await self._objects.delete(kind, meta.name, removal=Removal(uid=meta.uid))
        except Conflict:
            # Another one of that name by now, which is none of our business.
            return False
        except NotFound:
            return True
        return True

    def _tell(self, outcome: Changes) -> None:
        for notice in outcome.notices:
            self._notices.emit(notice)
        for count in outcome.counts:
            self._telling.count(count)
        for remark in outcome.remarks:
            self._telling.remark(remark)


def _guarded_like(main: JsonObject, status: JsonObject | None) -> JsonObject:
    """Guard what comes before a guarded status, too: a version made later would prove nothing."""
    guard = (status or {}).get("metadata") or {}
    return {**main, "metadata": {**main.get("metadata", {}), **guard}}


def _guarded_by(status: JsonObject | None, version: str) -> JsonObject | None:
    """Guard a status by the version that our own write has just made, if it is guarded at all."""
    if status is None or "metadata" not in status:
        return status
    return {**status, "metadata": {"resourceVersion": version}}
