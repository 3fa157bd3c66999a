"""Instance types, their zones and prices, as AWS returned them last."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from karpy.adapters.clouds.aws.calls import AwsCalls
from karpy.adapters.clouds.aws.soldout import SoldOut
from karpy.codec.aws.answers import read_offerings, read_products, read_spot_prices
from karpy.codec.aws.instancetypes import read_instance_types
from karpy.errors import CloudError, CloudUnavailable
from karpy.model.ec2 import Ec2Market, Region
from karpy.ports.clock import Clock

PERIOD: Final = timedelta(hours=12)
_FRESH: Final = timedelta(hours=1)
"""Data younger than this is not read again when the process becomes leader."""
_TYPE_FILTERS: Final = (
    ("supported-virtualization-type", ["hvm"]),
    ("processor-info.supported-architecture", ["x86_64", "arm64"]),
)
_TYPES: Final = "types"
_PRICES: Final = "prices"
_FAULTS_MAX: Final = 5
"""The largest number of unreadable instance types that are reported."""
_SHARED: Final = {"tenancy": "Shared", "productFamily": "Compute Instance"}
_METAL: Final = {"tenancy": "Dedicated", "productFamily": "Compute Instance (bare metal)"}
_SPOT_PRODUCTS: Final = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]

OnTrouble = Callable[[str, CloudError], None]


class Marketplace:
    """Keeps the types and the market of a region; every change makes a new value."""

    def __init__(
        self,
        calls: AwsCalls,
        clock: Clock,
        sold_out: SoldOut,
        known_prices: Mapping[str, int] | None = None,
        *,
        on_trouble: OnTrouble = lambda *_: None,
        asks_prices: bool = True,
    ) -> None:
        """Take on-demand prices by type, which are used until Pricing answers."""
        self._calls = calls
        self._clock = clock
        self._sold_out = sold_out
        self._on_trouble = on_trouble
        self._asks_prices = asks_prices
        self._region = Region(calls.region, (), Ec2Market({}, on_demand=dict(known_prices or {})))
        self._refreshed: dict[str, datetime] = {}
        """When types and prices were read last."""
        self.find_shifted: Callable[[], frozenset[str]] = frozenset
        """Returns the zones with a zonal shift, of those in node classes."""

    @property
    def shifted_zones(self) -> frozenset[str]:
        """The zones with a zonal shift."""
        return self.find_shifted()

    def region(self) -> Region:
        """Return the region, including the offerings that are sold out now."""
        market, sold_out = self._region.market, self._sold_out
        now = replace(
            market,
            unavailable=sold_out.offerings.members(),
            unavailable_in_group=sold_out.grouped.members(),
            closed_capacity_types=sold_out.capacity_types.members(),
            shifted_zones=self.shifted_zones,
        )
        if now != market:
            self._region = replace(self._region, market=now)
        return self._region

    async def refresh_types(self) -> None:
        """Read the instance types and their zones; raise CloudError."""
        filters = [{"Name": name, "Values": values} for name, values in _TYPE_FILTERS]
        types, offerings = await asyncio.gather(
            self._calls.describe_instance_types(Filters=filters),
            self._calls.describe_instance_type_offerings(LocationType="availability-zone"),
        )
        infos, faults = await asyncio.to_thread(read_instance_types, types)
        for each in faults[:_FAULTS_MAX]:
            trouble = CloudUnavailable(call="ec2:DescribeInstanceTypes", problem=str(each))
            self._on_trouble("read an instance type, it is left aside", trouble)
        zones = read_offerings(offerings)
        if not infos or not zones:
            problem = "it lists no instance types" if not infos else "it sells none anywhere"
            raise CloudUnavailable(call="ec2:DescribeInstanceTypes", problem=problem)
        market = replace(self._region.market, zones=zones)
        self._region = replace(self._region, types=infos, market=market)
        self._refreshed[_TYPES] = self._clock.now()

    async def refresh_prices(self) -> None:
        """Read prices; after a failed call the last prices remain."""
        await asyncio.gather(self._refresh_spot(), self._refresh_on_demand())
        self._refreshed[_PRICES] = self._clock.now()

    async def renew_types(self) -> None:
        """Read the instance types unless they are recent; raise CloudError."""
        if self._is_old(_TYPES):
            await self.refresh_types()

    async def renew_prices(self) -> None:
        """Read prices unless they are recent."""
        if self._is_old(_PRICES):
            await self.refresh_prices()

    def _is_old(self, what: str) -> bool:
        refreshed = self._refreshed.get(what)
        return refreshed is None or self._clock.now() - refreshed > _FRESH

    async def _refresh_spot(self) -> None:
        try:
            history = await self._calls.describe_spot_price_history(
                ProductDescriptions=_SPOT_PRODUCTS, StartTime=self._clock.now()
            )
        except CloudError as error:
            self._on_trouble("refresh spot prices", error)
            return
        prices = await asyncio.to_thread(read_spot_prices, history)
        if not prices:
            problem = "it lists no spot prices"
            trouble = CloudUnavailable(call="ec2:DescribeSpotPriceHistory", problem=problem)
            self._on_trouble("refresh spot prices", trouble)
            return
        market = replace(self._region.market, spot=prices)
        self._region = replace(self._region, market=market)

    async def _refresh_on_demand(self) -> None:
        # Parity: on-demand prices in GovCloud or an isolated VPC: as Karpenter, Karpy does not call
        # the Pricing API, which has no endpoint there, and uses its built-in prices.
        if not self._asks_prices or self._calls.partition == "aws-us-gov":
            return
        try:
            shared, metal = await asyncio.gather(*map(self._products, (_SHARED, _METAL)))
        except CloudError as error:
            self._on_trouble("refresh on-demand prices", error)
            return
        currency = "CNY" if self._calls.partition == "aws-cn" else "USD"
        found = read_products(metal, currency) | read_products(shared, currency)
        # Differs: an answer of the Pricing API with prices for metal sizes only, or without any for
        # metal sizes: Karpenter uses none of its prices; Karpy uses those that it has.
        if not found:
            trouble = CloudUnavailable(call="pricing:GetProducts", problem="it lists no prices")
            self._on_trouble("refresh on-demand prices", trouble)
            return
        known = {**self._region.market.on_demand, **found}
        market = replace(self._region.market, on_demand=known)
        self._region = replace(self._region, market=market)

    async def _products(self, kind: Mapping[str, str]) -> list[dict[str, object]]:
        wanted = {
            "regionCode": self._calls.region,
            "serviceCode": "AmazonEC2",
            "preInstalledSw": "NA",
            "operatingSystem": "Linux",
            "capacitystatus": "Used",
            "marketoption": "OnDemand",
            **kind,
        }
        filters = [
            {"Type": "TERM_MATCH", "Field": field, "Value": value}
            for field, value in wanted.items()
        ]
        return await self._calls.get_products(ServiceCode="AmazonEC2", Filters=filters)
