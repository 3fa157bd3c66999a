"""What launch templates say of machines."""

from base64 import b64decode
from typing import Any

import pytest
from msgspec.structs import replace

from karpy.core.aws.bootstrap import Bootstrap
from karpy.core.aws.launchtemplates import (
    LaunchProperties,
    TemplateKind,
    launch_template,
    split_by_template,
    template_tags,
)
from karpy.core.aws.tags import MachineOwner
from karpy.core.aws.userdata import FAMILIES, family_of
from karpy.model.ec2nodeclass import (
    ConnectionTracking,
    Disk,
    DiskMapping,
    Ec2NodeClassSpec,
    Kubelet,
    MetadataOptions,
    NetworkInterface,
)
from karpy.model.labels import ON_DEMAND, RESERVED, SPOT
from tests.builders.ec2 import C6G_LARGE, M5_LARGE, M5_XLARGE, JsonAnything
from tests.builders.ec2classes import SPEC, node_class, types_of

KIND = TemplateKind("ami-amd", (), max_pods=29)
SHOP = Bootstrap("shop", "https://api.shop", "Q0E=", cidr="10.100.0.0/16")


def batch(
    spec: Ec2NodeClassSpec = SPEC, capacity_type: str = ON_DEMAND, **given: JsonAnything
) -> LaunchProperties:
    return LaunchProperties(
        node_class(spec),
        family_of(spec),
        given.pop("bootstrap", SHOP),
        MachineOwner("shop", "default", "web"),
        capacity_type,
        region="eu-west-1",
        **given,
    )


def data(made: LaunchProperties, kind: TemplateKind = KIND) -> dict[str, Any]:
    return dict(launch_template(made, kind).data)


def test_a_template_has_what_all_machines_need_and_no_instance_type() -> None:
    made = data(batch())

    user_data = b64decode(made.pop("UserData")).decode()
    assert "maxPods: 29" in user_data
    tags = [
        {"Key": "eks:eks-cluster-name", "Value": "shop"},
        {"Key": "karpenter.k8s.aws/ec2nodeclass", "Value": "default"},
        {"Key": "karpenter.sh/nodepool", "Value": "web"},
        {"Key": "kubernetes.io/cluster/shop", "Value": "owned"},
    ]
    assert made == {
        "ImageId": "ami-amd",
        "IamInstanceProfile": {"Name": "shop_1"},
        "Monitoring": {"Enabled": False},
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpProtocolIpv6": "disabled",
            "HttpPutResponseHopLimit": 1,
            "HttpTokens": "required",
            "InstanceMetadataTags": "disabled",
        },
        "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-1"]}],
        "Placement": {"Tenancy": "default"},
        "TagSpecifications": [{"ResourceType": "network-interface", "Tags": tags}],
        "BlockDeviceMappings": [
            {
                "DeviceName": "/dev/xvda",
                "Ebs": {"Encrypted": True, "VolumeType": "gp3", "VolumeSize": 20},
            }
        ],
        "CapacityReservationSpecification": {"CapacityReservationPreference": "none"},
    }
    assert template_tags(batch()) == tags


def test_the_name_of_a_template_follows_from_what_it_says() -> None:
    first = launch_template(batch(), KIND).name

    assert first.startswith("karpenter.k8s.aws/")
    assert launch_template(batch(), KIND).name == first
    assert launch_template(batch(), replace(KIND, max_pods=30)).name != first
    assert launch_template(batch(tenancy="dedicated"), KIND).name != first


def test_spot_requests_carry_the_tags_as_well() -> None:
    kinds = [each["ResourceType"] for each in data(batch(capacity_type=SPOT))["TagSpecifications"]]

    assert kinds == ["network-interface", "spot-instances-request"]


@pytest.mark.parametrize(
    ("kind", "market"),
    [
        ({}, None),
        ({"reservation_type": "capacity-block"}, "capacity-block"),
        ({"is_interruptible": True}, "interruptible-capacity-reservation"),
    ],
)
def test_reserved_machines_are_launched_into_their_reservation(
    kind: dict[str, Any], market: str | None
) -> None:
    made = data(batch(capacity_type=RESERVED), replace(KIND, reservation="cr-1", **kind))

    assert made["CapacityReservationSpecification"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": "cr-1"},
    }
    assert made.get("InstanceMarketOptions", {}).get("MarketType") == market


def test_without_the_gate_reservations_are_left_to_ec2() -> None:
    assert "CapacityReservationSpecification" not in data(batch(reserves=False))


def test_placement_groups_partitions_and_enclaves_are_named() -> None:
    made = data(batch(placement_group="pg-1", partition="2", tenancy="dedicated", has_enclave=True))

    assert made["Placement"] == {"Tenancy": "dedicated", "GroupId": "pg-1", "PartitionNumber": 2}
    assert made["EnclaveOptions"] == {"Enabled": True}


