"""The topology groups of one decision: makes them from rules, and counts bound pods in them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from karpy.core.scheduling.effort import Effort
from karpy.core.scheduling.existing import BoundPods, ExistingNodes
from karpy.core.scheduling.instancetypes import members
from karpy.core.scheduling.interning import LabelSet
from karpy.core.scheduling.relaxation import alternatives_of
from karpy.core.scheduling.signatures import Signatures
from karpy.core.scheduling.templates import PoolDomains
from karpy.core.scheduling.topologygroups import (
    AvoidedGroup,
    DomainGroup,
    DomainTable,
    GroupKind,
    HostGroup,
    Site,
    SpreadFilter,
)
from karpy.model.constraints import (
    TOLERATE_PREFERENCES,
    AffinityTerm,
    LabelSelector,
    SpreadConstraint,
    Taint,
    first_untolerated,
    resolve_label_keys,
)
from karpy.model.labels import HOSTNAME
from karpy.model.pods import Pod, PodRules
from karpy.model.requirements import Requirement, why_incompatible

_NO_CLAIM = -1
AnyGroup = HostGroup | DomainGroup | AvoidedGroup


Undo: TypeAlias = tuple[Callable[..., object], *tuple[Any, ...]]
"""A function to call, and its arguments."""


class Topology:
    """All groups of a decision."""

    def __init__(
        self,
        signatures: Signatures,
        namespaces: Mapping[str, Mapping[str, str]],
        pool_domains: PoolDomains,
        effort: Effort,
    ) -> None:
        self.tables: dict[str, DomainTable] = {}
        self.groups: list[AnyGroup] = []
        self.avoided: dict[str, list[AvoidedGroup]] = {}
        """By topology key: its anti-affinity groups."""
        self._signatures = signatures
        self._namespaces = namespaces
        self._pool_domains = pool_domains
        self._effort = effort
        self._by_identity: dict[object, AnyGroup] = {}
        self._filters: dict[object, tuple[SpreadFilter, int]] = {}
        self._filters_of: dict[tuple[int, bool, bool], tuple[SpreadFilter | None, int]] = {}
        """The same by the identity of rules, because comparing thousands of rules takes long."""
        self._tolerated: dict[tuple[int, tuple[Taint, ...]], bool] = {}
        self._waiting: set[tuple[str, str]] = set()
        """Label pairs of all pods that may have to be placed."""
        self._by_label: dict[tuple[str, str], list[AnyGroup]] = {}
        """Groups by a label pair that their selector requires."""
        self._unindexed: list[AnyGroup] = []
        """Groups whose selector requires no single label pair."""
        self._selected: dict[tuple[str, int], tuple[AnyGroup, ...]] = {}
        self._fragile_of: dict[str, Sequence[DomainGroup]] = {}
        self._existing: Sequence[Mapping[str, str]] = ()
        """Labels of existing nodes, by number."""
        self._number: Mapping[str, int] = {}
        self._label_sets: Sequence[LabelSet] = ()

    def use_nodes(self, existing: ExistingNodes) -> None:
        """Take the existing nodes; call it before any group is made."""
        self._existing = existing.labels
        self._site_of = existing.site
        self._number = existing.number
        self._label_sets = existing.label_sets

    def table(self, key: str) -> DomainTable:
        """Return the domains of a key: those of pools and those of existing nodes."""
        table = self.tables.get(key)
        if table is None:
            names = set(self._pool_domains.of(key))
            # Nodes of one label set differ only in the hostname, and no table is over hostnames.
            labelled = [each for each in self._label_sets if key in each.labels]
            names.update(each.labels[key] for each in labelled)
            table = self.tables[key] = DomainTable(key, names, self._signatures)
            for each in labelled:
                table.place(each.nodes, table.bit(each.labels[key]))
        return table

    def spread(self, constraint: SpreadConstraint, rules: PodRules, pod: Pod) -> AnyGroup:
        """Return the group of a spread constraint; made once for equal constraints."""
        selector = resolve_label_keys(constraint.selector, pod.labels, constraint.match_label_keys)
        node_filter, filter_key = self._filter(constraint, rules)
        identity = (
            GroupKind.SPREAD,
            constraint.topology_key,
            pod.namespace,
            selector,
            constraint.max_skew,
            constraint.min_domains,
            constraint.honors_affinity,
            filter_key,
        )
        known = self._by_identity.get(identity)
        if known is None:
            key, spaces = constraint.topology_key, frozenset({pod.namespace})
            known = self._add(identity, self._new(GroupKind.SPREAD, key, spaces, selector))
            assert not isinstance(known, AvoidedGroup)
            known.max_skew = constraint.max_skew
            known.filter = node_filter
            if isinstance(known, DomainGroup):
                known.min_domains = constraint.min_domains or 0
                known.honors_affinity = constraint.honors_affinity
                known.known = self._known_domains(known, constraint, rules)
                if len(rules.required_node_terms) > 1:
                    known.by_other_terms = self._domains_of_nodes(known)
        return known

    def affinity(self, kind: GroupKind, term: AffinityTerm, pod: Pod) -> AnyGroup:
        """Return the group of a pod (anti-)affinity term; made once for equal terms."""
        selector = resolve_label_keys(
            term.selector, pod.labels, term.match_label_keys, term.mismatch_label_keys
        )
        spaces = self._term_namespaces(term, pod.namespace)
        identity = (kind, term.topology_key, spaces, selector)
        known = self._by_identity.get(identity)
        if known is None:
            known = self._add(identity, self._new(kind, term.topology_key, spaces, selector))
        return known

    def selecting(self, namespace: str, labels: Mapping[str, str]) -> tuple[AnyGroup, ...]:
        """Return the groups that select a pod; call it after all groups are made."""
        candidates = self._candidates(labels)
        if not candidates:
            return ()
        self._effort.spend(len(candidates))
        memo = (namespace, id(labels))
        found = self._selected.get(memo)
        if found is None:
            found = tuple(group for group in candidates if group.selects(namespace, labels))
            self._selected[memo] = found
        return found

    def _candidates(self, labels: Mapping[str, str]) -> list[AnyGroup]:
        """Return the groups that may select pods with these labels."""
        if not self._unindexed and self._by_label.keys().isdisjoint(labels.items()):
            return []
        candidates = list(self._unindexed)
        for pair in labels.items():
            candidates += self._by_label.get(pair, ())
        return candidates

    def count_bound(
        self, bound: BoundPods, waiting_labels: Callable[[], set[tuple[str, str]]]
    ) -> None:
        """Count active pods on existing nodes; make the groups of their required anti-affinity."""
        self._count_inverse(
            [each for each in bound.demanding if each[0].rules.anti_affinity], waiting_labels
        )
        if not self.groups:
            return
        counted: dict[int, list[AnyGroup]] = {}
        for pod, node in zip(bound.pods, bound.nodes, strict=True):
            groups = counted.get(id(pod.labels))
            if groups is None:
                groups = counted[id(pod.labels)] = self._counting(pod.labels)
            if groups:
                self._count_in_each(groups, pod, node)
        for placed in bound.placed:
            groups = [
                group
                for group in self._counting(placed.labels)
                if placed.namespace in group.namespaces
            ]
            self._effort.pass_time(len(groups) * len(placed.nodes))
            for name in placed.nodes if groups else ():
                number = self._number.get(name)
                if number is not None:
                    for group in groups:
                        self._count(group, number)

    def _counting(self, labels: Mapping[str, str]) -> list[AnyGroup]:
        """Return the groups that count pods with these labels in some namespace."""
        candidates = self._candidates(labels)
        self._effort.pass_time(len(candidates))
        return [
            group
            for group in candidates
            if group.kind is not GroupKind.INVERSE and group.selects_labels(labels)
        ]

    def _count_in_each(self, groups: Sequence[AnyGroup], pod: Pod, node: int) -> None:
        if not pod.is_deleting:
            self._effort.pass_time(len(groups))
            for group in groups:
                if pod.namespace in group.namespaces:
                    self._count(group, node)

    def _count_inverse(
        self,
        pods: Sequence[tuple[Pod, int]],
        waiting_labels: Callable[[], set[tuple[str, str]]],
    ) -> None:
        """Count pods on existing nodes in the groups of their own required anti-affinity."""
        if not pods:
            return
        self._waiting = waiting_labels()
        known: dict[tuple[int, int, str], list[AnyGroup]] = {}
        for pod, node in pods:
            if pod.is_deleting:
                continue
            terms = pod.rules.anti_affinity
            key = (id(terms), id(pod.labels), pod.namespace)
            groups = known.get(key)
            if groups is None:
                groups = known[key] = self.inverse_groups(pod)
            self._effort.pass_time(len(groups))
            for group in groups:
                self._count(group, node)

    def inverse_groups(self, pod: Pod) -> list[AnyGroup]:
        """Return the groups by which the required anti-affinity of a pod concerns waiting pods."""
        return [
            self.affinity(GroupKind.INVERSE, term, pod)
            for term in pod.rules.anti_affinity
            if not _matches_no_waiting_pod(term, self._waiting)
        ]

    def uncount(self, pod: Pod, node: int, groups: Iterable[AnyGroup]) -> Iterator[Undo]:
        """Take a pod on an existing node out of the counts; yield the calls that undo it."""
        if pod.is_deleting:
            return
        for group in groups:
            if group.filter is not None and not group.filter.accepts(self._site_of(node)):
                continue
            if isinstance(group, HostGroup):
                group.remove(node)
                yield group.add, node
                continue
            domain = group.domains.bit(self._existing[node].get(group.key, ""))
            if isinstance(group, DomainGroup):
                group.remove(domain)
                yield group.add, domain
            else:
                group.remove(_NO_CLAIM, domain)
                yield group.add, _NO_CLAIM, domain

    def count_terminating(self, pod: Pod, site: Site, labels: Mapping[str, str]) -> None:
        """Count a pod that stays on a deleting node, in the domain of the node."""
        for group in self.selecting(pod.namespace, pod.labels):
            if group.kind is not GroupKind.INVERSE and (
                group.filter is None or group.filter.allows(site)
            ):
                _count_in(group, labels)
        for term in pod.rules.anti_affinity:
            _count_in(self.affinity(GroupKind.INVERSE, term, pod), labels)

    def _count(self, group: AnyGroup, node: int) -> None:
        if group.filter is not None and not group.filter.accepts(self._site_of(node)):
            return
        if isinstance(group, HostGroup):
            group.add(node)
        else:
            _count_in(group, self._existing[node])

    def _new(
        self, kind: GroupKind, key: str, spaces: frozenset[str], selector: LabelSelector | None
    ) -> AnyGroup:
        if key == HOSTNAME:
            return HostGroup(kind, key, spaces, selector)
        table = self.table(key)
        if kind is GroupKind.SPREAD or kind is GroupKind.AFFINITY:
            return DomainGroup(kind, table, spaces, selector)
        group = AvoidedGroup(kind, table, spaces, selector)
        self.avoided.setdefault(key, []).append(group)
        return group

    def _add(self, identity: object, group: AnyGroup) -> AnyGroup:
        self._by_identity[identity] = group
        self.groups.append(group)
        if group.selector is not None:
            for expression in group.selector.expressions:
                if not expression.complement and len(expression.values) == 1:
                    (value,) = expression.values
                    self._by_label.setdefault((expression.key, value), []).append(group)
                    return group
            self._unindexed.append(group)
        return group

    def _term_namespaces(self, term: AffinityTerm, own: str) -> frozenset[str]:
        if term.namespace_selector is None:
            return frozenset(term.namespaces) if term.namespaces else frozenset({own})
        selected = {
            name
            for name, labels in self._namespaces.items()
            if term.namespace_selector.selects(labels)
        }
        return frozenset(selected.union(term.namespaces))

    def _filter(
        self, constraint: SpreadConstraint, rules: PodRules
    ) -> tuple[SpreadFilter | None, int]:
        """Return which nodes a spread counts, with a number that equal filters share."""
        asked = (id(rules), constraint.honors_affinity, constraint.honors_taints)
        known = self._filters_of.get(asked)
        if known is None:
            known = self._filters_of[asked] = self._make_filter(constraint, rules)
        return known

    def _make_filter(
        self, constraint: SpreadConstraint, rules: PodRules
    ) -> tuple[SpreadFilter | None, int]:
        selector = rules.node_selector if constraint.honors_affinity else ()
        # Differs: the nodes that a spread counts, after a required node affinity term was dropped:
        # Karpenter counts by the terms that are left; Karpy counts by all terms, as kube-scheduler
        # does.
        terms = rules.required_node_terms if constraint.honors_affinity else ()
        # Differs: a spread with `nodeTaintsPolicy: Honor` and nodes with a PreferNoSchedule taint:
        # Karpenter does not count these nodes; Karpy does, as kube-scheduler does.
        tolerations = (
            (*rules.tolerations, TOLERATE_PREFERENCES) if constraint.honors_taints else None
        )
        if not selector and not terms and tolerations is None:
            return None, 0
        identity = (selector, terms, tolerations)
        known = self._filters.get(identity)
        if known is None:
            alternatives = alternatives_of(selector, terms)

            def allows(site: Site) -> bool:
                if tolerations is not None and first_untolerated(site.taints, tolerations):
                    return False
                # Parity: a spread whose pods require a label that all types of a new claim have,
                # while the claim does not require it: as in Karpenter, pods on the claim are not
                # counted, so that a pod may be refused that another order would place.
                have = site.requirements
                return any(why_incompatible(have, each) is None for each in alternatives)

            made = SpreadFilter(allows)
            known = self._filters[identity] = made, len(self._filters) + 1
        return known

    def _known_domains(
        self, group: DomainGroup, constraint: SpreadConstraint, rules: PodRules
    ) -> int:
        table = group.domains
        known = 0
        for name, taint_sets in self._pool_domains.of(group.key).items():
            if not constraint.honors_taints or any(
                self._is_tolerated(taints, rules) for taints in taint_sets
            ):
                known |= table.bit(name)
        group.of_pools = known
        return known | self._domains_of_nodes(group, besides=known)

    def _is_tolerated(self, taints: tuple[Taint, ...], rules: PodRules) -> bool:
        known = self._tolerated.get((id(rules), taints))
        if known is None:
            tolerations = (*rules.tolerations, TOLERATE_PREFERENCES)
            known = first_untolerated(taints, tolerations) is None
            self._tolerated[id(rules), taints] = known
        return known

    def without_nodes(self, gone: int) -> dict[DomainGroup, tuple[int, int]] | None:
        """
        Return the spreads whose domains change without some nodes, with the changed domains.

        These are `known` and `by_other_terms`. None if only the nodes are in some domain.
        """
        changed: dict[DomainGroup, tuple[int, int]] = {}
        for table in self.tables.values():
            lost = 0
            for domain, nodes in enumerate(table.nodes):
                if nodes & gone:
                    lost |= 1 << domain
            if not lost:
                continue
            offered = self._pool_domains.of(table.key)
            if any(
                not table.nodes[domain] & ~gone and table.names[domain] not in offered
                for domain in members(lost)
            ):
                return None
            for group in self._fragile(table):
                known, there = group.known, group.by_other_terms
                if at_stake := lost & known & ~group.of_pools:
                    known = known & ~at_stake | self._domains_of_nodes(group, ~at_stake, gone)
                if at_stake := lost & there:
                    there = there & ~at_stake | self._domains_of_nodes(group, ~at_stake, gone)
                if (known, there) != (group.known, group.by_other_terms):
                    changed[group] = known, there
        return changed

    def _fragile(self, table: DomainTable) -> Sequence[DomainGroup]:
        """Return the spreads over a key with domains that count only because of existing nodes."""
        found = self._fragile_of.get(table.key)
        if found is None:
            found = self._fragile_of[table.key] = [
                group
                for group in self.groups
                if isinstance(group, DomainGroup)
                and group.domains is table
                and group.kind is GroupKind.SPREAD
                and (group.known & ~group.of_pools or group.by_other_terms)
            ]
        return found

    def _domains_of_nodes(self, group: DomainGroup, besides: int = 0, gone: int = 0) -> int:
        """Return the domains of existing nodes that pass the filter of a group."""
        found = 0
        for domain in members(group.domains.all & ~besides):
            nodes = group.domains.nodes[domain] & ~gone
            if group.filter is None or any(
                group.filter.accepts(self._site_of(node)) for node in members(nodes)
            ):
                found |= 1 << domain
        return found


def _matches_no_waiting_pod(term: AffinityTerm, labels: set[tuple[str, str]]) -> bool:
    """Say whether a term on hostnames selects no pod with labels out of some label pairs."""
    # Groups on other keys are always made: their keys are watched labels (`Signatures.watch`).
    if term.topology_key != HOSTNAME or term.selector is None:
        return False
    return any(
        not each.complement
        and len(each.values) == 1
        and labels.isdisjoint((each.key, value) for value in each.values)
        for each in term.selector.expressions
    )


def _count_in(group: AnyGroup, labels: Mapping[str, str]) -> None:
    if isinstance(group, HostGroup):
        group.is_elsewhere = True
        return
    domain = group.domains.bit(labels.get(group.key, ""))
    if isinstance(group, DomainGroup):
        group.add(domain)
        group.is_elsewhere = group.is_elsewhere or (not domain and group.key in labels)
    else:
        group.add(_NO_CLAIM, domain)


def pod_domains(table: DomainTable, strict: Mapping[str, Requirement]) -> int:
    """Return the domains that the strict requirements of a pod allow."""
    return table.allowed_by(strict.get(table.key))
