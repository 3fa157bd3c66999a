"""How long things take on a machine."""

from typing import Final

from msgspec import Struct

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR


class Timing(Struct, frozen=True):
    """
    Seconds that things take, before chance and `speed` change them.

    A pod may say otherwise for itself: see `behaviour`.
    """

    boot_seconds: float = 30.0
    """From power on until the Node is there."""
    ready_seconds: float = 10.0
    """From there until it is Ready."""
    start_seconds: float = 2.0
    """From a pod's arrival until its containers run."""
    stop_seconds: float = 1.0
    """From the request to stop until they have; never longer than the grace period."""
    job_seconds: float = 60.0
    """How long pods of Jobs run."""
    beat_seconds: float = HOUR
    """
    How often a kubelet renews its lease and its conditions.

    Whether it lives is told to the node lifecycle directly: on virtual time a beat every ten
    seconds would be nearly all that happens. Give 10 if people look at leases.
    """
    jitter_percent: int = 0
    """How much boots and starts differ from each other, by seed."""
    speed: float = 1.0
    """On a loop in real time: how many times faster than in life. The clock stays as it is."""

    def scaled(self, seconds: float) -> float:
        return seconds / self.speed


AT_ONCE: Final = Timing(boot_seconds=0, ready_seconds=0, start_seconds=0, stop_seconds=0)
