"""The stock and the prices of a simulated cloud."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.instances import Catalog, InstanceType, Offering
from karpy.model.verdicts import LaunchOption
from karpy.ports.clock import Clock


class Good(Struct, frozen=True, order=True):
    """One thing on sale: an instance type in one zone and capacity type."""

    instance_type: str
    zone: str
    capacity_type: str
    reservation: str = ""


class MarketChange(Struct, frozen=True):
    """A change of price or stock at a moment; empty fields match all goods."""

    after: timedelta
    """Time since the market opened."""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    price: int | None = None
    """Micro-dollars per hour; None leaves the price."""
    percent: int | None = None
    """The price in percent of the catalog price; None leaves it."""
    stock: int | None = None
    is_unlimited: bool = False
    """Whether the stock is unlimited from then on."""

    def concerns(self, good: Good) -> bool:
        return (
            self.instance_type in {"", good.instance_type}
            and self.zone in {"", good.zone}
            and self.capacity_type in {"", good.capacity_type}
        )


class _Ware(Struct):
    """The current price and stock of a good; changes by launches and by the timetable."""

    price: int
    usual_price: int
    stock: int | None
    sold_out_until: datetime


class Bought(Struct, frozen=True):
    """The good and the offering that a launch took."""

    good: Good
    type: InstanceType
    offering: Offering


_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class SimulatedMarket:
    """
    The stock and the prices of the offerings of a catalog.

    A stock of None is unlimited. Buyers do not see the stock: like a real cloud, the market only
    refuses. A good that was refused is unavailable in the catalog for `memory`, as in the cache of
    a provider.
    """

    def __init__(
        self,
        catalog: Catalog,
        clock: Clock,
        *,
        stock: Mapping[Good, int] | None = None,
        timetable: tuple[MarketChange, ...] = (),
        memory: timedelta = timedelta(minutes=3),
    ) -> None:
        self._catalog = catalog
        self._clock = clock
        self._memory = memory
        self._opened = clock.now()
        self._due = sorted(timetable, key=lambda change: change.after)
        self._wares: dict[Good, _Ware] = {}
        self._found: dict[Good, tuple[InstanceType, Offering]] = {}
        self._named: dict[tuple[str, str, str], list[Good]] = {}
        given = dict(stock or {})
        for type_ in catalog.types:
            for offering in type_.offerings:
                self._put_on_sale(type_, offering, given)
        self._told: Catalog | None = None
        self._forgets_at = _NEVER

    def catalog(self) -> Catalog:
        """Return the catalog with current prices and availability."""
        self._keep_up()
        if self._told is None or self._clock.now() >= self._forgets_at:
            self._told = self._as_of_now()
        return self._told

    def stock(self, good: Good) -> int | None:
        """Return the stock of a good; None is unlimited."""
        self._keep_up()
        return self._wares[good].stock

    def set_stock(self, good: Good, stock: int | None) -> None:
        """Set the stock of a good; None is unlimited."""
        self._wares[good].stock = stock
        self._told = None

    def set_price(self, good: Good, price: int) -> None:
        """Set the price of a good, in micro-dollars per hour."""
        self._wares[good].price = price
        self._told = None

    def price(self, good: Good) -> int:
        """Return the current price of a good, in micro-dollars per hour."""
        self._keep_up()
        return self._wares[good].price

    def buy(
        self, options: tuple[LaunchOption, ...], reservations: tuple[str, ...] = ()
    ) -> Bought | None:
        """Take the cheapest option in stock; None if all are sold out."""
        self._keep_up()
        wanted = [good for option in options for good in self._goods(option, reservations)]
        for good in sorted(wanted, key=lambda good: (self._wares[good].price, good)):
            ware = self._wares[good]
            if ware.stock == 0:
                ware.sold_out_until = self._clock.now() + self._memory
                self._told = None
                continue
            if ware.stock is not None:
                ware.stock -= 1
                self._told = None
            return Bought(good, *self._found[good])
        return None

    def give_back(self, good: Good) -> None:
        """Increase the stock of a good by one, if it is limited."""
        ware = self._wares[good]
        if ware.stock is not None:
            ware.stock += 1
            self._told = None

    def _put_on_sale(
        self, type_: InstanceType, offering: Offering, given: Mapping[Good, int]
    ) -> None:
        good = _good(type_, offering)
        stock = given.get(good)
        if stock is None and offering.is_reserved:
            stock = offering.reservation_capacity
        if stock is None and not offering.is_available:
            stock = 0
        self._wares[good] = _Ware(offering.price, offering.price, stock, _LONG_AGO)
        self._found[good] = type_, offering
        name = good.instance_type, good.zone, good.capacity_type
        self._named.setdefault(name, []).append(good)

    def _goods(self, option: LaunchOption, reservations: tuple[str, ...]) -> list[Good]:
        name = option.instance_type, option.zone, option.capacity_type
        return [
            good
            for good in self._named.get(name, ())
            if not good.reservation or not reservations or good.reservation in reservations
        ]

    def _keep_up(self) -> None:
        passed = self._clock.now() - self._opened
        while self._due and self._due[0].after <= passed:
            change = self._due.pop(0)
            self._told = None
            for good, ware in self._wares.items():
                if change.concerns(good):
                    _apply(change, ware)

    def _as_of_now(self) -> Catalog:
        now = self._clock.now()
        self._forgets_at = min(
            (each.sold_out_until for each in self._wares.values() if each.sold_out_until > now),
            default=_NEVER,
        )
        types = tuple(self._type_now(type_, now) for type_ in self._catalog.types)
        by_name = {type_.name: type_ for type_ in types}
        by_pool = {
            pool: tuple(by_name.get(type_.name, type_) for type_ in theirs)
            for pool, theirs in self._catalog.by_pool.items()
        }
        return replace(self._catalog, types=types, by_pool=by_pool)

    def _type_now(self, type_: InstanceType, now: datetime) -> InstanceType:
        offerings = tuple(self._offering_now(type_, each, now) for each in type_.offerings)
        is_same = all(a is b for a, b in zip(offerings, type_.offerings, strict=True))
        return type_ if is_same else replace(type_, offerings=offerings)

    def _offering_now(self, type_: InstanceType, offering: Offering, now: datetime) -> Offering:
        ware = self._wares[_good(type_, offering)]
        is_sold_out = ware.stock == 0 and not offering.is_available
        is_available = ware.sold_out_until <= now and not is_sold_out
        left = (ware.stock or 0) if offering.is_reserved else offering.reservation_capacity
        current = ware.price, is_available, left
        if current == (offering.price, offering.is_available, offering.reservation_capacity):
            return offering
        return replace(
            offering, price=ware.price, is_available=is_available, reservation_capacity=left
        )


def _good(type_: InstanceType, offering: Offering) -> Good:
    return Good(type_.name, offering.zone, offering.capacity_type, offering.reservation_id)


def _apply(change: MarketChange, ware: _Ware) -> None:
    if change.price is not None:
        ware.price = change.price
    if change.percent is not None:
        ware.price = ware.usual_price * change.percent // 100
    if change.stock is not None:
        ware.stock = change.stock
    if change.is_unlimited:
        ware.stock = None
