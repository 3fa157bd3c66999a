"""What nodes cost, and what their replacements would, going by the offerings of the catalog."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from karpy.model.instances import Catalog, InstanceType, Offering
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, RESERVED, SPOT, ZONE
from karpy.model.nodes import Node
from karpy.model.requirements import Requirements, merge, one_of, why_incompatible
from karpy.model.verdicts import Launch, LaunchOption

_LAUNCH_ORDER: Final = (RESERVED, SPOT, ON_DEMAND)
"""A type is launched with the first of these capacity types that it is sold with."""


class Prices:
    """The prices of a catalog, found by type."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._types: dict[str, dict[str, InstanceType]] = {}
        self._known: dict[tuple[str, ...], int] = {}

    def type_of(self, node: Node) -> InstanceType | None:
        """Return the instance type of a node; None if its NodePool cannot have it."""
        return self._types_of(node.pool).get(node.labels.get(INSTANCE_TYPE, ""))

    def of(self, node: Node) -> int:
        """Return micro-dollars per hour of a node; 0 if that is not known."""
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
        Keep of a launch the types that cost less than a price wherever they are launched.

        `requirements` take the place of those of the launch. Returns None if no type is left, or
        too few kinds of them for minValues.
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
        """Return the lowest price that some type of a launch costs wherever it is launched."""
        types = self._types_of(launch.pool)
        worst = (
            self._worst(types[each.instance_type], launch.requirements) for each in launch.options
        )
        return min((price for price in worst if price is not None), default=None)

    def lacks_variety(self, launch: Launch, options: Sequence[LaunchOption]) -> bool:
        """Say whether options offer fewer values of a label than minValues of a launch ask for."""
        types = self._types_of(launch.pool)
        for key, wanted in launch.requirements.items():
            if wanted.min_values is None:
                continue
            values: set[str] = set()
            for option in options:
                said = types[option.instance_type].requirements.get(key)
                values.update(each for each in (said.values if said else ()) if each in wanted)
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
        """Return the highest price of the capacity type that would be launched, if any can be."""
        allowed = requirements.get(CAPACITY_TYPE)
        for capacity_type in _LAUNCH_ORDER:
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
