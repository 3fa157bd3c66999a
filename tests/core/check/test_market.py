from typing import Final

import pytest

from karpy.core.check.breaches import Rule
from karpy.core.check.market import new_price, overlaid_types
from karpy.model.instances import InstanceType
from karpy.model.labels import INSTANCE_TYPE, NODE_POOL, ON_DEMAND, ZONE
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.requirements import one_of
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import LaunchOption
from tests.core.check.builders import (
    MEDIUM,
    NOON,
    catalog,
    launch,
    pod,
    pool,
    world,
)

GATE: Final = Settings(node_overlay=True)
GPU: Final = "example.com/gpu"


def medium(
    *overlays: NodeOverlay, own_pool: NodePool | None = None, settings: Settings = GATE
) -> InstanceType:
    """Return the only type with overlays applied."""
    seen = Snapshot(
        NOON,
        pools=(own_pool or pool(),),
        catalog=catalog(MEDIUM),
        overlays=overlays,
        settings=settings,
    )
    (found,) = overlaid_types(seen)["web"]
    return found


def prices(
    *overlays: NodeOverlay, own_pool: NodePool | None = None, settings: Settings = GATE
) -> list[int]:
    found = medium(*overlays, own_pool=own_pool, settings=settings)
    return [offering.price for offering in found.offerings]


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [
        (NodeOverlay("o", price="0.25"), 250_000),
        (NodeOverlay("o", price_adjustment="+0.5"), 600_000),
        (NodeOverlay("o", price_adjustment="-.05"), 50_000),
        (NodeOverlay("o", price_adjustment="-0.5"), 0),
        (NodeOverlay("o", price_adjustment="+10%"), 110_000),
        (NodeOverlay("o", price_adjustment="-12.5%"), 87_500),
        (NodeOverlay("o", price_adjustment="-100%"), 0),
        (NodeOverlay("o", price="1", price_adjustment="-100%"), 1_000_000),
        (NodeOverlay("o"), 100_000),
    ],
)
def test_an_overlay_sets_or_changes_a_price(overlay: NodeOverlay, expected: int) -> None:
    assert new_price(100_000, overlay) == expected


def test_overlays_apply_only_with_the_feature_gate() -> None:
    free = NodeOverlay("o", price="0")

    assert prices(free) == [0, 0, 0]
    assert prices(free, settings=Settings()) == [400, 400, 400]


def test_an_overlay_changes_the_offerings_that_it_matches() -> None:
    assert prices(NodeOverlay("o", (one_of(ZONE, "b"),), price="0")) == [400, 0, 400]
    assert prices(NodeOverlay("o", (one_of(NODE_POOL, "web"),), price="0")) == [0, 0, 0]
    assert prices(NodeOverlay("o", (one_of(NODE_POOL, "x"),), price="0")) == [400, 400, 400]
    assert prices(NodeOverlay("o", (one_of("team", "x"),), price="0")) == [400, 400, 400]


def test_a_label_of_the_pool_makes_an_overlay_match() -> None:
    overlay = NodeOverlay("o", (one_of("team", "x"),), price="0")

    assert prices(overlay, own_pool=pool(labels={"team": "x"})) == [0, 0, 0]


def test_the_heavier_overlay_wins_and_the_lighter_fills_the_gaps() -> None:
    heavy = NodeOverlay("heavy", (one_of(ZONE, "b"),), price="0", weight=9)
    light = NodeOverlay("light", price="1", weight=1)

    assert prices(light, heavy) == [1_000_000, 0, 1_000_000]


def test_of_two_conflicting_overlays_the_later_one_is_ignored() -> None:
    """The later one is first in the alphabet; its other zones are unchanged as well."""
    first = NodeOverlay("z", (one_of(ZONE, "b"),), price="0")
    later = NodeOverlay("a", price="1")

    assert prices(later, first) == [400, 0, 400]


def test_overlays_of_equal_weight_with_different_targets_both_apply() -> None:
    one = NodeOverlay("a", (one_of(ZONE, "a"),), price="1")
    two = NodeOverlay("b", (one_of(ZONE, "b"),), price="2")
    gpu = NodeOverlay("c", capacity={GPU: 4})

    assert prices(one, two, gpu) == [1_000_000, 2_000_000, 400]
    assert medium(one, two, gpu).capacity[GPU] == 4


def test_an_overlay_adds_extended_resources() -> None:
    heavy = NodeOverlay("heavy", capacity={GPU: 4}, weight=2)
    light = NodeOverlay("light", capacity={GPU: 1, "example.com/fpga": 1}, weight=1)
    elsewhere = NodeOverlay("else", (one_of(INSTANCE_TYPE, "small"),), capacity={"x": 1})

    found = medium(heavy, light, elsewhere)

    assert found.capacity == {**MEDIUM.capacity, GPU: 4, "example.com/fpga": 1}
    assert (found.is_capacity_overlaid, found.is_price_overlaid) == (True, False)


def test_plans_are_judged_by_overlaid_prices_to_the_micro_dollar() -> None:
    """Two ways to compute a third of a price may differ by one."""
    web = pod("web")

    def judge(price: int) -> set[Rule]:
        option = LaunchOption("medium", price, "a", ON_DEMAND)
        return world(
            launch("l1", [web], options=[option]),
            pods=[web],
            overlays=(NodeOverlay("o", price_adjustment="-33%"),),
            settings=GATE,
        ).rules()

    assert judge(268) == set()
    assert judge(267) == set()
    assert judge(400) == {Rule.OPTION_PRICE}
