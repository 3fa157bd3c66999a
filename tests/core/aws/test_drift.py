import pytest
from msgspec.structs import replace

from karpy.core.aws.drift import (
    NODE_CLASS_HASH,
    NODE_CLASS_HASH_VERSION,
    DriftUnknown,
    Observed,
    find_image_drift,
    find_machine_drift,
    find_static_drift,
)
from karpy.model.ec2 import Instance
from karpy.model.ec2nodeclass import FoundReservation
from karpy.model.labels import INSTANCE_TYPE
from karpy.model.records import ClaimRecord, Identity
from tests.builders.ec2 import C6G_LARGE, M5_LARGE
from tests.builders.ec2classes import ARM64, STATUS, node_class, types_of

TYPES = types_of(M5_LARGE, C6G_LARGE)
MACHINE = Instance("i-1", "m5.large", "eu-west-1a", subnet="subnet-a", security_groups=("sg-1",))


def claim(type_: str = "m5.large", image: str = "ami-amd", **labels: str) -> ClaimRecord:
    return ClaimRecord(Identity("web-1", labels={INSTANCE_TYPE: type_, **labels}), image_id=image)


def observed(of: ClaimRecord, **status: object) -> Observed:
    return Observed(of, node_class(status=replace(STATUS, **status)), TYPES)


def stamped(digest: str, version: str) -> dict[str, str]:
    return {NODE_CLASS_HASH: digest, NODE_CLASS_HASH_VERSION: version}


@pytest.mark.parametrize(
    ("mine", "its", "expected"),
    [
        (stamped("1", "v5"), stamped("1", "v5"), ""),
        (stamped("1", "v5"), stamped("2", "v5"), "NodeClassDrift"),
        (stamped("1", "v4"), stamped("2", "v5"), ""),
        ({}, stamped("2", "v5"), ""),
        (stamped("1", "v5"), {}, ""),
        ({NODE_CLASS_HASH: "1"}, stamped("2", "v5"), ""),
    ],
)
def test_hashes_of_one_version_are_compared(
    mine: dict[str, str], its: dict[str, str], expected: str
) -> None:
    of = ClaimRecord(Identity("web-1", annotations=mine))

    assert find_static_drift(of, node_class(annotations=its)) == expected


def test_a_machine_boots_the_image_for_its_type() -> None:
    assert find_image_drift(observed(claim())) == ""
    assert find_image_drift(observed(claim("c6g.large", "ami-arm"))) == ""
    assert find_image_drift(observed(claim(image="ami-old"))) == "AMIDrift"
    assert find_image_drift(observed(claim("c6g.large", "ami-amd"))) == "AMIDrift"
    assert find_image_drift(observed(claim(), images=(ARM64,))) == "AMIDrift"


@pytest.mark.parametrize(
    ("of", "status"),
    [(claim("z9.large"), {}), (claim(image=""), {}), (claim(), {"images": ()})],
)
def test_what_is_not_known_does_not_drift(of: ClaimRecord, status: dict[str, object]) -> None:
    with pytest.raises(DriftUnknown):
        find_image_drift(observed(of, **status))


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (MACHINE, ""),
        (replace(MACHINE, security_groups=("sg-1", "sg-mine")), "SecurityGroupDrift"),
        (replace(MACHINE, subnet="subnet-x"), "SubnetDrift"),
        (
            replace(MACHINE, subnet="subnet-x", security_groups=("sg-2",)),
            "SecurityGroupDrift",
        ),
        (
            replace(MACHINE, capacity_type="reserved", reservation="cr-9"),
            "CapacityReservationDrift",
        ),
        (replace(MACHINE, capacity_type="reserved", reservation="cr-1"), ""),
    ],
)
def test_the_first_difference_of_a_machine_counts(machine: Instance, expected: str) -> None:
    reservations = (FoundReservation("cr-1", "m5.large", "eu-west-1a"),)

    assert find_machine_drift(observed(claim(), reservations=reservations), machine) == expected


def test_another_placement_group_is_drift() -> None:
    label = {"karpenter.k8s.aws/placement-group-id": "pg-1"}
    selected = replace(observed(claim()), placement_group="pg-1")

    assert find_machine_drift(selected, MACHINE) == "PlacementGroupDrift"
    assert find_machine_drift(observed(claim(**label)), MACHINE) == "PlacementGroupDrift"
    assert find_machine_drift(replace(selected, claim=claim(**label)), MACHINE) == ""


@pytest.mark.parametrize("status", [{"security_groups": ()}, {"subnets": ()}])
def test_a_class_without_a_network_tells_nothing(status: dict[str, object]) -> None:
    with pytest.raises(DriftUnknown):
        find_machine_drift(observed(claim(), **status), MACHINE)
