"""Catalogs are made again only where something has changed, counted in instance types."""

import time

from msgspec.structs import replace

from karpy.adapters.clouds.aws.builtin import builtin_region
from karpy.codec.aws.instancetypes import read_instance_types
from karpy.core.aws.catalog import EC2_WELL_KNOWN, CatalogMaker
from karpy.model.ec2 import (
    AUTO_MODE_DOMAIN,
    CAPACITY_RESERVATION_ID,
    CapacityReservation,
    Ec2Market,
    InstanceSettings,
    Region,
)
from karpy.model.ec2nodeclass import Kubelet
from tests.builders.ec2 import (
    M5_LARGE,
    M5_XLARGE,
    PLAIN,
    T3_LARGE,
    described_answers,
    described_zones,
    region,
)

REGION = region(M5_LARGE, M5_XLARGE, T3_LARGE)
DENSE = InstanceSettings(kubelet=Kubelet(max_pods=110))


def sold_out(where: Region, name: str) -> Region:
    unavailable = frozenset({("spot", name, "eu-west-1a")})
    return replace(where, market=replace(where.market, unavailable=unavailable))


def test_each_pool_has_the_types_of_its_node_class() -> None:
    catalog = CatalogMaker().make(REGION, {"a": PLAIN, "b": DENSE}, usual=PLAIN)

    names = ["m5.large", "m5.xlarge", "t3.large"]
    assert [each.name for each in catalog.types_for("a")] == names
    assert [each.capacity["pods"] for each in catalog.types_for("a")] == [29, 58, 35]
    assert [each.capacity["pods"] for each in catalog.types_for("b")] == [110, 110, 110]
    assert catalog.types is catalog.types_for("a")
    assert catalog.reservation_label == CAPACITY_RESERVATION_ID


def test_labels_of_ec2_are_known_before_there_is_a_node_class() -> None:
    catalog = CatalogMaker().make(REGION, {})

    assert catalog.types == ()
    assert catalog.well_known == EC2_WELL_KNOWN
    assert catalog.reservation_label == CAPACITY_RESERVATION_ID


def test_a_pool_without_settings_has_the_usual_types_or_none() -> None:
    maker = CatalogMaker()

    assert maker.make(REGION, {"a": PLAIN}).types_for("other") == ()
    assert len(maker.make(REGION, {}, usual=PLAIN).types_for("other")) == 3


def test_the_same_object_is_returned_when_nothing_has_changed() -> None:
    maker = CatalogMaker()
    first = maker.make(REGION, {"a": PLAIN, "b": DENSE})

    equal = region(M5_LARGE, M5_XLARGE, T3_LARGE)

    assert maker.make(REGION, {"a": PLAIN, "b": DENSE}) is first
    assert maker.make(equal, {"b": replace(DENSE), "a": replace(PLAIN)}) is first
    assert maker.made == 6


def test_alike_node_classes_share_their_types() -> None:
    maker = CatalogMaker()

    catalog = maker.make(REGION, {"a": PLAIN, "b": replace(PLAIN)})

    assert catalog.types_for("a") is catalog.types_for("b")
    assert maker.made == 3


def test_only_what_is_sold_out_is_made_again() -> None:
    maker = CatalogMaker()
    before = maker.make(REGION, {"a": PLAIN, "b": DENSE})

    after = maker.make(sold_out(REGION, "m5.large"), {"a": PLAIN, "b": DENSE})

    assert maker.made == 6 + 2
    assert after is not before
    assert after.types_for("a")[1:] == before.types_for("a")[1:]
    assert after.types_for("a")[1] is before.types_for("a")[1]
    assert not after.types_for("a")[0].offerings[1].is_available


def test_a_reservation_makes_its_type_again_and_no_other() -> None:
    maker = CatalogMaker()
    maker.make(REGION, {"a": PLAIN})
    reservation = CapacityReservation("cr-1", "m5.large", "eu-west-1a", left=1)

    settings = InstanceSettings(reservations=(reservation,))
    catalog = maker.make(REGION, {"a": settings})

    assert maker.made == 3 + 1
    assert len(catalog.types_for("a")[0].offerings) == 5


def test_memory_that_a_node_has_reported_makes_its_type_again() -> None:
    maker = CatalogMaker()
    maker.make(REGION, {"a": PLAIN})

    catalog = maker.make(
        REGION, {"a": InstanceSettings(memory_discovered={"t3.large": 8_000_000_000})}
    )

    assert maker.made == 3 + 1
    assert catalog.types_for("a")[2].capacity["memory"] == 8_000_000_000


def test_a_zone_that_loses_its_subnet_is_no_label_any_more() -> None:
    maker = CatalogMaker()
    full = frozenset({"eu-west-1a"})
    maker.make(REGION, {"a": InstanceSettings(full_zones=full)})

    zones = {"eu-west-1b": "euw1-az2"}
    catalog = maker.make(REGION, {"a": InstanceSettings(zones=zones, full_zones=full)})

    (kind, *_) = catalog.types_for("a")
    assert kind.requirements["topology.kubernetes.io/zone"].values == {"eu-west-1b"}


def test_a_type_that_is_sold_nowhere_any_more_is_gone() -> None:
    maker = CatalogMaker()
    maker.make(REGION, {"a": PLAIN})

    catalog = maker.make(region(M5_LARGE), {"a": PLAIN})

    assert [each.name for each in catalog.types_for("a")] == ["m5.large"]


def test_labels_of_eks_auto_mode_are_known_where_a_pool_has_them() -> None:
    key = AUTO_MODE_DOMAIN + "instance-category"
    auto = InstanceSettings(label_domain=AUTO_MODE_DOMAIN)

    assert key not in CatalogMaker().make(REGION, {"a": PLAIN}).well_known
    assert key in CatalogMaker().make(REGION, {"a": auto}).well_known


def test_the_catalog_of_the_largest_region_takes_less_than_two_seconds() -> None:
    where = builtin_region("us-east-1")
    maker = CatalogMaker()
    started = time.process_time()

    catalog = maker.make(where, {"a": PLAIN})

    assert time.process_time() - started < 2
    assert maker.made == len(catalog.types_for("a")) > 1350
    assert sum(len(each.offerings) for each in catalog.types_for("a")) > 6400


def test_the_catalog_of_decoded_answers_takes_less_than_two_seconds() -> None:
    zones = described_zones()
    answers = described_answers()
    prices = dict.fromkeys(zones, 100_000)
    started = time.process_time()

    types, _ = read_instance_types(answers)
    maker = CatalogMaker()
    where = Region("us-east-1", types, Ec2Market(zones, on_demand=prices))
    catalog = maker.make(where, {"a": PLAIN})

    assert time.process_time() - started < 2
    assert maker.made == len(catalog.types_for("a")) == 1366
    assert sum(map(len, zones.values())) == 6436
    assert maker.make(where, {"a": PLAIN}) is catalog
    assert maker.made == 1366


def test_the_largest_region_is_not_made_again_when_nothing_has_changed() -> None:
    where = builtin_region("us-east-1")
    maker = CatalogMaker()
    catalog = maker.make(where, {"a": PLAIN})
    made = maker.made

    again = maker.make(replace(where, market=replace(where.market)), {"a": PLAIN})

    assert again is catalog
    assert maker.made == made
