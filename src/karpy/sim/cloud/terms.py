"""How a simulated cloud treats its customers."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

UNREGISTERED: Final = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}


class Terms(Struct, frozen=True):
    """Delays in seconds, and chances in percent, by seed."""

    answer_seconds: float = 1.0
    """From the call to the answer of a launch; the machine exists from the start of it."""
    end_seconds: float = 30.0
    """From the call until a machine has ended."""
    notice_seconds: float = 120.0
    """From an interruption's notice until the machine ends."""
    interruption_percent: int = 0
    """How likely a spot machine is interrupted within each hour."""
    dud_percent: int = 0
    """How many machines boot and never join."""
    taints: tuple[dict[str, str], ...] = (UNREGISTERED,)
    """What every kubelet registers with."""
    scheme: str = "sim"
    """What provider IDs begin with."""

    def faster(self, speed: float) -> "Terms":
        """Return the same terms for a world that is in more of a hurry."""
        return replace(
            self,
            answer_seconds=self.answer_seconds / speed,
            end_seconds=self.end_seconds / speed,
            notice_seconds=self.notice_seconds / speed,
        )
