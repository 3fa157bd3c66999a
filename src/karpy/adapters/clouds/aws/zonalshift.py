"""The controller `zonalshift`: nothing is launched in a zone that traffic is shifted away from."""

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
    """Asks Application Recovery Controller about the cluster, and has launches heed it."""

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
        self._told: frozenset[str] = frozenset()
        """IDs of the zones that NodePools were told about."""

    async def look(self) -> None:
        """Look for shifts once; raise CloudError."""
        answer = await self._calls.get_managed_resource(resourceIdentifier=self._arn)
        # Differs: one of several zonal shifts that is over: Karpenter launches in its zone again
        # once all of them are; Karpy does at once.
        shifted = read_shifts(answer, self._clock.now())
        names = self._book.zone_names()
        self._tell(shifted - self._told, names, is_active=True)
        self._tell(self._told - shifted, names, is_active=False)
        self._told = shifted

    def zones(self) -> frozenset[str]:
        """Name the zones: a node class may find their subnets only after a shift was seen."""
        if not self._told:
            return self._told
        return frozenset(name for name, id_ in self._book.zone_names().items() if id_ in self._told)

    def _tell(self, ids: frozenset[str], names: dict[str, str], *, is_active: bool) -> None:
        zones = sorted((name, id_) for name, id_ in names.items() if id_ in ids)
        if not zones:
            return
        listed = ", ".join(f"{name} ({id_})" for name, id_ in zones)
        reason, verb = (
            ("ZonalShiftActive", "is active") if is_active else ("ZonalShiftCleared", "is over")
        )
        for pool, asked in self._book.pools().items():
            if may_use_any_zone(asked, zones):
                self._reports.emit(
                    Notice(
                        Subject(NODE_POOL, pool),
                        reason,
                        f"Zonal shift away from {listed} {verb}",
                        is_warning=is_active,
                        same_as=(pool, listed),
                    )
                )
