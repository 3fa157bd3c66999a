"""
Whether a refused pod could have had a node for itself, in addition to the plan.

Tries every NodePool, required term, volume alternative, choice of topology domains, type and
offering; in doubt it finds no node. It may find a node that the solver must refuse in one case, a
NodePool with limits: the solver subtracts from the limits the largest instance type that a launch
could have when it was planned; this subtracts the largest among its final options.

Unlike the check of a whole plan, the choice of domains treats the pod as one more pod: a launch
counts in every domain that its requirements allow, and a domain of a NodePool without offerings
counts as empty. A launch into a reservation requires it only after all pods are placed; for this
choice it may have any capacity type.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, product

from msgspec import Struct

from karpy.core.check.breaches import Rule
from karpy.core.check.constraints import Domains, join_domains, may_be_in, required_terms, tolerates
from karpy.core.check.market import PossibleMachine, Stock, template_of
from karpy.core.check.neighbours import SelectedPods, groups_of
from karpy.core.check.options import lack_of_variety, remaining
from karpy.core.check.scene import (
    DomainTally,
    LaunchPlace,
    Place,
    PlannedCluster,
    Resident,
    settled,
)
from karpy.core.check.spreads import (
    CheckedSpread,
    as_spread,
    hard_spreads,
    node_domains,
    offered_domains,
    select_counted,
)
from karpy.core.check.tenancy import Volume, attached, over_limit, volumes_of
from karpy.model.instances import LAUNCH_OPTIONS_MAX, InstanceType
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME
from karpy.model.pods import Pod
from karpy.model.pools import NodePool
from karpy.model.requirements import (
    Requirement,
    Requirements,
    anything,
    collect,
    merge,
    one_of,
    why_disjoint,
    why_incompatible,
)
from karpy.model.resources import NODES, Resources, add, fits
from karpy.model.settings import MinValuesPolicy, ReservedMode
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict


class PossibleHost(Struct, frozen=True, gc=False):
    """A machine that could run the pod."""

    pool: str
    instance_type: str
    zone: str
    capacity_type: str


def why_not_alone(snapshot: Snapshot, verdict: Verdict, pod: str) -> tuple[Rule, ...] | None:
    """
    Return the rules that keep a refused pod from any new node; None if a new node could run it.

    Only for pods refused with NO_HOST: other reasons are not checked. With strict reservations, the
    first NodePool that has a reservation for the pod adds RESERVATION, and it and the NodePools
    after it yield no node: the pod may have to wait for the reservation.
    """
    rules: set[Rule] = set()
    for outcome in try_alone(PlannedCluster(snapshot, verdict), pod):
        if isinstance(outcome, PossibleHost):
            return None
        rules.add(outcome)
    return tuple(rule for rule in Rule if rule in rules)


def find_hosts(snapshot: Snapshot, verdict: Verdict, pod: str) -> tuple[PossibleHost, ...]:
    """Return every machine that could run a refused pod."""
    outcomes = try_alone(PlannedCluster(snapshot, verdict), pod)
    return tuple(dict.fromkeys(each for each in outcomes if isinstance(each, PossibleHost)))


def try_alone(cluster: PlannedCluster, key: str) -> Iterator[PossibleHost | Rule]:
    """Yield the outcome of each try: a machine that could run the pod, or a rule against it."""
    pod = cluster.pods[key]
    volumes, problems = volumes_of(pod, cluster.snapshot.storage)
    if problems:
        yield Rule.VOLUME_READY
    elif pod.rules.claims_devices and cluster.snapshot.settings.ignore_device_claims:
        yield Rule.DEVICES
    elif any(term.has_match_fields for term in pod.rules.required_node_terms):
        yield Rule.NODE_AFFINITY
    elif not may_be_alone(cluster, pod):
        yield Rule.AFFINITY
    else:
        yield from _try_pools(cluster, pod, volumes)


def _try_pools(
    cluster: PlannedCluster, pod: Pod, volumes: Sequence[Volume]
) -> Iterator[PossibleHost | Rule]:
    for pool in cluster.market.pools_with_offerings:
        outcomes: list[PossibleHost | Rule] = [Rule.TAINT]
        if tolerates(pod.rules.tolerations, pool.taints):
            outcomes = list(_try_pool(cluster, pod, pool, volumes))
        yield from outcomes
        if Rule.RESERVATION in outcomes:
            return


def _try_pool(
    cluster: PlannedCluster, pod: Pod, pool: NodePool, volumes: Sequence[Volume]
) -> Iterator[PossibleHost | Rule]:
    template = template_of(pool)
    for required, topology in product(required_terms(pod), _volume_choices(volumes)):
        strict, by_volumes = collect(required), collect(topology)
        combined, well_known = merge(strict, by_volumes), cluster.market.well_known
        if why_incompatible(template, strict, well_known):
            yield Rule.NODE_AFFINITY
            continue
        if why_disjoint(strict, by_volumes) or why_incompatible(template, combined, well_known):
            yield Rule.VOLUME_TOPOLOGY
            continue
        # A negative requirement does not define a label.
        known = {key: each for key, each in combined.items() if key in {*template, *well_known}}
        base = merge(template, known)
        choices = find_choices(cluster, pod, strict, base)
        if isinstance(choices, Rule):
            yield choices
            continue
        for choice in choices:
            yield from _try_types(cluster, pod, pool, merge(base, choice), (*required, *topology))


def _volume_choices(volumes: Sequence[Volume]) -> list[tuple[Requirement, ...]]:
    """Return every way to choose one topology alternative for each volume."""
    alternatives = [
        [term.expressions for term in volume.topology]
        for volume in volumes
        if volume.topology is not None
    ]
    return [tuple(chain(*choice)) for choice in product(*alternatives)]


def _try_types(
    cluster: PlannedCluster,
    pod: Pod,
    pool: NodePool,
    requirements: Requirements,
    required: tuple[Requirement, ...],
) -> Iterator[PossibleHost | Rule]:
    """Try each type, then the rules about all types that fit."""
    stock = cluster.market.stock(pool, requirements)
    left = remaining(cluster, pool)
    hosts: dict[str, list[PossibleMachine]] = {}
    for name in stock.types:
        found = _try_type(cluster, pod, stock, name, left)
        if isinstance(found, Rule):
            yield found
        elif machines := [each for each in found if _satisfies(each, required)]:
            hosts[name] = machines
        else:
            yield Rule.NODE_AFFINITY
    settings = cluster.snapshot.settings
    is_strict = settings.min_values_policy is MinValuesPolicy.STRICT
    if is_strict and lack_of_variety(pool.requirements, _cheapest(stock, hosts), requirements):
        yield Rule.MIN_VALUES
    elif (
        settings.reserved_capacity
        and settings.reserved_mode is ReservedMode.STRICT
        and any(_has_reservation(cluster, stock, name) for name in hosts)
    ):
        yield Rule.RESERVATION
    else:
        for name, machines in hosts.items():
            for each in machines:
                yield PossibleHost(pool.name, name, each.offering.zone, each.offering.capacity_type)


def _try_type(
    cluster: PlannedCluster, pod: Pod, stock: Stock, name: str, left: Resources
) -> list[PossibleMachine] | Rule:
    """Return the machines of a type that have room for the pod, or the rule that excludes all."""
    instance_type = stock.types[name]
    machines = stock.machines(name)
    if not machines:
        return Rule.OPTION_TYPE
    if not _fits_limits(instance_type, left):
        return Rule.LIMIT
    if over_limit(attached([pod], cluster.snapshot.storage), {}, instance_type.volume_limits):
        return Rule.VOLUME_LIMIT
    requests, ports = cluster.market.needs(
        cluster.market.daemons_expected(stock.pool, instance_type)
    )
    if any(mine.clashes_with(other) for mine in pod.rules.ports for other in ports):
        return Rule.HOST_PORT
    total = add(pod.requests, requests)
    return [each for each in machines if fits(total, each.allocatable)] or Rule.RESOURCES


def _satisfies(machine: PossibleMachine, required: Sequence[Requirement]) -> bool:
    """Check each requirement as it is written: merged with others it may allow more."""
    return all(may_be_in(machine.values(each.key), each) for each in required)


def _fits_limits(instance_type: InstanceType, left: Resources) -> bool:
    capacity = {**instance_type.capacity, NODES: 1}
    return all(capacity.get(resource, 0) <= amount for resource, amount in left.items())


def _cheapest(stock: Stock, names: dict[str, list[PossibleMachine]]) -> list[InstanceType]:
    def price(name: str) -> tuple[int, str]:
        return min(each.offering.price for each in stock.machines(name)), name

    return [stock.types[name] for name in sorted(names, key=price)[:LAUNCH_OPTIONS_MAX]]


def _has_reservation(cluster: PlannedCluster, stock: Stock, name: str) -> bool:
    """Say whether the requirements allow a reserved offering of a type, free or full."""
    return any(
        offering.is_available
        and offering.is_reserved
        and not why_incompatible(stock.granted, offering.requirements, cluster.market.well_known)
        for offering in stock.types[name].offerings
    )


class AllowedDomains(Struct, frozen=True):
    """The domains of a key that one rule allows."""

    rule: Rule
    key: str
    domains: frozenset[str]
    is_pinned: bool
    """Whether the node must require exactly one of them."""


def find_choices(
    cluster: PlannedCluster, pod: Pod, strict: Requirements, base: Requirements
) -> list[dict[str, Requirement]] | Rule:
    """
    Return the requirements by which a new node satisfies all rules between pods, or a broken rule.

    `strict` are the label requirements of the pod, `base` those of the node without these rules.
    """
    by_key: dict[str, list[AllowedDomains]] = {}
    for found in _find_allowed_domains(cluster, pod, strict):
        by_key.setdefault(found.key, []).append(found)
    narrowed: list[list[Requirement]] = []
    for key, allowed_domains in sorted(by_key.items()):
        is_defined = key in base or key in cluster.market.well_known
        allowed = base.get(key, anything(key))
        left = frozenset.intersection(*(each.domains for each in allowed_domains))
        left = frozenset(domain for domain in left if domain in allowed) if is_defined else left
        if not left or not is_defined:
            return min(allowed_domains, key=lambda each: len(each.domains)).rule
        if any(each.is_pinned for each in allowed_domains):
            narrowed.append([one_of(key, domain) for domain in sorted(left)])
        else:
            narrowed.append([one_of(key, *left)])
    return [{each.key: each for each in choice} for choice in product(*narrowed)]


def may_be_alone(cluster: PlannedCluster, pod: Pod) -> bool:
    """Say whether affinity by hostname allows the pod on a node without other pods."""
    return not any(
        group.key == HOSTNAME
        and (not group.selects(pod) or cluster.pod_index.select(*group.scopes))
        for group in groups_of(pod.rules.affinity, pod, cluster)
    )


def _find_allowed_domains(
    cluster: PlannedCluster, pod: Pod, strict: Requirements
) -> Iterator[AllowedDomains]:
    """Yield the domains that each rule allows; hostname rules are left out: the node is new."""
    for constraint in hard_spreads(pod, cluster.snapshot):
        spread = as_spread(constraint, pod)
        if spread.key != HOSTNAME:
            yield _domains_for_spread(cluster, pod, spread, strict)
    for group in groups_of(pod.rules.affinity, pod, cluster):
        if group.key != HOSTNAME:
            yield _domains_for_affinity(cluster, pod, group, strict)
    for group in groups_of(pod.rules.anti_affinity, pod, cluster):
        if group.key != HOSTNAME:
            selected = cluster.pod_index.select(*group.scopes)
            yield _domains_without(cluster, group.key, selected, strict)
    for key, owners in _anti_affinity_owners(cluster, pod).items():
        yield _domains_without(cluster, key, owners, strict)


def _anti_affinity_owners(cluster: PlannedCluster, pod: Pod) -> dict[str, list[Resident]]:
    """Return, by key, the pods whose anti-affinity excludes this pod from their domain."""
    owners: dict[str, list[Resident]] = {}
    for resident in cluster.pod_index.residents:
        for group in groups_of(resident.pod.rules.anti_affinity, resident.pod, cluster):
            if group.key != HOSTNAME and group.selects(pod):
                owners.setdefault(group.key, []).append(resident)
    return owners


def _domains_for_spread(
    cluster: PlannedCluster, pod: Pod, spread: CheckedSpread, strict: Requirements
) -> AllowedDomains:
    """Return the domains where count + self - minimum is within maxSkew."""
    selected = select_counted(cluster, spread)
    count = DomainTally(_possible_domains(cluster, each, spread.key) for each in selected)
    surely = filter(partial(_surely_counts, cluster, spread), selected)
    sure = DomainTally(settled(_stated_domains(cluster, each, spread.key) for each in surely))
    existing = node_domains(filter(spread.filter.counts, cluster.nodes), spread.key)
    pools = cluster.market.pools_ready
    known = existing | offered_domains(cluster, spread.key, pools, spread.filter.tolerations)
    required = strict.get(spread.key) if spread.filter.honors_affinity else None
    compared = existing | _within(known, required)
    least = min((sure[domain] for domain in compared), default=0)
    if len(compared) < (spread.min_domains or 0):
        least = 0
    most = spread.max_skew + least - int(spread.scope.selects(pod))
    left = frozenset(domain for domain in known if count[domain] <= most)
    return AllowedDomains(Rule.SPREAD, spread.key, left, is_pinned=True)


def _surely_counts(cluster: PlannedCluster, spread: CheckedSpread, resident: Resident) -> bool:
    """
    Say whether a spread surely counts a pod, judged by the stated requirements of its place.

    The solver applies the node filter to the requirements of a launch. A label that only its
    instance types define is not among them, so that such a pod does not count.
    """
    return spread.filter.counts_by(resident.place, partial(_stated_values, cluster, resident.place))


def _domains_for_affinity(
    cluster: PlannedCluster, pod: Pod, group: SelectedPods, strict: Requirements
) -> AllowedDomains:
    """Return the domains that surely have a selected pod; all if the pod may be the first."""
    selected = cluster.pod_index.select(*group.scopes)
    known = _known_domains(cluster, group.key, strict)
    may_be = [_possible_domains(cluster, each, group.key) for each in selected]
    if group.selects(pod) and not any(each.values or each.is_open for each in may_be):
        return AllowedDomains(Rule.AFFINITY, group.key, known, is_pinned=True)
    sure = DomainTally(settled(_stated_domains(cluster, each, group.key) for each in selected))
    left = frozenset(domain for domain in known if sure[domain])
    return AllowedDomains(Rule.AFFINITY, group.key, left, is_pinned=False)


def _domains_without(
    cluster: PlannedCluster, key: str, others: list[Resident], strict: Requirements
) -> AllowedDomains:
    """Return the domains where surely none of the other pods is."""
    count = DomainTally(_possible_domains(cluster, each, key) for each in others)
    left = frozenset(domain for domain in _known_domains(cluster, key, strict) if not count[domain])
    return AllowedDomains(Rule.ANTI_AFFINITY, key, left, is_pinned=False)


def _possible_domains(cluster: PlannedCluster, resident: Resident, key: str) -> Domains:
    """Return the domains of a pod by the requirements and by the offerings of its place."""
    return join_domains([_stated_domains(cluster, resident, key), resident.place.domains(key)])


def _stated_domains(cluster: PlannedCluster, resident: Resident, key: str) -> Domains:
    """Return the domains that a place required while pods were being placed."""
    if _is_stated_late(cluster, resident.place, key):
        return Domains(is_open=True)
    return resident.place.stated(key)


def _stated_values(cluster: PlannedCluster, place: Place, key: str) -> Requirement | None:
    """Return the requirement that a place had for a label while pods were being placed, or None."""
    if isinstance(place, LaunchPlace):
        return None if _is_stated_late(cluster, place, key) else place.stock.granted.get(key)
    return place.values(key)


def _is_stated_late(cluster: PlannedCluster, place: Place, key: str) -> bool:
    """Say whether a launch requires a label only after all pods are placed."""
    is_reserved = isinstance(place, LaunchPlace) and bool(place.launch.reservations)
    return is_reserved and key in {CAPACITY_TYPE, cluster.snapshot.catalog.reservation_label}


def _known_domains(cluster: PlannedCluster, key: str, strict: Requirements) -> frozenset[str]:
    known = offered_domains(cluster, key, cluster.market.pools_ready)
    known |= node_domains(cluster.nodes, key)
    return _within(known, strict.get(key))


def _within(domains: frozenset[str], required: Requirement | None) -> frozenset[str]:
    if required is None:
        return domains
    return frozenset(domain for domain in domains if domain in required)
