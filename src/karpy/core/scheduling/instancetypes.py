"""Instance types as the bits of one integer, so that a filter is a few ANDs."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress

from karpy.model.instances import InstanceType, Offering, allocatable, columns
from karpy.model.requirements import Requirement, Requirements, why_incompatible
from karpy.model.resources import Resources


class Thresholds:
    """Which bits have at least some amount of a resource, found by one bisect."""

    __slots__ = ("_largest", "at_least", "values")

    def __init__(self, amounts: Iterable[tuple[int, int]]) -> None:
        by_value: dict[int, int] = {}
        for bit, amount in amounts:
            by_value[amount] = by_value.get(amount, 0) | 1 << bit
        self._largest: dict[int, int] = {}
        self.values = sorted(by_value)
        self.at_least = [0] * (len(self.values) + 1)
        mask = 0
        for index in range(len(self.values) - 1, -1, -1):
            mask |= by_value[self.values[index]]
            self.at_least[index] = mask

    def reaching(self, amount: int) -> int:
        """Return the bits with at least `amount`."""
        return self.at_least[bisect_left(self.values, amount)]

    def below(self, amount: int) -> int:
        """Return the bits with at most `amount`."""
        return self.at_least[0] & ~self.reaching(amount + 1)

    def largest(self, mask: int) -> int:
        """Return the largest amount among the bits of a mask that is not empty."""
        known = self._largest.get(mask)
        if known is None:
            low, high = 0, len(self.values) - 1
            while low < high:
                middle = (low + high + 1) // 2
                if mask & self.at_least[middle]:
                    low = middle
                else:
                    high = middle - 1
            known = self._largest[mask] = self.values[low]
        return known


class _KeyIndex:
    """The requirements of all types on one label key, by value."""

    __slots__ = ("by_value", "distinct", "open", "undefined")

    def __init__(self, types: Sequence[InstanceType], key: str) -> None:
        masks: dict[int, int] = {}
        seen: dict[int, Requirement] = {}
        mark = 1
        # No type has a requirement on most keys of pools.
        for each in types if any(key in each.requirements for each in types) else ():
            requirement = each.requirements.get(key)
            if requirement is not None:
                known = id(requirement)
                if known not in seen:
                    seen[known], masks[known] = requirement, 0
                masks[known] |= mark
            mark <<= 1
        self.undefined = ((1 << len(types)) - 1) ^ sum(masks.values())
        self.by_value: dict[str, int] = {}
        self.open: list[tuple[Requirement, int]] = []
        self.distinct = [(requirement, masks[known]) for known, requirement in seen.items()]
        for requirement, mask in self.distinct:
            if requirement.complement:
                self.open.append((requirement, mask))
            for value in () if requirement.complement else requirement.values:
                self.by_value[value] = self.by_value.get(value, 0) | mask

    def allowing(self, wanted: Requirement) -> int:
        """Return the bits whose requirement on the key is not disjoint from the wanted one."""
        mask = self.undefined
        if wanted.complement or not wanted.values:
            for requirement, bits in self.distinct:
                if requirement.intersects(wanted) or (
                    requirement.is_negative and wanted.is_negative
                ):
                    mask |= bits
            return mask
        for value in wanted.values:
            mask |= self.by_value.get(value, 0)
        for requirement, bits in self.open:
            if requirement.intersects(wanted):
                mask |= bits
        return mask


class OfferingGroup:
    """All offerings with equal requirements: which types are sold there, and at what price."""

    def __init__(self, index: int, offering: Offering) -> None:
        self.index = index
        self.requirements = offering.requirements
        self.zone = offering.zone
        self.capacity_type = offering.capacity_type
        self.available = 0
        self.is_reserved = offering.is_reserved
        self.prices: dict[int, int] = {}
        """By bit of a launchable type: its lowest price."""
        self.reserved: list[tuple[int, Offering]] = []
        """Offerings of reservations, each with the bit of its type."""
        self._cheapest_first: list[int] = []

    def sell(self, offering: Offering, prices: Mapping[int, int]) -> None:
        """Add an offering of some types, with prices by bit; a full reservation has no price."""
        if self.is_reserved:
            self.reserved += [(bit, offering) for bit in prices]
            if not offering.is_launchable:
                return
        known = self.prices
        if not known.keys().isdisjoint(prices.keys()):
            # A type may be sold twice in one market; the lower price counts.
            prices = {bit: min(price, known.get(bit, price)) for bit, price in prices.items()}
        known.update(prices)

    def lowest_price(self, mask: int) -> int:
        """Return the lowest price of some types, all of which are sold here."""
        if not self._cheapest_first:
            self._cheapest_first = sorted(self.prices, key=self.prices.__getitem__)
        are_in = flags(mask, self.available.bit_length())
        return self.prices[next(bit for bit in self._cheapest_first if are_in[bit])]

    @property
    def launchable(self) -> int:
        """Return the bits of the types that can be launched here now."""
        return self._by_price.at_least[0]

    def cheaper_than(self, price: int) -> int:
        """Return the bits of the types that cost less than a price here."""
        return self._by_price.below(price - 1)

    @cached_property
    def _by_price(self) -> Thresholds:
        return Thresholds(self.prices.items())


class _Places:
    """Types whose offerings are the same but for prices."""

    __slots__ = ("bits", "offered", "prices")

    def __init__(self, offered: Sequence[Offering]) -> None:
        self.offered = offered
        self.bits: list[int] = []
        self.prices: list[Sequence[int]] = []
        """For each of `bits`, the prices of `offered`, in the same order."""


class TypeTable:
    """All instance types of all pools as bits, with their offerings by market."""

    def __init__(
        self,
        types: Iterable[InstanceType],
        well_known: frozenset[str],
        *,
        waits_for_reserved: bool = True,
    ) -> None:
        """Take the types; a full reservation counts as available if `waits_for_reserved`."""
        self.well_known = well_known
        self._waits_for_reserved = waits_for_reserved
        self.types: list[InstanceType] = []
        self.allocatable: list[Resources] = []
        self.markets: list[OfferingGroup] = []
        self.has_reserved = False
        self._is_even: bool | None = None
        self._market_ids: dict[int, OfferingGroup] = {}
        self._market_keys: dict[frozenset[Requirement], OfferingGroup] = {}
        self._places: dict[int, _Places] = {}
        self._bits: dict[int, int] = {}
        self._keys: dict[str, _KeyIndex] = {}
        self._key_masks: dict[Requirement, int] = {}
        self._capacity: dict[str, Thresholds] = {}
        by_name: dict[str, list[InstanceType]] = {}
        """Distinct types of one name, because pools may have a type at different prices."""
        for each in types:
            if id(each) in self._bits:
                continue
            alike = by_name.setdefault(each.name, [])
            same = next((known for known in alike if known == each), None)
            if same is None:
                alike.append(each)
                self._add(each)
            else:
                self._bits[id(each)] = self._bits[id(same)]
        for places in self._places.values():
            self._open(places)
        self.size = len(self.types)
        self.is_split = self.size > sum(map(len, by_name.values()))
        """Whether some type has several bits, because its offerings override its capacity."""
        self.sound = (1 << self.size) - 1
        """Types whose allocatable resources are all zero or more."""
        for bit, amounts in enumerate(self.allocatable):
            if amounts and min(amounts.values()) < 0:
                self.sound ^= 1 << bit

    def mask_of(self, types: Iterable[InstanceType]) -> int:
        """Return the bits of some of the types."""
        mask = 0
        for each in types:
            mask |= self._bits[id(each)]
        return mask

    def allowing(self, requirement: Requirement) -> int:
        """Return the bits whose types can meet one requirement."""
        mask = self._key_masks.get(requirement)
        if mask is None:
            mask = self._key_masks[requirement] = self._index(requirement.key).allowing(requirement)
        return mask

    def is_even(self, percent: int) -> bool:
        """Say whether all types have the same offerings, each within a percentage of its lowest."""
        if self._is_even is None:
            self._is_even = (
                len(self._places) == 1
                and not self.has_reserved
                and all(
                    prices and max(prices) * 100 <= min(prices) * percent
                    for places in self._places.values()
                    for prices in places.prices
                )
            )
        return self._is_even

    def values(self, key: str) -> dict[str, int]:
        """Return by value of a key the bits of the types that have it, for counting minValues."""
        return self._index(key).by_value

    def defines(self, key: str) -> bool:
        """Say whether some type has a requirement on a key."""
        return bool(self._index(key).distinct)

    def _index(self, key: str) -> _KeyIndex:
        index = self._keys.get(key)
        if index is None:
            index = self._keys[key] = _KeyIndex(self.types, key)
        return index

    def markets_for(self, requirements: Requirements) -> tuple[OfferingGroup, ...]:
        """Return the markets that a claim with these requirements may be launched in."""
        return tuple(
            market
            for market in self.markets
            if why_incompatible(requirements, market.requirements, self.well_known) is None
        )

    def reserved(self) -> Iterator[Offering]:
        """Return all offerings of reservations, available or not, for the capacity that is left."""
        for places in self._places.values():
            yield from (offering for offering in places.offered if offering.is_reserved)

    def capacity(self, resource: str) -> Thresholds:
        """Return the largest capacity of each type, system overhead included, as thresholds."""
        table = self._capacity.get(resource)
        if table is None:
            most = _most if self.is_split else _plain
            table = Thresholds([(bit, most(each, resource)) for bit, each in enumerate(self.types)])
            self._capacity[resource] = table
        return table

    def _add(self, each: InstanceType) -> None:
        offered, prices = columns(each.offerings)
        places = self._places.get(id(offered))
        if places is None:
            for offering in offered:
                if offering.capacity_override or offering.overhead_override:
                    self._add_split(each)
                    return
            places = self._places[id(offered)] = _Places(offered)
        self._bits[id(each)] = 1 << len(self.types)
        self._add_bit(each, allocatable(each.capacity, each.overhead), places, prices)

    def _add_split(self, each: InstanceType) -> None:
        """Add a type with one bit for no override, and one for each pair of overrides."""
        groups: dict[tuple[tuple[tuple[str, int], ...], ...], list[Offering]] = {((), ()): []}
        for offering in each.offerings:
            key = (
                tuple(sorted(offering.capacity_override.items())),
                tuple(sorted(offering.overhead_override.items())),
            )
            groups.setdefault(key, []).append(offering)
        mask = 0
        for (capacity, overhead), offerings in groups.items():
            mask |= 1 << len(self.types)
            amounts = allocatable(
                {**each.capacity, **dict(capacity)}, {**each.overhead, **dict(overhead)}
            )
            places = self._places[id(offerings)] = _Places(offerings)
            self._add_bit(each, amounts, places, columns(offerings)[1])
        self._bits[id(each)] = mask

    def _add_bit(
        self, each: InstanceType, amounts: Resources, places: _Places, prices: Sequence[int]
    ) -> None:
        places.bits.append(len(self.types))
        places.prices.append(prices)
        self.types.append(each)
        self.allocatable.append(amounts)

    def _open(self, places: _Places) -> None:
        """Add the types of some places to the markets of their offerings."""
        bits = places.bits
        mask = sum(1 << bit for bit in bits)
        for offering, prices in zip(places.offered, zip(*places.prices, strict=True), strict=True):
            if offering.is_available if self._waits_for_reserved else offering.is_launchable:
                market = self._market(offering)
                market.available |= mask
                market.sell(offering, dict(zip(bits, prices, strict=True)))

    def _market(self, offering: Offering) -> OfferingGroup:
        market = self._market_ids.get(id(offering.requirements))
        if market is None:
            key = frozenset(offering.requirements.values())
            market = self._market_keys.get(key)
            if market is None:
                market = self._market_keys[key] = OfferingGroup(len(self.markets), offering)
                self.markets.append(market)
                self.has_reserved = self.has_reserved or offering.is_reserved
            self._market_ids[id(offering.requirements)] = market
        return market


def _plain(each: InstanceType, resource: str) -> int:
    return each.capacity.get(resource, 0)


def _most(each: InstanceType, resource: str) -> int:
    """Return the largest capacity of a resource over all offerings of a type."""
    overrides = [offering.capacity_override.get(resource, 0) for offering in each.offerings]
    return max(each.capacity.get(resource, 0), *overrides, 0)


def members(mask: int) -> Iterator[int]:
    """List the numbers in a set, smallest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def dense_members(mask: int) -> list[int]:
    """List the numbers in a set, smallest first; faster than `members` for large sets."""
    size = mask.bit_length()
    return list(compress(range(size), flags(mask, size)))


def flags(mask: int, size: int) -> bytes:
    """Return a set as one byte (0 or 1) per number, smallest number first."""
    digits = bin(mask | 1 << size)[:2:-1]
    return digits.encode().translate(_DIGIT_TO_FLAG)


def from_flags(are_in: Sequence[bool]) -> int:
    """Return the set of the positions at which a sequence is true."""
    return int("0" + "".join(["1" if is_in else "0" for is_in in are_in])[::-1], 2)


_DIGIT_TO_FLAG = bytes(1 if code == ord("1") else 0 for code in range(256))
