import pytest

from karpy.codec.aws.typesettings import (
    looked_up_fields,
    read_auto_mode_settings,
    read_type_settings,
    read_zones,
)
from karpy.codec.fields import FieldInvalid, JsonObject
from karpy.model.ec2nodeclass import (
    ConnectionTracking,
    Disk,
    DiskMapping,
    Ec2NodeClassSpec,
    ImageTerm,
    Kubelet,
    NetworkInterface,
)

SPEC: JsonObject = {
    "amiFamily": "Custom",
    "amiSelectorTerms": [{"alias": "al2023@latest"}, {"id": "ami-1"}],
    "blockDeviceMappings": [
        {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "50Gi"}, "rootVolume": True},
        {"deviceName": "/dev/xvdb", "ebs": {"snapshotID": "snap-1"}},
    ],
    "connectionTracking": {"udpTimeout": 30},
    "cpuOptions": {"nestedVirtualization": "enabled"},
    "instanceStorePolicy": "RAID0",
    "kubelet": {
        "maxPods": 20,
        "podsPerCore": 4,
        "systemReserved": {"cpu": "100m"},
        "kubeReserved": {"memory": "1Gi"},
        "evictionHard": {"memory.available": "5%"},
    },
    "networkInterfaces": [
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
    ],
    "placementGroupSelector": {"name": "near"},
    "role": "not of interest",
}


def test_what_changes_instance_types_is_read() -> None:
    assert read_type_settings({"spec": SPEC}) == Ec2NodeClassSpec(
        image_terms=(ImageTerm(alias="al2023@latest"), ImageTerm()),
        image_family="Custom",
        kubelet=Kubelet(
            max_pods=20,
            pods_per_core=4,
            system_reserved={"cpu": "100m"},
            kube_reserved={"memory": "1Gi"},
            eviction_hard={"memory.available": "5%"},
        ),
        disks=(
            DiskMapping("/dev/xvda", Disk(size="50Gi"), is_root=True),
            DiskMapping("/dev/xvdb", Disk()),
        ),
        instance_store_policy="RAID0",
        network_interfaces=(NetworkInterface(0, 0), NetworkInterface(1, 1, "efa-only")),
        connection_tracking=ConnectionTracking(),
        nested_virtualization="enabled",
    )


def test_an_empty_node_class_changes_nothing() -> None:
    assert read_type_settings({}) == Ec2NodeClassSpec()


def test_a_field_of_another_kind_is_told_with_its_path() -> None:
    with pytest.raises(FieldInvalid) as caught:
        read_type_settings({"spec": {"kubelet": {"maxPods": "many"}}})

    assert caught.value.path == "spec.kubelet.maxPods"


def test_nodes_of_auto_mode_run_bottlerocket_on_a_disk_of_their_own() -> None:
    assert read_auto_mode_settings({}) == Ec2NodeClassSpec(
        image_family="Bottlerocket", disks=(DiskMapping("/dev/xvdb", Disk(size="80Gi")),)
    )


def test_zones_are_those_of_the_subnets_in_the_status() -> None:
    subnets = [{"id": "subnet-1", "zone": "eu-west-1a", "zoneID": "euw1-az1"}, {"id": "subnet-2"}]

    assert read_zones({"status": {"subnets": subnets}}) == {"eu-west-1a": "euw1-az1"}
    assert read_zones({}) == {}


def test_what_only_aws_knows_is_named() -> None:
    assert list(looked_up_fields({"spec": SPEC})) == ["placementGroupSelector"]
