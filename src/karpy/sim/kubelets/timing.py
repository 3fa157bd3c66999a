"""Durations of boots, pod starts and heartbeats."""

from typing import Final

from msgspec import Struct

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR


class KubeletTiming(Struct, frozen=True):
    """
    Durations in seconds, before `jitter_percent` and `speed` change them.

    The annotations of a pod override them: see `behaviour`.
    """

    boot_seconds: float = 30.0
    """From power on until the Node is created."""
    ready_seconds: float = 10.0
    """From the creation of the Node until it is Ready."""
    start_seconds: float = 2.0
    """From the binding of a pod until its containers run."""
    stop_seconds: float = 1.0
    """From the deletion of a pod until its containers stopped, at most the grace period."""
    job_seconds: float = 60.0
    """How long pods of Jobs run."""
    beat_seconds: float = HOUR
    """
    How often a kubelet renews its lease and its conditions.

    Node lifecycle learns of failures from the kubelets directly, since renewals every ten seconds
    would be most of the work on virtual time. Use 10 where someone reads the Leases.
    """
    jitter_percent: int = 0
    """How much boot and start times vary, by seed."""
    speed: float = 1.0
    """On a loop in real time: the factor by which all is faster. The clock is not changed."""

    def scaled(self, seconds: float) -> float:
        return seconds / self.speed


AT_ONCE: Final = KubeletTiming(boot_seconds=0, ready_seconds=0, start_seconds=0, stop_seconds=0)
