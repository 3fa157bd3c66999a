"""What EC2 answers, as far as decisions read it."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct


class Subnet(Struct, frozen=True, gc=False):
    """A subnet, and how many addresses are free there."""

    id: str
    zone: str
    zone_id: str = ""
    free_addresses: int = 0


class SecurityGroup(Struct, frozen=True, gc=False):
    """A security group."""

    id: str
    name: str = ""


class Image(Struct, frozen=True, gc=False):
    """A machine image."""

    id: str
    name: str = ""
    architecture: str = ""
    """As EC2 writes it: `x86_64` or `arm64`."""
    created: datetime | None = None
    deprecated: datetime | None = None


class CapacityReservation(Struct, frozen=True, gc=False):
    """A capacity reservation, and how many machines are left of it."""

    id: str
    instance_type: str
    zone: str
    owner: str = ""
    match_criteria: str = ""
    type: str = "default"
    is_interruptible: bool = False
    state: str = "active"
    left: int = 0
    ends: datetime | None = None


class PlacementGroup(Struct, frozen=True, gc=False):
    """A placement group."""

    id: str
    name: str = ""
    strategy: str = ""
    partitions: int = 0


class Instance(Struct, frozen=True, gc=False):
    """A machine of EC2."""

    id: str
    instance_type: str
    zone: str
    state: str = "running"
    image: str = ""
    launched: datetime | None = None
    subnet: str = ""
    security_groups: tuple[str, ...] = ()
    capacity_type: str = "on-demand"
    reservation: str = ""
    reservation_type: str = ""
    tenancy: str = "default"
    tags: Mapping[str, str] = {}
    placement_group: str = ""
    partition: str = ""
    zone_id: str = ""
    efa_count: int = 0

    @property
    def is_ending(self) -> bool:
        return self.state in {"shutting-down", "terminated"}


class FleetError(Struct, frozen=True, gc=False):
    """Why CreateFleet did not launch one of the overrides."""

    code: str
    message: str = ""
    instance_type: str = ""
    zone: str = ""
    subnet: str = ""
    lifecycle: str = ""
