from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.aws.capacity import memory_by_type
from karpy.core.aws.offerings import may_use_any_zone, read_shifts
from karpy.core.aws.reservations import (
    demoted,
    expiring_reservations,
    is_expiring_with,
    lacks_partition,
    with_partition,
)
from karpy.model.ec2nodeclass import FoundReservation
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, REGISTERED, ZONE
from karpy.model.records import ClaimRecord, Identity, NodeRecord
from karpy.model.requirements import collect, one_of
from tests.builders.ec2classes import NOON, STATUS, node_class

RESERVATION = "karpenter.k8s.aws/capacity-reservation-id"
PARTITION = "karpenter.k8s.aws/placement-group-partition"
RESERVED = {
    CAPACITY_TYPE: "reserved",
    RESERVATION: "cr-1",
    "karpenter.k8s.aws/capacity-reservation-type": "capacity-block",
    "team": "a",
}


def claim(**labels: str) -> ClaimRecord:
    return ClaimRecord(Identity("web-1", labels=labels), image_id="ami-amd")


def test_what_was_reserved_becomes_on_demand() -> None:
    found = demoted(Identity("web-1", labels=RESERVED))

    assert found.labels == {CAPACITY_TYPE: "on-demand", "team": "a"}


def test_what_is_not_reserved_stays_as_it_is() -> None:
    spot = Identity("web-1", labels={CAPACITY_TYPE: "spot"})

    assert demoted(spot) is spot


def test_machines_of_a_block_that_ends_soon_go() -> None:
    blocks = (
        FoundReservation("cr-1", "p5.48xlarge", "a", state="expiring"),
        FoundReservation("cr-2", "p5.48xlarge", "a"),
    )
    expiring = expiring_reservations([node_class(status=replace(STATUS, reservations=blocks))])

    assert expiring == {"cr-1"}
    assert is_expiring_with(claim(**RESERVED), expiring)
    assert not is_expiring_with(claim(**{**RESERVED, RESERVATION: "cr-2"}), expiring)
    assert not is_expiring_with(claim(**{**RESERVED, CAPACITY_TYPE: "spot"}), expiring)


def test_a_partition_that_ec2_chose_is_written_down_once() -> None:
    chosen = with_partition(claim(**{PARTITION: ""}).meta, "3")

    assert lacks_partition(claim(**{PARTITION: ""}))
    assert not lacks_partition(claim())
    assert not lacks_partition(ClaimRecord(chosen))
    assert chosen.labels[PARTITION] == "3"


def node(memory: int, **labels: str) -> NodeRecord:
    given = {INSTANCE_TYPE: "m5.large", REGISTERED: "true", **labels}
    return NodeRecord(Identity("n", labels=given), capacity={"memory": memory})


def test_the_least_memory_that_nodes_of_a_type_report_counts() -> None:
    old = replace(claim(), image_id="ami-old")
    pairs = [
        (claim(), node(800)),
        (claim(), node(700)),
        (old, node(100)),
        (claim(), node(100, **{REGISTERED: "false"})),
        (claim(), node(300, **{INSTANCE_TYPE: "c6g.large"})),
        (claim(), node(0)),
    ]

    assert memory_by_type(node_class(), pairs) == {"m5.large": 700, "c6g.large": 300}


def shift(zone: str, status: str, minutes: int) -> dict[str, object]:
    ends = NOON + timedelta(minutes=minutes)
    return {"awayFrom": zone, "appliedStatus": status, "expiryTime": ends}


def test_shifts_that_are_applied_and_not_over_count() -> None:
    answer = {
        "zonalShifts": [
            shift("euw1-az1", "APPLIED", 10),
            shift("euw1-az2", "APPLIED", -1),
            shift("euw1-az3", "NOT_APPLIED", 10),
        ],
        "autoshifts": [{"awayFrom": "euw1-az4", "appliedStatus": "APPLIED"}],
    }

    assert read_shifts(answer, NOON) == {"euw1-az1", "euw1-az4"}
    assert read_shifts({}, NOON) == frozenset()


@pytest.mark.parametrize(
    ("zone", "expected"), [("eu-west-1a", True), ("eu-west-1b", False), ("", True)]
)
def test_a_nodepool_is_concerned_by_zones_that_it_may_use(zone: str, expected: object) -> None:
    asked = collect([one_of(ZONE, zone)]) if zone else {}

    assert may_use_any_zone(asked, [("eu-west-1a", "euw1-az1")]) is expected
