import pytest

from karpy.core.aws.instancetypes import ami_family, settings_of, zones_of
from karpy.model.ec2 import AmiFamily, InstanceSettings
from karpy.model.ec2nodeclass import (
    ConnectionTracking,
    Disk,
    DiskMapping,
    Ec2NodeClassSpec,
    Ec2NodeClassStatus,
    FoundSubnet,
    ImageTerm,
    Kubelet,
    NetworkInterface,
)


def test_what_changes_instance_types_is_taken_from_a_node_class() -> None:
    kubelet = Kubelet(max_pods=50)
    disks = (DiskMapping("/dev/xvda", Disk(size="100Gi"), is_root=True),)
    interfaces = (NetworkInterface(0, 0),)
    spec = Ec2NodeClassSpec(
        image_terms=(ImageTerm(alias="bottlerocket@latest"),),
        kubelet=kubelet,
        disks=disks,
        instance_store_policy="RAID0",
        network_interfaces=interfaces,
        connection_tracking=ConnectionTracking(udp=30),
        nested_virtualization="enabled",
        role="not of interest",
    )

    assert settings_of(spec) == InstanceSettings(
        family=AmiFamily.BOTTLEROCKET,
        kubelet=kubelet,
        disks=disks,
        is_raid0=True,
        network_interfaces=interfaces,
        needs_nested_virtualization=True,
        tracks_connections=True,
    )


@pytest.mark.parametrize(
    ("named", "alias", "family"),
    [
        ("", "al2023@v20250101", AmiFamily.AL2023),
        ("", "windows2022@latest", AmiFamily.WINDOWS_2022),
        ("Custom", "al2023@latest", AmiFamily.CUSTOM),
        ("Bottlerocket", "", AmiFamily.BOTTLEROCKET),
        ("Ubuntu", "", AmiFamily.AL2),
        ("", "", AmiFamily.AL2),
    ],
)
def test_the_family_is_the_one_named_or_that_of_the_alias(
    named: str, alias: str, family: AmiFamily
) -> None:
    terms = (ImageTerm(alias=alias),)

    assert ami_family(Ec2NodeClassSpec(image_family=named, image_terms=terms)) is family


def test_zones_are_those_of_the_subnets_found() -> None:
    status = Ec2NodeClassStatus(
        subnets=(
            FoundSubnet("subnet-1", "eu-west-1a", "euw1-az1"),
            FoundSubnet("subnet-2", "eu-west-1a", "euw1-az1"),
            FoundSubnet("subnet-3", "eu-west-1b", "euw1-az3"),
        )
    )

    assert zones_of(status) == {"eu-west-1a": "euw1-az1", "eu-west-1b": "euw1-az3"}
