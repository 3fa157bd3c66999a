"""The catalog after NodeOverlays (section 8)."""

from collections.abc import Iterator
from decimal import Decimal

from msgspec.structs import replace

from karpy.model.instances import MICROS_PER_DOLLAR, InstanceType
from karpy.model.labels import NODE_POOL
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.requirements import collect, from_labels, merge, one_of, why_incompatible
from karpy.model.snapshot import Snapshot

Thing = tuple[str, str, str, object]
"""What an overlay changes: pool, type, and the index of an offering or the name of a resource."""

PRICE = "price"
CAPACITY = "capacity"


def types_by_pool(snapshot: Snapshot) -> dict[str, tuple[InstanceType, ...]]:
    """Return the types of every pool with its overlays applied."""
    types = {
        pool.name: tuple(_on_sale(each, snapshot) for each in snapshot.catalog.types_for(pool.name))
        for pool in snapshot.pools
    }
    if not snapshot.settings.node_overlay:
        return types
    winners: dict[Thing, NodeOverlay] = {}
    weights: dict[Thing, set[int]] = {}
    for overlay in sorted(
        snapshot.overlays, key=lambda each: (each.weight, each.name), reverse=True
    ):
        things = list(_touched(overlay, snapshot))
        if any(overlay.weight in weights.get(thing, set()) for thing in things):
            continue
        for thing in things:
            winners.setdefault(thing, overlay)
            weights.setdefault(thing, set()).add(overlay.weight)
    return {
        pool: tuple(_corrected(pool, kind, winners) for kind in some)
        for pool, some in types.items()
    }


def _touched(overlay: NodeOverlay, snapshot: Snapshot) -> Iterator[Thing]:
    changes_price = overlay.price is not None or overlay.price_adjustment is not None
    for pool in snapshot.pools:
        for kind in snapshot.catalog.types_for(pool.name):
            offerings = _matching_offerings(overlay, pool, kind, snapshot.catalog.well_known)
            if not offerings:
                continue
            for resource in overlay.capacity:
                yield pool.name, kind.name, CAPACITY, resource
            if changes_price:
                for number in offerings:
                    yield pool.name, kind.name, PRICE, number


def _matching_offerings(
    overlay: NodeOverlay, pool: NodePool, kind: InstanceType, well_known: frozenset[str]
) -> list[int]:
    wanted = collect(overlay.requirements)
    here = merge(
        {NODE_POOL: one_of(NODE_POOL, pool.name)}, from_labels(pool.labels), kind.requirements
    )
    if why_incompatible(here, wanted):
        return []
    return [
        number
        for number, offering in enumerate(kind.offerings)
        if why_incompatible(wanted, offering.requirements, well_known) is None
    ]


def _corrected(pool: str, kind: InstanceType, winners: dict[Thing, NodeOverlay]) -> InstanceType:
    offerings = []
    for number, offering in enumerate(kind.offerings):
        overlay = winners.get((pool, kind.name, PRICE, number))
        price = adjusted(offering.price, overlay) if overlay else offering.price
        offerings.append(replace(offering, price=price))
    capacity = dict(kind.capacity)
    for (of_pool, of_type, what, resource), overlay in winners.items():
        if (of_pool, of_type, what) == (pool, kind.name, CAPACITY):
            capacity[str(resource)] = overlay.capacity[str(resource)]
    return replace(kind, offerings=tuple(offerings), capacity=capacity)


def adjusted(price: int, overlay: NodeOverlay) -> int:
    """Return a price adjusted by an overlay, in micro-dollars, at least zero."""
    if overlay.price is not None:
        return round(Decimal(overlay.price) * MICROS_PER_DOLLAR)
    change = overlay.price_adjustment or "+0"
    if change.endswith("%"):
        return max(0, round(price * (1 + Decimal(change[:-1]) / 100)))
    if change[0] in "+-":
        return max(0, round(price + Decimal(change) * MICROS_PER_DOLLAR))
    return round(Decimal(change) * MICROS_PER_DOLLAR)


def _on_sale(kind: InstanceType, snapshot: Snapshot) -> InstanceType:
    """Make full reservations unavailable if no pod waits for them."""
    if snapshot.settings.reserved_capacity:
        return kind
    offerings = tuple(replace(each, is_available=each.is_launchable) for each in kind.offerings)
    return replace(kind, offerings=offerings)
