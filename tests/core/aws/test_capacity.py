"""What nodes of an instance type offer and what the system keeps, as Karpenter reports it."""

import pytest
from msgspec.structs import replace

from karpy.core.aws.capacity import capacity, eni_pods, ephemeral_storage, memory, pods
from karpy.model.ec2 import (
    AMD_GPU,
    EFA,
    EFA_ONLY,
    GAUDI,
    NEURON,
    NEURON_CORE,
    NVIDIA_GPU,
    PRIVATE_IPV4_ADDRESS,
    AmiFamily,
    Device,
    Ec2Settings,
    InstanceSettings,
    InstanceTypeInfo,
    NetworkCard,
)
from karpy.model.ec2nodeclass import Disk, DiskMapping, Kubelet, NetworkInterface
from karpy.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from tests.builders.ec2 import (
    C6G_LARGE,
    GI,
    M5_LARGE,
    M5_METAL,
    M5_XLARGE,
    MI,
    OPERATOR,
    PLAIN,
    T3_LARGE,
    amounts,
    every_type,
)

GB = 10**9
WITH_DISKS = replace(M5_LARGE, disk_gb=300)
ROOT = DiskMapping("/dev/sdx", Disk(size="100Gi"), is_root=True)
XVDA = DiskMapping("/dev/xvda", Disk(size="50Gi"))
XVDB = DiskMapping("/dev/xvdb", Disk(size="60Gi"))
UNSIZED = DiskMapping("/dev/xvda", Disk(snapshot_id="snap-1"))
PRIMARY = NetworkInterface(0, 0)


@pytest.mark.parametrize(
    ("info", "mib"),
    [(M5_LARGE, 7577), (M5_XLARGE, 15155), (C6G_LARGE, 3729), (M5_METAL, 363724)],
)
def test_memory_is_what_experience_leaves_of_it(info: InstanceTypeInfo, mib: int) -> None:
    assert memory(info, PLAIN, OPERATOR) == mib * MI


def test_memory_that_nodes_have_reported_counts_as_it_is() -> None:
    known = InstanceSettings(memory_discovered={"m5.large": 8_000_000_000})

    assert memory(M5_LARGE, known, OPERATOR) == 8_000_000_000
    assert memory(M5_XLARGE, known, OPERATOR) == 15155 * MI


@pytest.mark.parametrize(
    ("info", "count"), [(M5_LARGE, 29), (M5_XLARGE, 58), (T3_LARGE, 35), (M5_METAL, 737)]
)
def test_pods_need_an_address_of_a_network_interface(info: InstanceTypeInfo, count: int) -> None:
    assert pods(info, PLAIN, OPERATOR) == count


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        (InstanceSettings(kubelet=Kubelet(max_pods=110)), 110),
        (InstanceSettings(kubelet=Kubelet(max_pods=0)), 0),
        (InstanceSettings(kubelet=Kubelet(pods_per_core=4)), 8),
        (InstanceSettings(kubelet=Kubelet(max_pods=6, pods_per_core=4)), 6),
        (InstanceSettings(AmiFamily.BOTTLEROCKET, Kubelet(pods_per_core=4)), 29),
        (InstanceSettings(AmiFamily.WINDOWS_2022), 110),
        (InstanceSettings(AmiFamily.WINDOWS_2022, Kubelet(pods_per_core=10)), 20),
        (InstanceSettings(network_interfaces=(PRIMARY, NetworkInterface(0, 1, EFA_ONLY))), 20),
        (InstanceSettings(network_interfaces=(PRIMARY, NetworkInterface(1, 1, EFA_ONLY))), 29),
    ],
)
def test_the_node_class_and_its_images_change_how_many_pods_fit(
    settings: InstanceSettings, count: int
) -> None:
    assert pods(M5_LARGE, settings, OPERATOR) == count


@pytest.mark.parametrize(("reserved", "count"), [(1, 20), (2, 11), (3, 0), (9, 0)])
def test_interfaces_kept_for_others_have_no_pods(reserved: int, count: int) -> None:
    assert pods(M5_LARGE, PLAIN, Ec2Settings(reserved_enis=reserved)) == count


