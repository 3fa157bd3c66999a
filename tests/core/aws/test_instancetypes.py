"""Instance types of EC2 as the solver gets them."""

import pytest
from msgspec.structs import replace

from karpy.core.aws.catalog import CatalogMaker
from karpy.core.aws.instancetypes import (
    AVAILABLE,
    BYTES,
    CORES,
    PRICE,
    ami_family,
    architecture,
    frame,
    instance_type,
    settings_of,
    type_gauges,
    type_labels,
    zones_of,
)
from karpy.core.aws.offerings import OfferingBuilder, Places
from karpy.model.ec2 import (
    AUTO_MODE_DOMAIN,
    EC2_DOMAIN,
    EC2_LABELS,
    AmiFamily,
    CapacityReservation,
    Device,
    InstanceSettings,
    InstanceTypeInfo,
    NetworkCard,
    PlacementGroup,
)
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
from karpy.model.instances import InstanceType
from karpy.model.labels import WELL_KNOWN
from tests.builders.ec2 import (
    C6G_LARGE,
    M5_LARGE,
    M5_METAL,
    MI,
    OPERATOR,
    PLAIN,
    ZONE_IDS,
    ZONES,
    market,
    region,
)

USUAL = {
    "instance-capability-flex": "false",
    "instance-category": "m",
    "instance-cpu": "2",
    "instance-cpu-manufacturer": "intel",
    "instance-cpu-sustained-clock-speed-mhz": "3100",
    "instance-ebs-bandwidth": "4750",
    "instance-encryption-in-transit-supported": "false",
    "instance-family": "m5",
    "instance-generation": "5",
    "instance-hypervisor": "nitro",
    "instance-memory": "8192",
    "instance-network-bandwidth": "750",
    "instance-size": "large",
}


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


def made(info: InstanceTypeInfo, settings: InstanceSettings = PLAIN) -> InstanceType:
    shop = OfferingBuilder(market(info), settings, Places())
    return instance_type(info, frame(info, "eu-west-1", settings, OPERATOR), shop)


def values(kind: InstanceType) -> dict[str, set[str]]:
    """Return the labels that nodes of a type have, with the values they may take."""
    return {key: set(each.values) for key, each in kind.requirements.items() if each.values}


def test_a_type_has_the_labels_of_kubernetes_and_of_ec2() -> None:
    assert values(made(M5_LARGE)) == {
        "node.kubernetes.io/instance-type": {"m5.large"},
        "kubernetes.io/arch": {"amd64"},
        "kubernetes.io/os": {"linux"},
        "topology.kubernetes.io/region": {"eu-west-1"},
        "topology.kubernetes.io/zone": set(ZONES),
        "topology.k8s.aws/zone-id": {"euw1-az1", "euw1-az2"},
        "karpenter.sh/capacity-type": {"on-demand", "spot"},
        EC2_DOMAIN + "instance-capability-flex": {"false"},
        EC2_DOMAIN + "instance-category": {"m"},
        EC2_DOMAIN + "instance-cpu": {"2"},
        EC2_DOMAIN + "instance-cpu-manufacturer": {"intel"},
        EC2_DOMAIN + "instance-cpu-sustained-clock-speed-mhz": {"3100"},
        EC2_DOMAIN + "instance-ebs-bandwidth": {"4750"},
        EC2_DOMAIN + "instance-encryption-in-transit-supported": {"false"},
        EC2_DOMAIN + "instance-family": {"m5"},
        EC2_DOMAIN + "instance-generation": {"5"},
        EC2_DOMAIN + "instance-hypervisor": {"nitro"},
        EC2_DOMAIN + "instance-memory": {"8192"},
        EC2_DOMAIN + "instance-network-bandwidth": {"750"},
        EC2_DOMAIN + "instance-size": {"large"},
        EC2_DOMAIN + "instance-tenancy": {"dedicated", "default"},
    }


def test_a_label_that_a_type_lacks_cannot_be_there() -> None:
    """Without that, a pod that asks for a GPU would be given any machine."""
    kind = made(M5_LARGE)

    assert kind.requirements.keys() == EC2_LABELS | (WELL_KNOWN - {"karpenter.sh/nodepool"})
    assert kind.requirements[EC2_DOMAIN + "instance-gpu-count"].is_empty


