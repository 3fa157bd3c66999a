"""The controller `zonalshift`: no launches into a zone that traffic is shifted away from."""

from datetime import timedelta
from typing import Final

from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.adapters.clouds.aws.classes import NodeClassBook
from karpy.adapters.clouds.aws.reports import Reports
from karpy.core.aws.offerings import may_use_any_zone, read_shifts
from karpy.model.kinds import NODE_POOL
from karpy.model.notices import Notice, Subject
from karpy.ports.clock import Clock

PERIOD: Final = timedelta(seconds=30)


class ZonalShiftController:
    """Reads the zonal shifts of the cluster from Application Recovery Controller."""

    def __init__(
        self,
        calls: AwsCalls,
        clock: Clock,
        book: NodeClassBook,
        cluster_arn: str,
        reports: Reports,
    ) -> None:
        self._calls = calls
        self._clock = clock
        self._book = book
        self._arn = cluster_arn
        self._reports = reports
        self._shifted: frozenset[str] = frozenset()
        """IDs of the zones with a zonal shift; their events are emitted."""

    async def refresh(self) -> None:
        """Read the zonal shifts once, and emit events about changes; raise CloudError."""
        answer = await self._calls.get_managed_resource(resourceIdentifier=self._arn)
        # Differs: one of several zonal shifts that is over: Karpenter launches in its zone again
        # once all of them are; Karpy does at once.
        shifted = read_shifts(answer, self._clock.now())
        names = self._book.zone_names()
        self._emit(shifted - self._shifted, names, is_active=True)
        self._emit(self._shifted - shifted, names, is_active=False)
        self._shifted = shifted

    def zones(self) -> frozenset[str]:
        """Return the names of shifted zones, as far as node classes have subnets there now."""
        if not self._shifted:
            return self._shifted
        names = self._book.zone_names()
        return frozenset(name for name, id_ in names.items() if id_ in self._shifted)

    def _emit(self, ids: frozenset[str], names: dict[str, str], *, is_active: bool) -> None:
        zones = sorted((name, id_) for name, id_ in names.items() if id_ in ids)
        if not zones:
            return
        listed = ", ".join(f"{name} ({id_})" for name, id_ in zones)
        reason, verb = (
            ("ZonalShiftActive", "is active") if is_active else ("ZonalShiftCleared", "is over")
        )
        for pool, requirements in self._book.pools().items():
            if may_use_any_zone(requirements, zones):
                self._reports.emit(
                    Notice(
                        Subject(NODE_POOL, pool),
                        reason,
                        f"Zonal shift away from {listed} {verb}",
                        is_warning=is_active,
                        same_as=(pool, listed),
                    )
                )
