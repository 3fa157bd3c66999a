import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpy.codec.fields import FieldInvalid
from karpy.codec.instances import InstanceReader
from karpy.model.instances import InstanceType, Offering, columns
from karpy.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, RESERVED, ZONE
from karpy.model.requirements import Requirement, collect, one_of
from tests.codec.plain import Json, Value, plain_type, sold, wants

GI = 2**30
MI = 2**20
RESERVATION = "example.com/capacity-reservation-id"


def read(obj: Json) -> InstanceType:
    return InstanceReader().read(obj)


def fault(obj: Value) -> tuple[str, str]:
    with pytest.raises(FieldInvalid) as raised:
        InstanceReader().read(obj, "instanceTypes[3]")
    return raised.value.path, raised.value.problem


def test_a_type_is_read_whole() -> None:
    obj = plain_type("small", volumeLimits={"ebs.example.com": 27})

    assert read(obj) == InstanceType(
        name="small",
        requirements=collect(
            [one_of(INSTANCE_TYPE, "small"), one_of(ARCH, "amd64"), one_of(OS, "linux")]
        ),
        offerings=(
            Offering(collect([one_of(ZONE, "zone-a"), one_of(CAPACITY_TYPE, "spot")]), 500_000),
        ),
        capacity={"cpu": 2000, "memory": 4 * GI, "pods": 10},
        overhead={"cpu": 100, "memory": 100 * MI},
        volume_limits={"ebs.example.com": 27},
    )


def requirement(entry: Json) -> Mapping[str, Requirement]:
    return read(plain_type(requirements=[entry])).requirements


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (wants("a", "In", "x", "y"), Requirement("a", frozenset({"x", "y"}))),
        (wants("a", "NotIn", "x"), Requirement("a", frozenset({"x"}), True)),
        (wants("a", "Exists"), Requirement("a", complement=True)),
        (wants("a", "DoesNotExist"), Requirement("a")),
        (wants("a", "DoesNotExist", values=[]), Requirement("a")),
        (wants("a", "Gt", "4"), Requirement("a", complement=True, gte=5)),
        (wants("beta.kubernetes.io/arch", "In", "arm64"), one_of(ARCH, "arm64")),
    ],
)
def test_every_operator_is_known(entry: Json, expected: Requirement) -> None:
    assert requirement(entry) == {expected.key: expected}


def test_requirements_on_one_key_are_intersected() -> None:
    parts = [wants("a", "In", "x", "y"), wants("a", "NotIn", "y")]

    assert read(plain_type(requirements=parts)).requirements == {"a": one_of("a", "x")}


def test_values_that_look_like_operators_are_distinguished() -> None:
    reader = InstanceReader()
    first = reader.read(plain_type(requirements=[wants("a", "In", "NotIn", "x")]))
    second = reader.read(plain_type(requirements=[wants("a", "NotIn", "x")]))
    third = reader.read(plain_type(requirements=[wants("a", "In", "DoesNotExist")]))
    fourth = reader.read(plain_type(requirements=[wants("a", "DoesNotExist")]))

    assert [each.requirements["a"] for each in (first, second, third, fourth)] == [
        one_of("a", "NotIn", "x"),
        Requirement("a", frozenset({"x"}), True),
        one_of("a", "DoesNotExist"),
        Requirement("a"),
    ]


def test_common_parts_of_types_are_one_object() -> None:
    reader = InstanceReader()
    first = reader.read(plain_type())
    second = reader.read(json.loads(json.dumps(plain_type())))

    assert first.requirements[ARCH] is second.requirements[ARCH]
    assert first.offerings[0].requirements is second.offerings[0].requirements
    assert first.capacity is second.capacity
    assert first.overhead is second.overhead


def test_types_sold_in_the_same_places_share_them() -> None:
    reader = InstanceReader()
    first = reader.read(plain_type(offerings=[sold("a", "spot", 0.1), sold("b", "spot", 0.2)]))
    second = reader.read(plain_type(offerings=[sold("a", "spot", 0.3), sold("b", "spot", 0.4)]))
    third = reader.read(plain_type(offerings=[sold("b", "spot", 0.3), sold("a", "spot", 0.4)]))

    assert columns(first.offerings)[0] is columns(second.offerings)[0]
    assert columns(first.offerings)[0] is not columns(third.offerings)[0]
    assert columns(second.offerings)[1] == [300_000, 400_000]


TYPES = [
    plain_type("small"),
    plain_type("large"),
    plain_type("many", requirements=[wants("a", "In", "x"), wants("b", "In", "y", "z")]),
    plain_type("more", requirements=[wants("a", "In", "w"), wants("b", "In", "y")]),
    plain_type("less", requirements=[wants("a", "In", "w"), wants("b", "DoesNotExist")]),
    plain_type("other keys", requirements=[wants("a", "In", "w"), wants("c", "In", "y")]),
    plain_type("other order", requirements=[wants("b", "In", "y"), wants("a", "In", "w")]),
    plain_type("twice", requirements=[wants("a", "In", "x", "y"), wants("a", "NotIn", "y")]),
    plain_type("alias", requirements=[wants("beta.kubernetes.io/arch", "In", "arm64")]),
    plain_type("other alias", requirements=[wants("beta.kubernetes.io/arch", "In", "s390x")]),
    plain_type("not sold", offerings=[]),
    plain_type("gone", offerings=[sold("zone-a", "spot", 0.5, available=False)]),
    plain_type("back", offerings=[sold("zone-a", "spot", 0.5)]),
    plain_type("sized", offerings=[sold("zone-a", "spot", 0.5, capacityOverride={"cpu": "9"})]),
    plain_type("free", offerings=[sold("zone-a", "spot", 0), sold("zone-b", "spot", 0.0)]),
    plain_type("kept", overhead={"kubeReserved": {"cpu": "1"}}),
    plain_type("not kept", overhead=None),
]