def test_eks_auto_mode_says_the_same_in_its_own_domain() -> None:
    found = values(made(M5_LARGE, InstanceSettings(label_domain=AUTO_MODE_DOMAIN)))

    assert found[AUTO_MODE_DOMAIN + "instance-category"] == {"m"}
    assert found[AUTO_MODE_DOMAIN + "instance-generation"] == {"5"}
    assert [key for key in found if key.startswith(EC2_DOMAIN)] == []


def test_windows_runs_on_amd64_alone() -> None:
    settings = InstanceSettings(AmiFamily.WINDOWS_2022)

    intel, graviton = values(made(M5_LARGE, settings)), values(made(C6G_LARGE, settings))

    assert intel["kubernetes.io/os"] == {"windows"}
    assert intel["node.kubernetes.io/windows-build"] == {"10.0.20348"}
    assert "kubernetes.io/os" not in graviton


def test_a_type_is_where_it_is_sold_and_the_node_class_has_a_subnet() -> None:
    settings = InstanceSettings(zones={"eu-west-1b": "euw1-az9", "eu-west-1c": "euw1-az3"})

    found = values(made(M5_LARGE, settings))

    assert found["topology.kubernetes.io/zone"] == {"eu-west-1b"}
    assert found["topology.k8s.aws/zone-id"] == {"euw1-az9"}


def test_a_reservation_adds_a_capacity_type_and_its_labels() -> None:
    reservation = CapacityReservation(
        "cr-1", "m5.large", "eu-west-1a", type="capacity-block", left=3
    )

    found = values(made(M5_LARGE, InstanceSettings(reservations=(reservation,))))

    assert found["karpenter.sh/capacity-type"] == {"on-demand", "reserved", "spot"}
    assert found[EC2_DOMAIN + "capacity-reservation-id"] == {"cr-1"}
    assert found[EC2_DOMAIN + "capacity-reservation-type"] == {"capacity-block"}
    assert found[EC2_DOMAIN + "capacity-reservation-interruptible"] == {"false"}


def test_a_placement_group_is_a_label_with_its_partitions() -> None:
    group = PlacementGroup("pg-1", strategy="partition", partitions=2)

    found = values(made(M5_LARGE, InstanceSettings(placement=group)))

    assert found[EC2_DOMAIN + "placement-group-id"] == {"pg-1"}
    assert found[EC2_DOMAIN + "placement-group-partition"] == {"1", "2"}


def test_a_type_without_spot_is_not_sold_as_spot() -> None:
    found = values(made(replace(M5_LARGE, usage_classes=("on-demand",))))

    assert found["karpenter.sh/capacity-type"] == {"on-demand"}


def test_a_type_says_what_ec2_says_of_it() -> None:
    assert type_labels(M5_LARGE) == USUAL


@pytest.mark.parametrize(
    ("name", "category", "generation", "family", "size", "flex"),
    [
        ("u-6tb1.metal", "u", "1", "u-6tb1", "metal", "false"),
        ("u7i-12tb.224xlarge", "u", "7", "u7i-12tb", "224xlarge", "false"),
        ("p6-b200.48xlarge", "p", "6", "p6-b200", "48xlarge", "false"),
        ("m7i-flex.large", "m", "7", "m7i-flex", "large", "true"),
        ("inf2.xlarge", "inf", "2", "inf2", "xlarge", "false"),
        ("r7iz.metal-32xl", "r", "7", "r7iz", "metal-32xl", "false"),
    ],
)
def test_a_name_has_category_generation_family_and_size(
    name: str, category: str, generation: str, family: str, size: str, flex: str
) -> None:
    assert type_labels(replace(M5_LARGE, name=name)) == USUAL | {
        "instance-category": category,
        "instance-generation": generation,
        "instance-family": family,
        "instance-size": size,
        "instance-capability-flex": flex,
    }


