"""The cluster as controllers see it."""

from typing import Protocol

from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch


class Cluster(Protocol):
    """A cluster that can be read at once, and changed one decision at a time."""

    @property
    def is_synced(self) -> bool:
        """
        Whether the snapshot can be trusted with decisions.

        It cannot until every kind was listed once, nor while a NodeClaim lacks its provider ID
        though its machine may already exist.
        """

    async def wait_until_synced(self) -> None:
        """Return as soon as the snapshot can be trusted with decisions."""

    def snapshot(self) -> Snapshot:
        """Return everything as of now: immutable, cheap to take again."""

    async def apply(self, launch: Launch) -> str:
        """
        Create the NodeClaim of a launch; return its name.

        The next snapshot has it, as a node in flight, though no watch has told it yet. Raises
        NotFound if the NodePool is gone, and any other ClusterError the API server answers with.
        """
