"""EC2NodeClasses to values, and their resolved subnets, images and so on to a status patch."""

import re
from collections.abc import Mapping
from typing import Final

from karpy.codec.claims import write_requirement
from karpy.codec.crds import read_pool_requirements
from karpy.codec.fields import Fields, JsonObject, read_duration
from karpy.codec.records import read_conditions, read_identity, write_conditions
from karpy.model.conditions import Conditions
from karpy.model.ec2nodeclass import (
    ConnectionTracking,
    Disk,
    DiskMapping,
    Ec2NodeClass,
    Ec2NodeClassSpec,
    Ec2NodeClassStatus,
    FoundImage,
    FoundReservation,
    FoundSecurityGroup,
    FoundSubnet,
    ImageTerm,
    Kubelet,
    MetadataOptions,
    NetworkInterface,
    PlacementGroupTerm,
    ReservationTerm,
    SecurityGroupTerm,
    SubnetTerm,
)
from karpy.model.times import write_moment

_PERCENT: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{0,20})?%")
DEPENDENTS: Final = (
    "AMIsReady",
    "SubnetsReady",
    "SecurityGroupsReady",
    "InstanceProfileReady",
    "ValidationSucceeded",
    "PlacementGroupReady",
)
"""The conditions that Ready depends on."""
RESERVATIONS_READY: Final = "CapacityReservationsReady"
"""The condition that Ready depends on, too, if the feature gate ReservedCapacity is on."""


def read_node_class(fields: Fields, *, reserves: bool = True) -> Ec2NodeClass:
    """Read an EC2NodeClass in full; `reserves` is the gate ReservedCapacity."""
    return Ec2NodeClass(
        read_identity(fields),
        read_spec(fields.child("spec")),
        _read_status(fields.child("status"), reserves=reserves),
    )


def read_spec(spec: Fields) -> Ec2NodeClassSpec:
    """Read the spec of an EC2NodeClass."""
    group = spec.child("placementGroupSelector")
    return Ec2NodeClassSpec(
        subnet_terms=tuple(
            SubnetTerm(_tags(each), each.text("id"))
            for each in spec.children("subnetSelectorTerms")
        ),
        security_group_terms=tuple(
            SecurityGroupTerm(_tags(each), each.text("id"), each.text("name"))
            for each in spec.children("securityGroupSelectorTerms")
        ),
        reservation_terms=tuple(
            ReservationTerm(
                _tags(each),
                each.text("id"),
                each.text("ownerID"),
                each.text("instanceMatchCriteria"),
            )
            for each in spec.children("capacityReservationSelectorTerms")
        ),
        image_terms=tuple(_image_term(each) for each in spec.children("amiSelectorTerms")),
        placement_group=PlacementGroupTerm(group.text("name"), group.text("id"))
        if "placementGroupSelector" in spec
        else None,
        associate_public_ip=_flag(spec, "associatePublicIPAddress"),
        ip_prefix_count=spec.number("ipPrefixCount"),
        image_family=spec.text("amiFamily"),
        user_data=_text(spec, "userData"),
        role=spec.text("role"),
        instance_profile=spec.text("instanceProfile"),
        tags=_tags(spec),
        kubelet=_kubelet(spec.child("kubelet")) if "kubelet" in spec else None,
        disks=tuple(_mapping(each) for each in spec.children("blockDeviceMappings")),
        instance_store_policy=spec.text("instanceStorePolicy"),
        network_interfaces=tuple(
            NetworkInterface(
                each.number("networkCardIndex") or 0,
                each.number("deviceIndex") or 0,
                each.text("interfaceType", "interface"),
            )
            for each in spec.children("networkInterfaces")
        ),
        detailed_monitoring=_flag(spec, "detailedMonitoring"),
        metadata_options=_metadata(spec.child("metadataOptions"))
        if "metadataOptions" in spec
        else None,
        connection_tracking=_tracking(spec.child("connectionTracking"))
        if "connectionTracking" in spec
        else None,
        context=_text(spec, "context"),
        nested_virtualization=spec.child("cpuOptions").text("nestedVirtualization"),
    )


def status_writes(before: Ec2NodeClass, after: Ec2NodeClass) -> JsonObject | None:
    """Return a merge patch of the status, guarded by the version; None if nothing changes."""
    old, new = _write_status(before.status), _write_status(after.status)
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    changed |= dict.fromkeys(old.keys() - new.keys())
    if not changed:
        return None
    guard = {"metadata": {"resourceVersion": before.meta.version}} if before.meta.version else {}
    return {**guard, "status": changed}


def _read_status(status: Fields, *, reserves: bool) -> Ec2NodeClassStatus:
    dependents = (*DEPENDENTS, RESERVATIONS_READY) if reserves else DEPENDENTS
    return Ec2NodeClassStatus(
        subnets=tuple(
            FoundSubnet(each.text("id"), each.text("zone"), each.text("zoneID"))
            for each in status.children("subnets")
        ),
        security_groups=tuple(
            FoundSecurityGroup(each.text("id"), each.text("name"))
            for each in status.children("securityGroups")
        ),
        images=tuple(
            FoundImage(
                each.text("id"),
                each.text("name"),
                read_pool_requirements(each),
                each.flag("deprecated"),
            )
            for each in status.children("amis")
        ),
        reservations=tuple(
            FoundReservation(
                each.text("id"),
                each.text("instanceType"),
                each.text("availabilityZone"),
                each.text("ownerID"),
                each.text("instanceMatchCriteria"),
                each.text("reservationType", "default"),
                each.flag("interruptible"),
                each.text("state", "active"),
                each.time("endTime"),
            )
            for each in status.children("capacityReservations")
        ),
        instance_profile=status.text("instanceProfile"),
        conditions=Conditions(read_conditions(status), dependents),
    )


