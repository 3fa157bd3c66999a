"""The port of the cluster: snapshots for decisions, and launches."""

from typing import Protocol

from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch


class Cluster(Protocol):
    """A cluster that gives consistent snapshots, and creates NodeClaims."""

    @property
    def is_synced(self) -> bool:
        """
        Whether snapshots are complete enough for decisions.

        They are not until every kind was listed once, nor while a NodeClaim lacks its provider ID
        although its machine may already exist.
        """

    async def wait_until_synced(self) -> None:
        """Return as soon as snapshots are complete enough for decisions."""

    def snapshot(self) -> Snapshot:
        """Return the present state of the cluster: immutable, and cheap to take again."""

    async def apply(self, launch: Launch) -> str:
        """
        Create the NodeClaim of a launch; return its name.

        The next snapshot has it as a node, even before the watch delivers it. Raises NotFound if
        the NodePool is gone, and any other ClusterError that the API server answers with.
        """
