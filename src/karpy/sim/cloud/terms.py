"""Delays and failure rates of a simulated cloud."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

UNREGISTERED: Final = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}


class Terms(Struct, frozen=True):
    """Delays in seconds, and chances in percent, by seed."""

    answer_seconds: float = 1.0
    """Duration of a launch call; the machine exists from its start."""
    end_seconds: float = 30.0
    """From the call to terminate a machine until it is gone."""
    notice_seconds: float = 120.0
    """From the notice of an interruption until the machine is terminated."""
    interruption_percent: int = 0
    """Probability per hour that a spot machine is interrupted."""
    dud_percent: int = 0
    """Share of machines that boot and never join."""
    taints: tuple[dict[str, str], ...] = (UNREGISTERED,)
    """Taints with which every kubelet registers."""
    scheme: str = "sim"
    """The scheme of provider IDs."""

    def faster(self, speed: float) -> "Terms":
        """Return the terms with all delays divided by `speed`."""
        return replace(
            self,
            answer_seconds=self.answer_seconds / speed,
            end_seconds=self.end_seconds / speed,
            notice_seconds=self.notice_seconds / speed,
        )
