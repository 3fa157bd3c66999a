"""
Whether a refused pod could have had a node for itself, on top of the plan as it stands.

Tries every NodePool, required term, volume alternative, choice of topology domains, type and
offering. It errs on the side of no. One thing it cannot know: the solver charges a launch with the
types it had when it was made, this charges the types it ended with. So in a NodePool with limits it
may find room where the solver must not look for any.

The choice of domains is an incremental question, unlike the check of a whole plan: a launch counts
wherever its requirements let it come up, and a domain of a NodePool with nothing to sell is empty.
A launch into a reservation insists on that only once all pods are placed: until then it may be of
any capacity type.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, product

from msgspec import Struct

from karpy.core.check.breaches import Rule
from karpy.core.check.constraints import Domains, join_domains, may_be_in, strict_wants, tolerates
from karpy.core.check.market import Machine, Stock, template_of
from karpy.core.check.neighbours import Group, groups_of
from karpy.core.check.options import lack_of_variety, remaining
from karpy.core.check.scene import LaunchPlace, Place, Resident, Scene, Tally, settled
from karpy.core.check.spreads import (
    Spread,
    as_spread,
    domains_of_nodes,
    domains_on_offer,
    hard_spreads,
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
    return all(may_be_in(machine.values(wanted.key), wanted) for wanted in wants)


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


class Freedom(Struct, frozen=True):
    """What one rule leaves of the domains of its key."""

    rule: Rule
    key: str
    domains: frozenset[str]
    is_pinned: bool
    """Whether the node must settle on one of them."""


def find_choices(
    scene: Scene, pod: Pod, strict: Requirements, base: Requirements
) -> list[dict[str, Requirement]] | Rule:
    """
    List the requirements that a fresh node may add to satisfy all rules between pods, or say no.

    `strict` is what the pod asks of labels, `base` what the node would require without this.
    """
    by_key: dict[str, list[Freedom]] = {}
    for freedom in _freedoms(scene, pod, strict):
        by_key.setdefault(freedom.key, []).append(freedom)
    narrowed: list[list[Requirement]] = []
    for key, freedoms in sorted(by_key.items()):
        is_defined = key in base or key in scene.market.well_known
        allowed = base.get(key, anything(key))
        left = frozenset.intersection(*(each.domains for each in freedoms))
        left = frozenset(domain for domain in left if domain in allowed) if is_defined else left
        if not left or not is_defined:
            return min(freedoms, key=lambda each: len(each.domains)).rule
        if any(each.is_pinned for each in freedoms):
            narrowed.append([one_of(key, domain) for domain in sorted(left)])
        else:
            narrowed.append([one_of(key, *left)])
    return [{each.key: each for each in choice} for choice in product(*narrowed)]


def may_be_alone(scene: Scene, pod: Pod) -> bool:
    """Say whether the pod may be the first on a node, as far as affinity to the hostname goes."""
    return not any(
        group.key == HOSTNAME and (not group.selects(pod) or scene.crowd.select(*group.scopes))
        for group in groups_of(pod.rules.affinity, pod, scene)
    )


def _freedoms(scene: Scene, pod: Pod, strict: Requirements) -> Iterator[Freedom]:
    """Say what each rule leaves; of hostnames a new node has one of its own."""
    for constraint in hard_spreads(pod, scene.snapshot):
        spread = as_spread(constraint, pod)
        if spread.key != HOSTNAME:
            yield _left_by_spread(scene, pod, spread, strict)
    for group in groups_of(pod.rules.affinity, pod, scene):
        if group.key != HOSTNAME:
            yield _left_by_affinity(scene, pod, group, strict)
    for group in groups_of(pod.rules.anti_affinity, pod, scene):
        if group.key != HOSTNAME:
            selected = scene.crowd.select(*group.scopes)
            yield _left_by_others(scene, group.key, selected, strict)
    for key, owners in _keeping_away(scene, pod).items():
        yield _left_by_others(scene, key, owners, strict)


def _keeping_away(scene: Scene, pod: Pod) -> dict[str, list[Resident]]:
    """Return those whose own anti-affinity keeps the pod out of their domain, by key."""
    owners: dict[str, list[Resident]] = {}
    for resident in scene.crowd.residents:
        for group in groups_of(resident.pod.rules.anti_affinity, resident.pod, scene):
            if group.key != HOSTNAME and group.selects(pod):
                owners.setdefault(group.key, []).append(resident)
    return owners


def _left_by_spread(scene: Scene, pod: Pod, spread: Spread, strict: Requirements) -> Freedom:
    """Keep the domains where count + self - minimum stays within maxSkew."""
    selected = select_counted(scene, spread)
    count = Tally(_anywhere(scene, each, spread.key) for each in selected)
    surely = filter(partial(_says_enough, scene, spread), selected)
    sure = Tally(settled(_stated(scene, each, spread.key) for each in surely))
    there = domains_of_nodes(filter(spread.filter.counts, scene.nodes), spread.key)
    pools = scene.market.pools_ready
    known = there | domains_on_offer(scene, spread.key, pools, spread.filter.tolerations)
    wanted = strict.get(spread.key) if spread.filter.honors_affinity else None
    compared = there | _within(known, wanted)
    least = min((sure[domain] for domain in compared), default=0)
    if len(compared) < (spread.min_domains or 0):
        least = 0
    most = spread.max_skew + least - int(spread.scope.selects(pod))
    left = frozenset(domain for domain in known if count[domain] <= most)
    return Freedom(Rule.SPREAD, spread.key, left, is_pinned=True)


def _says_enough(scene: Scene, spread: Spread, resident: Resident) -> bool:
    """
    Say whether the node filter of a spread surely passes a pod by what its place says.

    The law counts a pod of a launch by the requirements of its claim. A label that only the types
    of the claim bring is not among them: such a pod leaves its domain as empty as it was.
    """
    return spread.filter.counts_by(resident.place, partial(_said, scene, resident.place))


def _left_by_affinity(scene: Scene, pod: Pod, group: Group, strict: Requirements) -> Freedom:
    """Keep the domains that surely have a selected pod; all of them if it may start the group."""
    selected = scene.crowd.select(*group.scopes)
    reach = _reach(scene, group.key, strict)
    may_be = [_anywhere(scene, each, group.key) for each in selected]
    if group.selects(pod) and not any(each.values or each.is_open for each in may_be):
        return Freedom(Rule.AFFINITY, group.key, reach, is_pinned=True)
    sure = Tally(settled(_stated(scene, each, group.key) for each in selected))
    left = frozenset(domain for domain in reach if sure[domain])
    return Freedom(Rule.AFFINITY, group.key, left, is_pinned=False)


def _left_by_others(
    scene: Scene, key: str, others: list[Resident], strict: Requirements
) -> Freedom:
    """Keep the domains where none of the others may be."""
    count = Tally(_anywhere(scene, each, key) for each in others)
    left = frozenset(domain for domain in _reach(scene, key, strict) if not count[domain])
    return Freedom(Rule.ANTI_AFFINITY, key, left, is_pinned=False)


def _anywhere(scene: Scene, resident: Resident, key: str) -> Domains:
    """Say where a pod may be, by what is stated or by what is sold."""
    return join_domains([_stated(scene, resident, key), resident.place.domains(key)])


def _stated(scene: Scene, resident: Resident, key: str) -> Domains:
    """Say where the requirements of a place let it be while pods were being placed."""
    if _is_said_late(scene, resident.place, key):
        return Domains(is_open=True)
    return resident.place.stated(key)


def _said(scene: Scene, place: Place, key: str) -> Requirement | None:
    """Return what a place required of a label while pods were being placed, if anything."""
    if isinstance(place, LaunchPlace):
        return None if _is_said_late(scene, place, key) else place.stock.granted.get(key)
    return place.values(key)


def _is_said_late(scene: Scene, place: Place, key: str) -> bool:
    """Say whether a launch requires a label only since all pods are placed."""
    is_reserved = isinstance(place, LaunchPlace) and bool(place.launch.reservations)
    return is_reserved and key in {CAPACITY_TYPE, scene.snapshot.catalog.reservation_label}


def _reach(scene: Scene, key: str, strict: Requirements) -> frozenset[str]:
    known = domains_on_offer(scene, key, scene.market.pools_ready)
    known |= domains_of_nodes(scene.nodes, key)
    return _within(known, strict.get(key))


def _within(domains: frozenset[str], wanted: Requirement | None) -> frozenset[str]:
    if wanted is None:
        return domains
    return frozenset(domain for domain in domains if domain in wanted)
