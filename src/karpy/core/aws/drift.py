"""How a machine differs from what its node class asks for by now."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from karpy.core.aws.images import image_for
from karpy.model.ec2 import Instance
from karpy.model.ec2nodeclass import HASH_VERSION, Ec2NodeClass
from karpy.model.instances import InstanceType
from karpy.model.labels import INSTANCE_TYPE, RESERVED
from karpy.model.records import ClaimRecord

NODE_CLASS_HASH: Final = "karpenter.k8s.aws/ec2nodeclass-hash"
NODE_CLASS_HASH_VERSION: Final = "karpenter.k8s.aws/ec2nodeclass-hash-version"
PLACEMENT_GROUP: Final = "karpenter.k8s.aws/placement-group-id"


class DriftUnknown(ValueError):
    """Drift cannot be found out now; the message says why."""


class Observed(Struct, frozen=True):
    """What drift is judged by."""

    claim: ClaimRecord
    node_class: Ec2NodeClass
    types: Sequence[InstanceType]
    """Those of its NodePool."""
    placement_group: str = ""
    """The ID of the group that the node class selects; empty if it selects none."""


def find_static_drift(claim: ClaimRecord, node_class: Ec2NodeClass) -> str:
    """Return NodeClassDrift if the node class has changed since the machine was launched."""
    mine, its = claim.meta.annotations, node_class.meta.annotations
    if not _are_comparable(mine, its):
        return ""
    return "NodeClassDrift" if mine[NODE_CLASS_HASH] != its[NODE_CLASS_HASH] else ""


def find_image_drift(observed: Observed) -> str:
    """Return AMIDrift if the machine boots no image of its node class; raise DriftUnknown."""
    claim, images = observed.claim, observed.node_class.status.images
    name = claim.meta.labels.get(INSTANCE_TYPE, "")
    type_ = next((each for each in observed.types if each.name == name), None)
    if type_ is None:
        raise DriftUnknown(f"the catalog has no instance type `{name}`")
    if not images:
        raise DriftUnknown(f"EC2NodeClass `{observed.node_class.name}` has no images")
    if not claim.image_id:
        raise DriftUnknown("the NodeClaim does not say which image it boots")
    wanted = image_for(images, type_)
    return "" if wanted is not None and claim.image_id == wanted.id else "AMIDrift"


def find_machine_drift(observed: Observed, instance: Instance) -> str:
    """Return how a machine differs from its node class in network or placement."""
    status, name = observed.node_class.status, observed.node_class.name
    if not status.security_groups:
        raise DriftUnknown(f"EC2NodeClass `{name}` has no security groups")
    if not status.subnets:
        raise DriftUnknown(f"EC2NodeClass `{name}` has no subnets")
    # EC2 has no machine without a security group: an answer without any does not know them.
    groups = {*instance.security_groups}
    if groups and groups != {each.id for each in status.security_groups}:
        return "SecurityGroupDrift"
    if instance.subnet not in {each.id for each in status.subnets}:
        return "SubnetDrift"
    if instance.capacity_type == RESERVED and instance.reservation not in {
        each.id for each in status.reservations
    }:
        return "CapacityReservationDrift"
    group = observed.claim.meta.labels.get(PLACEMENT_GROUP, "")
    return "PlacementGroupDrift" if group != observed.placement_group else ""


def _are_comparable(mine: Mapping[str, str], its: Mapping[str, str]) -> bool:
    keys = {NODE_CLASS_HASH, NODE_CLASS_HASH_VERSION}
    if not (keys <= mine.keys() and keys <= its.keys()):
        return False
    return mine[NODE_CLASS_HASH_VERSION] == its[NODE_CLASS_HASH_VERSION] == HASH_VERSION
