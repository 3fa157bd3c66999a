"""
Requirement sets as numbers, so that the algebra runs once per distinct pair.

A signature is the number of a requirement set of a claim (or a template), without the hostname.
`PodRequirements` holds a requirement set of pods. Joining them gives the signature of a claim with
such a pod; `PodRequirements` remembers each join.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from karpy.core.scheduling.instancetypes import OfferingGroup, TypeTable
from karpy.model.instances import PRICE_MAX
from karpy.model.labels import HOSTNAME, LAUNCH_ORDER
from karpy.model.requirements import (
    Requirement,
    Requirements,
    merge,
    why_disjoint,
    why_incompatible,
)

NEVER: Final = -1
NOT_SOLD: Final = PRICE_MAX + 1
"""The price of a type without an offering: higher than every real price."""
_KEYS_MAX: Final = 90
"""The most labels a claim has requirements on; a NodeClaim takes 100, and topology adds some."""
_EXCLUDED_MAX: Final = 1000
"""The most label values that the requirements of a claim exclude."""


class PodRequirements:
    """A requirement set of pods, with the outcome of every join tried so far."""

    __slots__ = (
        "claims",
        "epoch",
        "has_hostname",
        "index",
        "joined",
        "label_fits",
        "may_join_later",
        "names_hosts",
        "requirements",
        "seen",
    )

    def __init__(self, index: int, requirements: Requirements) -> None:
        self.index = index
        self.requirements = requirements
        hostname = requirements.get(HOSTNAME)
        self.has_hostname = hostname is not None
        self.names_hosts = hostname is not None and not hostname.complement
        """Whether the pods require certain hostnames; no claim has one of these."""
        self.joined: dict[int, int] = {}
        """By the signature of a claim, its signature with such a pod, or NEVER."""
        self.label_fits: dict[int, bool] = {}
        """By the index of a label set, whether existing nodes with these labels match."""
        self.claims = 0
        """Claims whose first signature could be joined, as bits."""
        self.epoch = 0
        """The epoch of the planned nodes in which `claims` and `seen` are valid."""
        self.seen = 0
        """Nodes with a smaller number are considered in `claims`."""
        self.may_join_later = False
        """
        Whether a claim that cannot be joined now may be joined later: a template lacks a label that
        the pods require, and a claim gets the label from a pod that excludes some of its values.
        """


class Signatures:
    """The requirement sets of claims met so far, and what follows from each."""

    def __init__(self, table: TypeTable) -> None:
        self.table = table
        self.requirements: list[Requirements] = []
        self.masks: list[int] = []
        """By signature: types that meet the requirements and are sold in a market they allow."""
        self.markets: list[tuple[OfferingGroup, ...]] = []
        """By signature: markets that the requirements allow."""
        self.varieties: list[tuple[Requirement, ...]] = []
        """By signature: requirements with minValues."""
        self.watched: frozenset[str] = frozenset()
        """Labels that DaemonSets require, and keys of pod anti-affinities."""
        self._ids: dict[frozenset[Requirement], int] = {}
        self._pod_requirements: dict[frozenset[Requirement], PodRequirements] = {}
        self._key_users: dict[str, _KeyUsers] = {}
        self._cheaper: dict[tuple[int, int], int] = {}
        self._prices: dict[tuple[int, int], int] = {}
        self._adds_watched: dict[tuple[int, int], bool] = {}

    def intern(self, requirements: Requirements) -> int:
        """Return the signature of a requirement set."""
        key = frozenset(requirements.values())
        known = self._ids.get(key)
        if known is not None:
            return known
        signature = self._ids[key] = len(self.requirements)
        markets = self.table.markets_for(requirements)
        mask = 0
        for market in markets:
            mask |= market.available
        for requirement in requirements.values():
            if not mask:
                break
            mask &= self.table.allowing(requirement)
        self.requirements.append(requirements)
        self.masks.append(mask)
        self.markets.append(markets)
        self.varieties.append(tuple(each for each in requirements.values() if each.min_values))
        for requirement in requirements.values():
            self._users_of(requirement.key).add(signature, requirement)
        return signature

    def watch(self, keys: frozenset[str]) -> None:
        """Set the watched labels: what DaemonSets require, and keys of pod anti-affinities."""
        if keys != self.watched:
            self.watched = keys
            self._adds_watched.clear()

    def forget_pod_requirements(self) -> None:
        """Forget requirement sets of pods, because those of another snapshot follow."""
        self._pod_requirements.clear()

    def pod_requirements(self, requirements: Requirements) -> PodRequirements:
        """Return the one object for a requirement set of pods."""
        key = frozenset(requirements.values())
        known = self._pod_requirements.get(key)
        if known is None:
            known = self._pod_requirements[key] = PodRequirements(
                len(self._pod_requirements), requirements
            )
        return known

    def join(self, signature: int, required: PodRequirements) -> int:
        """Return the signature of a claim with such a pod, or NEVER."""
        result = required.joined.get(signature)
        if result is None:
            result = required.joined[signature] = self._join(signature, required)
        return result

    def _join(self, signature: int, required: PodRequirements) -> int:
        if not required.requirements:
            return signature
        if required.names_hosts:
            return NEVER
        wanted = required.requirements
        if required.has_hostname:
            wanted = {key: each for key, each in wanted.items() if key != HOSTNAME}
        have = self.requirements[signature]
        if why_incompatible(have, wanted, self.table.well_known) is not None:
            return NEVER
        # Differs: a label that a pod excludes by `NotIn` or `DoesNotExist`: Karpenter takes it for
        # defined from then on, and the next pod may add it to the node, so that daemons come
        # without room or pods meet that must be apart; Karpy does not let the next pod add it if a
        # DaemonSet or a pod anti-affinity depends on it.
        wanted = {key: each for key, each in wanted.items() if key in have or self._may_gain(key)}
        if not wanted:
            return signature
        both = merge(have, wanted)
        return NEVER if why_too_long(have, both) else self.intern(both)

    def _may_gain(self, key: str) -> bool:
        return key not in self.watched or key in self.table.well_known or self.table.defines(key)

    def adds_watched_label(self, before: int, after: int) -> bool:
        """Say whether a claim with another signature gets a watched label that it has not yet."""
        if before == after or not self.watched:
            return False
        known = self._adds_watched.get((before, after))
        if known is None:
            have, then = self.requirements[before], self.requirements[after]
            known = self._adds_watched[before, after] = any(
                _is_written(then.get(key))
                and not _is_written(have.get(key))
                and not self._may_gain(key)
                for key in self.watched
            )
        return known

    def joinable(self, required: PodRequirements) -> int:
        """Return all signatures that can be joined, as bits, and perhaps some that cannot."""
        every = (1 << len(self.requirements)) - 1
        if required.names_hosts:
            return 0
        for key, wanted in required.requirements.items():
            if key == HOSTNAME:
                continue
            users = self._users_of(key)
            allowed = users.open
            if wanted.complement or not wanted.values:
                allowed = users.all
            else:
                for value in wanted.values:
                    allowed |= users.by_value.get(value, 0)
            if key in self.table.well_known or wanted.is_negative:
                allowed |= ~users.all
            every &= allowed
        return every

    def narrow(self, signature: int, key: str, names: tuple[str, ...], domains: int) -> int:
        """Return the signature that also allows only some domains (bits over names) of a key."""
        only = Requirement(
            key, frozenset(name for bit, name in enumerate(names) if domains >> bit & 1)
        )
        have = self.requirements[signature]
        present = have.get(key)
        return self.intern({**have, key: only if present is None else present & only})

    def lowest_price(self, signature: int, types: int) -> int:
        """Return what the cheapest of some types costs, offerings of reservations not counted."""
        types &= self.masks[signature]
        lowest = self._prices.get((signature, types))
        if lowest is None:
            lowest = NOT_SOLD
            for market in self.markets[signature]:
                sold = 0 if market.is_reserved else types & market.available
                if sold:
                    lowest = min(lowest, market.lowest_price(sold))
            self._prices[signature, types] = lowest
        return lowest

    def cheaper_than(self, price: int, signature: int) -> int:
        """Return the types with an offering in an allowed market for less than a price."""
        known = self._cheaper.get((price, signature))
        if known is None:
            known = 0
            for market in self.markets[signature]:
                known |= market.cheaper_than(price)
            self._cheaper[price, signature] = known
        return known

    def cheaper_at_worst(self, price: int, signature: int, types: int) -> int:
        """
        Return the types, out of some, that cost less than a price wherever they are launched.

        A type is launched with the first capacity type it is sold as: reserved, spot, on-demand.
        """
        result = 0
        for capacity_type in LAUNCH_ORDER:
            sold = dear = 0
            for market in self.markets[signature]:
                if market.capacity_type == capacity_type:
                    sold |= market.launchable
                    dear |= market.launchable & ~market.cheaper_than(price)
            result |= types & sold & ~dear
            types &= ~sold
        return result

    def label_fits(
        self, labels: Mapping[str, str], label_set: int, required: PodRequirements
    ) -> bool:
        """Say whether a node's labels meet requirements; an absent one meets only negative ones."""
        if required.has_hostname:
            return _labels_meet(labels, required.requirements)
        result = required.label_fits.get(label_set)
        if result is None:
            result = required.label_fits[label_set] = _labels_meet(labels, required.requirements)
        return result

    def _users_of(self, key: str) -> "_KeyUsers":
        users = self._key_users.get(key)
        if users is None:
            users = self._key_users[key] = _KeyUsers()
        return users