def _write_status(status: Ec2NodeClassStatus) -> JsonObject:
    written: JsonObject = {
        "subnets": [
            {"id": each.id, "zone": each.zone, **_unless_empty("zoneID", each.zone_id)}
            for each in status.subnets
        ],
        "securityGroups": [
            {"id": each.id, **_unless_empty("name", each.name)} for each in status.security_groups
        ],
        "amis": [_write_image(each) for each in status.images],
        "capacityReservations": [_write_reservation(each) for each in status.reservations],
        "instanceProfile": status.instance_profile,
        "conditions": write_conditions(status.conditions.items),
    }
    return {key: value for key, value in written.items() if value}


def _write_image(image: FoundImage) -> JsonObject:
    return {
        "id": image.id,
        **_unless_empty("name", image.name),
        **({"deprecated": True} if image.is_deprecated else {}),
        "requirements": [entry for each in image.requirements for entry in write_requirement(each)],
    }


def _write_reservation(reservation: FoundReservation) -> JsonObject:
    ends = reservation.ends
    return {
        "availabilityZone": reservation.zone,
        **({} if ends is None else {"endTime": write_moment(ends)}),
        "id": reservation.id,
        "instanceMatchCriteria": reservation.match_criteria,
        "instanceType": reservation.instance_type,
        "ownerID": reservation.owner,
        "reservationType": reservation.type,
        "interruptible": reservation.is_interruptible,
        "state": reservation.state,
    }


def _image_term(term: Fields) -> ImageTerm:
    return ImageTerm(
        term.text("alias"),
        term.text("id"),
        term.text("name"),
        term.text("owner"),
        term.text("ssmParameter"),
        _tags(term),
    )


def _mapping(mapping: Fields) -> DiskMapping:
    disk = mapping.child("ebs")
    return DiskMapping(
        mapping.text("deviceName"),
        _disk(disk) if "ebs" in mapping else None,
        mapping.flag("rootVolume"),
    )


def _disk(disk: Fields) -> Disk:
    return Disk(
        delete_on_termination=_flag(disk, "deleteOnTermination"),
        encrypted=_flag(disk, "encrypted"),
        iops=disk.number("iops"),
        kms_key_id=disk.text("kmsKeyID"),
        snapshot_id=disk.text("snapshotID"),
        throughput=disk.number("throughput"),
        initialization_rate=disk.number("volumeInitializationRate"),
        size=_size(disk),
        type=disk.text("volumeType"),
    )


def _size(disk: Fields) -> str:
    """Return the size as it is written, after a check that it is a quantity."""
    text = disk.text("volumeSize")
    if text:
        disk.quantity("volumeSize")
    return text


def _kubelet(kubelet: Fields) -> Kubelet:
    periods = kubelet.child("evictionSoftGracePeriod")
    return Kubelet(
        cluster_dns=kubelet.texts("clusterDNS"),
        max_pods=kubelet.number("maxPods"),
        pods_per_core=kubelet.number("podsPerCore"),
        system_reserved=_reserved(kubelet, "systemReserved"),
        kube_reserved=_reserved(kubelet, "kubeReserved"),
        eviction_hard=_thresholds(kubelet, "evictionHard"),
        eviction_soft=_thresholds(kubelet, "evictionSoft"),
        eviction_soft_grace_period={
            key: period for key in periods.obj if (period := read_duration(periods, key))
        },
        eviction_max_pod_grace_period=kubelet.number("evictionMaxPodGracePeriod"),
        image_gc_high=kubelet.number("imageGCHighThresholdPercent"),
        image_gc_low=kubelet.number("imageGCLowThresholdPercent"),
        cpu_cfs_quota=_flag(kubelet, "cpuCFSQuota"),
    )


def _reserved(kubelet: Fields, key: str) -> dict[str, str]:
    """Return amounts as they are written, after a check that they are quantities."""
    kubelet.quantities(key)
    return kubelet.labels(key)


def _thresholds(kubelet: Fields, key: str) -> dict[str, str]:
    """Return thresholds as they are written, after a check that they are shares or quantities."""
    texts, child = kubelet.labels(key), kubelet.child(key)
    for signal, text in texts.items():
        if not _PERCENT.fullmatch(text):
            child.quantity(signal)
    return texts


def _metadata(options: Fields) -> MetadataOptions:
    usual = MetadataOptions()
    hops = options.number("httpPutResponseHopLimit")
    return MetadataOptions(
        options.text("httpEndpoint", usual.endpoint),
        options.text("httpProtocolIPv6", usual.ipv6),
        usual.hop_limit if hops is None else hops,
        options.text("httpTokens", usual.tokens),
    )


def _tracking(tracking: Fields) -> ConnectionTracking:
    return ConnectionTracking(
        tracking.number("tcpEstablishedTimeout"),
        tracking.number("udpStreamTimeout"),
        tracking.number("udpTimeout"),
    )


def _tags(fields: Fields) -> Mapping[str, str]:
    return fields.labels("tags")


def _flag(fields: Fields, key: str) -> bool | None:
    return fields.flag(key) if key in fields else None


def _text(fields: Fields, key: str) -> str | None:
    return fields.text(key) if key in fields else None


def _unless_empty(key: str, value: str) -> JsonObject:
    return {key: value} if value else {}
