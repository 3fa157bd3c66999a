"""The creation, deletion and price of NodeClaims on a stage."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from karpy.codec.fields import JsonObject
from karpy.model.kinds import NODE_CLAIM
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpy.ports.objects import EventType, WatchEvent
from karpy.sim.store.conditions import condition_of
from tests.scenarios.stage import Stage

_MICROS: Final = 1_000_000


class Deed(NamedTuple):
    """The creation or deletion of a NodeClaim."""

    second: float
    what: str
    """`created` or `deleted`."""
    claim: str


class Ledger:
    """Records when NodeClaims were created and deleted, and how many were deleting at once."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._began = stage.world.clock.now()
        self._prices = {
            (each.name, offering.zone, offering.capacity_type): offering.price
            for each in stage.catalog().types
            for offering in each.offerings
        }
        self.deeds: list[Deed] = []
        self.most_deleting = 0
        stage.store.subscribe(NODE_CLAIM, self._on_claim)

    @property
    def price(self) -> float:
        """The price of the current machines in dollars per hour."""
        labels = [each["metadata"].get("labels") or {} for each in self._stage.claims]
        places = [tuple(each.get(key, "") for key in _PLACE) for each in labels]
        return sum(self._prices.get(each, 0) for each in places) / _MICROS

    def names(self, what: str, *, after: float = 0, before: float = float("inf")) -> list[str]:
        """Return the claims created or deleted in a period, in order."""
        return [
            each.claim for each in self.deeds if each.what == what and after <= each.second < before
        ]

    @property
    def second(self) -> float:
        """The seconds since the start."""
        return (self._stage.world.clock.now() - self._began).total_seconds()

    def _on_claim(self, event: WatchEvent, before: JsonObject | None) -> None:
        name = event.object["metadata"]["name"]
        if event.type is EventType.ADDED:
            self.deeds.append(Deed(self.second, "created", name))
        elif _is_deleting(event.object) and not (before and _is_deleting(before)):
            self.deeds.append(Deed(self.second, "deleted", name))
        self.most_deleting = max(self.most_deleting, count_deleting(self._stage.claims))


_PLACE: Final = (INSTANCE_TYPE, ZONE, CAPACITY_TYPE)


def count_deleting(claims: Iterable[JsonObject]) -> int:
    """Count the claims that consume a disruption budget because they are deleting."""
    return sum(_is_deleting(each) and not _has_ended(each) for each in claims)


def _is_deleting(claim: JsonObject) -> bool:
    return "deletionTimestamp" in claim["metadata"]


def _has_ended(claim: JsonObject) -> bool:
    said = condition_of(claim, "InstanceTerminating")
    return said is not None and said["status"] == "True"
