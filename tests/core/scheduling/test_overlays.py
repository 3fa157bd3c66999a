"""Section 8: corrections of prices and extra capacity."""

import pytest
from msgspec.structs import replace

from karpy.core.scheduling.decide import decide
from karpy.core.scheduling.overlays import (
    adjusted_price,
    apply_overlays,
    find_conflicts,
    with_overlays,
)
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ON_DEMAND, SPOT, ZONE
from karpy.model.pools import NodeOverlay
from karpy.model.requirements import Requirement
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from tests.builders import (
    FAMILY,
    ZONE_A,
    ZONE_B,
    absent,
    amounts,
    catalog,
    instance_type,
    is_in,
    not_in,
    offering,
    overlay,
    pod,
    pool,
    snapshot,
)
from tests.core.scheduling.answers import hosts, only_launch
from tests.fuzz.clusters import random_snapshot, raw_snapshot

DONGLE = "example.com/dongle"
ON = Settings(node_overlay=True)
TWO = catalog([instance_type("x.x", dollars=1), instance_type("y.x", dollars=2)])


def _cluster(*overlays: NodeOverlay, settings: Settings = ON) -> Snapshot:
    return snapshot(pods=[pod("p")], catalog=TWO, overlays=overlays, settings=settings)


def _prices(cluster: Snapshot) -> dict[str, int]:
    return {each.instance_type: each.price for each in only_launch(cluster).options}


# --- prices ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("price", "change", "expected"),
    [
        (10_000_000, "-10%", 9_000_000),
        (10_000_000, "-200%", 0),
        (10_000_000, "-100%", 0),
        (1_500_000, "-25%", 1_125_000),
        (10_000_000, "+5", 15_000_000),
        (10_000_000, "-15", 0),
        (10_000_000, "3.2", 3_200_000),
        (7, "3.2", 3_200_000),
        (10_000_000, "+50%", 15_000_000),
        (3, "+10%", 3),
        (10_000_000, "+.5", 10_500_000),
    ],
)
def test_the_golden_price_adjustments(price: int, change: str, expected: int) -> None:
    assert adjusted_price(price, overlay("o", price_adjustment=change)) == expected


def test_a_price_replaces_what_there_was() -> None:
    assert adjusted_price(7, overlay("o", price="0.5")) == 500_000
    assert adjusted_price(7, overlay("o", price="0.5", price_adjustment="+1")) == 500_000


def test_a_price_that_is_no_number_changes_nothing() -> None:
    assert adjusted_price(7, overlay("o", price="cheap")) == 7
    assert adjusted_price(7, overlay("o", price_adjustment="+cheap%")) == 7


def test_overlays_change_prices_only_if_they_are_switched_on() -> None:
    cheaper = overlay("o", is_in(INSTANCE_TYPE, "y.x"), price="0.5")

    assert _prices(_cluster(cheaper)) == {"y.x": 500_000, "x.x": 1_000_000}
    assert _prices(_cluster(cheaper, settings=Settings())) == {"x.x": 1_000_000, "y.x": 2_000_000}


def test_without_overlays_the_catalog_stays_as_it_is() -> None:
    assert apply_overlays(TWO, [pool()], []) is TWO
    assert _prices(_cluster()) == {"x.x": 1_000_000, "y.x": 2_000_000}


def test_overlays_are_applied_once() -> None:
    """A second look at a corrected snapshot does not halve the price again."""
    corrected = with_overlays(_cluster(overlay("o", price_adjustment="-50%")))

    assert corrected.overlays == ()
    assert with_overlays(corrected) is corrected
    assert _prices(corrected) == {"x.x": 500_000, "y.x": 1_000_000}


def test_a_snapshot_stays_as_it_is_while_overlays_are_switched_off() -> None:
    cluster = _cluster(overlay("o", price="3"), settings=Settings())

    assert with_overlays(cluster) is cluster


@pytest.mark.parametrize("seed", range(0, 200, 10))
def test_the_order_of_overlays_does_not_matter(seed: int) -> None:
    raw = raw_snapshot(seed)

    assert with_overlays(replace(raw, overlays=raw.overlays[::-1])) == random_snapshot(seed)


def test_a_decision_is_not_made_while_overlays_are_still_to_be_applied() -> None:
    with pytest.raises(AssertionError, match="with_overlays"):
        decide(_cluster(overlay("o", price="3")))


def test_corrected_prices_decide_the_order_of_options() -> None:
    launch = only_launch(_cluster(overlay("o", is_in(INSTANCE_TYPE, "y.x"), price="0.5")))

    assert [each.instance_type for each in launch.options] == ["y.x", "x.x"]


