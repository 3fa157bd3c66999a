"""Instance types, where they are sold and at which prices, as they were asked for last."""

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
from karpy.model.ec2 import Market, Region
from karpy.ports.clock import Clock

PERIOD: Final = timedelta(hours=12)
_FRESH: Final = timedelta(hours=1)
"""What was asked for at the start needs not be asked for by the leader at once."""
_TYPE_FILTERS: Final = (
    ("supported-virtualization-type", ["hvm"]),
    ("processor-info.supported-architecture", ["x86_64", "arm64"]),
)
_TYPES: Final = "types"
_PRICES: Final = "prices"
_FAULTS_MAX: Final = 5
"""So many instance types that cannot be read are reported."""
_SHARED: Final = {"tenancy": "Shared", "productFamily": "Compute Instance"}
_METAL: Final = {"tenancy": "Dedicated", "productFamily": "Compute Instance (bare metal)"}
_SPOT_PRODUCTS: Final = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"]

OnTrouble = Callable[[str, CloudError], None]


class Marketplace:
    """What a region sells; the value is replaced whenever something of it changes."""

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
        """Take the prices to begin with, by type; they hold until Pricing answers."""
        self._calls = calls
        self._clock = clock
        self._sold_out = sold_out
        self._on_trouble = on_trouble
        self._asks_prices = asks_prices
        self._region = Region(calls.region, (), Market({}, on_demand=dict(known_prices or {})))
        self._asked: dict[str, datetime] = {}
        """When types and prices were asked for last."""
        self.find_shifted: Callable[[], frozenset[str]] = frozenset
        """Names the zones that traffic is shifted away from, as far as node classes know them."""

    @property
    def shifted_zones(self) -> frozenset[str]:
        """The zones that traffic is shifted away from now."""
        return self.find_shifted()

    def region(self) -> Region:
        """Return all that is known of the region, what is sold out now included."""
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
        """Ask for instance types and where they are sold; raise CloudError."""
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
        self._asked[_TYPES] = self._clock.now()

    async def refresh_prices(self) -> None:
        """Ask for prices; those that cannot be had stay as they were last."""
        await asyncio.gather(self._refresh_spot(), self._refresh_on_demand())
        self._asked[_PRICES] = self._clock.now()

    async def renew_types(self) -> None:
        """Ask for instance types unless they are recent; raise CloudError."""
        if self._is_old(_TYPES):
            await self.refresh_types()

    async def renew_prices(self) -> None:
        """Ask for prices unless they are recent."""
        if self._is_old(_PRICES):
            await self.refresh_prices()

    def _is_old(self, what: str) -> bool:
        asked = self._asked.get(what)
        return asked is None or self._clock.now() - asked > _FRESH

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
        # Parity: on-demand prices in GovCloud or an isolated VPC: as Karpenter, Karpy does not ask
        # the pricing API, which has no endpoint there, and uses the prices it comes with.
        if not self._asks_prices or self._calls.partition == "aws-us-gov":
            return
        try:
            shared, metal = await asyncio.gather(*map(self._products, (_SHARED, _METAL)))
        except CloudError as error:
            self._on_trouble("refresh on-demand prices", error)
            return
        currency = "CNY" if self._calls.partition == "aws-cn" else "USD"
        found = read_products(metal, currency) | read_products(shared, currency)
        # Differs: a list of prices without metal sizes, or without all others: Karpenter takes none
        # of its prices over; Karpy takes those that are listed.
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
