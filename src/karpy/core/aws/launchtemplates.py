"""Launch templates: which ones a launch needs, their names and their content."""

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from karpy.core.aws.bootstrap import Bootstrap
from karpy.core.aws.images import image_for
from karpy.core.aws.tags import CLUSTER_NAME, MachineOwner, ec2_tags, machine_tags
from karpy.core.aws.userdata import ImageFamily, encoded_user_data
from karpy.model.ec2 import (
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    CAPACITY_RESERVATION_TYPE,
)
from karpy.model.ec2nodeclass import DiskMapping, Ec2NodeClass, Ec2NodeClassSpec
from karpy.model.instances import InstanceType, Offering
from karpy.model.labels import RESERVED, SPOT
from karpy.model.resources import PODS, parse_quantity

PREFIX: Final = "karpenter.k8s.aws/"
EFA: Final = "vpc.amazonaws.com/efa"
ENCLAVE: Final = "eks.amazonaws.com/nip-slots"
CAPACITY_BLOCK: Final = "capacity-block"
USER_DATA_MAX: Final = 16384
"""The limit of EC2, in bytes."""
USER_DATA_LARGE: Final = USER_DATA_MAX * 9 // 10
_GIB: Final = 2**30
_WITHOUT_IPV6_METADATA: Final = ("us-iso-", "us-isob-", "us-isof-")
_MASK: Final = 2**64 - 1


class Reserved(Struct, frozen=True, gc=False):
    """A capacity reservation that machines are launched into; an empty ID stands for none."""

    id: str = ""
    type: str = ""
    is_interruptible: bool = False


class TemplateKind(Struct, frozen=True):
    """The properties that the machines of one launch template have in common."""

    image: str
    types: tuple[InstanceType, ...]
    """The instance types to launch; they are in the overrides, not in the template."""
    max_pods: int = 0
    efa_count: int = 0
    reservation: str = ""
    reservation_type: str = ""
    is_interruptible: bool = False


class LaunchProperties(Struct, frozen=True):
    """The properties of a launch that all its templates have in common."""

    node_class: Ec2NodeClass
    family: ImageFamily
    bootstrap: Bootstrap
    """Without maxPods, which differs between the templates."""
    owner: MachineOwner
    capacity_type: str
    tenancy: str = "default"
    region: str = ""
    has_enclave: bool = False
    placement_group: str = ""
    partition: str = ""
    reserves: bool = True
    """Whether templates name a preference for reservations: the feature gate ReservedCapacity."""


class LaunchTemplate(Struct, frozen=True):
    """A launch template: its name, and the data to create it with."""

    name: str
    kind: TemplateKind
    data: Mapping[str, Any]


def split_by_template(
    node_class: Ec2NodeClass,
    types: Iterable[InstanceType],
    capacity_type: str = "",
    *,
    wants_efa: bool,
) -> list[TemplateKind]:
    """
    Group instance types by the properties that a launch template fixes.

    They are image, maxPods and interfaces, and for reserved capacity the capacity reservation.
    """
    kinds: dict[tuple[str, int, int, Reserved], list[InstanceType]] = {}
    for each in types:
        image = image_for(node_class.status.images, each)
        if image is None:
            continue
        efa = each.capacity.get(EFA, 0) if wants_efa else 0
        for reserved in _reservations(each) if capacity_type == RESERVED else [Reserved()]:
            key = image.id, each.capacity.get(PODS, 0), efa, reserved
            kinds.setdefault(key, []).append(each)
    return [
        TemplateKind(image, tuple(alike), pods, efa, *structs.astuple(reserved))
        for (image, pods, efa, reserved), alike in kinds.items()
    ]


def reservation_of(offer: Offering) -> Reserved:
    """Return the capacity reservation of an offering."""
    type_ = _value(offer, CAPACITY_RESERVATION_TYPE) or "default"
    is_interruptible = _value(offer, CAPACITY_RESERVATION_INTERRUPTIBLE) == "true"
    return Reserved(offer.reservation_id, type_, is_interruptible)


