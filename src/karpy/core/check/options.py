"""Rules about launches: options and prices, limits of NodePools, reservations."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from karpy.core.check.breaches import Breach, Rule, shortened
from karpy.core.check.constraints import is_surely_in
from karpy.core.check.market import may_launch, template_of
from karpy.core.check.scene import LaunchPlace, PlannedCluster
from karpy.model.instances import LAUNCH_OPTIONS_MAX, InstanceType
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, RESERVED
from karpy.model.pods import Pod
from karpy.model.pools import NodePool
from karpy.model.requirements import Requirement, Requirements
from karpy.model.resources import NODES, add, fits, format_quantity
from karpy.model.settings import MinValuesPolicy
from karpy.model.verdicts import LaunchOption, Verdict

_ROUNDING: Final = 1
"""Micro-dollars by which two ways to compute a percentage may differ."""


def check_names(cluster: PlannedCluster) -> Iterator[Breach]:
    """Yield unusable nodes and NodePools, duplicate launch names, and launches without pods."""
    verdict: Verdict = cluster.verdict
    staying = {place.name for place in cluster.nodes if place.is_staying}
    for nomination in verdict.nominations:
        if nomination.node not in staying:
            yield Breach(Rule.UNKNOWN_NODE, nomination.node)
    names: set[str] = set()
    for launch in verdict.launches:
        pool = cluster.market.pools.get(launch.pool)
        if pool is None or not may_launch(pool):
            yield Breach(Rule.UNKNOWN_POOL, launch.name, detail=launch.pool)
        if launch.name in names:
            yield Breach(Rule.SHARED_NAME, launch.name)
        if not launch.pods:
            yield Breach(Rule.EMPTY_LAUNCH, launch.name)
        names.add(launch.name)


def check_options(cluster: PlannedCluster) -> Iterator[Breach]:
    """Yield the breaches in the options, requirements and resources of each launch."""
    policy = cluster.snapshot.settings.min_values_policy
    free_keys = cluster.market.well_known | {cluster.snapshot.catalog.reservation_label}
    for place in cluster.launches:
        yield from _check_list(place)
        yield from _check_types(place)
        yield from _check_requirements(place, free_keys)
        yield from _check_variety(place, policy)
        if not fits(add(*(pod.requests for pod in place.pods)), place.launch.resources):
            yield Breach(Rule.STATED_RESOURCES, place.name)


def _check_list(place: LaunchPlace) -> Iterator[Breach]:
    options = place.launch.options
    if not options:
        yield Breach(Rule.NO_OPTION, place.name)
    if len(options) > LAUNCH_OPTIONS_MAX:
        yield Breach(Rule.TOO_MANY_OPTIONS, place.name, detail=str(len(options)))
    order = [(option.price, option.instance_type) for option in options]
    for before, after in pairwise(order):
        if before >= after:
            yield Breach(Rule.OPTION_ORDER, place.name, detail=f"{before[1]} before {after[1]}")
            return


def _check_types(place: LaunchPlace) -> Iterator[Breach]:
    names = set(place.types)
    options = place.launch.options
    foreign = [option.instance_type for option in options if option.instance_type not in names]
    if foreign:
        yield Breach(Rule.OPTION_TYPE, place.name, detail=shortened(foreign))
    wrong = [
        option.instance_type
        for option in options
        if option.instance_type in names and not _is_cheapest(option, place)
    ]
    if wrong:
        yield Breach(Rule.OPTION_PRICE, place.name, detail=shortened(wrong))


def _is_cheapest(option: LaunchOption, place: LaunchPlace) -> bool:
    lowest_price = place.lowest_price(option.instance_type)
    is_overlaid = place.stock.types[option.instance_type].is_price_overlaid
    difference = abs(option.price - lowest_price.price)
    return (option.zone, option.capacity_type) in lowest_price.zones and (
        difference <= (_ROUNDING if is_overlaid else 0)
    )


def _check_requirements(place: LaunchPlace, free_keys: frozenset[str]) -> Iterator[Breach]:
    """
    Compare the requirements of a launch with those of its NodePool.

    They may only be narrower, and must contain each key of the NodePool's requirements; labels of
    the NodePool may be left out. A key that the NodePool does not define is allowed if it is
    well-known or if the requirement is negative. A negative requirement of one pod defines the key
    for the next pod of the launch, which may then require a value.
    """
    template = template_of(place.stock.pool)
    stated = place.launch.requirements
    for written in place.stock.pool.requirements:
        if written.key not in stated:
            yield Breach(Rule.OUTSIDE_POOL, place.name, detail=f"nothing about {written.key}")
    for key, requirement in sorted(stated.items()):
        have = template.get(key)
        if have is None:
            is_free = key in free_keys or requirement.is_negative
            if not is_free and not _is_excluded_by_pod(key, place.pods):
                yield Breach(Rule.OUTSIDE_POOL, place.name, detail=f"{key} is not defined")
        elif not is_surely_in(requirement, have):
            yield Breach(Rule.OUTSIDE_POOL, place.name, detail=str(requirement))


def _is_excluded_by_pod(key: str, pods: Iterable[Pod]) -> bool:
    """Say whether a pod has a negative requirement on a label."""
    return any(
        required.key == key and required.is_negative
        for pod in pods
        for required in (
            *pod.rules.node_selector,
            *(each for term in pod.rules.required_node_terms for each in term.expressions),
            *(
                each
                for preferred in pod.rules.preferred_node_terms
                for each in preferred.term.expressions
            ),
        )
    )


def _check_variety(place: LaunchPlace, policy: MinValuesPolicy) -> Iterator[Breach]:
    """
    Count the values of each key with minValues over the options.

    With BestEffort a launch may state that it relaxed minValues. A launch into a reservation is
    exempt: it met minValues before it was narrowed to the reservation.
    """
    launch = place.launch
    if launch.reservations:
        return
    if policy is MinValuesPolicy.BEST_EFFORT and launch.is_min_values_relaxed:
        return
    types = [place.stock.types[name] for name in place.types]
    if missing := lack_of_variety(place.stock.pool.requirements, types, launch.requirements):
        yield Breach(Rule.MIN_VALUES, place.name, detail=missing)


def lack_of_variety(
    written: Iterable[Requirement], types: Iterable[InstanceType], narrowed: Requirements
) -> str:
    """Return a key with fewer allowed values than minValues requires, and numbers, or nothing."""
    types = list(types)
    for requirement in written:
        key, least = requirement.key, requirement.min_values
        if least is None:
            continue
        allowed = narrowed.get(key, requirement)
        values = {value for each in types for value in _values(each, key) if value in allowed}
        if len(values) < least:
            return f"{len(values)} values of {key}, at least {least} wanted"
    return ""


def _values(instance_type: InstanceType, key: str) -> frozenset[str]:
    if key == INSTANCE_TYPE:
        return frozenset({instance_type.name})
    requirement = instance_type.requirements.get(key)
    return frozenset() if requirement is None or requirement.complement else requirement.values


def check_limits(cluster: PlannedCluster) -> Iterator[Breach]:
    """
    Compare each limit with the nodes of the NodePool and the launches of the plan.

    Deleting nodes do not count. A launch counts with the largest machine it may become, resource by
    resource, because the cloud may pick any of them. A NodePool above its limit is a breach only if
    the plan adds to it.
    """
    for pool in cluster.market.pools.values():
        for resource, limit in sorted(pool.limits.items()):
            used, added = _used(cluster, pool, resource)
            if added and used + added > limit:
                amounts = (format_quantity(each, resource) for each in (used, added, limit))
                detail = "{}: {} there, {} more, at most {}".format(resource, *amounts)
                yield Breach(Rule.LIMIT, pool.name, detail=detail)


def remaining(cluster: PlannedCluster, pool: NodePool) -> dict[str, int]:
    """Return what is left of each limit of a NodePool after the plan."""
    return {
        resource: limit - sum(_used(cluster, pool, resource))
        for resource, limit in pool.limits.items()
    }


def _used(cluster: PlannedCluster, pool: NodePool, resource: str) -> tuple[int, int]:
    """Return how much of a resource the nodes of a NodePool have, and what its launches may add."""
    nodes = [each.node for each in cluster.nodes if each.is_staying and each.node.pool == pool.name]
    launches = [each for each in cluster.launches if each.launch.pool == pool.name]
    if resource == NODES:
        return len(nodes), len(launches)
    used = sum(node.capacity.get(resource, 0) for node in nodes)
    return used, sum(_most(launch, resource) for launch in launches)


def _most(place: LaunchPlace, resource: str) -> int:
    return max((place.stock.most(resource, name) for name in place.types), default=0)


def check_reservations(cluster: PlannedCluster) -> Iterator[Breach]:
    """
    Count the launches that hold each reservation.

    A launch with reservations must require them; otherwise the cloud may pick another offering
    while other launches wait for the reservation.
    """
    label = cluster.snapshot.catalog.reservation_label
    for launch in cluster.verdict.launches:
        required = {CAPACITY_TYPE: {RESERVED}} | (
            {label: set(launch.reservations)} if label else {}
        )
        for key, values in required.items() if launch.reservations else ():
            stated = launch.requirements.get(key)
            if stated is None or stated.complement or stated.values != values:
                yield Breach(Rule.RESERVATION, launch.name, detail=f"does not insist on {key}")
    capacity = _reservation_capacity(cluster)
    holders = Counter(each for launch in cluster.verdict.launches for each in launch.reservations)
    for name, count in sorted(holders.items()):
        if count > capacity.get(name, 0):
            detail = f"{count} launches, room for {capacity.get(name, 0)}"
            yield Breach(Rule.RESERVATION, name, detail=detail)


def _reservation_capacity(cluster: PlannedCluster) -> Mapping[str, int]:
    """Return how many machines each reservation has left: the least of its offerings."""
    if not cluster.snapshot.settings.reserved_capacity:
        return {}
    capacity: dict[str, int] = {}
    for types in cluster.market.types.values():
        for offering in (offering for each in types.values() for offering in each.offerings):
            if offering.reservation_id:
                known = capacity.get(offering.reservation_id, offering.reservation_capacity)
                capacity[offering.reservation_id] = min(known, offering.reservation_capacity)
    return capacity
