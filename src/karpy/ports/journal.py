"""The port that records decisions."""

from typing import Protocol

from karpy.model.commands import DisruptionVerdict
from karpy.model.snapshot import NodeQuestion, PoolQuestion, Snapshot
from karpy.model.verdicts import PoolVerdict, Verdict


class Journal(Protocol):
    """Records decisions; events, metrics, logs and recordings are derived from them."""

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Record one decision and its snapshot."""

    def record_disruption(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        """Record one decision about the disruption of nodes, and its question."""

    def record_pool(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        """Record one decision about the size of a NodePool, and its question."""
