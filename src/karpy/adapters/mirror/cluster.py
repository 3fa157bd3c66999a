"""The port Cluster: reads from the mirror, writes to the API server."""

import asyncio
from datetime import timedelta
from typing import Final

from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.claims import write_node_claim
from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.memos import Memo
from karpy.codec.records import read_claim_record
from karpy.codec.templates import read_template
from karpy.core.nodepool.hash import hash_annotations, hash_template
from karpy.errors import AnswerMalformed, ClusterError, CredentialsRefused, NotFound
from karpy.model.kinds import NODE_CLAIM, NODE_POOL
from karpy.model.records import PoolRecord
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch
from karpy.ports.objects import Objects
from karpy.ports.records import Kept

_POOLS_MOST: Final = 256


class Hashes:
    """Hashes the template of each NodePool once per generation."""

    def __init__(self) -> None:
        self._digests: Memo[str, tuple[str, int, str]] = Memo(_POOLS_MOST)
        """UID, generation and digest, by pool."""

    def stamped(self, pool: Kept[PoolRecord]) -> JsonObject:
        """Return a NodePool with the hash of its template as annotation."""
        meta: JsonObject = pool.obj["metadata"]
        annotations = {**(meta.get("annotations") or {}), **hash_annotations(self._digest(pool))}
        return {**pool.obj, "metadata": {**meta, "annotations": annotations}}

    def _digest(self, pool: Kept[PoolRecord]) -> str:
        meta = pool.record.meta
        known = self._digests.get(meta.name)
        if known is None or known[:2] != (meta.uid, meta.generation):
            known = meta.uid, meta.generation, _hash(meta.name, pool.obj)
            self._digests.put(meta.name, known)
        return known[2]


def _hash(name: str, obj: JsonObject) -> str:
    try:
        return hash_template(read_template(Fields(obj)))
    except FieldInvalid as error:
        what = f"{NODE_POOL.name} `{name}` cannot be read: {error}"
        raise AnswerMalformed(what, hint=error.hint) from error


_DELIVERY_TIME: Final = timedelta(seconds=10)
"""Longest time in which a watch delivers a claim that was created."""


class MirroredCluster:
    """A cluster whose new claims are in the next snapshot at once."""

    def __init__(self, mirror: Mirror, objects: Objects) -> None:
        self._mirror = mirror
        self._objects = objects
        self._hashes = Hashes()

    @property
    def is_synced(self) -> bool:
        """Whether the snapshot is complete enough for decisions."""
        return self._mirror.is_synced

    async def wait_until_synced(self) -> None:
        """Return as soon as the snapshot is complete enough for decisions."""
        await self._mirror.wait_until_synced()

    def snapshot(self) -> Snapshot:
        """Return the cluster as watches have delivered it."""
        return self._mirror.snapshot()

    async def apply(self, launch: Launch) -> str:
        """Create the NodeClaim of a launch; return its name."""
        # The template may have changed since the decision; the claim must carry its current hash.
        pool = self._mirror.records.pools.get(launch.pool)
        if pool is None:
            raise NotFound(f"{NODE_POOL.name} `{launch.pool}` is gone")
        catalog = self._mirror.overlaid_catalog()
        made = await self._objects.create(
            NODE_CLAIM, write_node_claim(launch, self._hashes.stamped(pool), catalog)
        )
        claim = read_claim_record(Fields(made))
        self._mirror.note_claim(claim)
        return claim.name

    async def run(self) -> None:
        """Drop created claims that are gone before a watch delivers them, until cancelled."""
        while True:
            await asyncio.sleep(_DELIVERY_TIME.total_seconds())
            await self.settle()

    async def settle(self) -> None:
        """Get each claim that a watch should have delivered; drop it if it is gone."""
        # A claim that no watch delivers would keep decisions waiting for its machine.
        for name in self._mirror.undelivered_claims(self._mirror.now() - _DELIVERY_TIME):
            try:
                await self._objects.get(NODE_CLAIM, name)
            except NotFound:
                self._mirror.forget_claim(name)
            except (ClusterError, CredentialsRefused):
                continue
