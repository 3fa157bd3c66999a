"""Validates NodeOverlays, and applies them to the catalog, pool by pool."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from msgspec.structs import replace

from karpy.model.conditions import FALSE, TRUE, Condition
from karpy.model.instances import MICROS_PER_DOLLAR, PRICE_MAX, Catalog, InstanceType, Offering
from karpy.model.labels import NODE_POOL
from karpy.model.pools import NodeOverlay, NodePool, OverlayRecord
from karpy.model.requirements import (
    Requirement,
    collect,
    from_labels,
    merge,
    one_of,
    why_incompatible,
)
from karpy.model.snapshot import Snapshot

PERIOD: Final = timedelta(hours=6)
"""Overlays are validated again after this time, because the offers of the cloud may change."""
VALIDATION_SUCCEEDED: Final = "ValidationSucceeded"


def judge_overlay(
    record: OverlayRecord, now: datetime, *, is_conflicting: bool = False
) -> OverlayRecord:
    """Return an overlay with the condition `ValidationSucceeded` set."""
    meta = record.meta
    status, reason, message = _judgement(record, is_conflicting=is_conflicting)
    condition = Condition(VALIDATION_SUCCEEDED, status, now, reason, message, meta.generation)
    said = record.conditions.with_condition(condition, now, is_deleting=meta.is_deleting)
    return record if said is record.conditions else replace(record, conditions=said)


def _judgement(record: OverlayRecord, *, is_conflicting: bool) -> tuple[str, str, str]:
    if record.faults:
        return FALSE, "RuntimeValidation", "; ".join(record.faults)
    if is_conflicting:
        return FALSE, "Conflict", "conflict with another overlay"
    return TRUE, VALIDATION_SUCCEEDED, ""


class _Touch(NamedTuple):
    """One thing that an overlay changes: the price of an offering, or a resource of a type."""

    pool: str
    type_index: int
    part: int | str


class _Corrections:
    """The corrections of all overlays so far, and what overlays of each weight have changed."""

    def __init__(self) -> None:
        self.prices: dict[_Touch, int] = {}
        self.capacity: dict[_Touch, int] = {}
        self._touched: set[tuple[int, _Touch]] = set()

    def conflicts(self, overlay: NodeOverlay, touches: Sequence[_Touch]) -> bool:
        """Say whether an overlay of equal weight changes the same; if not, note this overlay."""
        mine = {(overlay.weight, touch) for touch in touches}
        if not mine.isdisjoint(self._touched):
            return True
        self._touched |= mine
        return False


def with_overlays(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with its overlays applied to its catalog, and without overlays."""
    if not (snapshot.settings.node_overlay and snapshot.overlays):
        return snapshot
    catalog = apply_overlays(snapshot.catalog, snapshot.pools, snapshot.overlays)
    return replace(snapshot, catalog=catalog, overlays=())


def apply_overlays(
    catalog: Catalog, pools: Sequence[NodePool], overlays: Sequence[NodeOverlay]
) -> Catalog:
    """Return the corrected catalog: the heaviest overlay wins, then the last by name."""
    if not overlays:
        return catalog
    corrections = _Corrections()
    _correct(corrections, catalog, pools, overlays)
    return replace(
        catalog,
        by_pool={
            **catalog.by_pool,
            **{pool.name: _corrected(catalog, pool.name, corrections) for pool in pools},
        },
    )


def find_conflicts(
    catalog: Catalog, pools: Sequence[NodePool], overlays: Sequence[NodeOverlay]
) -> frozenset[str]:
    """Return the names of overlays that change the same as another one of equal weight."""
    return frozenset(_correct(_Corrections(), catalog, pools, overlays))


def adjusted_price(price: int, overlay: NodeOverlay) -> int:
    """Return a price corrected by an overlay, in micro-dollars from zero to `PRICE_MAX`."""
    try:
        return max(0, min(_adjusted(price, overlay), PRICE_MAX))
    except InvalidOperation:
        return price


