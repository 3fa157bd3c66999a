"""Turns claims into launches, with launch options cheapest first."""

from collections.abc import Sequence
from itertools import compress, repeat
from operator import itemgetter
from typing import TypeAlias

from karpy.core.scheduling.instancetypes import OfferingGroup, dense_members, flags
from karpy.core.scheduling.plannednodes import PlannedNodes
from karpy.core.scheduling.signatures import NOT_SOLD, Signatures, reached, relax
from karpy.core.scheduling.templates import SIMULATED, Template
from karpy.model.instances import LAUNCH_OPTIONS_MAX
from karpy.model.labels import CAPACITY_TYPE, RESERVED
from karpy.model.requirements import Requirement, Requirements, collect, one_of
from karpy.model.resources import Resources, add
from karpy.model.verdicts import Launch, LaunchOption


class _Ranking:
    """The types of a template sold in some markets, cheapest first, each with its best offering."""

    def __init__(
        self, markets: Sequence[OfferingGroup], types: Sequence[int], names: Sequence[str]
    ) -> None:
        by_place = sorted(markets, key=lambda market: (market.zone, market.capacity_type))
        columns = [map(market.prices.get, types, repeat(NOT_SOLD)) for market in by_place]
        ranked: list[tuple[int, str, int, int]] = []
        for bit, prices in zip(types, zip(*columns, strict=True), strict=False):
            price = min(prices)
            if price < NOT_SOLD:
                ranked.append((price, names[bit], prices.index(price), bit))
        ranked.sort()
        self.bits = [bit for _, _, _, bit in ranked]
        self.options = [
            LaunchOption(name, price, by_place[place].zone, by_place[place].capacity_type)
            for price, name, place, _ in ranked
        ]
        self._pick = itemgetter(*self.bits) if len(self.bits) > 1 else None

    def among(self, types: int, size: int) -> tuple[LaunchOption, ...]:
        """Return the launch options of some types, cheapest first."""
        spelled = flags(types, size)
        chosen = self._pick(spelled) if self._pick else [spelled[bit] for bit in self.bits]
        return tuple(compress(self.options, chosen))


_LaunchParts: TypeAlias = tuple[tuple[LaunchOption, ...], Requirements, Resources, bool]
"""What equal claims share: options, requirements, daemon overhead, whether minValues are unmet."""


class Launcher:
    """Turns claims into launches."""

    def __init__(
        self, planned: PlannedNodes, signatures: Signatures, reservation_label: str
    ) -> None:
        self._planned = planned
        self._signatures = signatures
        self._reservation_label = reservation_label
        self._names = [each.name for each in signatures.table.types]
        self._rankings: dict[tuple[int, ...], _Ranking] = {}
        self._bits: dict[int, list[int]] = {}
        self._stripped: dict[int, Requirements] = {}
        self._parts: dict[tuple[int, int, int, bool], _LaunchParts] = {}

    def launch(
        self, node: int, *, is_strict: bool, price_below: int | None = None
    ) -> Launch | None:
        """
        Return the launch of a claim; None if its options do not reach minValues.

        With `price_below` the options are types that cost less wherever they are launched; None if
        there is no such type.
        """
        planned = self._planned
        template = planned.templates[node]
        assert template is not None
        held = planned.held[node]
        signature = self._signature(node) if held else planned.signature[node]
        types = planned.types[node]
        if price_below is not None:
            types = self._signatures.cheaper_at_worst(price_below, signature, types)
            if not types or reached(self._signatures, signature, types):
                return None
        kind = (template.index, signature, types, bool(held))
        parts = self._parts.get(kind)
        if parts is None:
            parts = self._make_parts(template, signature, kind[2], is_held=kind[3])
            self._parts[kind] = parts
        options, requirements, overhead, is_lacking = parts
        if not options or (is_strict and is_lacking):
            return None
        return Launch(
            f"{template.name}-{node - planned.existing.count}",
            template.name,
            tuple([f"{pod.namespace}/{pod.name}" for pod in planned.pods[node]]),
            requirements,
            add(planned.used[node], overhead) if overhead else planned.used[node],
            options,
            tuple(sorted(held)) if held else (),
            planned.relaxed[node] or is_lacking,
        )

    def _make_parts(
        self, template: Template, signature: int, types: int, *, is_held: bool
    ) -> _LaunchParts:
        options = self._options(signature, types, template)[:LAUNCH_OPTIONS_MAX]
        lacking = {} if is_held else self._lacking(signature, types, options)
        if lacking:
            signature = relax(self._signatures, signature, lacking)
        requirements = self._requirements(signature)
        return options, requirements, template.least_overhead(types), bool(lacking)

    def _lacking(
        self, signature: int, types: int, options: tuple[LaunchOption, ...]
    ) -> dict[str, int]:
        """Return, for each key whose minValues options do not reach, how many values they have."""
        # A type has no option if there are too many options, or if only a full reservation has it.
        if len(options) == types.bit_count() or not self._signatures.varieties[signature]:
            return {}
        kept = {option.instance_type for option in options}
        mask = sum(1 << bit for bit, name in enumerate(self._names) if name in kept)
        return reached(self._signatures, signature, mask & types)

    def _options(self, signature: int, types: int, template: Template) -> tuple[LaunchOption, ...]:
        ranking = self._ranking(signature, template)
        options = ranking.among(types, self._signatures.table.size)
        if not self._signatures.table.is_split:
            return options
        cheapest: dict[str, LaunchOption] = {}
        for option in options:
            cheapest.setdefault(option.instance_type, option)
        return tuple(cheapest.values())

    def _ranking(self, signature: int, template: Template) -> _Ranking:
        markets = self._signatures.markets[signature]
        key = (template.index, *[market.index for market in markets])
        ranking = self._rankings.get(key)
        if ranking is None:
            bits = self._bits.get(template.index)
            if bits is None:
                bits = self._bits[template.index] = dense_members(template.mask)
            ranking = self._rankings[key] = _Ranking(markets, bits, self._names)
        return ranking

    def _signature(self, node: int) -> int:
        held = self._planned.held[node]
        requirements = dict(self._signatures.requirements[self._planned.signature[node]])
        requirements[CAPACITY_TYPE] = one_of(CAPACITY_TYPE, RESERVED)
        if self._reservation_label:
            present = requirements.get(self._reservation_label)
            only = Requirement(self._reservation_label, held)
            requirements[self._reservation_label] = only if present is None else present & only
        return self._signatures.intern(requirements)

    def _requirements(self, signature: int) -> Requirements:
        found = self._stripped.get(signature)
        if found is None:
            found = self._stripped[signature] = collect(
                requirement
                for key, requirement in sorted(self._signatures.requirements[signature].items())
                if key not in SIMULATED
            )
        return found