def test_the_default_network_card_has_the_pods() -> None:
    info = replace(M5_LARGE, cards=(NetworkCard(2, 750), NetworkCard(4, 750)), default_card=1)

    assert eni_pods(info, PLAIN) == 38


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        (InstanceSettings(), 20 * GI),
        (InstanceSettings(is_raid0=True), 300 * GB),
        (InstanceSettings(is_raid0=True, disks=(ROOT,)), 300 * GB),
        (InstanceSettings(disks=(XVDA, ROOT)), 100 * GI),
        (InstanceSettings(disks=(XVDA, XVDB)), 50 * GI),
        (InstanceSettings(disks=(UNSIZED,)), 20 * GI),
        (InstanceSettings(AmiFamily.BOTTLEROCKET), 20 * GI),
        (InstanceSettings(AmiFamily.BOTTLEROCKET, disks=(XVDA, XVDB)), 60 * GI),
        (InstanceSettings(AmiFamily.WINDOWS_2019), 50 * GI),
        (InstanceSettings(AmiFamily.CUSTOM), 20 * GI),
        (InstanceSettings(AmiFamily.CUSTOM, disks=(XVDA, XVDB)), 60 * GI),
        (
            InstanceSettings(AmiFamily.CUSTOM, disks=(XVDA, UNSIZED)),
            20 * GI,
        ),
    ],
)
def test_ephemeral_storage_is_the_disk_that_pods_write_to(
    settings: InstanceSettings, size: int
) -> None:
    assert ephemeral_storage(WITH_DISKS, settings) == size


def test_a_raid_of_no_disks_is_none() -> None:
    assert ephemeral_storage(M5_LARGE, InstanceSettings(is_raid0=True)) == 20 * GI


def test_what_a_type_has_none_of_is_absent() -> None:
    assert capacity(M5_LARGE, PLAIN, OPERATOR) == {
        CPU: 2000,
        MEMORY: 7577 * MI,
        PODS: 29,
        EPHEMERAL_STORAGE: 20 * GI,
    }


@pytest.mark.parametrize(
    ("info", "offered"),
    [
        (replace(M5_LARGE, gpus=(Device("A10G", "NVIDIA", 4, 22888),)), {NVIDIA_GPU: 4}),
        (replace(M5_LARGE, gpus=(Device("Radeon Pro V520", "AMD", 2),)), {AMD_GPU: 2}),
        (replace(M5_LARGE, gpus=(Device("Gaudi HL-205", "Habana", 8),)), {GAUDI: 8}),
        (
            replace(M5_LARGE, neurons=(Device("Trainium", "AWS", 16, cores=2),)),
            {NEURON: 16, NEURON_CORE: 32},
        ),
        (replace(M5_LARGE, efa_max=2), {EFA: 2}),
        (replace(M5_LARGE, gpus=(Device("L4", "NVIDIA", 0),)), {}),
    ],
)
def test_devices_are_resources(info: InstanceTypeInfo, offered: dict[str, int]) -> None:
    plain = capacity(M5_LARGE, PLAIN, OPERATOR)

    assert capacity(info, PLAIN, OPERATOR) == {**plain, **offered}


def test_interfaces_of_the_node_class_say_how_many_adapters_there_are() -> None:
    settings = InstanceSettings(
        network_interfaces=(PRIMARY, NetworkInterface(1, 0, EFA_ONLY)),
    )

    assert capacity(replace(M5_LARGE, efa_max=4), settings, OPERATOR)[EFA] == 1


def test_windows_counts_the_addresses_of_its_one_interface() -> None:
    settings = InstanceSettings(AmiFamily.WINDOWS_2025)

    assert capacity(M5_LARGE, settings, OPERATOR)[PRIVATE_IPV4_ADDRESS] == 9


def test_every_type_that_is_sold_offers_some_of_all_that_pods_need() -> None:
    odd = [info.name for info in every_type() if min(capacity(info, PLAIN, OPERATOR).values()) <= 0]

    assert odd == []


def test_every_type_loses_some_memory_and_never_much() -> None:
    shares = {
        info.name: memory(info, PLAIN, OPERATOR) / (info.memory_mib * MI) for info in every_type()
    }

    assert [name for name, share in shares.items() if not 0.8 < share <= 0.925] == []


def test_pods_follow_from_interfaces_and_their_addresses() -> None:
    odd = [
        info.name
        for info in every_type()
        if (pods(info, PLAIN, OPERATOR) - 2) % (info.ipv4_per_interface - 1) != 0
        or pods(info, PLAIN, OPERATOR) > 2 + 24 * 63
    ]

    assert odd == []


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