@pytest.mark.parametrize(
    ("info", "differing"),
    [
        (
            replace(M5_LARGE, gpus=(Device("Radeon Pro V520", "AMD", 2, 8192),)),
            {
                "instance-gpu-name": "radeon-pro-v520",
                "instance-gpu-manufacturer": "amd",
                "instance-gpu-count": "2",
                "instance-gpu-memory": "8192",
            },
        ),
        (replace(M5_LARGE, gpus=(Device("A", "NVIDIA", 1), Device("B", "NVIDIA", 1))), {}),
        (
            replace(
                M5_LARGE,
                neurons=(Device("Inferentia2", "AWS", 6, cores=2),),
                accelerators=(Device("Inferentia", "AWS", 1),),
            ),
            {
                "instance-accelerator-name": "inferentia2",
                "instance-accelerator-manufacturer": "aws",
                "instance-accelerator-count": "6",
            },
        ),
        (
            replace(M5_LARGE, accelerators=(Device("Qualcomm AI100", "Qualcomm", 8),)),
            {
                "instance-accelerator-name": "qualcomm-ai100",
                "instance-accelerator-manufacturer": "qualcomm",
                "instance-accelerator-count": "8",
            },
        ),
        (replace(M5_LARGE, disk_gb=150), {"instance-local-nvme": "150"}),
        (replace(M5_LARGE, disk_gb=150, is_nvme=False), {}),
        (
            replace(M5_LARGE, cards=(NetworkCard(2, 100_000), NetworkCard(2, 100_000))),
            {"instance-network-bandwidth": "200000"},
        ),
        (
            replace(M5_LARGE, encrypts_in_transit=True),
            {"instance-encryption-in-transit-supported": "true"},
        ),
    ],
)
def test_what_a_type_has_is_a_label(info: InstanceTypeInfo, differing: dict[str, str]) -> None:
    assert type_labels(info) == USUAL | differing


def test_what_a_type_lacks_is_no_label() -> None:
    bare = replace(
        M5_LARGE,
        name="old",
        clock_mhz=None,
        ebs_mbps=None,
        manufacturer="",
        cards=(NetworkCard(3, 0),),
    )

    assert set(type_labels(bare)) == {
        "instance-capability-flex",
        "instance-cpu",
        "instance-encryption-in-transit-supported",
        "instance-family",
        "instance-hypervisor",
        "instance-memory",
        "instance-size",
    }


def test_bare_metal_has_an_empty_hypervisor() -> None:
    assert type_labels(M5_METAL)["instance-hypervisor"] == ""


@pytest.mark.parametrize(
    ("info", "name"),
    [
        (M5_LARGE, "amd64"),
        (C6G_LARGE, "arm64"),
        (replace(M5_LARGE, architectures=("i386", "x86_64")), "amd64"),
        (replace(M5_LARGE, architectures=("arm64_mac",)), "arm64_mac"),
    ],
)
def test_an_architecture_is_named_as_kubernetes_does(info: InstanceTypeInfo, name: str) -> None:
    assert architecture(info) == name


def test_gauges_tell_size_stock_and_price() -> None:
    only_a = InstanceSettings(zones={"eu-west-1a": ZONE_IDS["eu-west-1a"]})
    catalog = CatalogMaker().make(region(M5_LARGE), {"web": only_a})

    found = {
        (each.metric, *(v for k, v in each.labels.items() if k != "instance_type")): each.value
        for each in type_gauges(catalog)
    }

    assert found == {
        (CORES,): 2.0,
        (BYTES,): 7577.0 * MI,
        (AVAILABLE, "on-demand", "eu-west-1a"): 1.0,
        (AVAILABLE, "on-demand", "eu-west-1b"): 0.0,
        (AVAILABLE, "spot", "eu-west-1a"): 1.0,
        (AVAILABLE, "spot", "eu-west-1b"): 0.0,
        (PRICE, "on-demand", "eu-west-1a"): 0.096,
        (PRICE, "on-demand", "eu-west-1b"): 0.096,
        (PRICE, "spot", "eu-west-1a"): 0.048,
        (PRICE, "spot", "eu-west-1b"): 0.048,
    }


def test_a_type_can_be_had_if_one_nodepool_can_have_it() -> None:
    zones = {
        zone: InstanceSettings(zones={zone: ZONE_IDS[zone]})
        for zone in ("eu-west-1a", "eu-west-1b")
    }
    catalog = CatalogMaker().make(region(M5_LARGE), zones)

    stock = [each.value for each in type_gauges(catalog) if each.metric == AVAILABLE]

    assert stock == [1.0] * 4
