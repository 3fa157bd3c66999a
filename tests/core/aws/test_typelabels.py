import pytest
from msgspec.structs import replace

from karpy.core.aws.instancetypes import architecture, type_labels
from karpy.model.ec2 import Device, InstanceTypeInfo, NetworkCard
from tests.builders.ec2 import C6G_LARGE, M5_LARGE, M5_METAL

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