def _reservations(type_: InstanceType) -> list[Reserved]:
    found = {reservation_of(each) for each in type_.offerings if each.is_reserved}
    return sorted(found, key=lambda each: each.id)


def _value(offer: Offering, key: str) -> str:
    found = offer.requirements.get(key)
    return min(found.values) if found is not None and found.values else ""


def launch_template(batch: LaunchProperties, kind: TemplateKind) -> LaunchTemplate:
    """Return the template of one kind of machines; raise UserDataInvalid."""
    data = _data(batch, kind)
    digest = sha256(msgspec.json.encode(data, order="sorted")).digest()
    # Differs: names of launch templates: Karpenter derives them from another hash; Karpy does not
    # reuse Karpenter's templates, because both create and delete them as needed.
    number = int.from_bytes(digest[:8], "big") & _MASK
    return LaunchTemplate(f"{PREFIX}{number}", kind, data)


def user_data_bytes(template: LaunchTemplate) -> int:
    """Return the size of a template's user data in bytes, before base64."""
    return len(b64decode(template.data["UserData"]))


def template_tags(batch: LaunchProperties) -> list[dict[str, str]]:
    """Return the tags of a launch template."""
    tags = machine_tags(batch.node_class.spec.tags, batch.owner)
    return ec2_tags({**tags, CLUSTER_NAME: batch.owner.cluster})


def disks_of(spec: Ec2NodeClassSpec, family: ImageFamily) -> Sequence[DiskMapping]:
    """Return the disks of the node class, or the default disks of its image family."""
    return spec.disks or family.disks


def _data(batch: LaunchProperties, kind: TemplateKind) -> dict[str, Any]:
    spec = batch.node_class.spec
    kubelet = batch.bootstrap.kubelet
    pods = kubelet.max_pods if kubelet.max_pods is not None else kind.max_pods
    bootstrap = structs.replace(batch.bootstrap, kubelet=structs.replace(kubelet, max_pods=pods))
    data: dict[str, Any] = {
        "ImageId": kind.image,
        "UserData": encoded_user_data(batch.family, bootstrap),
        "IamInstanceProfile": {"Name": batch.node_class.status.instance_profile},
        "Monitoring": {"Enabled": bool(spec.detailed_monitoring)},
        "MetadataOptions": _metadata(batch),
        "NetworkInterfaces": _interfaces(batch, kind),
        "Placement": _placement(batch),
        "TagSpecifications": _tags(batch),
    }
    disks = [_disk(each) for each in disks_of(spec, batch.family)]
    if disks:
        data["BlockDeviceMappings"] = disks
    if spec.nested_virtualization:
        data["CpuOptions"] = {"NestedVirtualization": spec.nested_virtualization}
    if batch.has_enclave:
        data["EnclaveOptions"] = {"Enabled": True}
    return data | _reservation(batch, kind)


def _metadata(batch: LaunchProperties) -> dict[str, Any]:
    options = batch.node_class.spec.metadata_options
    if options is None:
        ipv6 = "enabled" if batch.bootstrap.is_ipv6 else "disabled"
        written = {"HttpEndpoint": "disabled", "HttpPutResponseHopLimit": 2}
        written |= {"HttpTokens": "required", "HttpProtocolIpv6": ipv6}
    else:
        written = {
            "HttpEndpoint": options.endpoint,
            "HttpProtocolIpv6": options.ipv6,
            "HttpPutResponseHopLimit": options.hop_limit,
            "HttpTokens": options.tokens,
        }
    if batch.region.startswith(_WITHOUT_IPV6_METADATA):
        del written["HttpProtocolIpv6"]
    return {**written, "InstanceMetadataTags": "disabled"}


