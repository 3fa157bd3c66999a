"""Where decisions are told."""

from typing import Protocol

from karpy.model.questions import DisruptionQuestion, PoolQuestion
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import DisruptionVerdict, PoolVerdict, Verdict


class Journal(Protocol):
    """Takes down what was decided; events, metrics, logs and recordings are views of it."""

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        """Take down one decision and what it was made on."""

    def record_disruption(self, question: DisruptionQuestion, verdict: DisruptionVerdict) -> None:
        """Take down one decision about the disruption of nodes, and what it was made on."""

    def record_pool(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        """Take down one decision about the size of a NodePool, and what it was made on."""
