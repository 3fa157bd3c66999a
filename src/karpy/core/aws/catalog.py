"""The catalog of a region for the EC2NodeClasses in use, rebuilt only where it has changed."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.aws.instancetypes import TypeProperties, frame, instance_type, sold_type
from karpy.core.aws.offerings import OfferingBuilder, Places
from karpy.model.ec2 import (
    AUTO_MODE_DOMAIN,
    AUTO_MODE_LABELS,
    CAPACITY_RESERVATION_ID,
    EC2_LABELS,
    Ec2Settings,
    InstanceSettings,
    InstanceTypeInfo,
    Region,
)
from karpy.model.instances import Catalog, InstanceType, Offering, columns
from karpy.model.labels import WELL_KNOWN, ZONE

EC2_WELL_KNOWN: Final = WELL_KNOWN | EC2_LABELS
_PLACES_MAX: Final = 10_000
"""With more sets of places than this, the cache of places starts again empty."""


class _Input(Struct, frozen=True):
    """The input of a catalog."""

    region: Region
    pools: Mapping[str, InstanceSettings]
    usual: InstanceSettings | None


class CatalogMaker:
    """
    Builds catalogs, and returns the same object as long as nothing has changed.

    `made` counts the instance types that were built: if prices or availability change, only the
    affected types are built again.
    """

    def __init__(self, operator: Ec2Settings | None = None) -> None:
        """Take the settings of the operator."""
        self.made = 0
        self._operator = operator or Ec2Settings()
        self._places = Places()
        self._assortments: list[_Assortment] = []
        self._last: _Input | None = None
        # Metrics and NodePools read the well-known labels before any node class exists.
        self._catalog = Catalog(
            well_known=EC2_WELL_KNOWN, reservation_label=CAPACITY_RESERVATION_ID
        )

    def make(
        self,
        region: Region,
        pools: Mapping[str, InstanceSettings],
        usual: InstanceSettings | None = None,
    ) -> Catalog:
        """
        Return the types that each NodePool may use, by the settings of its EC2NodeClass.

        NodePools without an entry in `pools` use the types for `usual`, or none.
        """
        given = _Input(region, dict(pools), usual)
        if given == self._last:
            return self._catalog
        if len(self._places) > _PLACES_MAX:
            self._places = Places()
        used: list[_Assortment] = []
        by_pool = {pool: self._types(region, each, used) for pool, each in sorted(pools.items())}
        types = () if usual is None else self._types(region, usual, used)
        self._assortments, self._last = used, given
        if not self._is_current(types, by_pool):
            domains = {each.settings.label_domain for each in used}
            well_known = EC2_WELL_KNOWN
            if AUTO_MODE_DOMAIN in domains:
                well_known |= AUTO_MODE_LABELS
            self._catalog = Catalog(types, by_pool, well_known, CAPACITY_RESERVATION_ID)
        return self._catalog

    def _types(
        self, region: Region, settings: InstanceSettings, used: list["_Assortment"]
    ) -> tuple[InstanceType, ...]:
        """Return the types for settings, from an assortment that no other settings use."""
        for each in used:
            if each.settings == settings:
                return each.types
        lasting = _lasting(settings)
        free = (each for each in self._assortments if each.lasting == lasting and each not in used)
        assortment = next(free, None) or _Assortment(lasting)
        used.append(assortment)
        self.made += assortment.refresh(region, settings, self._operator, self._places)
        return assortment.types

    def _is_current(
        self,
        types: tuple[InstanceType, ...],
        by_pool: Mapping[str, tuple[InstanceType, ...]],
    ) -> bool:
        last = self._catalog
        return (
            types is last.types
            and by_pool.keys() == last.by_pool.keys()
            and all(each is last.by_pool[pool] for pool, each in by_pool.items())
        )


class _Assortment:
    """All instance types of a region for the settings of one EC2NodeClass."""

    def __init__(self, lasting: InstanceSettings) -> None:
        self.lasting = lasting
        self.settings = lasting
        self.types: tuple[InstanceType, ...] = ()
        self._region: Region | None = None
        self._frames: dict[str, _Framed] = {}
        self._sold: dict[str, InstanceType] = {}

    def refresh(
        self, region: Region, settings: InstanceSettings, operator: Ec2Settings, places: Places
    ) -> int:
        """Bring the types up to date; return how many were built."""
        if region is self._region and settings == self.settings:
            return 0
        shop = OfferingBuilder(region.market, settings, places)
        made = 0
        sold: dict[str, InstanceType] = {}
        for info in sorted(region.types, key=_name):
            if region.market.zones.get(info.name):
                old = self._sold.get(info.name)
                sold[info.name] = self._type(info, region.name, settings, operator, shop)
                made += sold[info.name] is not old
        if made or len(sold) != len(self._sold):
            self.types = tuple(sold.values())
        self._sold, self._region, self.settings = sold, region, settings
        return made

    def _type(
        self,
        info: InstanceTypeInfo,
        region: str,
        settings: InstanceSettings,
        operator: Ec2Settings,
        shop: OfferingBuilder,
    ) -> InstanceType:
        framed = self._frames.get(info.name)
        memory = settings.memory_discovered.get(info.name)
        if framed is None or framed.memory != memory or framed.info != info:
            framed = _Framed(info, memory, frame(info, region, settings, operator))
            self._frames[info.name] = framed
            return instance_type(info, framed.frame, shop)
        old = self._sold.get(info.name)
        offerings = shop.offerings(info)
        zones = shop.zones(info)
        if old is None or old.requirements[ZONE].values != zones:
            return sold_type(info, framed.frame, shop, offerings)
        if not _are_alike(old.offerings, offerings):
            return sold_type(info, framed.frame, shop, offerings)
        return old


class _Framed(Struct, frozen=True):
    """The frame of a type, and its input."""

    info: InstanceTypeInfo
    memory: int | None
    frame: TypeProperties


def _are_alike(old: Sequence[Offering], new: Sequence[Offering]) -> bool:
    """Compare offerings column by column: without reservations, equal places are one object."""
    old_places, old_prices = columns(old)
    new_places, new_prices = columns(new)
    return old_prices == new_prices and (old_places is new_places or old_places == new_places)


def _lasting(settings: InstanceSettings) -> InstanceSettings:
    """Return the settings without discovered memory and without what changes only offerings."""
    return replace(settings, full_zones=frozenset(), reservations=(), memory_discovered={})


def _name(info: InstanceTypeInfo) -> str:
    return info.name
