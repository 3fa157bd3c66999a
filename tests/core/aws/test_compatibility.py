import pytest
from msgspec.structs import replace

from karpy.core.aws.offerings import is_launchable
from karpy.model.ec2 import (
    EFA_ONLY,
    AmiFamily,
    InstanceSettings,
    InstanceTypeInfo,
    NetworkCard,
    PlacementGroup,
)
from karpy.model.ec2nodeclass import NetworkInterface
from tests.builders.ec2 import M5_LARGE, M5_METAL

A1 = replace(M5_LARGE, name="a1.large", architectures=("arm64",))
TWO_CARDS = replace(M5_LARGE, cards=(NetworkCard(2, 1), NetworkCard(1, 1)), efa_max=1)
PRIMARY = NetworkInterface(0, 0)
EFA_ON_SECOND = NetworkInterface(1, 0, EFA_ONLY)


@pytest.mark.parametrize(
    ("info", "settings", "expected"),
    [
        (M5_LARGE, InstanceSettings(), True),
        (A1, InstanceSettings(), False),
        (A1, InstanceSettings(AmiFamily.AL2), True),
        (M5_LARGE, InstanceSettings(needs_nested_virtualization=True), False),
        (
            replace(M5_LARGE, has_nested_virtualization=True),
            InstanceSettings(needs_nested_virtualization=True),
            True,
        ),
        (M5_LARGE, InstanceSettings(tracks_connections=True), True),
        (M5_METAL, InstanceSettings(tracks_connections=True), False),
        (M5_LARGE, InstanceSettings(placement=PlacementGroup("pg-1", strategy="cluster")), True),
        (
            replace(M5_LARGE, placement_strategies=frozenset({"spread"})),
            InstanceSettings(placement=PlacementGroup("pg-1", strategy="cluster")),
            False,
        ),
        (M5_LARGE, InstanceSettings(network_interfaces=(PRIMARY,)), True),
        (replace(M5_LARGE, has_ena=False), InstanceSettings(network_interfaces=(PRIMARY,)), False),
        (M5_LARGE, InstanceSettings(network_interfaces=(PRIMARY, NetworkInterface(0, 3))), False),
        (M5_LARGE, InstanceSettings(network_interfaces=(PRIMARY, NetworkInterface(1, 0))), False),
        (TWO_CARDS, InstanceSettings(network_interfaces=(PRIMARY, EFA_ON_SECOND)), True),
        (
            replace(TWO_CARDS, efa_max=0),
            InstanceSettings(network_interfaces=(PRIMARY, EFA_ON_SECOND)),
            False,
        ),
    ],
)
def test_a_type_must_have_what_the_node_class_asks_for(
    info: InstanceTypeInfo, settings: InstanceSettings, *, expected: bool
) -> None:
    assert is_launchable(info, settings) is expected