def test_only_offerings_that_match_are_touched() -> None:
    kind = instance_type(
        "t",
        offerings=[
            offering(ZONE_A, ON_DEMAND, 1),
            offering(ZONE_B, ON_DEMAND, 1),
            offering(ZONE_B, SPOT, 1),
        ],
    )
    cheaper = overlay("o", is_in(ZONE, ZONE_B), is_in(CAPACITY_TYPE, SPOT), price_adjustment="-50%")
    cluster = snapshot(pods=[pod("p")], catalog=catalog([kind]), overlays=[cheaper], settings=ON)

    (option,) = only_launch(cluster).options

    assert (option.zone, option.capacity_type, option.price) == (ZONE_B, SPOT, 500_000)


@pytest.mark.parametrize(
    ("rule", "applies"),
    [
        (is_in(FAMILY, "x"), True),
        (is_in(FAMILY, "z"), False),
        (is_in("team", "red"), True),
        (is_in("team", "blue"), False),
        (is_in("ghost", "boo"), False),
        (absent("ghost"), True),
        (not_in(FAMILY, "y"), True),
        (is_in(NODE_POOL, "default"), True),
        (is_in(NODE_POOL, "other"), False),
    ],
    ids=str,
)
def test_an_overlay_applies_where_pool_labels_and_type_match_and_its_keys_are_defined(
    rule: Requirement, *, applies: bool
) -> None:
    cluster = snapshot(
        pods=[pod("p")],
        pools=[pool(labels={"team": "red"})],
        catalog=catalog([instance_type("x.x", dollars=1)]),
        overlays=[overlay("o", rule, price="9")],
        settings=ON,
    )

    assert _prices(cluster) == {"x.x": 9_000_000 if applies else 1_000_000}


def test_pools_may_see_different_prices() -> None:
    cluster = snapshot(
        pods=[pod("a", cpu="2", selector={NODE_POOL: "a"}), pod("b", selector={NODE_POOL: "b"})],
        pools=[pool("a"), pool("b")],
        catalog=catalog([instance_type("t", dollars=1)]),
        overlays=[overlay("o", is_in(NODE_POOL, "b"), price="0.5")],
        settings=ON,
    )

    assert hosts(cluster) == {"a": "a-0", "b": "b-1"}
    changed = apply_overlays(cluster.catalog, cluster.pools, cluster.overlays)
    assert {name: types[0].offerings[0].price for name, types in changed.by_pool.items()} == {
        "a": 1_000_000,
        "b": 500_000,
    }


# --- capacity --------------------------------------------------------------------------------


def test_capacity_makes_room_for_what_no_type_has() -> None:
    plugged = overlay("o", is_in(INSTANCE_TYPE, "y.x"), capacity={DONGLE: "2"})
    wants = pod("p", more={DONGLE: "1"})

    def host(settings: Settings) -> dict[str, str]:
        cluster = snapshot(pods=[wants], catalog=TWO, overlays=[plugged], settings=settings)
        return hosts(cluster)

    assert host(ON) == {"p": "default-0"}
    assert host(Settings()) == {"p": "NO_HOST"}


def test_capacity_belongs_to_the_whole_type_if_one_offering_matches() -> None:
    kind = instance_type("t", zones=[ZONE_A, ZONE_B])
    plugged = overlay("o", is_in(ZONE, ZONE_A), capacity={DONGLE: "1"})
    cluster = snapshot(
        pods=[pod("p", more={DONGLE: "1"}, selector={ZONE: ZONE_B})],
        catalog=catalog([kind]),
        overlays=[plugged],
        settings=ON,
    )

    assert hosts(cluster) == {"p": "default-0"}


def test_no_matching_offering_means_no_capacity_either() -> None:
    plugged = overlay("o", is_in(CAPACITY_TYPE, SPOT), capacity={DONGLE: "1"})
    cluster = snapshot(
        pods=[pod("p", more={DONGLE: "1"})], catalog=TWO, overlays=[plugged], settings=ON
    )

    assert hosts(cluster) == {"p": "NO_HOST"}


# --- order and conflicts ---------------------------------------------------------------------


def test_the_heavier_overlay_wins_whatever_its_name() -> None:
    heavy, light = overlay("a", price="3", weight=2), overlay("z", price="4", weight=1)

    assert _prices(_cluster(light, heavy)) == {"x.x": 3_000_000, "y.x": 3_000_000}


