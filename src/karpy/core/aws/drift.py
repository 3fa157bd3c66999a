"""
Drift of a machine from its EC2NodeClass, found by hash or by comparison.

The hashes equal Karpenter's: otherwise every node of a cluster that Karpy takes over would drift.
An EC2NodeClass is hashed as written: an empty field has another hash than an absent one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from karpy.core.aws.images import image_for
from karpy.core.nodepool.hash import (
    hash_bytes,
    hash_integer,
    hash_map,
    hash_set,
    hash_struct,
    hash_text,
    hash_texts,
)
from karpy.model.ec2 import Instance
from karpy.model.ec2nodeclass import HASH_VERSION, Ec2NodeClass
from karpy.model.instances import InstanceType
from karpy.model.labels import INSTANCE_TYPE, RESERVED
from karpy.model.records import ClaimRecord
from karpy.model.resources import canonical_quantity
from karpy.model.times import parse_duration

NODE_CLASS_HASH: Final = "karpenter.k8s.aws/ec2nodeclass-hash"
NODE_CLASS_HASH_VERSION: Final = "karpenter.k8s.aws/ec2nodeclass-hash-version"
PLACEMENT_GROUP: Final = "karpenter.k8s.aws/placement-group-id"
VERSION: Final = "v5"
"""The version of the hash algorithm; hashes of different versions are not compared."""
_NANOSECONDS: Final = 1000
"""Nanoseconds in a microsecond."""

JsonObject = Mapping[str, Any]
_Hash = Callable[[Any], int]
_Fields = Sequence[tuple[str, str, _Hash]]
"""The fields of a struct: the name in Go, the name in JSON, and the hash function of the value."""


class DriftUnknown(ValueError):
    """Drift cannot be determined now; the message says why."""


class Observed(Struct, frozen=True):
    """A NodeClaim, and what it is compared with."""

    claim: ClaimRecord
    node_class: Ec2NodeClass
    types: Sequence[InstanceType]
    """The instance types of its NodePool."""
    placement_group: str = ""
    """The ID of the group that the node class selects; empty if it selects none."""


def find_static_drift(claim: ClaimRecord, node_class: Ec2NodeClass) -> str:
    """Return NodeClassDrift if the node class has changed since the machine was launched."""
    launched, current = claim.meta.annotations, node_class.meta.annotations
    if not _are_comparable(launched, current):
        return ""
    return "NodeClassDrift" if launched[NODE_CLASS_HASH] != current[NODE_CLASS_HASH] else ""


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
    # Every instance has a security group: an answer without any leaves them out.
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


def _are_comparable(launched: Mapping[str, str], current: Mapping[str, str]) -> bool:
    keys = {NODE_CLASS_HASH, NODE_CLASS_HASH_VERSION}
    if not (keys <= launched.keys() and keys <= current.keys()):
        return False
    return launched[NODE_CLASS_HASH_VERSION] == current[NODE_CLASS_HASH_VERSION] == HASH_VERSION


def hash_node_class(spec: JsonObject, family: str, ca_bundle: str = "") -> str:
    """
    Hash the part of a node class that static drift compares.

    `family` is the image family as resolved from alias and amiFamily, `ca_bundle` the cluster's.
    """
    parts = (_struct("EC2NodeClassSpec", _SPEC)(spec), hash_text(family), hash_text(ca_bundle))
    return str(hash_set(parts))


def _flag(value: int) -> int:
    return hash_bytes(bytes([value]))


def _int32(value: int) -> int:
    return hash_bytes(value.to_bytes(4, "little", signed=True))


def _durations(values: JsonObject) -> int:
    # A metav1.Duration is a struct with one field, which is left out if it is zero.
    hashes = {}
    for key, text in values.items():
        span = parse_duration(text)
        microseconds = 0 if span is None else round(span.total_seconds() * 1_000_000)
        number = hash_integer(microseconds * _NANOSECONDS) if microseconds else None
        hashes[key] = hash_struct("Duration", [("Duration", number)])
    return hash_map(hashes)


def _size(text: str) -> int:
    return hash_text(canonical_quantity(text))


def _struct(name: str, fields: _Fields) -> _Hash:
    def hash_one(value: JsonObject) -> int:
        return hash_struct(
            name,
            [
                (go, hash_value(value[key]) if _is_there(value, key) else None)
                for go, key, hash_value in fields
            ],
        )

    return hash_one


def _is_there(value: JsonObject, key: str) -> bool:
    return bool(value.get(key)) if key in _PLAIN else value.get(key) is not None


def _list(hash_one: _Hash) -> _Hash:
    return lambda values: hash_set(map(hash_one, values))


_PLAIN: Final = frozenset(
    {"rootVolume", "role", "networkCardIndex", "deviceIndex", "interfaceType"}
)
"""Fields that are not pointers in Go: a zero value counts as absent."""
_DISK: Final[_Fields] = (
    ("DeleteOnTermination", "deleteOnTermination", _flag),
    ("Encrypted", "encrypted", _flag),
    ("IOPS", "iops", hash_integer),
    ("KMSKeyID", "kmsKeyID", hash_text),
    ("SnapshotID", "snapshotID", hash_text),
    ("Throughput", "throughput", hash_integer),
    ("VolumeInitializationRate", "volumeInitializationRate", _int32),
    ("VolumeSize", "volumeSize", _size),
    ("VolumeType", "volumeType", hash_text),
)
_MAPPING: Final[_Fields] = (
    ("DeviceName", "deviceName", hash_text),
    ("EBS", "ebs", _struct("BlockDevice", _DISK)),
    ("RootVolume", "rootVolume", _flag),
)
_KUBELET: Final[_Fields] = (
    ("ClusterDNS", "clusterDNS", _list(hash_text)),
    ("MaxPods", "maxPods", _int32),
    ("PodsPerCore", "podsPerCore", _int32),
    ("SystemReserved", "systemReserved", hash_texts),
    ("KubeReserved", "kubeReserved", hash_texts),
    ("EvictionHard", "evictionHard", hash_texts),
    ("EvictionSoft", "evictionSoft", hash_texts),
    ("EvictionSoftGracePeriod", "evictionSoftGracePeriod", _durations),
    ("EvictionMaxPodGracePeriod", "evictionMaxPodGracePeriod", _int32),
    ("ImageGCHighThresholdPercent", "imageGCHighThresholdPercent", _int32),
    ("ImageGCLowThresholdPercent", "imageGCLowThresholdPercent", _int32),
    ("CPUCFSQuota", "cpuCFSQuota", _flag),
)
_INTERFACE: Final[_Fields] = (
    ("NetworkCardIndex", "networkCardIndex", _int32),
    ("DeviceIndex", "deviceIndex", _int32),
    ("InterfaceType", "interfaceType", hash_text),
)
_METADATA: Final[_Fields] = (
    ("HTTPEndpoint", "httpEndpoint", hash_text),
    ("HTTPProtocolIPv6", "httpProtocolIPv6", hash_text),
    ("HTTPPutResponseHopLimit", "httpPutResponseHopLimit", hash_integer),
    ("HTTPTokens", "httpTokens", hash_text),
)
_TRACKING: Final[_Fields] = (
    ("TCPEstablishedTimeout", "tcpEstablishedTimeout", _int32),
    ("UDPStreamTimeout", "udpStreamTimeout", _int32),
    ("UDPTimeout", "udpTimeout", _int32),
)
_GROUP: Final[_Fields] = (("Name", "name", hash_text), ("ID", "id", hash_text))
_CPU: Final[_Fields] = (("NestedVirtualization", "nestedVirtualization", hash_text),)
_SPEC: Final[_Fields] = (
    ("PlacementGroupSelector", "placementGroupSelector", _struct("PlacementGroupSelector", _GROUP)),
    ("AssociatePublicIPAddress", "associatePublicIPAddress", _flag),
    ("UserData", "userData", hash_text),
    ("Role", "role", hash_text),
    ("InstanceProfile", "instanceProfile", hash_text),
    ("Tags", "tags", hash_texts),
    ("Kubelet", "kubelet", _struct("KubeletConfiguration", _KUBELET)),
    (
        "BlockDeviceMappings",
        "blockDeviceMappings",
        _list(_struct("BlockDeviceMapping", _MAPPING)),
    ),
    ("InstanceStorePolicy", "instanceStorePolicy", hash_text),
    ("NetworkInterfaces", "networkInterfaces", _list(_struct("NetworkInterface", _INTERFACE))),
    ("DetailedMonitoring", "detailedMonitoring", _flag),
    ("MetadataOptions", "metadataOptions", _struct("MetadataOptions", _METADATA)),
    ("ConnectionTracking", "connectionTracking", _struct("ConnectionTracking", _TRACKING)),
    ("Context", "context", hash_text),
    ("CPUOptions", "cpuOptions", _struct("CPUOptions", _CPU)),
)
