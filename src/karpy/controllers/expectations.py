"""Which pods each NodeClaim was made for."""

from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord
from karpy.model.verdicts import Launch
from karpy.ports.records import Kept, Records


class Expectations:
    """Remembers the pods of a launch for as long as its NodeClaim is there."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._pods: dict[str, tuple[str, ...]] = {}
        records.claims.listen(self._hear_claim)

    def note(self, claim: str, launch: Launch) -> None:
        """Take note of the NodeClaim that a launch has become."""
        self._pods[claim] = launch.pods

    def pods_of(self, claim: str) -> list[Pod]:
        """Return the pods that a NodeClaim was made for, as they are now."""
        found = (self._records.pods.get(key) for key in self._pods.get(claim, ()))
        return [pod for pod in found if pod is not None]

    def _hear_claim(
        self, key: str, before: Kept[ClaimRecord] | None, after: Kept[ClaimRecord] | None
    ) -> None:
        del before
        if after is None:
            self._pods.pop(key, None)