def test_the_lighter_overlay_fills_what_the_heavier_left() -> None:
    heavy = overlay("a", is_in(INSTANCE_TYPE, "x.x"), price="3", weight=2)
    light = overlay("z", price="4", weight=1)

    assert _prices(_cluster(light, heavy)) == {"x.x": 3_000_000, "y.x": 4_000_000}


def test_an_adjustment_starts_from_the_price_of_the_catalog() -> None:
    """A second overlay does not add to the first; it is not applied to the price."""
    heavy = overlay("a", price_adjustment="+1", weight=2)
    light = overlay("z", price_adjustment="+1", weight=1)

    assert _prices(_cluster(heavy, light)) == {"x.x": 2_000_000, "y.x": 3_000_000}


def test_of_equals_that_touch_the_same_the_later_is_not_applied_at_all() -> None:
    """`a` comes after `b`, and is not applied even to the type that `b` does not change."""
    first = overlay("b", is_in(INSTANCE_TYPE, "x.x"), price="3", weight=1)
    later = overlay("a", price="4", capacity={DONGLE: "1"}, weight=1)

    assert _prices(_cluster(first, later)) == {"x.x": 3_000_000, "y.x": 2_000_000}
    assert hosts(
        snapshot(
            pods=[pod("p", more={DONGLE: "1"})], catalog=TWO, overlays=[first, later], settings=ON
        )
    ) == {"p": "NO_HOST"}


def test_equals_conflict_even_if_they_say_the_same() -> None:
    first, later = overlay("b", price="3"), overlay("a", price="3", capacity={DONGLE: "1"})
    cluster = snapshot(
        pods=[pod("p", more={DONGLE: "1"})], catalog=TWO, overlays=[first, later], settings=ON
    )

    assert hosts(cluster) == {"p": "NO_HOST"}


@pytest.mark.parametrize(
    ("overlays", "expected"),
    [
        ([overlay("a", price="1"), overlay("b", price="2")], {"a"}),
        ([overlay("a", price="1", weight=2), overlay("b", price="2", weight=1)], set()),
        ([overlay("a", price="1"), overlay("b", capacity={DONGLE: "1"})], set()),
        ([overlay("a", capacity={DONGLE: "2"}), overlay("b", capacity={DONGLE: "1"})], {"a"}),
        (
            [
                overlay("a", is_in(INSTANCE_TYPE, "x.x"), price="1"),
                overlay("b", is_in(INSTANCE_TYPE, "y.x"), price="2"),
            ],
            set(),
        ),
        ([overlay("a", price="1"), overlay("b", price="2"), overlay("c", price="3")], {"a", "b"}),
        ([], set()),
    ],
)
def test_overlays_that_conflict_are_named(overlays: list[NodeOverlay], expected: set[str]) -> None:
    assert find_conflicts(TWO, [pool()], overlays) == expected


def test_an_overlay_that_conflicts_in_one_of_two_pools_is_named() -> None:
    red = overlay("a", is_in(NODE_POOL, "red", "blue"), price="1")
    blue = overlay("b", is_in(NODE_POOL, "blue"), price="2")

    assert find_conflicts(TWO, [pool("red"), pool("blue")], [red, blue]) == {"a"}


def test_equals_that_touch_different_things_both_apply() -> None:
    """One overlay changes the price, the other the capacity."""
    cluster = snapshot(
        pods=[pod("p", more={DONGLE: "1"})],
        catalog=TWO,
        overlays=[overlay("a", price="3"), overlay("b", capacity={DONGLE: "1"})],
        settings=ON,
    )

    assert _prices(cluster) == {"x.x": 3_000_000, "y.x": 3_000_000}


def test_a_heavier_overlays_capacity_wins_resource_by_resource() -> None:
    heavy = overlay("a", capacity={DONGLE: "1"}, weight=2)
    light = overlay("b", capacity={DONGLE: "9", "example.com/key": "1"}, weight=1)

    changed = apply_overlays(TWO, [pool()], [light, heavy])

    kind = changed.by_pool["default"][0]
    extra = {name: amount for name, amount in kind.capacity.items() if "/" in name}
    assert extra == amounts(**{DONGLE: "1", "example.com/key": "1"})
    assert (kind.is_price_overlaid, kind.is_capacity_overlaid) == (False, True)


def test_overrides_of_an_offering_outlive_a_new_price() -> None:
    """Karpenter loses the overrides."""
    kind = instance_type("t", offerings=[offering(capacity={DONGLE: "1"})])
    cluster = snapshot(
        pods=[pod("p", more={DONGLE: "1"})],
        catalog=catalog([kind]),
        overlays=[overlay("o", price="3")],
        settings=ON,
    )

    assert _prices(cluster) == {"t": 3_000_000}
