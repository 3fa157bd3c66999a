from karpy.core.aws.catalog import CatalogMaker
from karpy.core.aws.instancetypes import AVAILABLE, BYTES, CORES, PRICE, type_gauges
from karpy.model.ec2 import InstanceSettings
from tests.builders.ec2 import M5_LARGE, MI, ZONE_IDS, region


def test_gauges_tell_size_stock_and_price() -> None:
    only_a = InstanceSettings(zones={"eu-west-1a": ZONE_IDS["eu-west-1a"]})
    catalog = CatalogMaker().make(region(M5_LARGE), {"web": only_a})

    found = {
        (each.metric, *(v for k, v in each.labels.items() if k != "instance_type")): each.value
        for each in type_gauges(catalog)
    }

    assert found == {
        (CORES,): 2.0,
        (BYTES,): 7577.0 * MI,
        (AVAILABLE, "on-demand", "eu-west-1a"): 1.0,
        (AVAILABLE, "on-demand", "eu-west-1b"): 0.0,
        (AVAILABLE, "spot", "eu-west-1a"): 1.0,
        (AVAILABLE, "spot", "eu-west-1b"): 0.0,
        (PRICE, "on-demand", "eu-west-1a"): 0.096,
        (PRICE, "on-demand", "eu-west-1b"): 0.096,
        (PRICE, "spot", "eu-west-1a"): 0.048,
        (PRICE, "spot", "eu-west-1b"): 0.048,
    }


def test_a_type_can_be_had_if_one_nodepool_can_have_it() -> None:
    zones = {
        zone: InstanceSettings(zones={zone: ZONE_IDS[zone]})
        for zone in ("eu-west-1a", "eu-west-1b")
    }
    catalog = CatalogMaker().make(region(M5_LARGE), zones)

    stock = [each.value for each in type_gauges(catalog) if each.metric == AVAILABLE]

    assert stock == [1.0] * 4
