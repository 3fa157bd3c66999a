"""The state of the fake outside moto; tests and `karpy aws fake` change it while it serves."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from threading import RLock
from typing import Any, TypeAlias

from karpy.adapters.clouds.awsfake.imagetable import RELEASE
from karpy.adapters.clouds.awsfake.market import FakeMarket

JsonObject: TypeAlias = dict[str, Any]
JsonAnything: TypeAlias = Any
"""Any value in an answer."""


class Tables:
    """Market, images, reservations, placement groups, health, shifts and injected refusals."""

    def __init__(
        self,
        region: str,
        prices: Mapping[str, int],
        types: Mapping[str, JsonObject],
        zones: Mapping[str, Sequence[str]],
    ) -> None:
        """Take the instance types, the zones of each, and prices in micro-dollars per hour."""
        self.region = region
        self.market = FakeMarket(prices)
        self.release = RELEASE
        """The latest release of the images of EKS."""
        self.types = {name: each for name, each in types.items() if name in zones}
        """The answer of DescribeInstanceTypes for each type."""
        self.zones = {name: tuple(some) for name, some in zones.items() if name in types}
        self.reservations: dict[str, JsonObject] = {}
        self.groups: dict[str, JsonObject] = {}
        self.health: dict[str, JsonObject] = {}
        """The answers of DescribeInstanceStatus for impaired instances."""
        self.shifts: list[JsonObject] = []
        self.calls: dict[str, int] = {}
        """How often each call was made."""
        self._refusals: dict[str, list[tuple[str, str, int]]] = {}
        self.lock = RLock()

    def refuse(
        self, call: str, code: str = "RequestLimitExceeded", message: str = "", times: int = 1
    ) -> None:
        """Refuse a call such as `CreateFleet` a number of times, by default with throttling."""
        said = message or f"{call} was refused."
        with self.lock:
            self._refusals.setdefault(call, []).append((code, said, times))

    def allow(self, call: str) -> None:
        """Stop refusing a call."""
        with self.lock:
            self._refusals.pop(call, None)

    def admit(self, call: str) -> tuple[str, str] | None:
        """Count a call; return code and message of its injected refusal, or None."""
        with self.lock:
            self.calls[call] = self.calls.get(call, 0) + 1
            left = self._refusals.get(call)
            if not left:
                return None
            code, message, times = left[0]
            if times > 1:
                left[0] = (code, message, times - 1)
            else:
                left.pop(0)
            return code, message

    def reserve(
        self, id_: str, instance_type: str, zone: str, machines: int, **more: JsonAnything
    ) -> None:
        """Add a capacity reservation; further fields are those of EC2."""
        with self.lock:
            self.market.left[id_] = machines
            self.reservations[id_] = {
                "CapacityReservationId": id_,
                "InstanceType": instance_type,
                "AvailabilityZone": zone,
                "OwnerId": "123456789012",
                "InstanceMatchCriteria": "targeted",
                "ReservationType": "default",
                "State": "active",
                "TotalInstanceCount": machines,
                "Tags": [],
                **more,
            }

    def described_reservations(self) -> list[JsonObject]:
        """Return the capacity reservations with their available count."""
        with self.lock:
            return [
                {**each, "AvailableInstanceCount": self.market.left[id_]}
                for id_, each in self.reservations.items()
            ]

    def group(self, id_: str, name: str, strategy: str, partitions: int = 0) -> None:
        """Add a placement group."""
        made: JsonObject = {
            "GroupId": id_,
            "GroupName": name,
            "Strategy": strategy,
            "State": "available",
        }
        if partitions:
            made["PartitionCount"] = partitions
        self.groups[name] = made

    def impair(self, instance: str, check: str = "instance", since: datetime | None = None) -> None:
        """Let a status check of an instance fail: `instance` or `system`."""
        when = since or datetime.now(UTC)
        failed = {
            "Status": "impaired",
            "Details": [{"Name": "reachability", "Status": "failed", "ImpairedSince": when}],
        }
        key = "InstanceStatus" if check == "instance" else "SystemStatus"
        self.health.setdefault(instance, {})[key] = failed

    def schedule(self, instance: str, code: str = "instance-retirement") -> None:
        """Schedule an event of an instance."""
        event = {"Code": code, "Description": "The instance is scheduled to be retired"}
        self.health.setdefault(instance, {}).setdefault("Events", []).append(event)

    def heal(self, instance: str) -> None:
        """Let all status checks of an instance pass again."""
        self.health.pop(instance, None)

    def shift(self, zone_id: str, until: datetime) -> None:
        """Start a zonal shift away from a zone."""
        self.shifts.append(
            {
                "appliedStatus": "APPLIED",
                "awayFrom": zone_id,
                "comment": "",
                "expiryTime": until,
                "resourceIdentifier": "",
                "startTime": datetime.now(UTC),
                "zonalShiftId": f"shift-{len(self.shifts) + 1}",
            }
        )


def has_tags(tags: object, filters: Sequence[tuple[str, Sequence[str]]]) -> bool:
    """Say whether tags match all filters on tags; other filters are ignored."""
    known = {each["Key"]: each.get("Value", "") for each in tags} if isinstance(tags, list) else {}
    for name, values in filters:
        if name == "tag-key" and not any(each in known for each in values):
            return False
        if name.startswith("tag:") and known.get(name.removeprefix("tag:")) not in values:
            return False
    return True
