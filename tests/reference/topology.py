"""Topology spread, affinity and anti-affinity of pods (section 5)."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import product

from karpy.model.constraints import (
    TOLERATE_PREFERENCES,
    AffinityTerm,
    LabelSelector,
    SpreadConstraint,
    Taint,
    Toleration,
    first_untolerated,
    resolve_label_keys,
)
from karpy.model.instances import InstanceType
from karpy.model.labels import HOSTNAME
from karpy.model.nodes import Node
from karpy.model.pods import Pod, PodRules
from karpy.model.pools import NodePool
from karpy.model.requirements import (
    Requirement,
    Requirements,
    anything,
    from_labels,
    merge,
    one_of,
    why_incompatible,
)
from karpy.model.snapshot import Snapshot
from tests.reference.ladder import alternatives, strict
from tests.reference.templates import own_requirements, pools_in_use

PriceIf = Callable[[Requirement], int]
"""Returns the lowest price of the node with a further requirement."""


class Kind(Enum):
    """The rule of a group on the pods it counts."""

    SPREAD = "spread"
    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    INVERSE = "inverse anti-affinity"


@dataclass(frozen=True)
class NodeFilter:
    """The nodes on which a spread counts pods."""

    wanted: tuple[tuple[Requirement, ...], ...] | None
    """Alternative requirements on the node; None if its labels do not matter."""
    tolerations: tuple[Toleration, ...] | None
    """The tolerations of the pod; None if taints do not matter."""

    def accepts(self, node: Requirements, taints: tuple[Taint, ...]) -> bool:
        if self.tolerations is not None and first_untolerated(taints, self.tolerations):
            return False
        return self.wanted is None or any(
            why_incompatible(node, {each.key: each for each in wanted}) is None
            for wanted in self.wanted
        )


@dataclass(frozen=True)
class Group:
    """Pods that a topology rule counts together, by domain of a key."""

    kind: Kind
    key: str
    namespaces: frozenset[str]
    selector: LabelSelector | None
    max_skew: int = 0
    min_domains: int | None = None
    filter: NodeFilter | None = None

    def selects(self, pod: Pod) -> bool:
        if self.selector is None or pod.namespace not in self.namespaces:
            return False
        return self.selector.selects(pod.labels)

    def accepts(self, place: "Place") -> bool:
        return self.filter is None or self.filter.accepts(place.requirements, place.taints)


@dataclass(frozen=True)
class Place:
    """A placed pod, with the requirements of its node at that time."""

    pod: Pod
    requirements: Requirements
    taints: tuple[Taint, ...]
    now: Callable[[], Requirements]
    """Returns the current requirements of the node."""


def node_requirements(node: Node) -> dict[str, Requirement]:
    """Return the labels of a node as requirements, its hostname among them."""
    return {**from_labels(node.labels), HOSTNAME: one_of(HOSTNAME, node.hostname)}


@dataclass
class Topology:
    """The domains, and the places of pods."""

    snapshot: Snapshot
    types: dict[str, tuple[InstanceType, ...]]
    batch: set[str]
    places: list[Place] = field(default_factory=list)
    hostnames: set[str] = field(default_factory=set)
    """The hostnames of claims."""
    inverse: list[Group] = field(default_factory=list)
    required: set[Group] = field(default_factory=set)
    """Groups of required affinity of the batch: a pod that they count must have a domain."""

    def __post_init__(self) -> None:
        nodes = {node.name: node for node in self.snapshot.nodes}
        for pod in self.snapshot.pods:
            if pod.key in self.batch:
                self._learn_inverse(pod)
                near = [self._term(Kind.AFFINITY, pod, term) for term in pod.rules.affinity]
                self.required.update(near)
            elif pod.is_active and pod.node_name in nodes:
                node = nodes[pod.node_name]
                self.places.append(_bound(pod, node_requirements(node), node.taints))
                self._learn_inverse(pod)
        self._offers = [
            (pool, _offered_by(pool, self.types[pool.name])) for pool in pools_in_use(self.snapshot)
        ]
        self._labels = [
            (node, node_requirements(node)) for node in nodes.values() if not node.is_deleting
        ]
        self._counts: dict[Group, Counter[str]] = {}
        self._domains: dict[Group, set[str]] = {}

    def _learn_inverse(self, pod: Pod) -> None:
        for group in self._inverse_of(pod):
            if group not in self.inverse:
                self.inverse.append(group)

    def record(self, place: Place) -> None:
        """Record a placed pod."""
        self.places.append(place)
        self._counts.clear()
        self._domains.clear()

    # --- groups ------------------------------------------------------------------------------

    def groups(self, pod: Pod, rules: PodRules) -> list[Group]:
        """Return the groups that restrict a pod: its own, and anti-affinity of other pods."""
        near = [*rules.affinity, *(each.term for each in rules.preferred_affinity)]
        away = [*rules.anti_affinity, *(each.term for each in rules.preferred_anti_affinity)]
        own = [self._spread(pod, rules, each) for each in rules.spreads]
        own += [self._term(Kind.AFFINITY, pod, each) for each in near]
        own += [self._term(Kind.ANTI_AFFINITY, pod, each) for each in away]
        own += [group for group in self.inverse if group.selects(pod)]
        return list(dict.fromkeys(own))

    def _spread(self, pod: Pod, rules: PodRules, spread: SpreadConstraint) -> Group:
        wanted = tuple(
            tuple(each.values()) for each in alternatives(rules, pod.rules.required_node_terms)
        )
        return Group(
            kind=Kind.SPREAD,
            key=spread.topology_key,
            namespaces=frozenset({pod.namespace}),
            selector=resolve_label_keys(spread.selector, pod.labels, spread.match_label_keys),
            max_skew=spread.max_skew,
            min_domains=spread.min_domains,
            filter=NodeFilter(
                wanted if spread.honors_affinity else None,
                (*pod.rules.tolerations, TOLERATE_PREFERENCES) if spread.honors_taints else None,
            ),
        )

    def _term(self, kind: Kind, pod: Pod, term: AffinityTerm) -> Group:
        return Group(
            kind=kind,
            key=term.topology_key,
            namespaces=self._namespaces(pod, term),
            selector=resolve_label_keys(
                term.selector, pod.labels, term.match_label_keys, term.mismatch_label_keys
            ),
        )

    def _inverse_of(self, pod: Pod) -> list[Group]:
        return [self._term(Kind.INVERSE, pod, term) for term in pod.rules.anti_affinity]

    def _namespaces(self, pod: Pod, term: AffinityTerm) -> frozenset[str]:
        if not term.namespaces and term.namespace_selector is None:
            return frozenset({pod.namespace})
        selector = term.namespace_selector
        selected = {
            name
            for name, labels in self.snapshot.namespaces.items()
            if selector is not None and selector.selects(labels)
        }
        return frozenset(term.namespaces) | selected

    # --- domains and counts ------------------------------------------------------------------

    def domains(self, group: Group) -> set[str]:
        """Return the domains of a group's key, without tainted ones if taints are honoured."""
        if group not in self._domains:
            self._domains[group] = self._find_domains(group)
        return self._domains[group]

    def _find_domains(self, group: Group) -> set[str]:
        tolerations = group.filter.tolerations if group.filter else None
        found = set(self.hostnames) if group.key == HOSTNAME else set()
        for pool, offered in self._offers:
            if tolerations is None or not first_untolerated(pool.taints, tolerations):
                found |= offered.get(group.key, set())
        return found | self._domains_of_nodes(group)

    def _domains_of_nodes(self, group: Group) -> set[str]:
        return {
            value
            for node, labels in self._labels
            if group.key in labels
            and (group.filter is None or group.filter.accepts(labels, node.taints))
            for value in labels[group.key].values
        }

    def counts(self, group: Group) -> Counter[str]:
        """Count the pods of a group by domain."""
        if group not in self._counts:
            self._counts[group] = Counter(
                domain
                for place in self.places
                if self._counts_place(group, place)
                for domain in self._domains_left(group, place)
            )
        return self._counts[group]

    def _counts_place(self, group: Group, place: Place) -> bool:
        if group.kind is Kind.INVERSE:
            return group in self._inverse_of(place.pod)
        return group.selects(place.pod) and group.accepts(place)

    def _domains_left(self, group: Group, place: Place) -> set[str]:
        there = place.now().get(group.key)
        if there is None:
            return set()
        if group.kind in {Kind.SPREAD, Kind.AFFINITY}:
            is_known = not there.complement and len(there.values) == 1
            return set(there.values) if is_known else set()
        # A claim that excludes some domains may still be in any other one.
        return {each for each in self.domains(group) | there.values if each in there}

    # --- where a pod may go ------------------------------------------------------------------

    def choices(
        self,
        pod: Pod,
        rules: PodRules,
        node: Requirements,
        may_be_undefined: frozenset[str] = frozenset(),
        price_if: PriceIf = lambda _: 0,
    ) -> Iterator[dict[str, Requirement]]:
        """
        Yield the requirements of topology on a node for a pod, the best choice first.

        Each choice has one requirement for each key that some group is about, unless the node
        cannot have the label and no pod needs it. No choice: no place. Domains that are equally
        good are told apart by what the node costs there.
        """
        groups = self.groups(pod, rules)
        settling = {group.key for group in self.required if group.selects(pod)} - {HOSTNAME}
        pod_side = strict(rules)
        per_key: list[list[Requirement | None]] = []
        for key in sorted({group.key for group in groups} | settling):
            mine = [group for group in groups if group.key == key]
            wanted = pod_side.get(key, anything(key))
            there = node.get(key)
            is_shunned = there is None or there.is_negative or self._is_no_pod_there(mine)
            if there is None:
                there = anything(key) if key in may_be_undefined else Requirement(key)
            is_needed = any(each.kind in {Kind.SPREAD, Kind.AFFINITY} for each in mine)
            if not is_needed and is_shunned and not self._possible(key, there):
                per_key.append([None])
            elif mine or key in settling:
                ranks = self._ranks_of_key(pod, mine, wanted, there, is_settling=key in settling)
                per_key.append([each for rank in ranks for each in _dear_last(rank, price_if)])
        for combination in product(*per_key):
            yield {each.key: each for each in combination if each is not None}

    def _is_no_pod_there(self, groups: list[Group]) -> bool:
        return not any(
            self._counts_place(group, place) for group in groups for place in self.places
        )

    def _possible(self, key: str, there: Requirement) -> set[str]:
        """Return the domains of a key that a node may be in."""
        everything = Group(Kind.AFFINITY, key, frozenset(), None)
        known = self.domains(everything) | (there.values if key == HOSTNAME else set())
        return {domain for domain in known if domain in there}

    def _ranks_of_key(
        self,
        pod: Pod,
        groups: list[Group],
        wanted: Requirement,
        there: Requirement,
        *,
        is_settling: bool,
    ) -> list[list[Requirement]]:
        """Return the choices for one key, equally good ones together."""
        key = there.key
        allowed = self._possible(key, there).intersection(
            *(self.allowed(pod, each, wanted, there) for each in groups)
        )
        if not allowed:
            return []
        spreads = [group for group in groups if group.kind is Kind.SPREAD]
        bootstraps = any(self._bootstraps(pod, each) for each in groups)
        if not spreads and not bootstraps and not is_settling:
            return [[one_of(key, *allowed)]]
        is_near = any(each.kind in {Kind.SPREAD, Kind.AFFINITY} for each in groups)
        whole = [] if is_near else [[one_of(key, *allowed)]]
        total = {domain: sum(self.counts(each)[domain] for each in spreads) for domain in allowed}
        ranks = [
            [one_of(key, each) for each in sorted(allowed) if total[each] == count]
            for count in sorted(set(total.values()))
        ]
        return ranks + whole

    def allowed(self, pod: Pod, group: Group, wanted: Requirement, there: Requirement) -> set[str]:
        """Return the domains that a group allows, among those that pod and node allow."""
        counts = self.counts(group)
        known = self.domains(group) | (there.values if group.key == HOSTNAME else set())
        here = {domain for domain in known if domain in there}
        if group.kind is Kind.SPREAD:
            least = self._least(group, wanted) + group.max_skew - group.selects(pod)
            return {domain for domain in here if counts[domain] <= least}
        here = {domain for domain in here if domain in wanted}
        if group.kind is not Kind.AFFINITY:
            return {domain for domain in here if counts[domain] == 0}
        if self._bootstraps(pod, group):
            return here
        return {domain for domain in here if counts[domain] > 0}

    def _least(self, group: Group, wanted: Requirement) -> int:
        if group.key == HOSTNAME:
            return 0
        counts = self.counts(group)
        ignores = group.filter is not None and group.filter.wanted is None
        reachable = self._domains_of_nodes(group) | {
            domain for domain in self.domains(group) if ignores or domain in wanted
        }
        if len(reachable) < (group.min_domains or 0):
            return 0
        return min((counts[domain] for domain in reachable), default=0)

    def _bootstraps(self, pod: Pod, group: Group) -> bool:
        if group.kind is not Kind.AFFINITY or not group.selects(pod):
            return False
        return not any(self.counts(group).values())


def _dear_last(equals: list[Requirement], price_if: PriceIf) -> list[Requirement]:
    """Move choices that cost more than 1.25 times the lowest price to the end."""
    lowest = min(map(price_if, equals))
    return sorted(equals, key=lambda each: price_if(each) * 100 > lowest * 125)


def _bound(pod: Pod, requirements: Requirements, taints: tuple[Taint, ...]) -> Place:
    return Place(pod, requirements, taints, lambda: requirements)


def _offered_by(pool: NodePool, types: tuple[InstanceType, ...]) -> dict[str, set[str]]:
    own = own_requirements(pool)
    offered: dict[str, set[str]] = {}
    for some in [own, *(merge(own, kind.requirements) for kind in types)]:
        for key, requirement in some.items():
            if not requirement.complement:
                offered.setdefault(key, set()).update(requirement.values)
    return offered
