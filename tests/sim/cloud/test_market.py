import asyncio
from datetime import timedelta

from karpy.codec.catalogs import kwok_catalog
from karpy.model.instances import Catalog, InstanceType, Offering
from karpy.model.labels import CAPACITY_TYPE, ZONE
from karpy.model.requirements import collect, one_of
from karpy.sim.clock import LoopClock
from karpy.sim.cloud.market import Good, MarketChange, SimulatedMarket
from karpy.sim.world import START
from tests.sim.stories import SMALL, on_virtual_time, option

GOOD = Good(SMALL, "test-zone-a", "spot")
SPOT = option(capacity_type="spot")
CATALOG = kwok_catalog()


def _offering(catalog: Catalog, good: Good = GOOD) -> Offering:
    type_ = next(each for each in catalog.types if each.name == good.instance_type)
    return next(
        each
        for each in type_.offerings
        if (each.zone, each.capacity_type) == (good.zone, good.capacity_type)
    )


def _reserved(capacity: int) -> Catalog:
    where = collect((one_of(ZONE, "a"), one_of(CAPACITY_TYPE, "reserved")))
    offerings = tuple(
        Offering(where, 0, reservation_capacity=capacity, reservation_id=name)
        for name in ("cr-1", "cr-2")
    )
    return Catalog((InstanceType("big", {}, offerings, {"cpu": 1000}),))


@on_virtual_time
async def test_an_untouched_market_sells_the_catalog_as_it_is() -> None:
    assert SimulatedMarket(CATALOG, LoopClock(START)).catalog() == CATALOG


@on_virtual_time
async def test_prices_follow_the_timetable() -> None:
    usual = _offering(CATALOG).price
    timetable = (
        MarketChange(timedelta(hours=2), capacity_type="spot", percent=200),
        MarketChange(timedelta(hours=1), instance_type=SMALL, zone="test-zone-a", price=7),
    )
    market = SimulatedMarket(CATALOG, LoopClock(START), timetable=timetable)

    prices = [_offering(market.catalog()).price]
    await asyncio.sleep(3600)
    prices.append(_offering(market.catalog()).price)
    await asyncio.sleep(3600)
    prices.append(_offering(market.catalog()).price)

    assert prices == [usual, 7, 2 * usual]


@on_virtual_time
async def test_stock_follows_the_timetable() -> None:
    timetable = (
        MarketChange(timedelta(hours=1), stock=0),
        MarketChange(timedelta(hours=2), is_unlimited=True),
    )
    market = SimulatedMarket(CATALOG, LoopClock(START), timetable=timetable)

    before = market.stock(GOOD)
    await asyncio.sleep(3600)
    during = market.stock(GOOD), market.buy((SPOT,))
    await asyncio.sleep(3600)

    assert (before, during) == (None, (0, None))
    assert market.stock(GOOD) is None


@on_virtual_time
async def test_what_is_bought_is_gone_until_it_is_given_back() -> None:
    market = SimulatedMarket(CATALOG, LoopClock(START), stock={GOOD: 1})

    first, second = market.buy((SPOT,)), market.buy((SPOT,))
    market.give_back(GOOD)

    assert first is not None
    assert (first.good, second, market.stock(GOOD)) == (GOOD, None, 1)


@on_virtual_time
async def test_an_offering_is_unavailable_for_three_minutes_after_it_was_refused() -> None:
    market = SimulatedMarket(CATALOG, LoopClock(START), stock={GOOD: 0})

    states = [_offering(market.catalog()).is_available]
    market.buy((SPOT,))
    states.append(_offering(market.catalog()).is_available)
    await asyncio.sleep(181)
    states.append(_offering(market.catalog()).is_available)

    assert states == [True, False, True]


@on_virtual_time
async def test_a_reservation_lasts_as_long_as_it_has_room() -> None:
    market = SimulatedMarket(_reserved(1), LoopClock(START))
    wanted = (option("big", "a", "reserved"),)

    bought = [market.buy(wanted, ("cr-1",)), market.buy(wanted, ("cr-1",))]
    left = [each.reservation_capacity for each in market.catalog().types[0].offerings]

    assert [each and each.good.reservation for each in bought] == ["cr-1", None]
    assert left == [0, 1]


@on_virtual_time
async def test_prices_and_stock_can_be_set_by_hand() -> None:
    market = SimulatedMarket(CATALOG, LoopClock(START))

    market.set_price(GOOD, 5)
    market.set_stock(GOOD, 3)

    assert (market.price(GOOD), market.stock(GOOD)) == (5, 3)
    assert _offering(market.catalog()).price == 5


@on_virtual_time
async def test_a_catalog_is_made_anew_only_when_something_has_changed() -> None:
    market = SimulatedMarket(CATALOG, LoopClock(START))

    first = market.catalog()
    await asyncio.sleep(3600)

    assert market.catalog() is first
