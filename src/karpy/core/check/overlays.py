"""NodeOverlays: what the catalog would say if its operator had written it."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, TypeAlias

from msgspec.structs import replace

from karpy.model.instances import MICROS_PER_DOLLAR, InstanceType
from karpy.model.labels import NODE_POOL
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.requirements import (
    Requirements,
    collect,
    from_labels,
    merge,
    one_of,
    why_incompatible,
)
from karpy.model.snapshot import Snapshot

_PERCENT: Final = 100
Thing: TypeAlias = tuple[str, str, int | str]
"""What an overlay can touch: NodePool, type, and the index of an offering or a resource."""
Touched: TypeAlias = dict[Thing, list[NodeOverlay]]
"""The overlays that touch a thing, the one that wins first."""


def overlaid_types(snapshot: Snapshot) -> Mapping[str, tuple[InstanceType, ...]]:
    """Return the instance types of each NodePool, overlays applied if the settings say so."""
    types = {pool.name: snapshot.catalog.types_for(pool.name) for pool in snapshot.pools}
    if not snapshot.settings.node_overlay or not snapshot.overlays:
        return types
    touched = _touch_in_order(snapshot)
    resources = sorted({name for overlay in snapshot.overlays for name in overlay.capacity})
    return {
        pool: tuple(_with_overlays(pool, each, touched, resources) for each in theirs)
        for pool, theirs in types.items()
    }


def _touch_in_order(snapshot: Snapshot) -> Touched:
    """Apply overlays by weight, then name, both descending; leave out those that conflict."""
    touched: Touched = {}
    by_name = sorted(snapshot.overlays, key=lambda each: each.name, reverse=True)
    for overlay in sorted(by_name, key=lambda each: each.weight, reverse=True):
        things = list(_things(overlay, snapshot))
        rivals = (rival for thing in things for rival in touched.get(thing, ()))
        if all(rival.weight != overlay.weight for rival in rivals):
            for thing in things:
                touched.setdefault(thing, []).append(overlay)
    return touched


def _things(overlay: NodeOverlay, snapshot: Snapshot) -> Iterator[Thing]:
    wanted = collect(overlay.requirements)
    changes_price = overlay.price is not None or overlay.price_adjustment is not None
    for pool in snapshot.pools:
        for each in snapshot.catalog.types_for(pool.name):
            offerings = _matching_offerings(wanted, pool, each, snapshot.catalog.well_known)
            if offerings and changes_price:
                yield from ((pool.name, each.name, index) for index in offerings)
            if offerings:
                yield from ((pool.name, each.name, resource) for resource in overlay.capacity)


def _matching_offerings(
    wanted: Requirements, pool: NodePool, instance_type: InstanceType, well_known: frozenset[str]
) -> list[int]:
    have = merge(
        {NODE_POOL: one_of(NODE_POOL, pool.name)},
        from_labels(pool.labels),
        instance_type.requirements,
    )
    if why_incompatible(have, wanted) is not None:
        return []
    return [
        index
        for index, offering in enumerate(instance_type.offerings)
        if why_incompatible(wanted, offering.requirements, well_known) is None
    ]


def _with_overlays(
    pool: str, instance_type: InstanceType, touched: Touched, resources: Sequence[str]
) -> InstanceType:
    offerings = list(instance_type.offerings)
    for index, offering in enumerate(offerings):
        if winners := touched.get((pool, instance_type.name, index)):
            offerings[index] = replace(offering, price=new_price(offering.price, winners[0]))
    capacity = {
        name: winners[0].capacity[name]
        for name in resources
        if (winners := touched.get((pool, instance_type.name, name)))
    }
    if tuple(offerings) == instance_type.offerings and not capacity:
        return instance_type
    return replace(
        instance_type,
        offerings=tuple(offerings),
        capacity={**instance_type.capacity, **capacity},
        is_price_overlaid=tuple(offerings) != instance_type.offerings,
        is_capacity_overlaid=bool(capacity),
    )


def new_price(price: int, overlay: NodeOverlay) -> int:
    """Return the price in micro-dollars that an overlay makes of another one; never below zero."""
    if overlay.price is not None:
        return round(Fraction(overlay.price) * MICROS_PER_DOLLAR)
    change = overlay.price_adjustment or "+0"
    if change.endswith("%"):
        return max(0, round(price * (1 + Fraction(change[:-1]) / _PERCENT)))
    return max(0, round(price + Fraction(change) * MICROS_PER_DOLLAR))
