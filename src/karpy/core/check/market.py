"""
What NodePools can launch, NodeOverlays applied, and what a launch may turn out to be.

A launch names requirements and instance types. The cloud then picks any of the types and any of
their offerings that can be had now and that the requirements allow. Each such pick is a *machine*
here, and a plan is only right if it is right for all of them.

The requirements of a launch are a promise: the node gets a label for each key they define, with a
value they allow (custom keys are written as labels, the cloud sees to the others). Keys that only
the type or the offering defines become labels as well. A label whose values are only shunned
(NotIn, DoesNotExist) is not written at all.
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

_LATER_LABELS: Final = {
    HOSTNAME: one_of(HOSTNAME, "(a name no node has yet)"),
    REGISTERED: one_of(REGISTERED, "true"),
    INITIALIZED: one_of(INITIALIZED, "true"),
}
"""What every node of ours carries once pods can be bound to it."""

_Daemons: TypeAlias = tuple[int, ...]
"""Which DaemonSets, by their place in the snapshot."""

_PERCENT: Final = 100

Thing: TypeAlias = tuple[str, str, int | str]
"""What an overlay can touch: NodePool, type, and the index of an offering or a resource."""
Touched: TypeAlias = dict[Thing, list[NodeOverlay]]
"""The overlays that touch a thing, the one that wins first."""


class Machine(Struct, frozen=True, gc=False):
    """One pick: an instance type, bought in one zone and capacity type."""

    instance_type: InstanceType
    offering: Offering
    granted: Requirements
    """What the NodePool and the launch require."""

    def values(self, key: str) -> Requirement | None:
        """Return the values that the label of the node may have; None if there is no label."""
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
    """What a machine has in all, and what its daemons take of it."""

    allocatable: Resources
    daemons: tuple[int, ...]
    """Which DaemonSets may run there, by their place in the snapshot."""
    daemon_requests: Resources
    daemon_ports: tuple[HostPort, ...]


class Bargain(Struct, frozen=True, gc=False):
    """The lowest price of some machines, and where it is to be had."""

    price: int
    zones: frozenset[tuple[str, str]]
    """Zone and capacity type."""


def find_bargain(machines: Sequence[Machine]) -> Bargain:
    """Return the lowest price of machines; there must be one."""
    price = min(each.offering.price for each in machines)
    cheapest = [each.offering for each in machines if each.offering.price == price]
    return Bargain(price, frozenset((each.zone, each.capacity_type) for each in cheapest))


class Stock:
    """What a NodePool can deliver under certain requirements; launches that ask alike share it."""

    def __init__(self, pool: NodePool, granted: Requirements, market: "Market") -> None:
        self.pool = pool
        self.granted = granted
        self.types = market.types[pool.name]
        self._market = market
        self._machines: dict[str, tuple[Machine, ...]] = {}
        self._rooms: dict[str, tuple[Room, ...]] = {}
        self._bargains: dict[str, Bargain] = {}
        self._lacking: dict[Alternatives, frozenset[str]] = {}
        self._domains: dict[tuple[str, str], Domains] = {}
        self._most: dict[tuple[str, str], int] = {}

    def machines(self, name: str) -> tuple[Machine, ...]:
        """List the picks of one type: none if it is excluded, or cannot be had."""
        if name not in self._machines:
            self._machines[name] = tuple(self._find_machines(self.types.get(name)))
        return self._machines[name]

    def has_offering(self, name: str) -> bool:
        """Say whether a type is admitted and on sale, if only as a reservation that is full."""
        instance_type = self.types[name]
        return not why_disjoint(self.granted, instance_type.requirements) and any(
            offering.is_available
            and not why_incompatible(self.granted, offering.requirements, self._market.well_known)
            for offering in instance_type.offerings
        )

    def _find_machines(self, instance_type: InstanceType | None) -> list[Machine]:
        if instance_type is None or why_disjoint(self.granted, instance_type.requirements):
            return []
        return [
            Machine(instance_type, offering, self.granted)
            for offering in instance_type.offerings
            if offering.is_launchable
            and not why_incompatible(self.granted, offering.requirements, self._market.well_known)
        ]

    def rooms(self, name: str) -> tuple[Room, ...]:
        """List the different rooms that the machines of one type have."""
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
        """Return what daemons may request on a type, wherever it comes up."""
        return self._market.needs(self._market.daemons_expected(self.pool, self.types[name]))[0]

    def bargain(self, name: str) -> Bargain:
        """Return the lowest price of a type."""
        if name not in self._bargains:
            self._bargains[name] = find_bargain(self.machines(name))
        return self._bargains[name]

    def is_mixed(self, name: str) -> bool:
        """Say whether the machines of a type differ in size or in daemons."""
        return len(self.rooms(name)) > 1

    def lacking(self, alternatives: Alternatives) -> frozenset[str]:
        """Return the types with a machine that may meet none of the alternatives."""
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
        """Say whether the requirements alone meet it: types and offerings only narrow them."""
        return (
            bool(term.expressions)
            and not term.has_match_fields
            and all(self._promises_value(wanted) for wanted in term.expressions)
        )

    def _promises_value(self, wanted: Requirement) -> bool:
        have = self.granted.get(wanted.key)
        # A NotIn leaves room for a type that has no such label at all.
        if have is None or (have.is_negative and not wanted.is_negative):
            return False
        return is_surely_in(have, wanted)

    def leaves_open(self, alternatives: Alternatives) -> bool:
        """Say whether the requirements do not rule out some alternative, on sale or not."""
        return any(
            bool(term.expressions)
            and not term.has_match_fields
            and all(self._leaves_open(wanted) for wanted in term.expressions)
            for term in alternatives
        )

    def _leaves_open(self, wanted: Requirement) -> bool:
        have = self.granted.get(wanted.key)
        if wanted.is_negative and (have is None or have.is_negative):
            return True
        if wanted.key in self._market.well_known:
            return have is None or have.intersects(wanted)
        return may_be_in(None if have is None or have.is_negative else have, wanted)

    def most(self, resource: str, name: str) -> int:
        """Return how much of a resource the largest machine of a type has."""
        if (resource, name) not in self._most:
            amounts = [machine.capacity.get(resource, 0) for machine in self.machines(name)]
            self._most[resource, name] = max(amounts, default=0)
        return self._most[resource, name]

    def domains(self, key: str, names: Sequence[str]) -> Domains:
        """Say where a node may come up that may be any machine of these types."""
        stated = as_domains(self.granted.get(key))
        if stated.settled is not None:
            return stated
        return join_domains([self._domains_of_type(key, name) for name in names])

    def _domains_of_type(self, key: str, name: str) -> Domains:
        if (key, name) not in self._domains:
            values = [as_domains(machine.values(key)) for machine in self.machines(name)]
            self._domains[key, name] = join_domains(values)
        return self._domains[key, name]


class Market:
    """The NodePools, what they sell, and the daemons that come along."""

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
        """The NodePools that may make nodes, in the order in which they are asked."""
        by_name = sorted(self.pools.values(), key=lambda pool: pool.name, reverse=True)
        by_weight = sorted(by_name, key=lambda pool: pool.weight, reverse=True)
        return tuple(pool for pool in by_weight if may_make_nodes(pool))

    @cached_property
    def pools_in_use(self) -> tuple[NodePool, ...]:
        """The NodePools that may make nodes and have something to sell."""
        return tuple(pool for pool in self.pools_ready if self._sells(pool))

    def _sells(self, pool: NodePool) -> bool:
        """Say whether a NodePool has anything to sell that meets its own requirements."""
        stock = self.stock(pool, {})
        return any(stock.has_offering(name) for name in stock.types)

    def stock(self, pool: NodePool, requirements: Requirements) -> Stock:
        """Return what a launch may get; the types it names itself are not looked at."""
        parts = {key: each for key, each in requirements.items() if key != INSTANCE_TYPE}
        signature = (pool.name, frozenset(parts.values()))
        if signature not in self._stocks:
            granted = {**merge(template_of(pool), parts), **_LATER_LABELS}
            self._stocks[signature] = Stock(pool, granted, self)
        return self._stocks[signature]

    def daemons_on(self, machine: Machine, pool: NodePool) -> _Daemons:
        """Return the DaemonSets that may run a pod there."""
        hosted = self._hosted_by(pool)
        return tuple(
            number
            for number, each in enumerate(self.daemons)
            if number in hosted and each.may_run(machine.values, pool.taints)
        )

    def daemons_expected(self, pool: NodePool, instance_type: InstanceType) -> _Daemons:
        """Return those that some node of this NodePool and type might run, wherever it comes up."""
        hosted = self._hosted_by(pool)
        return tuple(each for each in self._all_expected(pool, instance_type) if each in hosted)

    def _all_expected(self, pool: NodePool, instance_type: InstanceType) -> _Daemons:
        if (pool.name, instance_type.name) not in self._expected:
            template = {**template_of(pool), **_LATER_LABELS}
            self._expected[pool.name, instance_type.name] = tuple(
                number
                for number, each in enumerate(self.daemons)
                if tolerates(each.pod.rules.tolerations, pool.taints)
                and each.is_expected(template, instance_type.requirements, self.well_known)
            )
        return self._expected[pool.name, instance_type.name]

    def _hosted_by(self, pool: NodePool) -> frozenset[int]:
        """Return the DaemonSets that some machine has room for, beside those before them."""
        if pool.name not in self._hosted:
            stock = self.stock(pool, {})
            names = [name for name in stock.types if stock.machines(name)]
            expected = {name: {*self._all_expected(pool, stock.types[name])} for name in names}
            there: dict[str, _Daemons] = dict.fromkeys(names, ())
            for number in sorted(range(len(self.daemons)), key=lambda at: self.daemons[at].rank):
                more = {name: (*there[name], number) for name in names if number in expected[name]}
                if any(
                    fits(self.needs(daemons)[0], machine.allocatable)
                    for name, daemons in more.items()
                    for machine in stock.machines(name)
                ):
                    there |= more
            self._hosted[pool.name] = frozenset(each for all_ in there.values() for each in all_)
        return self._hosted[pool.name]

    def needs(self, daemons: _Daemons) -> tuple[Resources, tuple[HostPort, ...]]:
        """Return what daemons request together, and their host ports."""
        if daemons not in self._needs:
            pods = [self.daemons[number].pod for number in daemons]
            ports = tuple(port for pod in pods for port in pod.rules.ports)
            self._needs[daemons] = (add(*(pod.requests for pod in pods)), ports)
        return self._needs[daemons]


def may_make_nodes(pool: NodePool) -> bool:
    """Say whether a NodePool takes part in decisions."""
    return pool.is_ready and not pool.is_static and not pool.is_deleting


def template_of(pool: NodePool) -> Requirements:
    """Return what holds for every node of a NodePool."""
    marks = {NODE_POOL: pool.name}
    reference = pool.node_class
    if reference.group and reference.kind and reference.name:
        marks[f"{reference.group}/{reference.kind.lower()}"] = reference.name
    return merge(collect(pool.requirements), from_labels(pool.labels), from_labels(marks))


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