class _KeyUsers:
    """Which signatures (as bits) have a requirement on a key, and which values they allow."""

    __slots__ = ("all", "by_value", "open")

    def __init__(self) -> None:
        self.all = 0
        self.open = 0
        self.by_value: dict[str, int] = {}

    def add(self, signature: int, requirement: Requirement) -> None:
        bit = 1 << signature
        self.all |= bit
        if requirement.complement:
            self.open |= bit
            return
        for value in requirement.values:
            self.by_value[value] = self.by_value.get(value, 0) | bit


def why_too_long(have: Requirements, both: Requirements) -> str:
    """Say by which requirements a claim gets too long for a NodeClaim; empty if it does not."""
    # The API server refuses a NodeClaim that is too long, and then none of its pods get a node.
    for what, measure, most in (
        ("requirements on {} labels", len, _KEYS_MAX),
        ("{} excluded label values", _count_excluded, _EXCLUDED_MAX),
    ):
        if measure(both) > most and measure(both) > measure(have):
            return f"{what.format(measure(both))}, a NodeClaim takes {most}"
    return ""


def _count_excluded(requirements: Requirements) -> int:
    return sum(len(each.values) for each in requirements.values() if each.complement)


def _is_written(requirement: Requirement | None) -> bool:
    """Say whether a node gets a label; a requirement that only excludes values writes none."""
    return requirement is not None and not requirement.is_negative


def _labels_meet(labels: Mapping[str, str], wanted: Requirements) -> bool:
    for key, requirement in wanted.items():
        value = labels.get(key)
        if value is None:
            if not requirement.is_negative:
                return False
        elif value not in requirement:
            return False
    return True


def contradicts(left: Requirements, right: Requirements) -> bool:
    """Say whether two sets of requirements exclude each other on some key."""
    return why_disjoint(left, right) is not None


def reached(signatures: Signatures, signature: int, mask: int) -> dict[str, int]:
    """Return, for each key whose minValues some types do not reach, how many values they have."""
    lacking: dict[str, int] = {}
    for requirement in signatures.varieties[signature]:
        assert requirement.min_values is not None
        count = 0
        for value, bits in signatures.table.values(requirement.key).items():
            if bits & mask and value in requirement:
                count += 1
                if count == requirement.min_values:
                    break
        else:
            lacking[requirement.key] = count
    return lacking


def relax(signatures: Signatures, signature: int, lacking: dict[str, int]) -> int:
    """Return the signature with the minValues of some keys lowered to given counts."""
    requirements = dict(signatures.requirements[signature])
    for key, count in lacking.items():
        requirements[key] = replace(requirements[key], min_values=count)
    return signatures.intern(requirements)
