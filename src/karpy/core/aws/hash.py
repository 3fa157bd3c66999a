"""
The hash of an EC2NodeClass: a NodeClaim that carries another one has drifted.

The numbers are those of Karpenter: with others, every node of a cluster that is taken over drifts.
The object is hashed as it was written, since Karpenter tells what is empty from what is absent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from karpy.core.structhash import (
    hash_bytes,
    hash_integer,
    hash_map,
    hash_set,
    hash_struct,
    hash_text,
    hash_texts,
)
from karpy.model.resources import canonical_quantity
from karpy.model.times import parse_duration

VERSION: Final = "v5"
"""Of the way to hash; hashes of different versions say nothing about each other."""
_NANOSECONDS: Final = 1000
"""In a microsecond."""

JsonObject = Mapping[str, Any]
_Hash = Callable[[Any], int]
_Fields = Sequence[tuple[str, str, _Hash]]
"""Of a struct: the name in Go, the name in JSON, and how the value is hashed."""


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
    # A metav1.Duration is a struct with one field; a duration of nothing is left out of it.
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
"""Fields that are no pointers in Go: a zero value counts as absent."""
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
