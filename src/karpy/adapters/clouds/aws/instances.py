"""Instances of EC2 as the machines of the port."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from karpy.codec.aws.answers import Launched
from karpy.core.aws.drift import NODE_CLASS_HASH, NODE_CLASS_HASH_VERSION
from karpy.core.aws.launchtemplates import EFA
from karpy.core.aws.tags import NODE_CLAIM
from karpy.model.ec2 import (
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
    INSTANCE_TENANCY,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
    ZONE_ID,
    Instance,
)
from karpy.model.ec2nodeclass import Ec2NodeClass
from karpy.model.instances import InstanceType, Offering
from karpy.model.labels import CAPACITY_TYPE, RESERVED, ZONE
from karpy.ports.cloud import Machine

INSTANCE_PROFILE: Final = "karpenter.k8s.aws/instance-profile-name"
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_OF_RESERVATIONS: Final = (
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
)


def provider_id(zone: str, id_: str) -> str:
    """Return the provider ID of an instance."""
    return f"aws:///{zone}/{id_}"


class Origin(Struct, frozen=True):
    """The NodeClaim and node class of a machine, and the choices of its launch."""

    claim: str
    node_class: Ec2NodeClass
    started: datetime
    tenancy: str = "default"
    placement_group: str = ""
    partition: str = ""
    """Empty if EC2 chooses it."""
    has_efa: bool = False
    requests: Mapping[str, int] = {}
    """Requests of its pods; the capacity of resources that only a NodeOverlay defines."""


def launched_machine(launched: Launched, type_: InstanceType, origin: Origin) -> Machine:
    """Return the machine of an instance that was just launched."""
    node_class, lost = origin.node_class, frozenset({EFA} if not origin.has_efa else ())
    labels = dict(_labels_of(type_))
    labels |= {
        ZONE: launched.zone,
        CAPACITY_TYPE: launched.lifecycle,
        INSTANCE_TENANCY: origin.tenancy,
    }
    if origin.placement_group:
        labels[PLACEMENT_GROUP_ID] = origin.placement_group
    if PLACEMENT_GROUP_PARTITION in type_.requirements and _has_partitions(type_):
        labels[PLACEMENT_GROUP_PARTITION] = origin.partition
    zone_ids = {each.zone: each.zone_id for each in node_class.status.subnets}
    if zone_ids.get(launched.zone):
        labels[ZONE_ID] = zone_ids[launched.zone]
    if launched.lifecycle == RESERVED:
        labels |= _reservation_labels(type_, launched.zone)
    known = node_class.meta.annotations
    annotations = {
        key: known[key] for key in (NODE_CLASS_HASH, NODE_CLASS_HASH_VERSION) if key in known
    }
    if node_class.status.instance_profile:
        annotations[INSTANCE_PROFILE] = node_class.status.instance_profile
    return Machine(
        provider_id=provider_id(launched.zone, launched.id),
        claim=origin.claim,
        instance_type=launched.instance_type,
        zone=launched.zone,
        capacity_type=launched.lifecycle,
        created=origin.started,
        labels=labels,
        annotations=annotations,
        capacity=_without({**origin.requests, **type_.capacity}, lost),
        allocatable=_without({**origin.requests, **type_.allocatable}, lost),
        image=launched.image,
    )


def described_machine(instance: Instance) -> Machine:
    """Return the machine of an instance that EC2 has described."""
    return Machine(
        provider_id=provider_id(instance.zone, instance.id),
        claim=instance.tags.get(NODE_CLAIM, ""),
        instance_type=instance.instance_type,
        zone=instance.zone,
        capacity_type=instance.capacity_type,
        created=instance.launched or _EPOCH,
        image=instance.image,
        is_terminating=instance.is_terminating,
    )


def _without(amounts: Mapping[str, int], lost: frozenset[str]) -> dict[str, int]:
    return {key: each for key, each in amounts.items() if each and key not in lost}


def _has_partitions(type_: InstanceType) -> bool:
    return bool(type_.requirements[PLACEMENT_GROUP_PARTITION].values)


def _labels_of(type_: InstanceType) -> Iterator[tuple[str, str]]:
    """Yield the labels of which a type has exactly one value."""
    for key, requirement in type_.requirements.items():
        has_one = not requirement.complement and len(requirement.values) == 1
        if has_one and key not in _OF_RESERVATIONS:
            yield key, min(requirement.values)


def _reservation_labels(type_: InstanceType, zone: str) -> dict[str, str]:
    offer = next((each for each in type_.offerings if each.is_reserved and each.zone == zone), None)
    return {} if offer is None else dict(_single_values(offer))


def _single_values(offer: Offering) -> Iterator[tuple[str, str]]:
    for key in _OF_RESERVATIONS:
        requirement = offer.requirements.get(key)
        if requirement is not None and requirement.values:
            yield key, min(requirement.values)
