"""
What NodePools can launch, NodeOverlays applied, and which machines a launch may become.

A launch names requirements and instance types. The cloud picks one of the types and one of its
launchable offerings that the requirements allow. Each possible pick is a *machine* here; a plan is
correct only if it is correct for all of them.

The node of a launch has a label for each key that the requirements define, with a value that they
allow, and a label for each key that only the type or the offering defines. A negative requirement
(NotIn, DoesNotExist) sets no label.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.check.constraints import (
    Alternatives,
    Domains,
    as_domains,
    daemon,
    holds_surely,
    is_surely_in,
    join_domains,
    may_be_in,
    tolerates,
)
from karpy.model.constraints import NodeTerm
from karpy.model.instances import MICROS_PER_DOLLAR, InstanceType, Offering, allocatable
from karpy.model.labels import HOSTNAME, INITIALIZED, INSTANCE_TYPE, NODE_POOL, REGISTERED
from karpy.model.pods import HostPort
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.requirements import (
    Requirement,
    Requirements,
    collect,
    from_labels,
    merge,
    one_of,
    why_disjoint,
    why_incompatible,
)
from karpy.model.resources import Resources, add, fits
from karpy.model.snapshot import Snapshot

_NODE_LABELS: Final = {
    HOSTNAME: one_of(HOSTNAME, "(a name no node has yet)"),
    REGISTERED: one_of(REGISTERED, "true"),
    INITIALIZED: one_of(INITIALIZED, "true"),
}
"""Labels that every node of a NodePool has when pods can be bound to it."""

_Daemons: TypeAlias = tuple[int, ...]
"""DaemonSets by their index in the snapshot."""

_PERCENT: Final = 100

Target: TypeAlias = tuple[str, str, int | str]
"""What an overlay changes: NodePool, type, and the index of an offering or a resource name."""
Overlaid: TypeAlias = dict[Target, list[NodeOverlay]]
"""The overlays of each target, the effective one first."""


class PossibleMachine(Struct, frozen=True, gc=False):
    """An instance type with one of its offerings, as the cloud may pick it for a launch."""

    instance_type: InstanceType
    offering: Offering
    granted: Requirements
    """The requirements of the NodePool and the launch."""

    def values(self, key: str) -> Requirement | None:
        """Return the possible values of a label of the node; None if it has no such label."""
        if key == INSTANCE_TYPE:
            return one_of(key, self.instance_type.name)
        sides = (self.granted, self.instance_type.requirements, self.offering.requirements)
        found = collect(side[key] for side in sides if key in side).get(key)
        return None if found is None or found.is_negative else found

    @property
    def capacity(self) -> Resources:
        return {**self.instance_type.capacity, **self.offering.capacity_override}

    @property
    def allocatable(self) -> Resources:
        overhead = {**self.instance_type.overhead, **self.offering.overhead_override}
        return allocatable(self.capacity, overhead)


class Room(Struct, frozen=True, gc=False):
    """The allocatable resources of a machine, and what its daemons use of them."""

    allocatable: Resources
    daemons: tuple[int, ...]
    """DaemonSets that may run there, by their index in the snapshot."""
    daemon_requests: Resources
    daemon_ports: tuple[HostPort, ...]


class LowestPrice(Struct, frozen=True, gc=False):
    """The lowest price of some machines, and the offerings with that price."""

    price: int
    zones: frozenset[tuple[str, str]]
    """Zone and capacity type."""


def find_lowest_price(machines: Sequence[PossibleMachine]) -> LowestPrice:
    """Return the lowest price of at least one machine."""
    price = min(each.offering.price for each in machines)
    cheapest = [each.offering for each in machines if each.offering.price == price]
    return LowestPrice(price, frozenset((each.zone, each.capacity_type) for each in cheapest))


class Stock:
    """The machines of a NodePool under given requirements; launches with equal ones share it."""

    def __init__(self, pool: NodePool, granted: Requirements, market: "PoolCatalog") -> None:
        self.pool = pool
        self.granted = granted
        self.types = market.types[pool.name]
        self._market = market
        self._machines: dict[str, tuple[PossibleMachine, ...]] = {}
        self._rooms: dict[str, tuple[Room, ...]] = {}
        self._lowest_prices: dict[str, LowestPrice] = {}
        self._lacking: dict[Alternatives, frozenset[str]] = {}
        self._domains: dict[tuple[str, str], Domains] = {}
        self._most: dict[tuple[str, str], int] = {}

    def machines(self, name: str) -> tuple[PossibleMachine, ...]:
        """Return the machines of a type; none if it is excluded or not launchable."""
        if name not in self._machines:
            self._machines[name] = tuple(self._find_machines(self.types.get(name)))
        return self._machines[name]

    def has_offering(self, name: str) -> bool:
        """Say whether a type is allowed and available, even if only as a full reservation."""
        instance_type = self.types[name]
        return not why_disjoint(self.granted, instance_type.requirements) and any(
            offering.is_available
            and not why_incompatible(self.granted, offering.requirements, self._market.well_known)
            for offering in instance_type.offerings
        )

    def _find_machines(self, instance_type: InstanceType | None) -> list[PossibleMachine]:
        if instance_type is None or why_disjoint(self.granted, instance_type.requirements):
            return []
        return [
            PossibleMachine(instance_type, offering, self.granted)
            for offering in instance_type.offerings
            if offering.is_launchable
            and not why_incompatible(self.granted, offering.requirements, self._market.well_known)
        ]

    def rooms(self, name: str) -> tuple[Room, ...]:
        """Return the distinct rooms of the machines of a type."""
        if name not in self._rooms:
            found: dict[tuple[frozenset[tuple[str, int]], _Daemons], Room] = {}
            for machine in self.machines(name):
                have = machine.allocatable
                daemons = self._market.daemons_on(machine, self.pool)
                key = (frozenset(have.items()), daemons)
                if key not in found:
                    found[key] = Room(have, daemons, *self._market.needs(daemons))
            self._rooms[name] = tuple(found.values())
        return self._rooms[name]

    def daemons_expected(self, name: str) -> Resources:
        """Return the requests of all daemons that may run on a type, in any zone."""
        return self._market.needs(self._market.daemons_expected(self.pool, self.types[name]))[0]

    def lowest_price(self, name: str) -> LowestPrice:
        """Return the lowest price of a type."""
        if name not in self._lowest_prices:
            self._lowest_prices[name] = find_lowest_price(self.machines(name))
        return self._lowest_prices[name]

    def is_mixed(self, name: str) -> bool:
        """Say whether the machines of a type differ in size or in daemons."""
        return len(self.rooms(name)) > 1

    def lacking(self, alternatives: Alternatives) -> frozenset[str]:
        """Return the types with a machine that meets none of the alternatives."""
        if alternatives not in self._lacking:
            is_promised = any(self._promises(term) for term in alternatives)
            suspects = () if is_promised else tuple(self.types)
            self._lacking[alternatives] = frozenset(
                name
                for name in suspects
                if not all(holds_surely(alternatives, each.values) for each in self.machines(name))
            )
        return self._lacking[alternatives]

    def _promises(self, term: NodeTerm) -> bool:
        """Say whether the requirements alone meet a term: types and offerings only narrow them."""
        return (
            bool(term.expressions)
            and not term.has_match_fields
            and all(self._promises_value(required) for required in term.expressions)
        )

    def _promises_value(self, required: Requirement) -> bool:
        have = self.granted.get(required.key)
        # NotIn also allows a type without the label.
        if have is None or (have.is_negative and not required.is_negative):
            return False
        return is_surely_in(have, required)

    def leaves_open(self, alternatives: Alternatives) -> bool:
        """Say whether the requirements allow some alternative, whatever is offered."""
        return any(
            bool(term.expressions)
            and not term.has_match_fields
            and all(self._leaves_open(required) for required in term.expressions)
            for term in alternatives
        )

    def _leaves_open(self, required: Requirement) -> bool:
        have = self.granted.get(required.key)
        if required.is_negative and (have is None or have.is_negative):
            return True
        if required.key in self._market.well_known:
            return have is None or have.intersects(required)
        return may_be_in(None if have is None or have.is_negative else have, required)

    def most(self, resource: str, name: str) -> int:
        """Return how much of a resource the largest machine of a type has."""
        if (resource, name) not in self._most:
            amounts = [machine.capacity.get(resource, 0) for machine in self.machines(name)]
            self._most[resource, name] = max(amounts, default=0)
        return self._most[resource, name]

    def domains(self, key: str, names: Sequence[str]) -> Domains:
        """Return the domains of a node that may become any machine of these types."""
        stated = as_domains(self.granted.get(key))
        if stated.settled is not None:
            return stated
        return join_domains([self._domains_of_type(key, name) for name in names])

    def _domains_of_type(self, key: str, name: str) -> Domains:
        if (key, name) not in self._domains:
            values = [as_domains(machine.values(key)) for machine in self.machines(name)]
            self._domains[key, name] = join_domains(values)
        return self._domains[key, name]


class PoolCatalog:
    """The NodePools of a snapshot, their instance types, and the daemons on their nodes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.well_known = snapshot.catalog.well_known
        self.pools = {pool.name: pool for pool in snapshot.pools}
        self.types: dict[str, dict[str, InstanceType]] = {
            pool: {each.name: each for each in types}
            for pool, types in overlaid_types(snapshot).items()
        }
        self.daemons = [daemon(each.pod) for each in snapshot.daemons]
        self._needs: dict[_Daemons, tuple[Resources, tuple[HostPort, ...]]] = {}
        self._expected: dict[tuple[str, str], _Daemons] = {}
        self._hosted: dict[str, frozenset[int]] = {}
        self._stocks: dict[tuple[str, frozenset[Requirement]], Stock] = {}

    @cached_property
    def pools_ready(self) -> tuple[NodePool, ...]:
        """The NodePools that may launch nodes, in the order in which they are tried."""
        by_name = sorted(self.pools.values(), key=lambda pool: pool.name, reverse=True)
        by_weight = sorted(by_name, key=lambda pool: pool.weight, reverse=True)
        return tuple(pool for pool in by_weight if may_launch(pool))

    @cached_property
    def pools_with_offerings(self) -> tuple[NodePool, ...]:
        """The NodePools that may launch nodes and have an available offering."""
        return tuple(pool for pool in self.pools_ready if self._has_offering(pool))

    def _has_offering(self, pool: NodePool) -> bool:
        """Say whether a NodePool has an available offering within its own requirements."""
        stock = self.stock(pool, {})
        return any(stock.has_offering(name) for name in stock.types)

    def stock(self, pool: NodePool, requirements: Requirements) -> Stock:
        """Return the machines for a launch; its requirement on the instance type is ignored."""
        parts = {key: each for key, each in requirements.items() if key != INSTANCE_TYPE}
        signature = (pool.name, frozenset(parts.values()))
        if signature not in self._stocks:
            granted = {**merge(template_of(pool), parts), **_NODE_LABELS}
            self._stocks[signature] = Stock(pool, granted, self)
        return self._stocks[signature]

    def daemons_on(self, machine: PossibleMachine, pool: NodePool) -> _Daemons:
        """Return the DaemonSets that may run a pod on a machine."""
        hosted = self._hosted_by(pool)
        return tuple(
            number
            for number, each in enumerate(self.daemons)
            if number in hosted and each.may_run(machine.values, pool.taints)
        )

    def daemons_expected(self, pool: NodePool, instance_type: InstanceType) -> _Daemons:
        """Return the DaemonSets that some node of a NodePool and type may run, in any zone."""
        hosted = self._hosted_by(pool)
        return tuple(each for each in self._all_expected(pool, instance_type) if each in hosted)

    def _all_expected(self, pool: NodePool, instance_type: InstanceType) -> _Daemons:
        if (pool.name, instance_type.name) not in self._expected:
            template = {**template_of(pool), **_NODE_LABELS}
            self._expected[pool.name, instance_type.name] = tuple(
                number
                for number, each in enumerate(self.daemons)
                if tolerates(each.pod.rules.tolerations, pool.taints)
                and each.is_expected(template, instance_type.requirements, self.well_known)
            )
        return self._expected[pool.name, instance_type.name]

    def _hosted_by(self, pool: NodePool) -> frozenset[int]:
        """Return the DaemonSets for which some machine has room, beside those of higher rank."""
        if pool.name not in self._hosted:
            stock = self.stock(pool, {})
            names = [name for name in stock.types if stock.machines(name)]
            expected = {name: {*self._all_expected(pool, stock.types[name])} for name in names}
            hosted: dict[str, _Daemons] = dict.fromkeys(names, ())
            for number in sorted(range(len(self.daemons)), key=lambda at: self.daemons[at].rank):
                more = {name: (*hosted[name], number) for name in names if number in expected[name]}
                if any(
                    fits(self.needs(daemons)[0], machine.allocatable)
                    for name, daemons in more.items()
                    for machine in stock.machines(name)
                ):
                    hosted |= more
            self._hosted[pool.name] = frozenset(each for all_ in hosted.values() for each in all_)
        return self._hosted[pool.name]

    def needs(self, daemons: _Daemons) -> tuple[Resources, tuple[HostPort, ...]]:
        """Return what daemons request together, and their host ports."""
        if daemons not in self._needs:
            pods = [self.daemons[number].pod for number in daemons]
            ports = tuple(port for pod in pods for port in pod.rules.ports)
            self._needs[daemons] = (add(*(pod.requests for pod in pods)), ports)
        return self._needs[daemons]


