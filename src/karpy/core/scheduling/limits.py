"""What is left of NodePool limits and capacity reservations during a decision."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from karpy.core.scheduling.instancetypes import TypeTable
from karpy.core.scheduling.signatures import Signatures
from karpy.core.scheduling.templates import Template
from karpy.model.nodes import Node
from karpy.model.resources import NODES
from karpy.model.settings import ReservedMode


class Limits:
    """What is left of the limits of each pool; a claim counts with its largest possible type."""

    def __init__(
        self, templates: Sequence[Template], nodes: Iterable[Node], table: TypeTable, pods: int
    ) -> None:
        self._table = table
        self._within: dict[str, int] = {}
        self._left: dict[str, dict[str, int]] = {
            template.name: dict(template.pool.limits)
            for template in templates
            if template.pool.limits
        }
        for node in nodes:
            left = self._left.get(node.pool) if self._left and not node.is_deleting else None
            if left is not None:
                for resource in left:
                    left[resource] -= 1 if resource == NODES else node.capacity.get(resource, 0)

        for template in templates:
            self._drop_if_out_of_reach(template, pods)
        self._all_left = {pool: dict(left) for pool, left in self._left.items()}

    def reset(self, gone: Iterable[Node] = ()) -> None:
        """Reset the limits to the start of the decision, and free what some nodes use."""
        self._within.clear()
        self._left = {pool: dict(left) for pool, left in self._all_left.items()}
        for node in gone:
            left = self._left.get(node.pool)
            for resource in left or ():
                assert left is not None
                left[resource] += 1 if resource == NODES else node.capacity.get(resource, 0)

    def _drop_if_out_of_reach(self, template: Template, pods: int) -> None:
        """Ignore limits that one node of the largest type for each pod would not exhaust."""
        left = self._left.get(template.name, {})
        if all(amount >= (pods + 1) * self._largest(resource) for resource, amount in left.items()):
            self._left.pop(template.name, None)

    def _largest(self, resource: str) -> int:
        if resource == NODES:
            return 1
        if self._table.is_split:
            return self._table.capacity(resource).values[-1]
        return max(each.capacity.get(resource, 0) for each in self._table.types)

    def left(self, pool: str) -> Mapping[str, int] | None:
        """Return what is left of the limits of a pool; None if no limit can be exhausted."""
        return self._left.get(pool)

    def has_node_left(self, pool: str) -> bool:
        left = self._left.get(pool)
        return left is None or left.get(NODES, 1) > 0

    def types_within(self, pool: str) -> int:
        """Return the types that a new claim may have, as bits: -1 for all, 0 for none."""
        if pool not in self._left:
            return -1
        mask = self._within.get(pool)
        if mask is None:
            mask = -1 if self.has_node_left(pool) else 0
            for resource, amount in self._left[pool].items():
                if resource != NODES:
                    mask &= self._table.capacity(resource).below(amount)
            self._within[pool] = mask
        return mask

    def spend(self, pool: str, types: int) -> None:
        """Subtract a new claim from the limits, with the largest of its types."""
        left = self._left.get(pool)
        if left is None:
            return
        self._within.pop(pool, None)
        # Differs: a limit on `nodes`: Karpenter does not count the NodeClaims of the same decision
        # and exceeds the limit; Karpy counts them at once.
        for resource in left:
            left[resource] -= (
                1 if resource == NODES else self._table.capacity(resource).largest(types)
            )


class ReservationRefusal(Enum):
    """Why reservations exclude a claim."""

    WAIT = "reservations are taken for now"
    FULL = "reservations are full, and nothing else is on offer"


class Reservations:
    """What is left of each reservation, and which reservations a claim holds."""

    def __init__(self, table: TypeTable, mode: ReservedMode, *, is_enabled: bool) -> None:
        self.is_active = is_enabled and table.has_reserved
        self.version = 0
        self._is_strict = mode is ReservedMode.STRICT
        self._left: dict[str, int] = {}
        if self.is_active:
            for offering in table.reserved():
                known = self._left.get(offering.reservation_id)
                capacity = offering.reservation_capacity
                self._left[offering.reservation_id] = (
                    capacity if known is None else min(known, capacity)
                )

        self._all_left = dict(self._left)

    def reset(self, mode: ReservedMode) -> None:
        """Release all reservations, and set the mode."""
        self._is_strict = mode is ReservedMode.STRICT
        self._left = dict(self._all_left)

    def offer(
        self, signatures: Signatures, signature: int, types: int, held: frozenset[str]
    ) -> frozenset[str] | ReservationRefusal:
        """Return the reservations that a claim of some types holds, or why it is excluded."""
        taken: set[str] = set()
        has_capacity = is_full = has_other = False
        for market in signatures.markets[signature]:
            if not market.reserved:
                has_other = has_other or bool(market.available & types)
                continue
            for bit, offering in market.reserved:
                if not types >> bit & 1:
                    continue
                if offering.reservation_capacity <= 0:
                    is_full = True
                    continue
                has_capacity = True
                name = offering.reservation_id
                if name in held or self._left[name] > 0:
                    taken.add(name)
        if self._is_strict and has_capacity and not taken:
            return ReservationRefusal.WAIT
        if is_full and not has_capacity and not has_other:
            return ReservationRefusal.WAIT if self._is_strict else ReservationRefusal.FULL
        if self._is_strict and held and not taken:
            return ReservationRefusal.WAIT
        return frozenset(taken)

    def hold(self, before: frozenset[str], after: frozenset[str]) -> None:
        """Take the reservations that a claim newly holds, and release those it no longer holds."""
        for name in after - before:
            self._left[name] -= 1
        for name in before - after:
            self._left[name] += 1
            self.version += 1
