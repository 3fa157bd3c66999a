"""The cluster as controllers see it."""

from typing import Protocol

from karpy.model.snapshot import Snapshot


class Cluster(Protocol):
    """A cluster that can be read at once."""

    @property
    def is_synced(self) -> bool:
        """
        Whether the snapshot can be trusted with decisions.

        It cannot until every kind was listed once, nor while a NodeClaim lacks its provider ID
        though its machine may already exist.
        """

    def snapshot(self) -> Snapshot:
        """Return everything as of now: immutable, cheap to take again."""
