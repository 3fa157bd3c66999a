"""Which offering a NodeClaim gets."""

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from karpy.adapters.clouds.kwok.naming import draw
from karpy.model.instances import Catalog, InstanceType, Offering
from karpy.model.requirements import why_incompatible
from karpy.ports.cloud import LaunchSpec


class Offer(Struct, frozen=True):
    """An instance type as it is sold in one place."""

    type: InstanceType
    offering: Offering


Shelf: TypeAlias = tuple[Offer, ...]
"""Everything that can be had, cheapest first, then by name."""


def stock(catalog: Catalog, pool: str) -> Shelf:
    """Put what a NodePool can have on a shelf."""
    offers = (
        Offer(type_, offering)
        for type_ in catalog.types_for(pool)
        for offering in type_.offerings
        if offering.is_launchable
    )
    return tuple(sorted(offers, key=lambda offer: (offer.offering.price, offer.type.name)))


def choose(spec: LaunchSpec, shelf: Shelf, may_lack: frozenset[str]) -> Offer | None:
    """
    Take the cheapest offering that will do, or None if there is none.

    Among types of one price the first by name is taken, among places of one price any: the token
    decides, so that the same claim always gets the same. `may_lack` are the labels of an offering
    that a claim need not speak of.
    """
    found = _fitting(spec, shelf, may_lack)
    first = next(found, None)
    if first is None:
        return None
    alike = [first]
    for offer in found:
        if (offer.offering.price, offer.type.name) != (first.offering.price, first.type.name):
            break
        alike.append(offer)
    return alike[draw(spec.token, "place", len(alike))]


def _fitting(spec: LaunchSpec, shelf: Shelf, may_lack: frozenset[str]) -> Iterator[Offer]:
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
    """Say whether a launch may have an offering; only some may have a reserved one."""
    is_any = not offering.is_reserved or not spec.reservations
    return is_any or offering.reservation_id in spec.reservations