def _adjusted(price: int, overlay: NodeOverlay) -> int:
    if overlay.price is not None:
        return _micros(Decimal(overlay.price))
    change = overlay.price_adjustment or "+0"
    if change.endswith("%"):
        factor = 1 + Decimal(change[:-1]) / 100
        return int((price * factor).to_integral_value())
    if change[0] in "+-":
        return price + _micros(Decimal(change))
    return _micros(Decimal(change))


def _correct(
    corrections: _Corrections,
    catalog: Catalog,
    pools: Sequence[NodePool],
    overlays: Sequence[NodeOverlay],
) -> list[str]:
    """Note the corrections of overlays, heaviest first; return the names of conflicting ones."""
    conflicts = []
    by_name = sorted(overlays, key=lambda each: each.name, reverse=True)
    for overlay in sorted(by_name, key=lambda each: -each.weight):
        touches = [
            touch
            for pool in pools
            for touch in _touches(overlay, pool, catalog.types_for(pool.name), catalog.well_known)
        ]
        if corrections.conflicts(overlay, touches):
            conflicts.append(overlay.name)
        else:
            _note(corrections, overlay, touches, catalog)
    return conflicts


def _touches(
    overlay: NodeOverlay, pool: NodePool, types: Sequence[InstanceType], well_known: frozenset[str]
) -> Iterator[_Touch]:
    wanted = collect(overlay.requirements)
    own = merge(from_labels(pool.labels), {NODE_POOL: one_of(NODE_POOL, pool.name)})
    changes_price = overlay.price is not None or overlay.price_adjustment is not None
    for type_index, each in enumerate(types):
        if why_incompatible(merge(own, each.requirements), wanted) is not None:
            continue
        matching = [
            index
            for index, offering in enumerate(each.offerings)
            if _matches(offering, wanted, well_known)
        ]
        if matching and changes_price:
            yield from (_Touch(pool.name, type_index, index) for index in matching)
        if matching:
            yield from (_Touch(pool.name, type_index, resource) for resource in overlay.capacity)


def _matches(
    offering: Offering, wanted: dict[str, Requirement], well_known: frozenset[str]
) -> bool:
    return why_incompatible(wanted, offering.requirements, well_known) is None


def _note(
    corrections: _Corrections, overlay: NodeOverlay, touches: Sequence[_Touch], catalog: Catalog
) -> None:
    for touch in touches:
        if isinstance(touch.part, str):
            amount = overlay.capacity[touch.part]
            corrections.capacity.setdefault(touch, amount)
        else:
            offering = catalog.types_for(touch.pool)[touch.type_index].offerings[touch.part]
            price = adjusted_price(offering.price, overlay)
            corrections.prices.setdefault(touch, price)


def _corrected(catalog: Catalog, pool: str, corrections: _Corrections) -> tuple[InstanceType, ...]:
    prices: dict[int, dict[int, int]] = {}
    for (where, type_index, part), price in corrections.prices.items():
        if where == pool and isinstance(part, int):
            prices.setdefault(type_index, {})[part] = price
    capacity: dict[int, dict[str, int]] = {}
    for (where, type_index, part), amount in corrections.capacity.items():
        if where == pool and isinstance(part, str):
            capacity.setdefault(type_index, {})[part] = amount
    types = list(catalog.types_for(pool))
    # Differs: a NodeOverlay that changes the price of an offering with capacity or overhead
    # overrides: Karpenter loses the overrides; Karpy keeps them.
    for type_index, changes in prices.items():
        offerings = list(types[type_index].offerings)
        for index, price in changes.items():
            offerings[index] = replace(offerings[index], price=price)
        types[type_index] = replace(
            types[type_index], offerings=tuple(offerings), is_price_overlaid=True
        )
    for type_index, extra in capacity.items():
        types[type_index] = replace(
            types[type_index],
            capacity={**types[type_index].capacity, **extra},
            is_capacity_overlaid=True,
        )
    return tuple(types) if prices or capacity else catalog.types_for(pool)


def _micros(dollars: Decimal) -> int:
    return int((dollars * MICROS_PER_DOLLAR).to_integral_value())
