"""How long controllers wait before they act on a silent node."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from msgspec import Struct


class Patience(Struct, frozen=True):
    """Seconds, as kube-controller-manager has them by default."""

    silence_seconds: float = 50.0
    """How long a kubelet may be silent before its node counts as unreachable."""
    startup_seconds: float = 60.0
    """How long a Node may be without any word of its kubelet."""
    quarantine_seconds: float = 40.0
    """How long a Node may be missing before its pods are collected."""
    machine_seconds: float = 5.0
    """How often the cloud is asked about the machine of a node that is not Ready."""


class Heartbeats(Protocol):
    """Knows of kubelets without their leases: a write every ten seconds is saved."""

    def is_beating(self, name: str) -> bool:
        """Say whether a kubelet is known to live."""

    def last_beat(self, name: str) -> datetime | None:
        """Say when a kubelet fell silent; None if only its Node can tell."""

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call a listener whenever a kubelet falls silent or reports again."""


MachineExists = Callable[[str], bool]
"""Says whether the machine of a provider ID still exists."""
