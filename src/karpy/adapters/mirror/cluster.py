"""The port Cluster: read from the mirror, written to the API server."""

import asyncio
from datetime import timedelta
from typing import Final

from karpy.adapters.mirror.hashes import Hashes
from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.claims import write_node_claim
from karpy.codec.fields import Fields
from karpy.codec.records import read_claim_record
from karpy.errors import ClusterError, CredentialsRefused, NotFound
from karpy.model.kinds import NODE_CLAIM, NODE_POOL
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch
from karpy.ports.objects import Objects

_TELLING_TIME: Final = timedelta(seconds=10)
"""Within that a watch tells of a claim that was made, if it is still there."""


class MirroredCluster:
    """A cluster whose changes are seen at once by whoever decides next."""

    def __init__(self, mirror: Mirror, objects: Objects) -> None:
        self._mirror = mirror
        self._objects = objects
        self._hashes = Hashes()

    @property
    def is_synced(self) -> bool:
        """Whether the snapshot can be trusted with decisions."""
        return self._mirror.is_synced

    async def wait_until_synced(self) -> None:
        """Return as soon as the snapshot can be trusted with decisions."""
        await self._mirror.wait_until_synced()

    def snapshot(self) -> Snapshot:
        """Return everything that watches tell, as of now."""
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
        """Forget claims that were made and have gone before any watch could tell, for ever."""
        while True:
            await asyncio.sleep(_TELLING_TIME.total_seconds())
            await self.settle()

    async def settle(self) -> None:
        """Ask for each claim that should have been told of by now."""
        # One that is never told of would keep decisions waiting for its machine for ever.
        for name in self._mirror.untold_claims(self._mirror.now() - _TELLING_TIME):
            try:
                await self._objects.get(NODE_CLAIM, name)
            except NotFound:
                self._mirror.forget_claim(name)
            except (ClusterError, CredentialsRefused):
                continue
