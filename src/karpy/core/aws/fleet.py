"""One launch: the choice of instance types and offerings, and the request to CreateFleet."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.aws.launchtemplates import CAPACITY_BLOCK, EFA, LaunchTemplate, reservation_of
from karpy.core.aws.tags import ec2_tags
from karpy.model.ec2nodeclass import FoundSubnet
from karpy.model.instances import MICROS_PER_DOLLAR, InstanceType, Offering
from karpy.model.labels import (
    CAPACITY_TYPE,
    MIN_VALUES_RELAXED,
    ON_DEMAND,
    PRICE_OVERLAID,
    RESERVED,
    SPOT,
    ZONE,
)
from karpy.model.requirements import Requirements, merge, one_of, why_incompatible
from karpy.model.resources import Resources, fits
from karpy.model.verdicts import LaunchOption

OPTIONS_MAX: Final = 60
"""The largest number of instance types in a request to CreateFleet."""
_FLEXIBLE_TYPES: Final = 5
"""With fewer types, an on-demand launch that replaces spot is likely to find no capacity."""
TENANCY: Final = "karpenter.k8s.aws/instance-tenancy"
_DEFAULT: Final = "default"
_DEDICATED: Final = "dedicated"
_ACCELERATORS: Final = (
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "amd.com/gpu",
    "nvidia.com/gpu",
    "habana.ai/gaudi",
)


class Wanted(Struct, frozen=True):
    """The constraints of a NodeClaim on its machine."""

    requirements: Requirements
    requests: Resources = {}
    annotations: Mapping[str, str] = {}
    is_strict: bool = True
    """Whether minValues that cannot be satisfied forbid the launch."""
    prices: Mapping[tuple[str, str, str], int] = {}
    """
    The prices in the decision, by type, zone and capacity type: those of NodeOverlays.

    NodeOverlays may also have added resources to these types, so that their own resources are not
    compared with the requests again.
    """

    @property
    def has_min_values(self) -> bool:
        return any(each.min_values is not None for each in self.requirements.values())


class Override(Struct, frozen=True, gc=False):
    """One offering that a launch may take."""

    instance_type: str
    zone: str
    subnet: str
    image: str
    price: int
    """Micro-dollars per hour; a lower price has a higher priority."""


def choose_types(
    types: Iterable[InstanceType], wanted: Wanted, may_lack: frozenset[str]
) -> list[InstanceType]:
    """
    Choose the types to launch with, cheapest first, each with its allowed offerings.

    Without minValues, metal sizes and accelerators are left out if other types remain, and so are
    spot offerings that cost more than on-demand.
    """
    named = {name for name, _, _ in wanted.prices}
    found = [
        replace(each, offerings=_priced(each.name, offerings, wanted.prices))
        for each in types
        if (each.name in named or fits(wanted.requests, each.allocatable))
        and why_incompatible(wanted.requirements, each.requirements, may_lack) is None
        and (offerings := _allowed(each, wanted.requirements, may_lack))
    ]
    found = _by_reservation(found)
    if not wanted.has_min_values:
        found = _without_exotic(found)
        found = _without_dear_spot(found, wanted.requirements)
    found.sort(key=lambda each: (min(offer.price for offer in each.offerings), each.name))
    kept = found[:OPTIONS_MAX]
    return [] if wanted.is_strict and _lacks_variety(kept, wanted.requirements) else kept


def only_options(
    types: Iterable[InstanceType], options: Iterable[LaunchOption]
) -> list[InstanceType]:
    """Keep the offerings that the options name; for launches without requirements."""
    named = {(each.instance_type, each.zone, each.capacity_type) for each in options}
    found = []
    for each in types:
        offerings = tuple(
            offer
            for offer in each.offerings
            if (each.name, offer.zone, offer.capacity_type) in named
        )
        if offerings:
            found.append(replace(each, offerings=offerings))
    return found


def choose_capacity_type(types: Iterable[InstanceType], requirements: Requirements) -> str:
    """Return the capacity type to launch: the first that is allowed and on sale."""
    there = {offer.capacity_type for each in types for offer in each.offerings}
    allowed = requirements.get(CAPACITY_TYPE)
    for each in (RESERVED, SPOT):
        if each in there and (allowed is None or each in allowed):
            return each
    return ON_DEMAND


def is_thin_fallback(
    types: Sequence[InstanceType], capacity_type: str, requirements: Requirements
) -> bool:
    """Say whether a launch falls back from spot to on-demand with few types to choose from."""
    allowed = requirements.get(CAPACITY_TYPE)
    may_be_spot = allowed is None or SPOT in allowed
    return capacity_type == ON_DEMAND and may_be_spot and len(types) < _FLEXIBLE_TYPES


def choose_tenancy(requirements: Requirements) -> str:
    """Return the tenancy to launch with: default if it is allowed, else dedicated."""
    allowed = requirements.get(TENANCY)
    if allowed is None or _DEFAULT in allowed:
        return _DEFAULT
    return _DEDICATED


def trial_tenancy(pools: Iterable[Requirements]) -> Requirements:
    """Return the requirement of a trial launch: dedicated if a NodePool allows that by name."""
    is_dedicated = any(_DEDICATED in each[TENANCY] for each in pools if TENANCY in each)
    return {TENANCY: one_of(TENANCY, _DEDICATED)} if is_dedicated else {}


def overrides_of(
    template: LaunchTemplate,
    capacity_type: str,
    subnets: Mapping[str, str],
    requirements: Requirements,
) -> list[Override]:
    """Return the offerings that a template may be launched as; `subnets` has one for each zone."""
    zones = requirements.get(ZONE)
    found: dict[tuple[str, str], Override] = {}
    for type_ in template.kind.types:
        for offer in type_.offerings:
            is_of_reservation = not template.kind.reservation or (
                offer.reservation_id == template.kind.reservation
            )
            if (
                offer.capacity_type == capacity_type
                and offer.zone in subnets
                and (zones is None or offer.zone in zones)
                and is_of_reservation
            ):
                override = Override(
                    type_.name, offer.zone, subnets[offer.zone], template.kind.image, offer.price
                )
                found.setdefault((type_.name, offer.zone), override)
    return list(found.values())


def overrides_everywhere(
    template: LaunchTemplate, subnets: Iterable[FoundSubnet]
) -> list[Override]:
    """Return all types of a template in all subnets, for a trial launch."""
    found = (
        Override(type_.name, each.zone, each.id, template.kind.image, offer.price)
        for each in subnets
        for type_ in template.kind.types
        for offer in type_.offerings
        if offer.zone == each.zone and offer.capacity_type == ON_DEMAND
    )
    return list(dict.fromkeys(found))


def fleet_request(
    parts: Sequence[tuple[LaunchTemplate, Sequence[Override]]],
    capacity_type: str,
    wanted: Wanted,
    tags: Mapping[str, str],
    context: str | None = None,
) -> dict[str, Any]:
    """Return a request to CreateFleet for one machine."""
    kind = parts[0][0].kind
    is_overlaid = wanted.annotations.get(PRICE_OVERLAID) == "true"
    request: dict[str, Any] = {
        "Type": "instant",
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {
                    "LaunchTemplateName": template.name,
                    "Version": "$Latest",
                },
                "Overrides": [_write(each) for each in overrides],
            }
            for template, overrides in parts
        ],
        "TargetCapacitySpecification": {
            "DefaultTargetCapacityType": _target(capacity_type, kind.reservation_type, kind),
            "TotalTargetCapacity": 1,
        },
        "TagSpecifications": [
            {"ResourceType": each, "Tags": ec2_tags(tags)}
            for each in ("instance", "volume", "fleet")
        ],
    }
    if context and wanted.annotations.get(MIN_VALUES_RELAXED) != "true":
        request["Context"] = context
    if capacity_type == SPOT:
        strategy = "capacity-optimized-prioritized" if is_overlaid else "price-capacity-optimized"
        request["SpotOptions"] = {"AllocationStrategy": strategy}
    elif capacity_type == RESERVED and kind.is_interruptible:
        types = ["interruptible-capacity-reservation"]
        request["ReservedCapacityOptions"] = {"ReservationTypes": types}
    elif not (capacity_type == RESERVED and kind.reservation_type == CAPACITY_BLOCK):
        strategy = "prioritized" if is_overlaid else "lowest-price"
        request["OnDemandOptions"] = {"AllocationStrategy": strategy}
    return request


def reservations_in(types: Iterable[InstanceType], name: str, zone: str) -> list[str]:
    """Return the IDs of the capacity reservations that offer a type in a zone."""
    return [
        offer.reservation_id
        for each in types
        if each.name == name
        for offer in each.offerings
        if offer.is_reserved and offer.zone == zone
    ]


def wants_efa(requests: Resources) -> bool:
    """Say whether a launch asks for EFA interfaces."""
    return requests.get(EFA, 0) > 0


def _write(override: Override) -> dict[str, Any]:
    made: dict[str, Any] = {
        "InstanceType": override.instance_type,
        "ImageId": override.image,
        "AvailabilityZone": override.zone,
        "Priority": override.price / MICROS_PER_DOLLAR,
    }
    if override.subnet:
        made["SubnetId"] = override.subnet
    return made


def _target(capacity_type: str, reservation_type: str, kind: object) -> str:
    if capacity_type != RESERVED:
        return capacity_type
    if reservation_type == CAPACITY_BLOCK:
        return CAPACITY_BLOCK
    return "reserved-capacity" if getattr(kind, "is_interruptible", False) else ON_DEMAND


def _priced(
    name: str, offers: Sequence[Offering], prices: Mapping[tuple[str, str, str], int]
) -> tuple[Offering, ...]:
    """Return offerings with the prices of the decision where it has some."""
    decided = [prices.get((name, each.zone, each.capacity_type), each.price) for each in offers]
    return tuple(
        each if each.price == price else replace(each, price=price)
        for each, price in zip(offers, decided, strict=True)
    )


def _allowed(
    type_: InstanceType, requirements: Requirements, may_lack: frozenset[str]
) -> tuple[Offering, ...]:
    return tuple(
        each
        for each in type_.offerings
        if each.is_launchable
        and why_incompatible(requirements, each.requirements, may_lack) is None
    )


def _by_reservation(types: list[InstanceType]) -> list[InstanceType]:
    """Keep the offerings of the cheapest kind of reservation alone, if there are any."""
    kinds: dict[tuple[str, bool], int] = {}
    for each in types:
        for offer in each.offerings:
            if offer.is_reserved:
                kind = _kind_of(offer)
                kinds[kind] = min(kinds.get(kind, offer.price), offer.price)
    if not kinds:
        return types
    best = min(kinds, key=lambda kind: (kinds[kind], kind[1], kind[0] == CAPACITY_BLOCK))
    kept = []
    for each in types:
        offers = [
            offer for offer in each.offerings if offer.is_reserved and _kind_of(offer) == best
        ]
        if offers:
            kept.append(replace(each, offerings=_one_a_zone(offers)))
    if best[0] == CAPACITY_BLOCK:
        first = min(kept, key=lambda each: (min(o.price for o in each.offerings), each.name))
        return [replace(first, offerings=(min(first.offerings, key=lambda o: (o.price, o.zone)),))]
    return kept


def _kind_of(offer: Offering) -> tuple[str, bool]:
    reserved = reservation_of(offer)
    return reserved.type, reserved.is_interruptible


def _one_a_zone(offers: Iterable[Offering]) -> tuple[Offering, ...]:
    """Keep in each zone the reservation with most capacity left."""
    best: dict[str, Offering] = {}
    for each in sorted(offers, key=lambda each: (-each.reservation_capacity, each.reservation_id)):
        best.setdefault(each.zone, each)
    return tuple(best[zone] for zone in sorted(best))


def _lacks_variety(types: Sequence[InstanceType], requirements: Requirements) -> bool:
    """Say whether types have fewer values of some label than its minValues asks for."""
    for key, wanted in requirements.items():
        values = {
            value
            for each in types
            if key in each.requirements
            for value in each.requirements[key].values
            if value in wanted
        }
        if wanted.min_values is not None and len(values) < wanted.min_values:
            return True
    return False


def _without_exotic(types: list[InstanceType]) -> list[InstanceType]:
    usual = [each for each in types if not _is_exotic(each)]
    return usual or types


def _is_exotic(type_: InstanceType) -> bool:
    is_metal = "metal" in type_.name.partition(".")[2]
    return is_metal or any(type_.capacity.get(each) for each in _ACCELERATORS)


def _without_dear_spot(types: list[InstanceType], requirements: Requirements) -> list[InstanceType]:
    """Drop spot offerings dearer than the cheapest on-demand offering, if both are allowed."""
    allowed = requirements.get(CAPACITY_TYPE)
    if allowed is not None and not {SPOT, ON_DEMAND} <= {
        each for each in (SPOT, ON_DEMAND) if each in allowed
    }:
        return types
    prices = [
        offer.price
        for each in types
        for offer in each.offerings
        if offer.capacity_type == ON_DEMAND
    ]
    if not prices:
        return types
    ceiling, kept = min(prices), []
    for each in types:
        offers = tuple(
            offer
            for offer in each.offerings
            if offer.capacity_type != SPOT or offer.price <= ceiling
        )
        if offers:
            kept.append(replace(each, offerings=offers))
    return kept


def only_capacity_type(requirements: Requirements, capacity_type: str) -> Requirements:
    """Narrow requirements to one capacity type."""
    return merge(requirements, {CAPACITY_TYPE: one_of(CAPACITY_TYPE, capacity_type)})
