"""
The cost of moving pods, in points, and the prices of nodes and replacements, in money.

Points are exact integers, so that the order of nodes never depends on rounding; an ordinary pod
costs `POD`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

from msgspec.structs import replace

from karpy.model.instances import Catalog, InstanceType, Offering
from karpy.model.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    LAUNCH_ORDER,
    ZONE,
)
from karpy.model.nodes import Node
from karpy.model.pods import Pod, PodDisruption
from karpy.model.records import ClaimRecord
from karpy.model.requirements import Requirements, merge, one_of, why_incompatible
from karpy.model.verdicts import Launch, LaunchOption

POD: Final = 2**27
"""The cost of an ordinary pod, and of a node in addition to its pods."""
_PER_PRIORITY: Final = 4
_MOST: Final = 10 * POD
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_INT32: Final = range(-(2**31), 2**31)


class Costs:
    """The cost of moving pods, computed once for pods with equal disruption fields."""

    def __init__(self, *, reads_deletion_cost: bool = True) -> None:
        """Take whether `pod-deletion-cost` counts: not if Karpy writes this annotation itself."""
        self._reads_deletion_cost = reads_deletion_cost
        self._known: dict[int, tuple[PodDisruption, int]] = {}

    def of(self, pod: Pod) -> int:
        """Return the cost of moving a pod, from its annotation and its priority, within bounds."""
        disruption = pod.disruption
        known = self._known.get(id(disruption))
        if known is None:
            # Keep the value beside its id, so that no other value gets the same id.
            known = self._known[id(disruption)] = disruption, self._cost(disruption)
        return known[1]

    def of_moving(self, pods: Iterable[Pod]) -> int:
        """Return the cost of moving the pods of a node; the node itself counts as one pod."""
        return POD + sum(max(0, self.of(each)) for each in pods)

    def of_disruption(self, pods: Iterable[Pod], claim: ClaimRecord, now: datetime) -> Fraction:
        """Return the cost of all pods of a node, times its remaining share of expireAfter."""
        return sum(self.of(each) for each in pods) * lifetime_remaining(claim, now)

    def _cost(self, disruption: PodDisruption) -> int:
        text = disruption.disruption_cost
        if text is None and self._reads_deletion_cost:
            text = disruption.deletion_cost
        cost = POD + read_cost(text) + _PER_PRIORITY * disruption.priority
        return max(-_MOST, min(cost, _MOST))


def lifetime_remaining(claim: ClaimRecord, now: datetime) -> Fraction:
    """Return the share of its expireAfter that a node still has left, from 0 to 1."""
    if claim.expire_after is None or claim.meta.created is None:
        return Fraction(1)
    if not claim.expire_after:
        return Fraction(0)
    left = claim.expire_after - (now - claim.meta.created)
    share = Fraction(_micros(left), _micros(claim.expire_after))
    return max(Fraction(0), min(share, Fraction(1)))


def read_cost(text: str | None) -> int:
    """Return the cost in an annotation, an `int32`; any other text counts as 0."""
    if text is None or not _INTEGER.fullmatch(text):
        return 0
    number = int(text)
    return number if number in _INT32 else 0


def _micros(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


class Prices:
    """The prices of nodes and launches in a catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._types: dict[str, dict[str, InstanceType]] = {}
        self._known: dict[tuple[str, ...], int] = {}

    def type_of(self, node: Node) -> InstanceType | None:
        """Return the instance type of a node; None if its NodePool cannot launch that type."""
        return self._types_of(node.pool).get(node.labels.get(INSTANCE_TYPE, ""))

    def of(self, node: Node) -> int:
        """Return the price of a node in micro-dollars per hour; 0 if it is not known."""
        labels = node.labels
        place = (labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, ""))
        key = (node.pool, labels.get(INSTANCE_TYPE, ""), *place)
        price = self._known.get(key)
        if price is None:
            price = self._known[key] = self._look_up(node, place)
        return price

    def total(self, nodes: Iterable[Node]) -> int:
        """Add up the prices of nodes."""
        return sum(self.of(each) for each in nodes)

    def cheaper(
        self, launch: Launch, price: int, requirements: Requirements | None = None
    ) -> Launch | None:
        """
        Keep the types of a launch that cost less than `price` in every zone where they may launch.

        `requirements` replace those of the launch. Returns None if no type is left, or if the types
        left do not satisfy minValues.
        """
        wanted = launch.requirements if requirements is None else requirements
        options = []
        for option in launch.options:
            type_ = self._types_of(launch.pool)[option.instance_type]
            worst = self._worst(type_, wanted)
            if worst is not None and worst < price:
                options.append(self._option(type_, wanted))
        options.sort(key=lambda each: (each.price, each.instance_type))
        kept = replace(launch, options=tuple(options), requirements=wanted)
        return kept if options and not self.lacks_variety(kept, options) else None

    def least_worst(self, launch: Launch) -> int | None:
        """Return the lowest price, over all types of a launch, of a type in its dearest zone."""
        types = self._types_of(launch.pool)
        worst = (
            self._worst(types[each.instance_type], launch.requirements) for each in launch.options
        )
        return min((price for price in worst if price is not None), default=None)

    def lacks_variety(self, launch: Launch, options: Sequence[LaunchOption]) -> bool:
        """Say whether options have fewer values of a label than minValues of a launch demand."""
        types = self._types_of(launch.pool)
        for key, wanted in launch.requirements.items():
            if wanted.min_values is None:
                continue
            values: set[str] = set()
            for option in options:
                offered = types[option.instance_type].requirements.get(key)
                values.update(
                    each for each in (offered.values if offered else ()) if each in wanted
                )
            if len(values) < wanted.min_values:
                return True
        return False

    def _look_up(self, node: Node, place: tuple[str, str]) -> int:
        type_ = self.type_of(node)
        for offering in () if type_ is None else type_.offerings:
            if (offering.zone, offering.capacity_type) == place:
                return offering.price
        return 0

    def _types_of(self, pool: str) -> dict[str, InstanceType]:
        types = self._types.get(pool)
        if types is None:
            types = {each.name: each for each in self._catalog.types_for(pool)}
            self._types[pool] = types
        return types

    def _worst(self, type_: InstanceType, requirements: Requirements) -> int | None:
        """Return the highest price of the capacity type to be launched; None if none is on sale."""
        allowed = requirements.get(CAPACITY_TYPE)
        for capacity_type in LAUNCH_ORDER:
            if allowed is None or capacity_type in allowed:
                only = merge(requirements, {CAPACITY_TYPE: one_of(CAPACITY_TYPE, capacity_type)})
                prices = [each.price for each in self._launchable(type_, only)]
                if prices:
                    return max(prices)
        return None

    def _option(self, type_: InstanceType, requirements: Requirements) -> LaunchOption:
        best = min(
            self._launchable(type_, requirements),
            key=lambda each: (each.price, each.zone, each.capacity_type),
        )
        return LaunchOption(type_.name, best.price, best.zone, best.capacity_type)

    def _launchable(self, type_: InstanceType, requirements: Requirements) -> Iterator[Offering]:
        well_known = self._catalog.well_known
        for each in type_.offerings:
            if (
                each.is_launchable
                and why_incompatible(requirements, each.requirements, well_known) is None
            ):
                yield each
