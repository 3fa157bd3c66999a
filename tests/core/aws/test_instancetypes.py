"""Instance types of EC2 as the solver gets them."""

from msgspec.structs import replace

from karpy.core.aws.instancetypes import frame, instance_type
from karpy.core.aws.offerings import Places, Shop
from karpy.model.ec2 import (
    AUTO_MODE_DOMAIN,
    EC2_DOMAIN,
    EC2_LABELS,
    AmiFamily,
    CapacityReservation,
    InstanceSettings,
    InstanceTypeInfo,
    PlacementGroup,
)
from karpy.model.instances import InstanceType
from karpy.model.labels import WELL_KNOWN
from tests.builders.ec2 import C6G_LARGE, M5_LARGE, OPERATOR, PLAIN, ZONES, market


def made(info: InstanceTypeInfo, settings: InstanceSettings = PLAIN) -> InstanceType:
    shop = Shop(market(info), settings, Places())
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