@given(st.lists(st.sampled_from(TYPES), max_size=12))
def test_a_type_does_not_depend_on_types_read_before(types: list[Json]) -> None:
    reader = InstanceReader()

    assert [reader.read(each) for each in types] == [read(each) for each in types]


def offering(entry: Json) -> Offering:
    return read(plain_type(offerings=[entry])).offerings[0]


SPOT_IN_A = collect([one_of(ZONE, "a"), one_of(CAPACITY_TYPE, "spot")])


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (sold("a", "spot", 0.1), Offering(SPOT_IN_A, 100_000)),
        (sold("a", "spot", 1), Offering(SPOT_IN_A, 1_000_000)),
        (sold("a", "spot", "0.0000005"), Offering(SPOT_IN_A, 0)),
        (sold("a", "spot", "0.25"), Offering(SPOT_IN_A, 250_000)),
        (sold("a", "spot", 0.1, available=False), Offering(SPOT_IN_A, 100_000, False)),
        (
            {"labels": {ZONE: "a", CAPACITY_TYPE: "spot"}, "price": 0.1},
            Offering(SPOT_IN_A, 100_000, True),
        ),
        (
            {
                "labels": {ZONE: "a", CAPACITY_TYPE: "spot"},
                "price": 0.1,
                "capacityOverride": {"cpu": "1"},
            },
            Offering(SPOT_IN_A, 100_000, capacity_override={"cpu": 1000}),
        ),
        (
            sold(
                "a",
                "spot",
                0.1,
                capacityOverride={"example.com/gpu": "12"},
                overheadOverride={"memory": "3Gi"},
            ),
            Offering(
                SPOT_IN_A,
                100_000,
                capacity_override={"example.com/gpu": 12},
                overhead_override={"memory": 3 * GI},
            ),
        ),
    ],
)
def test_offerings_are_read_whole(entry: Json, expected: Offering) -> None:
    assert offering(entry) == expected


def test_a_reservation_is_known_by_the_end_of_its_label() -> None:
    reader = InstanceReader()
    entry = sold("a", RESERVED, 0.0, labels={RESERVATION: "cr-1"}, reservationCapacity=3)

    made = reader.read(plain_type(offerings=[entry, entry])).offerings

    assert (
        made
        == (
            Offering(
                collect(
                    [
                        one_of(ZONE, "a"),
                        one_of(CAPACITY_TYPE, RESERVED),
                        one_of(RESERVATION, "cr-1"),
                    ]
                ),
                price=0,
                reservation_capacity=3,
                reservation_id="cr-1",
            ),
        )
        * 2
    )
    assert reader.reservation_label == RESERVATION


def test_a_reserved_offering_seen_before_keeps_its_reservation() -> None:
    """The cache of offerings must not lose it."""
    entry = sold("a", RESERVED, 0.5, labels={RESERVATION: "cr-1"})

    made = read(plain_type(offerings=[entry, entry])).offerings

    assert [each.reservation_id for each in made] == ["cr-1", "cr-1"]


@pytest.mark.parametrize(
    ("change", "path", "problem"),
    [
        ({"name": ""}, "name", "is missing"),
        ({"requirements": None}, "requirements", "is missing"),
        ({"requirements": [wants("a", "In")]}, "requirements[0].values", "is empty"),
        ({"requirements": [{"key": "a"}]}, "requirements[0].operator", "is missing"),
        (
            {"requirements": [wants("a b", "In", "x")]},
            "requirements[0].key",
            "is `a b`, which is no label key",
        ),
        (
            {"requirements": [wants("a", "In", values=[5])]},
            "requirements[0].values[0]",
            "is `5`, not text",
        ),
        ({"requirements": [wants("a", "Near", "x")]}, "requirements[0].operator", "is `Near`"),
        ({"requirements": ["x"]}, "requirements[0]", "is the text `x`, not an object"),
        ({"offerings": None}, "offerings", "is missing"),
        ({"offerings": [{"price": 1.0}]}, "offerings[0].labels", "is missing"),
        ({"offerings": [sold("a", "spot", -1.0)]}, "offerings[0].price", "is `-1.0`, not a price"),
        ({"offerings": [sold("a", "spot", None)]}, "offerings[0].price", "is missing, not a price"),
        ({"offerings": [sold("a", "spot", "x")]}, "offerings[0].price", "is `x`, not a price"),
        ({"offerings": [sold("a", "spot", True)]}, "offerings[0].price", "is `True`, not a price"),
        (
            {"offerings": [sold("a", "spot", 1e300)]},
            "offerings[0].price",
            "is `1e+300`, not a price",
        ),
        (
            {"offerings": [sold("a", "spot", 0.1, available="yes")]},
            "offerings[0].available",
            "is the text `yes`, not true or false",
        ),
        ({"capacity": {"cpu": "x"}}, "capacity.cpu", "is `x`, not a quantity"),
        (
            {"overhead": {"kubeReserved": {"cpu": "x"}}},
            "overhead.kubeReserved.cpu",
            "is `x`, not a quantity",
        ),
        ({"volumeLimits": {"d": "x"}}, "volumeLimits.d", "is the text `x`, not a whole number"),
    ],
)
def test_a_fault_of_an_instance_type_is_reported_with_its_path(
    change: Json, path: str, problem: str
) -> None:
    assert fault({**plain_type(), **change}) == (f"instanceTypes[3].{path}", problem)


def test_a_type_must_be_an_object() -> None:
    assert fault(5) == ("instanceTypes[3]", "is `5`, not an object")
