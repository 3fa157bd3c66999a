"""The port Cluster: read from the mirror, written to the API server."""

from karpy.adapters.mirror.mirror import Mirror
from karpy.codec.claims import write_node_claim
from karpy.codec.crds import read_node_claim
from karpy.codec.fields import Fields
from karpy.model.kinds import NODE_CLAIM, NODE_POOL
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch
from karpy.ports.objects import Objects


class MirroredCluster:
    """A cluster whose changes are seen at once by whoever decides next."""

    def __init__(self, mirror: Mirror, objects: Objects) -> None:
        self._mirror = mirror
        self._objects = objects

    @property
    def is_synced(self) -> bool:
        """Whether the snapshot can be trusted with decisions."""
        return self._mirror.is_synced

    async def wait_until_synced(self) -> None:
        """Return as soon as the snapshot can be trusted with decisions."""
        await self._mirror.wait_until_synced()

    def snapshot(self) -> Snapshot:
        """Return everything as of now."""
        return self._mirror.snapshot()

    async def apply(self, launch: Launch) -> str:
        """Create the NodeClaim of a launch; return its name."""
        # The template may have changed since the decision; the claim must carry its current hash.
        pool = await self._objects.get(NODE_POOL, launch.pool)
        made = await self._objects.create(
            NODE_CLAIM, write_node_claim(launch, pool, self._mirror.catalog())
        )
        claim = read_node_claim(Fields(made))
        self._mirror.note_claim(claim)
        return claim.name
