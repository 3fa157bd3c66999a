import json
from collections import Counter

import pytest

from karpy.codec.catalogs import KWOK, kwok_catalog, read_catalog
from karpy.codec.instances import InstanceReader
from karpy.errors import CatalogInvalid
from karpy.model.instances import Catalog, InstanceType, Offering
from karpy.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    OS,
    RESERVED,
    SPOT,
    WELL_KNOWN,
    ZONE,
)
from karpy.model.requirements import collect, one_of
from tests.codec.plain import Json, Value, plain_type, sold, wants

GI = 2**30
PRICE_HINT = "write dollars per hour, such as `0.096`"
MI = 2**20
ZONES = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
OVERHEAD = {"cpu": 100, "memory": 10 * MI}
KWOK_LABELS = {f"{KWOK}instance-{name}" for name in ("size", "family", "cpu", "memory")}


def fault(value: Value) -> str:
    with pytest.raises(CatalogInvalid) as raised:
        read_catalog(value, "c.json")
    return raised.value.message.removeprefix("`c.json` is no catalog of instance types: ")


def kwok(name: str) -> InstanceType:
    return next(each for each in kwok_catalog().types if each.name == name)


def test_kwok_sells_144_types() -> None:
    types = kwok_catalog().types

    assert len({each.name for each in types}) == 144
    assert Counter(len(each.offerings) for each in types) == {8: 144}


def test_a_kwok_type_equals_that_of_karpenter() -> None:
    offerings = tuple(
        Offering(collect([one_of(CAPACITY_TYPE, kind), one_of(ZONE, zone)]), price)
        for zone in ZONES
        for kind, price in ((SPOT, 19_003), (ON_DEMAND, 27_147))
    )

    assert kwok("c-1x-amd64-linux") == InstanceType(
        name="c-1x-amd64-linux",
        requirements=collect(
            [
                one_of(INSTANCE_TYPE, "c-1x-amd64-linux"),
                one_of(ARCH, "amd64"),
                one_of(OS, "linux"),
                one_of(ZONE, *ZONES),
                one_of(CAPACITY_TYPE, SPOT, ON_DEMAND),
                one_of(f"{KWOK}instance-size", "1"),
                one_of(f"{KWOK}instance-family", "c"),
                one_of(f"{KWOK}instance-cpu", "1"),
                one_of(f"{KWOK}instance-memory", "2Gi"),
            ]
        ),
        offerings=offerings,
        capacity={"cpu": 1000, "memory": 2 * GI, "pods": 16, "ephemeral-storage": 20 * GI},
        overhead=OVERHEAD,
    )


@pytest.mark.parametrize(
    ("name", "price", "pods"),
    [
        ("c-1x-amd64-linux", 0.027147483648, 16),
        ("s-4x-arm64-linux", 0.117179869184, 64),
        ("m-16x-amd64-windows", 0.537438953472, 256),
        ("c-64x-amd64-linux", 1.737438953472, 1024),
        ("m-256x-arm64-windows", 8.599023255552, 1024),
    ],
)
def test_kwok_prices_are_karpenters_to_the_micro_dollar(name: str, price: float, pods: int) -> None:
    kind = kwok(name)

    assert {(each.capacity_type, each.price) for each in kind.offerings} == {
        (ON_DEMAND, round(price * 1e6)),
        (SPOT, round(price * 0.7 * 1e6)),
    }
    assert kind.capacity["pods"] == pods


def test_kwok_has_labels_of_its_own() -> None:
    assert kwok_catalog().well_known == WELL_KNOWN | KWOK_LABELS


def kwok_entry(name: str = "m5.large", **fields: Value) -> Json:
    return {
        "name": name,
        "architecture": "amd64",
        "operatingSystems": ["linux", "windows"],
        "resources": {"cpu": "2", "memory": "8Gi"},
        "offerings": [kwok_offering("spot", "zone-a"), kwok_offering("on-demand", "zone-b")],
        **fields,
    }


def kwok_offering(kind: str, zone: str, **fields: Value) -> Json:
    return {
        "Price": 0.05,
        "Available": False,
        "Requirements": [
            wants(CAPACITY_TYPE, "In", kind),
            wants(ZONE, "In", zone),
            wants("example.com/host", "In", "h"),
        ],
        **fields,
    }


