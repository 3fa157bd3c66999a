"""
Which domains the rules between pods leave to one more pod on a fresh node.

Unlike the check of a whole plan this is an incremental question, and it errs on the side of no:
a launch counts wherever its requirements let it come up, as the law of provisioning has it, and a
domain of a NodePool with nothing to sell is an empty domain. A launch into a reservation insists on
that only once all pods are placed: until then it may be of any capacity type.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product

from msgspec import Struct

from karpy.core.check.breaches import Rule
from karpy.core.check.crowd import Resident, Tally, settled
from karpy.core.check.defaults import hard_spreads
from karpy.core.check.domains import Domains, join_domains
from karpy.core.check.neighbours import Group, groups_of
from karpy.core.check.places import LaunchPlace, Place
from karpy.core.check.scene import Scene
from karpy.core.check.spreads import Spread, as_spread, select_counted
from karpy.core.check.universe import domains_of_nodes, domains_on_offer
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME
from karpy.model.pods import Pod
from karpy.model.requirements import Requirement, Requirements, anything, one_of


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
