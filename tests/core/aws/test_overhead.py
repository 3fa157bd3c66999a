"""What the system keeps, with the values that Karpenter reports."""

import pytest
from msgspec.structs import replace

from karpy.model.ec2 import AmiFamily, InstanceSettings, InstanceTypeInfo
from karpy.model.ec2nodeclass import Kubelet
from karpy.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from tests.builders.ec2 import (
    C6G_LARGE,
    GI,
    M5_LARGE,
    M5_METAL,
    M5_XLARGE,
    MI,
    T3_LARGE,
    amounts,
    every_type,
)


@pytest.mark.parametrize(
    ("info", "cpu", "memory_mib"),
    [
        (M5_LARGE, 1930, 6903),
        (M5_XLARGE, 3920, 14162),
        (C6G_LARGE, 1930, 3055),
        (T3_LARGE, 1930, 6837),
        (M5_METAL, 96_000 - 310, 363724 - 8362 - 100),
    ],
)
def test_what_is_left_for_pods_is_what_karpenter_says(
    info: InstanceTypeInfo, cpu: int, memory_mib: int
) -> None:
    _, _, left = amounts(info)

    assert (left[CPU], left[MEMORY]) == (cpu, memory_mib * MI)


def test_a_gibibyte_and_a_tenth_of_the_disk_are_kept() -> None:
    _, kept, _ = amounts(M5_LARGE)

    assert kept == {CPU: 70, MEMORY: (574 + 100) * MI, EPHEMERAL_STORAGE: 3 * GI}


@pytest.mark.parametrize(
    ("vcpus", "kept"), [(1, 60), (2, 70), (4, 80), (8, 90), (96, 310), (448, 1190)]
)
def test_the_first_cores_give_most_of_the_kept_cpu(vcpus: int, kept: int) -> None:
    _, overhead, _ = amounts(replace(M5_LARGE, vcpus=vcpus))

    assert overhead[CPU] == kept


@pytest.mark.parametrize(
    ("family", "pods"),
    [
        (AmiFamily.AL2, 29),
        (AmiFamily.AL2023, 29),
        (AmiFamily.CUSTOM, 29),
        (AmiFamily.BOTTLEROCKET, 10),
        (AmiFamily.WINDOWS_2019, 10),
    ],
)
def test_memory_is_kept_for_pods_with_an_address_or_for_those_allowed(
    family: AmiFamily, pods: int
) -> None:
    settings = InstanceSettings(family, Kubelet(max_pods=10))

    _, kept, _ = amounts(M5_LARGE, settings)

    assert kept[MEMORY] == (11 * pods + 255 + 100) * MI


def test_what_the_node_class_reserves_replaces_and_adds() -> None:
    kubelet = Kubelet(
        kube_reserved={CPU: "200m", EPHEMERAL_STORAGE: "5Gi"},
        system_reserved={CPU: "0.1", MEMORY: "1Gi"},
    )

    _, kept, _ = amounts(M5_LARGE, InstanceSettings(kubelet=kubelet))

    assert kept == {
        CPU: 300,
        MEMORY: (574 + 100 + 1024) * MI,
        EPHEMERAL_STORAGE: (5 + 2) * GI,
    }


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("500Mi", 500 * MI),
        ("5%", -(-7577 * MI * 5 // 100)),
        ("2.5%", -(-7577 * MI * 25 // 1000)),
        ("0.05%", -(-7577 * MI * 5 // 10_000)),
        ("100%", 0),
        ("100.00%", 0),
        ("0%", 0),
        ("", 100 * MI),
    ],
)
def test_memory_must_stay_free_of_an_amount_or_a_percentage(text: str, kept: int) -> None:
    kubelet = Kubelet(eviction_hard={"memory.available": text})

    _, overhead, _ = amounts(M5_LARGE, InstanceSettings(kubelet=kubelet))

    assert overhead[MEMORY] == 574 * MI + kept


def test_other_signals_than_memory_and_disk_keep_nothing() -> None:
    kubelet = Kubelet(
        eviction_hard={"nodefs.available": "10Gi", "nodefs.inodesFree": "5%", "pid.available": "3%"}
    )

    _, kept, _ = amounts(M5_LARGE, InstanceSettings(kubelet=kubelet))

    assert kept == {CPU: 70, MEMORY: 674 * MI, EPHEMERAL_STORAGE: 11 * GI}


def test_every_type_but_the_smallest_leaves_something_for_pods() -> None:
    short = {info.name for info in every_type() if min(amounts(info)[2].values()) <= 0}

    assert short == set()