def _interfaces(batch: LaunchProperties, kind: TemplateKind) -> list[dict[str, Any]]:
    spec = batch.node_class.spec
    if spec.network_interfaces:
        return [
            _interface(batch, each.card, each.device, each.type) for each in spec.network_interfaces
        ]
    if kind.efa_count:
        return [
            _interface(batch, card, 0 if card == 0 else 1, "efa") for card in range(kind.efa_count)
        ]
    return [_interface(batch, None, 0, "")]


def _interface(
    batch: LaunchProperties, card: int | None, device: int, type_: str
) -> dict[str, Any]:
    spec, groups = batch.node_class.spec, batch.node_class.status.security_groups
    made: dict[str, Any] = {"DeviceIndex": device, "Groups": [each.id for each in groups]}
    if card is not None:
        made["NetworkCardIndex"] = card
    if type_:
        made["InterfaceType"] = type_
    if type_ == "efa-only":
        return made
    if spec.associate_public_ip is not None:
        made["AssociatePublicIpAddress"] = spec.associate_public_ip
    if spec.connection_tracking is not None:
        tracking = spec.connection_tracking
        named = {
            "TcpEstablishedTimeout": tracking.tcp_established,
            "UdpStreamTimeout": tracking.udp_stream,
            "UdpTimeout": tracking.udp,
        }
        made["ConnectionTrackingSpecification"] = _without_none(named)
    if spec.ip_prefix_count is not None:
        version = "Ipv6PrefixCount" if batch.bootstrap.is_ipv6 else "Ipv4PrefixCount"
        made[version] = spec.ip_prefix_count
    if batch.bootstrap.is_ipv6:
        made |= {"PrimaryIpv6": True, "Ipv6AddressCount": 1}
    return made


def _placement(batch: LaunchProperties) -> dict[str, Any]:
    placement: dict[str, Any] = {"Tenancy": batch.tenancy}
    if batch.placement_group:
        placement["GroupId"] = batch.placement_group
    if batch.partition:
        placement["PartitionNumber"] = int(batch.partition)
    return placement


def _tags(batch: LaunchProperties) -> list[dict[str, Any]]:
    tags = ec2_tags(machine_tags(batch.node_class.spec.tags, batch.owner))
    made = ["network-interface"]
    if batch.capacity_type == SPOT:
        made.append("spot-instances-request")
    return [{"ResourceType": each, "Tags": tags} for each in made]


def _reservation(batch: LaunchProperties, kind: TemplateKind) -> dict[str, Any]:
    """Return the fields that bind machines to a capacity reservation, or exclude all of them."""
    if not batch.reserves:
        return {}
    if batch.capacity_type != RESERVED:
        return {"CapacityReservationSpecification": {"CapacityReservationPreference": "none"}}
    made: dict[str, Any] = {
        "CapacityReservationSpecification": {
            "CapacityReservationPreference": "capacity-reservations-only",
            "CapacityReservationTarget": {"CapacityReservationId": kind.reservation},
        }
    }
    if kind.reservation_type == CAPACITY_BLOCK:
        made["InstanceMarketOptions"] = {"MarketType": CAPACITY_BLOCK}
    elif kind.is_interruptible:
        made["InstanceMarketOptions"] = {"MarketType": "interruptible-capacity-reservation"}
    return made


def _disk(mapping: DiskMapping) -> dict[str, Any]:
    made: dict[str, Any] = {"DeviceName": mapping.device} if mapping.device else {}
    disk = mapping.disk
    if disk is None:
        return made
    named = {
        "DeleteOnTermination": disk.delete_on_termination,
        "Encrypted": disk.encrypted,
        "VolumeType": disk.type or None,
        "Iops": disk.iops or None,
        "Throughput": disk.throughput or None,
        "KmsKeyId": disk.kms_key_id or None,
        "SnapshotId": disk.snapshot_id or None,
        "VolumeInitializationRate": disk.initialization_rate,
        "VolumeSize": -(-parse_quantity(disk.size, "") // _GIB) if disk.size else None,
    }
    return {**made, "Ebs": _without_none(named)}


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
