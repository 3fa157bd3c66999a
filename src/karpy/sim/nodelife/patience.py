"""How long controllers wait before they act on a silent node."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from msgspec import Struct


class ControllerTimeouts(Struct, frozen=True):
    """Timeouts in seconds; the defaults are those of kube-controller-manager."""

    silence_seconds: float = 50.0
    """Time without a report of the kubelet after which a node is unreachable."""
    startup_seconds: float = 60.0
    """Time within which the kubelet of a new Node must report."""
    quarantine_seconds: float = 40.0
    """Time after the deletion of a Node until its pods are collected."""
    machine_seconds: float = 5.0
    """Interval at which the cloud is asked for the machine of a node that is not Ready."""


class Heartbeats(Protocol):
    """Liveness of kubelets without Leases, which saves a write every ten seconds."""

    def is_beating(self, name: str) -> bool:
        """Say whether a kubelet runs and reports."""

    def last_beat(self, name: str) -> datetime | None:
        """Return when a kubelet stopped reporting; None if only its Node shows it."""

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call a listener whenever a kubelet stops or resumes reporting."""


MachineExists = Callable[[str], bool]
"""Says whether the machine of a provider ID still exists."""
