"""The port that observes work queues."""

from enum import Enum
from typing import Protocol

from karpy.errors import Bug, KarpyError


class ReconcileResult(Enum):
    """How a reconcile ended; the value is the label in metrics."""

    SUCCESS = "success"
    AGAIN = "requeue_after"
    """Success, with another reconcile after a delay."""
    ERROR = "error"
    BUG = "panic"
    """A bug: an error of no known class."""

    @classmethod
    def of(cls, error: KarpyError) -> "ReconcileResult":
        """Return the result of a reconcile that an error has ended."""
        return cls.BUG if isinstance(error, Bug) else cls.ERROR


class Observer(Protocol):
    """Observes the work of one controller; never blocks and never fails."""

    def set_workers(self, workers: int) -> None:
        """Set the number of workers of the controller."""

    def add(self, key: str) -> None:
        """Note that a key is queued."""

    def take(self, key: str) -> None:
        """Note that a reconcile begins."""

    def finish(self, key: str, result: ReconcileResult) -> None:
        """Note how a reconcile ended."""

    def put_off(self, key: str) -> None:
        """Note that a key is delayed: its reconcile failed, or asked for another one later."""
