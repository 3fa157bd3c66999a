"""Answers of DescribeInstanceTypes, as botocore decodes them."""

from typing import Any

import pytest

from karpy.codec.aws.instancetypes import read_instance_types
from karpy.model.ec2 import Device, InstanceTypeInfo, NetworkCard

Json = dict[str, Any]

M5_LARGE: Json = {
    "InstanceType": "m5.large",
    "CurrentGeneration": True,
    "BareMetal": False,
    "Hypervisor": "nitro",
    "VCpuInfo": {"DefaultVCpus": 2, "DefaultCores": 1},
    "MemoryInfo": {"SizeInMiB": 8192},
    "ProcessorInfo": {
        "SupportedArchitectures": ["x86_64"],
        "Manufacturer": "Intel",
        "SustainedClockSpeedInGhz": 3.1,
    },
    "NetworkInfo": {
        "Ipv4AddressesPerInterface": 10,
        "DefaultNetworkCardIndex": 0,
        "EnaSupport": "required",
        "NetworkCards": [
            {
                "NetworkCardIndex": 0,
                "MaximumNetworkInterfaces": 3,
                "BaselineBandwidthInGbps": 0.75,
            }
        ],
    },
    "EbsInfo": {
        "EbsOptimizedSupport": "default",
        "EbsOptimizedInfo": {"MaximumBandwidthInMbps": 4750},
    },
    "PlacementGroupInfo": {"SupportedStrategies": ["cluster", "partition", "spread"]},
    "SupportedUsageClasses": ["on-demand", "spot"],
    "SupportedVirtualizationTypes": ["hvm"],
}
INFO = InstanceTypeInfo(
    name="m5.large",
    vcpus=2,
    memory_mib=8192,
    architectures=("x86_64",),
    cards=(NetworkCard(3, 750),),
    ipv4_per_interface=10,
    manufacturer="Intel",
    clock_mhz=3100,
    hypervisor="nitro",
    ebs_mbps=4750,
    is_nvme=True,
)


def read(obj: Json) -> InstanceTypeInfo:
    (info,), faults = read_instance_types([obj])
    assert faults == ()
    return info


def test_a_type_is_read_whole() -> None:
    assert read(M5_LARGE) == INFO


@pytest.mark.parametrize(
    ("more", "field", "value"),
    [
        (
            {
                "GpuInfo": {
                    "Gpus": [
                        {
                            "Name": "T4",
                            "Manufacturer": "NVIDIA",
                            "Count": 4,
                            "MemoryInfo": {"SizeInMiB": 16384},
                        }
                    ]
                }
            },
            "gpus",
            (Device("T4", "NVIDIA", 4, 16384),),
        ),
        (
            {
                "NeuronInfo": {
                    "NeuronDevices": [
                        {"Name": "Trainium", "Count": 16, "CoreInfo": {"Count": 2, "Version": 2}}
                    ]
                }
            },
            "neurons",
            (Device("Trainium", "AWS", 16, cores=2),),
        ),
        (
            {
                "InferenceAcceleratorInfo": {
                    "Accelerators": [
                        {"Name": "Qualcomm AI100", "Manufacturer": "Qualcomm", "Count": 8}
                    ]
                }
            },
            "accelerators",
            (Device("Qualcomm AI100", "Qualcomm", 8),),
        ),
        (
            {"InstanceStorageInfo": {"TotalSizeInGB": 300, "NvmeSupport": "required"}},
            "disk_gb",
            300,
        ),
        (
            {"InstanceStorageInfo": {"TotalSizeInGB": 300, "NvmeSupport": "unsupported"}},
            "is_nvme",
            False,
        ),
        ({"EbsInfo": {"EbsOptimizedSupport": "unsupported"}}, "ebs_mbps", None),
        (
            {
                "ProcessorInfo": {
                    "SupportedArchitectures": ["i386", "x86_64"],
                    "SupportedFeatures": ["nested-virtualization"],
                }
            },
            "has_nested_virtualization",
            True,
        ),
        (
            {"ProcessorInfo": {"SupportedArchitectures": ["x86_64"]}},
            "clock_mhz",
            None,
        ),
        ({"Hypervisor": ""}, "hypervisor", ""),
    ],
)
def test_fields_that_only_some_types_have_are_read(more: Json, field: str, value: object) -> None:
    assert getattr(read({**M5_LARGE, **more}), field) == value


def test_network_cards_are_in_the_order_of_their_index() -> None:
    cards = [
        {"NetworkCardIndex": 1, "MaximumNetworkInterfaces": 1, "BaselineBandwidthInGbps": 100.0},
        {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 2, "BaselineBandwidthInGbps": 50.0},
    ]
    network = {**M5_LARGE["NetworkInfo"], "NetworkCards": cards}

    info = read({**M5_LARGE, "NetworkInfo": {**network, "EfaInfo": {"MaximumEfaInterfaces": 2}}})

    assert info.cards == (NetworkCard(2, 50_000), NetworkCard(1, 100_000))
    assert info.efa_max == 2


@pytest.mark.parametrize(
    "more",
    [
        {"ProcessorInfo": {"SupportedArchitectures": ["arm64_mac"]}},
        {"SupportedVirtualizationTypes": ["paravirtual"]},
    ],
)
def test_types_that_run_no_containers_are_left_out(more: Json) -> None:
    assert read_instance_types([{**M5_LARGE, **more}]) == ((), ())


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        ({**M5_LARGE, "InstanceType": "x.broken", "VCpuInfo": {"DefaultVCpus": "two"}}, "x.broken"),
        ({"InstanceType": "x.bare"}, "x.bare"),
        ({}, ""),
        ("text", ""),
        ({"InstanceType": 5}, "5"),
    ],
)
def test_an_unreadable_type_does_not_prevent_reading_the_others(broken: object, path: str) -> None:
    types, faults = read_instance_types([broken, M5_LARGE])

    assert types == (INFO,)
    assert [each.path for each in faults] == [path]