def test_the_list_that_karpenters_kwok_provider_takes_is_taken() -> None:
    host = one_of("example.com/host", "h")

    assert read_catalog([kwok_entry()]) == Catalog(
        types=(
            InstanceType(
                name="m5.large",
                requirements=collect(
                    [
                        one_of(INSTANCE_TYPE, "m5.large"),
                        one_of(ARCH, "amd64"),
                        one_of(OS, "linux", "windows"),
                        one_of(ZONE, "zone-a", "zone-b"),
                        one_of(CAPACITY_TYPE, SPOT, ON_DEMAND),
                        one_of(f"{KWOK}instance-size", "large"),
                        one_of(f"{KWOK}instance-family", "m5"),
                        one_of(f"{KWOK}instance-cpu", "2"),
                        one_of(f"{KWOK}instance-memory", "8Gi"),
                    ]
                ),
                offerings=(
                    Offering(
                        collect([one_of(CAPACITY_TYPE, SPOT), one_of(ZONE, "zone-a"), host]), 50_000
                    ),
                    Offering(
                        collect([one_of(CAPACITY_TYPE, ON_DEMAND), one_of(ZONE, "zone-b"), host]),
                        50_000,
                    ),
                ),
                capacity={"cpu": 2000, "memory": 8 * GI, "pods": 110},
                overhead=OVERHEAD,
            ),
        ),
        well_known=WELL_KNOWN | KWOK_LABELS | {"example.com/host"},
    )


@pytest.mark.parametrize(
    ("name", "size", "family"),
    [
        ("m5.large", "large", "m5"),
        ("m5.24xlarge", "24xlarge", "m5"),
        ("c-4x-amd64", "2", "c"),
        ("giant", "2", "g"),
        ("m5.huge", "2", "m5"),
    ],
)
def test_size_and_family_are_read_off_the_name(name: str, size: str, family: str) -> None:
    (kind,) = read_catalog([kwok_entry(name)]).types

    assert kind.requirements[f"{KWOK}instance-size"] == one_of(f"{KWOK}instance-size", size)
    assert kind.requirements[f"{KWOK}instance-family"] == one_of(f"{KWOK}instance-family", family)


def test_reservations_are_known_by_the_end_of_their_label() -> None:
    label = "example.com/reservation-id"
    requirements = [
        wants(CAPACITY_TYPE, "In", RESERVED),
        wants(ZONE, "In", "a"),
        wants(label, "In", "r-1"),
    ]
    offering = {"price": 0.1, "reservationCapacity": 4, "requirements": requirements}

    catalog = read_catalog([kwok_entry(offerings=[offering])])

    assert catalog.reservation_label == label
    assert [
        (each.reservation_id, each.reservation_capacity) for each in catalog.types[0].offerings
    ] == [("r-1", 4)]


@pytest.mark.parametrize(
    "value",
    [
        [plain_type("a"), plain_type("b")],
        {"instanceTypes": [plain_type("a"), plain_type("b")], "wellKnownLabels": []},
    ],
)
def test_karpbench_types_are_taken_bare_or_wrapped(value: Value) -> None:
    types = tuple(InstanceReader().read(plain_type(name)) for name in ("a", "b"))

    assert read_catalog(json.loads(json.dumps(value))) == Catalog(types=types)


def test_a_catalog_may_add_well_known_labels() -> None:
    value = {"instanceTypes": [plain_type()], "wellKnownLabels": ["size"]}

    assert read_catalog(value).well_known == WELL_KNOWN | {"size"}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (5, "it is `5`; give a list or an object"),
        ([], "`instanceTypes` is empty; add at least one instance type"),
        ({}, "`instanceTypes` is empty; add at least one instance type"),
        (
            [plain_type("a"), plain_type("a")],
            "`instanceTypes[1].name` is `a` again; give each type its own name",
        ),
        (
            [plain_type(offerings=[sold("a", "spot", -1)])],
            f"`instanceTypes[0].offerings[0].price` is `-1`, not a price; {PRICE_HINT}",
        ),
        (
            [kwok_entry(resources={"cpu": "1"})],
            "`instanceTypes[0].resources.memory` is missing; add how much memory the type has",
        ),
        (
            [kwok_entry(offerings=[])],
            "`instanceTypes[0].offerings` is empty; add at least one offering",
        ),
        (
            [kwok_entry(offerings=[{"Price": 1, "Requirements": []}])],
            f"`instanceTypes[0].offerings[0].Requirements` say nothing of `{ZONE}`; add `{ZONE}`",
        ),
        (
            ["x"],
            "`instanceTypes[0]` is the text `x`, not an object; write it as `name: value` pairs",
        ),
    ],
)
def test_a_fault_of_a_catalog_is_reported_with_its_path(value: Value, problem: str) -> None:
    assert fault(value) == problem