def may_launch(pool: NodePool) -> bool:
    """Say whether decisions may launch nodes from a NodePool."""
    return pool.is_ready and not pool.is_static and not pool.is_deleting


def template_of(pool: NodePool) -> Requirements:
    """Return the requirements and labels of every node of a NodePool."""
    labels = {NODE_POOL: pool.name}
    reference = pool.node_class
    if reference.group and reference.kind and reference.name:
        labels[f"{reference.group}/{reference.kind.lower()}"] = reference.name
    return merge(collect(pool.requirements), from_labels(pool.labels), from_labels(labels))


def overlaid_types(snapshot: Snapshot) -> Mapping[str, tuple[InstanceType, ...]]:
    """Return the instance types of each NodePool, overlays applied if the settings say so."""
    types = {pool.name: snapshot.catalog.types_for(pool.name) for pool in snapshot.pools}
    if not snapshot.settings.node_overlay or not snapshot.overlays:
        return types
    overlaid = _overlays_by_target(snapshot)
    resources = sorted({name for overlay in snapshot.overlays for name in overlay.capacity})
    return {
        pool: tuple(_with_overlays(pool, each, overlaid, resources) for each in own)
        for pool, own in types.items()
    }


def _overlays_by_target(snapshot: Snapshot) -> Overlaid:
    """Return the overlays by target, heaviest first, then by name descending, without conflicts."""
    overlaid: Overlaid = {}
    by_name = sorted(snapshot.overlays, key=lambda each: each.name, reverse=True)
    for overlay in sorted(by_name, key=lambda each: each.weight, reverse=True):
        targets = list(_targets(overlay, snapshot))
        rivals = (rival for target in targets for rival in overlaid.get(target, ()))
        if all(rival.weight != overlay.weight for rival in rivals):
            for target in targets:
                overlaid.setdefault(target, []).append(overlay)
    return overlaid


