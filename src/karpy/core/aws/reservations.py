"""Labels of nodes and NodeClaims whose capacity reservation ends or whose partition is known."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from karpy.model.ec2 import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
    EXPIRING,
    PLACEMENT_GROUP_PARTITION,
)
from karpy.model.ec2nodeclass import Ec2NodeClass
from karpy.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED
from karpy.model.records import ClaimRecord, Identity

_RESERVATION_LABELS: Final = frozenset(
    {CAPACITY_RESERVATION_ID, CAPACITY_RESERVATION_TYPE, CAPACITY_RESERVATION_INTERRUPTIBLE}
)


def is_reserved(meta: Identity) -> bool:
    """Say whether an object has the capacity type reserved."""
    return meta.labels.get(CAPACITY_TYPE) == RESERVED


def demoted(meta: Identity) -> Identity:
    """Relabel a reserved object as on-demand, because its capacity reservation has ended."""
    if not is_reserved(meta):
        return meta
    labels = {key: value for key, value in meta.labels.items() if key not in _RESERVATION_LABELS}
    return replace(meta, labels={**labels, CAPACITY_TYPE: ON_DEMAND})


def expiring_reservations(classes: Iterable[Ec2NodeClass]) -> frozenset[str]:
    """Return the IDs of the capacity blocks that end soon."""
    return frozenset(
        found.id
        for each in classes
        for found in each.status.reservations
        if found.state == EXPIRING
    )


def is_expiring_with(claim: ClaimRecord, expiring: Collection[str]) -> bool:
    """Say whether the machine of a claim is in a capacity block that ends soon."""
    id_ = claim.meta.labels.get(CAPACITY_RESERVATION_ID)
    return is_reserved(claim.meta) and id_ in expiring and not claim.meta.is_deleting


def lacks_partition(claim: ClaimRecord) -> bool:
    """Say whether EC2 has chosen a partition that the label of the claim does not have yet."""
    return not claim.meta.is_deleting and claim.meta.labels.get(PLACEMENT_GROUP_PARTITION) == ""


def with_partition(meta: Identity, partition: str) -> Identity:
    """Label an object with the partition of its machine."""
    labels: Mapping[str, str] = {**meta.labels, PLACEMENT_GROUP_PARTITION: partition}
    return replace(meta, labels=labels)
