"""The choice of an offering for a NodeClaim."""

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from karpy.adapters.clouds.kwok.naming import draw
from karpy.model.instances import Catalog, InstanceType, Offering
from karpy.model.requirements import why_incompatible
from karpy.ports.cloud import LaunchSpec


class PricedType(Struct, frozen=True):
    """An instance type with one of its offerings."""

    type: InstanceType
    offering: Offering


Shelf: TypeAlias = tuple[PricedType, ...]
"""All offers on sale, cheapest first, then by name."""


def stock(catalog: Catalog, pool: str) -> Shelf:
    """Return the offers on sale for a NodePool."""
    offers = (
        PricedType(type_, offering)
        for type_ in catalog.types_for(pool)
        for offering in type_.offerings
        if offering.is_launchable
    )
    return tuple(sorted(offers, key=lambda offer: (offer.offering.price, offer.type.name)))


def choose(spec: LaunchSpec, shelf: Shelf, may_lack: frozenset[str]) -> PricedType | None:
    """
    Return the cheapest offer that satisfies a launch, or None.

    Of several types with one price the first by name is chosen; of several places with one price
    the token chooses, so that a claim always gets the same place. `may_lack` are labels of
    offerings that a claim need not define.
    """
    found = _fitting(spec, shelf, may_lack)
    first = next(found, None)
    if first is None:
        return None
    equal = [first]
    for offer in found:
        if (offer.offering.price, offer.type.name) != (first.offering.price, first.type.name):
            break
        equal.append(offer)
    return equal[draw(spec.token, "place", len(equal))]


def _fitting(spec: LaunchSpec, shelf: Shelf, may_lack: frozenset[str]) -> Iterator[PricedType]:
    places = {(each.instance_type, each.zone, each.capacity_type) for each in spec.options}
    types = {each.instance_type for each in spec.options}
    for offer in shelf:
        name, offering = offer.type.name, offer.offering
        if name not in types or not _is_reserved_for(spec, offering):
            continue
        if spec.requirements:
            clash = why_incompatible(spec.requirements, offering.requirements, may_lack)
            is_fit = clash is None
        else:
            is_fit = (name, offering.zone, offering.capacity_type) in places
        if is_fit:
            yield offer


def _is_reserved_for(spec: LaunchSpec, offering: Offering) -> bool:
    """Say whether an offering is unreserved, or reserved and allowed for a launch."""
    is_any = not offering.is_reserved or not spec.reservations
    return is_any or offering.reservation_id in spec.reservations
