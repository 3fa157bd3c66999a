"""
Whether a refused pod could have had a node for itself, on top of the plan as it stands.

Tries every NodePool, required term, volume alternative, choice of topology domains, type and
offering. It errs on the side of no. One thing it cannot know: the solver charges a launch with the
types it had when it was made, this charges the types it ended with. So in a NodePool with limits it
may find room where the solver must not look for any.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, product

from msgspec import Struct

from karpy.core.check.breaches import Rule
from karpy.core.check.daemons import strict_wants
from karpy.core.check.freedom import find_choices, may_be_alone
from karpy.core.check.limits import remaining
from karpy.core.check.market import Machine, Stock, template_of
from karpy.core.check.options import lack_of_variety
from karpy.core.check.scene import Scene
from karpy.core.check.volumes import Volume, attached, over_limit, volumes_of
from karpy.core.check.wishes import may_grant, tolerates
from karpy.model.instances import LAUNCH_OPTIONS_MAX, InstanceType
from karpy.model.pods import Pod
from karpy.model.pools import NodePool
from karpy.model.requirements import (
    Requirement,
    Requirements,
    collect,
    merge,
    why_disjoint,
    why_incompatible,
)
from karpy.model.resources import NODES, Resources, add, fits
from karpy.model.settings import MinValuesPolicy, ReservedMode
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict


class Host(Struct, frozen=True, gc=False):
    """A machine that would do."""

    pool: str
    instance_type: str
    zone: str
    capacity_type: str


def why_not_alone(snapshot: Snapshot, verdict: Verdict, pod: str) -> tuple[Rule, ...] | None:
    """
    Return the rules that keep a refused pod from any fresh node; None if some node would do.

    Meant for pods refused with NO_HOST: it does not know other reasons to refuse a pod. Where
    reservations are strict, NodePools from the first with a reservation on are not tried, and
    RESERVATION is among the rules: there a pod may have to wait although a node could be had.
    """
    rules: set[Rule] = set()
    for outcome in try_alone(Scene(snapshot, verdict), pod):
        if isinstance(outcome, Host):
            return None
        rules.add(outcome)
    return tuple(rule for rule in Rule if rule in rules)


def find_hosts(snapshot: Snapshot, verdict: Verdict, pod: str) -> tuple[Host, ...]:
    """Return every machine that would do for a refused pod."""
    outcomes = try_alone(Scene(snapshot, verdict), pod)
    return tuple(dict.fromkeys(each for each in outcomes if isinstance(each, Host)))


def try_alone(scene: Scene, key: str) -> Iterator[Host | Rule]:
    """Yield what comes of each try: a machine that would do, or the rule that forbids it."""
    pod = scene.pods[key]
    volumes, problems = volumes_of(pod, scene.snapshot.storage)
    if problems:
        yield Rule.VOLUME_READY
    elif pod.rules.claims_devices and scene.snapshot.settings.ignore_device_claims:
        yield Rule.DEVICES
    elif any(term.has_match_fields for term in pod.rules.required_node_terms):
        yield Rule.NODE_AFFINITY
    elif not may_be_alone(scene, pod):
        yield Rule.AFFINITY
    else:
        yield from _try_pools(scene, pod, volumes)


def _try_pools(scene: Scene, pod: Pod, volumes: Sequence[Volume]) -> Iterator[Host | Rule]:
    for pool in scene.market.pools_in_use:
        outcomes: list[Host | Rule] = [Rule.TAINT]
        if tolerates(pod.rules.tolerations, pool.taints):
            outcomes = list(_try_pool(scene, pod, pool, volumes))
        yield from outcomes
        if Rule.RESERVATION in outcomes:
            return


def _try_pool(
    scene: Scene, pod: Pod, pool: NodePool, volumes: Sequence[Volume]
) -> Iterator[Host | Rule]:
    template = template_of(pool)
    for wants, reach in product(strict_wants(pod), _reaches(volumes)):
        strict, far = collect(wants), collect(reach)
        asked, well_known = merge(strict, far), scene.market.well_known
        if why_incompatible(template, strict, well_known):
            yield Rule.NODE_AFFINITY
            continue
        if why_disjoint(strict, far) or why_incompatible(template, asked, well_known):
            yield Rule.VOLUME_TOPOLOGY
            continue
        # A label that is only shunned is not defined by that.
        known = {key: each for key, each in asked.items() if key in {*template, *well_known}}
        base = merge(template, known)
        choices = find_choices(scene, pod, strict, base)
        if isinstance(choices, Rule):
            yield choices
            continue
        for choice in choices:
            yield from _shop(scene, pod, pool, merge(base, choice), (*wants, *reach))


def _reaches(volumes: Sequence[Volume]) -> list[tuple[Requirement, ...]]:
    """List every way to choose one alternative for each volume."""
    alternatives = [
        [term.expressions for term in volume.reach]
        for volume in volumes
        if volume.reach is not None
    ]
    return [tuple(chain(*choice)) for choice in product(*alternatives)]


def _shop(
    scene: Scene,
    pod: Pod,
    pool: NodePool,
    requirements: Requirements,
    wants: tuple[Requirement, ...],
) -> Iterator[Host | Rule]:
    """Look for types that fit, then at what they are together."""
    stock = scene.market.stock(pool, requirements)
    left = remaining(scene, pool)
    hosts: dict[str, list[Machine]] = {}
    for name in stock.types:
        found = _try_type(scene, pod, stock, name, left)
        if isinstance(found, Rule):
            yield found
        elif machines := [each for each in found if _grants_all(each, wants)]:
            hosts[name] = machines
        else:
            yield Rule.NODE_AFFINITY
    settings = scene.snapshot.settings
    is_strict = settings.min_values_policy is MinValuesPolicy.STRICT
    if is_strict and lack_of_variety(pool.requirements, _cheapest(stock, hosts), requirements):
        yield Rule.MIN_VALUES
    elif (
        settings.reserved_capacity
        and settings.reserved_mode is ReservedMode.STRICT
        and any(_may_wait(scene, stock, name) for name in hosts)
    ):
        yield Rule.RESERVATION
    else:
        for name, machines in hosts.items():
            for each in machines:
                yield Host(pool.name, name, each.offering.zone, each.offering.capacity_type)


def _try_type(
    scene: Scene, pod: Pod, stock: Stock, name: str, left: Resources
) -> list[Machine] | Rule:
    """Return the machines of a type that have room for the pod, or why none has."""
    instance_type = stock.types[name]
    machines = stock.machines(name)
    if not machines:
        return Rule.OPTION_TYPE
    if not _fits_limits(instance_type, left):
        return Rule.LIMIT
    if over_limit(attached([pod], scene.snapshot.storage), {}, instance_type.volume_limits):
        return Rule.VOLUME_LIMIT
    requests, ports = scene.market.needs(scene.market.daemons_expected(stock.pool, instance_type))
    if any(mine.clashes_with(other) for mine in pod.rules.ports for other in ports):
        return Rule.HOST_PORT
    total = add(pod.requests, requests)
    return [each for each in machines if fits(total, each.allocatable)] or Rule.RESOURCES


def _grants_all(machine: Machine, wants: Sequence[Requirement]) -> bool:
    """Ask for each want as it is written; joined with others it may say less than it did."""
    return all(may_grant(machine.values(wanted.key), wanted) for wanted in wants)


def _fits_limits(instance_type: InstanceType, left: Resources) -> bool:
    capacity = {**instance_type.capacity, NODES: 1}
    return all(capacity.get(resource, 0) <= amount for resource, amount in left.items())


def _cheapest(stock: Stock, names: dict[str, list[Machine]]) -> list[InstanceType]:
    def price(name: str) -> tuple[int, str]:
        return min(each.offering.price for each in stock.machines(name)), name

    return [stock.types[name] for name in sorted(names, key=price)[:LAUNCH_OPTIONS_MAX]]


def _may_wait(scene: Scene, stock: Stock, name: str) -> bool:
    """Say whether a reservation would suit, free or not."""
    return any(
        offering.is_available
        and offering.is_reserved
        and not why_incompatible(stock.granted, offering.requirements, scene.market.well_known)
        for offering in stock.types[name].offerings
    )