def test_interfaces_are_those_of_the_node_class() -> None:
    spec = replace(
        SPEC,
        network_interfaces=(
            NetworkInterface(0, 0),
            NetworkInterface(0, 1, "efa-only"),
            NetworkInterface(1, 1, "interface"),
        ),
        associate_public_ip=False,
        ip_prefix_count=2,
        connection_tracking=ConnectionTracking(tcp_established=60),
    )
    usual = {
        "Groups": ["sg-1"],
        "InterfaceType": "interface",
        "AssociatePublicIpAddress": False,
        "ConnectionTrackingSpecification": {"TcpEstablishedTimeout": 60},
        "Ipv4PrefixCount": 2,
    }

    assert data(batch(spec))["NetworkInterfaces"] == [
        {"DeviceIndex": 0, "NetworkCardIndex": 0, **usual},
        {
            "DeviceIndex": 1,
            "Groups": ["sg-1"],
            "NetworkCardIndex": 0,
            "InterfaceType": "efa-only",
        },
        {"DeviceIndex": 1, "NetworkCardIndex": 1, **usual},
    ]


def test_interfaces_of_ipv6_clusters_have_an_address_of_it() -> None:
    spec = replace(SPEC, ip_prefix_count=1)

    (only,) = data(batch(spec, bootstrap=replace(SHOP, is_ipv6=True)))["NetworkInterfaces"]

    assert (only["PrimaryIpv6"], only["Ipv6AddressCount"]) == (True, 1)
    assert only["Ipv6PrefixCount"] == 1


def test_efa_has_an_interface_on_each_card() -> None:
    made = data(batch(), replace(KIND, efa_count=3))["NetworkInterfaces"]

    assert [(each["NetworkCardIndex"], each["DeviceIndex"]) for each in made] == [
        (0, 0),
        (1, 1),
        (2, 1),
    ]
    assert {each["InterfaceType"] for each in made} == {"efa"}


def test_disks_are_written_as_ec2_takes_them() -> None:
    disk = Disk(
        delete_on_termination=True,
        encrypted=False,
        iops=3000,
        kms_key_id="key",
        snapshot_id="snap-1",
        throughput=125,
        initialization_rate=200,
        size="10500Mi",
        type="io2",
    )
    spec = replace(SPEC, disks=(DiskMapping("/dev/xvdb", disk), DiskMapping("/dev/xvdc")))

    assert data(batch(spec))["BlockDeviceMappings"] == [
        {
            "DeviceName": "/dev/xvdb",
            "Ebs": {
                "DeleteOnTermination": True,
                "Encrypted": False,
                "VolumeType": "io2",
                "Iops": 3000,
                "Throughput": 125,
                "KmsKeyId": "key",
                "SnapshotId": "snap-1",
                "VolumeInitializationRate": 200,
                "VolumeSize": 11,
            },
        },
        {"DeviceName": "/dev/xvdc"},
    ]


def test_each_family_has_its_disks() -> None:
    sizes = {
        name: [
            (each["DeviceName"], each["Ebs"]["VolumeSize"])
            for each in data(batch(replace(SPEC, image_terms=(), image_family=name))).get(
                "BlockDeviceMappings", ()
            )
        ]
        for name in FAMILIES
    }

    assert sizes == {
        "AL2": [("/dev/xvda", 20)],
        "AL2023": [("/dev/xvda", 20)],
        "Bottlerocket": [("/dev/xvda", 4), ("/dev/xvdb", 20)],
        "Windows2019": [("/dev/sda1", 50)],
        "Windows2022": [("/dev/sda1", 50)],
        "Windows2025": [("/dev/sda1", 50)],
        "Custom": [],
    }


def test_metadata_options_are_those_of_the_class_and_strict_without_any() -> None:
    own = MetadataOptions("enabled", "enabled", 3, "optional")

    written = data(batch(replace(SPEC, metadata_options=own)))["MetadataOptions"]
    none = data(batch(replace(SPEC, metadata_options=None)))["MetadataOptions"]
    isolated = replace(batch(), region="us-iso-east-1")

    assert (written["HttpPutResponseHopLimit"], written["HttpTokens"]) == (3, "optional")
    assert (none["HttpEndpoint"], none["HttpPutResponseHopLimit"]) == ("disabled", 2)
    assert "HttpProtocolIpv6" not in data(isolated)["MetadataOptions"]


def test_the_number_of_pods_is_the_one_of_the_class_if_it_has_one() -> None:
    bootstrap = replace(SHOP, kubelet=Kubelet(max_pods=5))

    made = b64decode(data(batch(bootstrap=bootstrap))["UserData"]).decode()

    assert "maxPods: 5" in made


def test_templates_are_split_by_image_and_pods() -> None:
    kinds = split_by_template(
        node_class(), types_of(M5_LARGE, M5_XLARGE, C6G_LARGE), wants_efa=False
    )

    found = {(each.image, each.max_pods, tuple(t.name for t in each.types)) for each in kinds}
    assert found == {
        ("ami-amd", 29, ("m5.large",)),
        ("ami-amd", 58, ("m5.xlarge",)),
        ("ami-arm", 29, ("c6g.large",)),
    }


def test_monitoring_and_nested_virtualization_are_passed_on() -> None:
    made = data(batch(replace(SPEC, detailed_monitoring=True, nested_virtualization="enabled")))

    assert made["Monitoring"] == {"Enabled": True}
    assert made["CpuOptions"] == {"NestedVirtualization": "enabled"}