def _targets(overlay: NodeOverlay, snapshot: Snapshot) -> Iterator[Target]:
    required = collect(overlay.requirements)
    changes_price = overlay.price is not None or overlay.price_adjustment is not None
    for pool in snapshot.pools:
        for each in snapshot.catalog.types_for(pool.name):
            offerings = _matching_offerings(required, pool, each, snapshot.catalog.well_known)
            if offerings and changes_price:
                yield from ((pool.name, each.name, index) for index in offerings)
            if offerings:
                yield from ((pool.name, each.name, resource) for resource in overlay.capacity)


def _matching_offerings(
    required: Requirements, pool: NodePool, instance_type: InstanceType, well_known: frozenset[str]
) -> list[int]:
    have = merge(
        {NODE_POOL: one_of(NODE_POOL, pool.name)},
        from_labels(pool.labels),
        instance_type.requirements,
    )
    if why_incompatible(have, required) is not None:
        return []
    return [
        index
        for index, offering in enumerate(instance_type.offerings)
        if why_incompatible(required, offering.requirements, well_known) is None
    ]


def _with_overlays(
    pool: str, instance_type: InstanceType, overlaid: Overlaid, resources: Sequence[str]
) -> InstanceType:
    offerings = list(instance_type.offerings)
    for index, offering in enumerate(offerings):
        if winners := overlaid.get((pool, instance_type.name, index)):
            offerings[index] = replace(offering, price=new_price(offering.price, winners[0]))
    capacity = {
        name: winners[0].capacity[name]
        for name in resources
        if (winners := overlaid.get((pool, instance_type.name, name)))
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
    """Return a price in micro-dollars after an overlay; never below zero."""
    if overlay.price is not None:
        return round(Fraction(overlay.price) * MICROS_PER_DOLLAR)
    change = overlay.price_adjustment or "+0"
    if change.endswith("%"):
        return max(0, round(price * (1 + Fraction(change[:-1]) / _PERCENT)))
    return max(0, round(price + Fraction(change) * MICROS_PER_DOLLAR))
