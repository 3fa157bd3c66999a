"""
Required pod affinity and anti-affinity, as kube-scheduler will see them after launch.

*Anti-affinity* is mutual, and is checked in every domain that may result: a pod and the pods that
its term selects may not share any possible domain of the key, unless both are already bound.

*Affinity*: when a pod is bound, its domain must surely contain a selected pod. That is sure of pods
on the same node. It is also sure if every domain that the node may be in contains a selected pod
whose own domain is certain. A pod that its own term selects may also be the first of its group, if
no pod of the group is anywhere else, not even where the pod itself cannot go.

That depends on the order in which pods are bound, which a plan does not state. The check therefore
places pods one by one: pods with affinity as soon as their terms are met, in the solver's order
(largest first), and new pods without affinity when no pod with affinity can be placed. A pod that
is left in the end is a breach. A pod that is left only if all pods without affinity are placed
first is a risk, not a breach.

A pod with several terms also needs, for each of them, pods that match *all* of its terms, because
kube-scheduler counts only those.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from karpy.core.check.breaches import Breach, Rule
from karpy.core.check.constraints import Domains
from karpy.core.check.scene import (
    DomainTally,
    Place,
    PlannedCluster,
    PodScope,
    Resident,
    affinity_scope,
)
from karpy.model.constraints import AffinityTerm
from karpy.model.labels import normalise
from karpy.model.pods import Pod
from karpy.model.resources import CPU, MEMORY


class SelectedPods(Struct, frozen=True):
    """The pods that every scope selects, seen by the domains of one key."""

    key: str
    scopes: tuple[PodScope, ...]

    def selects(self, pod: Pod) -> bool:
        return all(scope.selects(pod) for scope in self.scopes)


def groups_of(
    terms: Iterable[AffinityTerm], pod: Pod, cluster: PlannedCluster
) -> tuple[SelectedPods, ...]:
    """Return the group of pods that each term of a pod is about."""
    namespaces = cluster.snapshot.namespaces
    return tuple(
        SelectedPods(normalise(term.topology_key), (affinity_scope(term, pod, namespaces),))
        for term in terms
    )


def check_anti_affinity(cluster: PlannedCluster) -> Iterator[Breach]:
    """Yield a breach for pods that may share a domain despite anti-affinity."""
    owners: dict[SelectedPods, list[Resident]] = {}
    for resident in cluster.pod_index.residents:
        for group in groups_of(resident.pod.rules.anti_affinity, resident.pod, cluster):
            owners.setdefault(group, []).append(resident)
    for group, residents in owners.items():
        yield from _check_apart(cluster, group, residents)


def _check_apart(
    cluster: PlannedCluster, group: SelectedPods, owners: list[Resident]
) -> Iterator[Breach]:
    selected = cluster.pod_index.select(*group.scopes)
    new = [each for each in selected if each.is_new]
    all_counts = DomainTally(each.place.domains(group.key) for each in selected)
    new_counts = DomainTally(each.place.domains(group.key) for each in new)
    for owner in owners:
        domains = owner.place.domains(group.key)
        own = int(owner.is_new and group.selects(owner.pod))
        count, domain = (all_counts if owner.is_new else new_counts).most(domains)
        if count <= own:
            continue
        # The breach is reported for a new pod: the plan does not move bound pods.
        subject = owner if owner.is_new else _first_sharing(domains, group.key, new)
        detail = f"{group.key} {domain}: {count - own} others, by the rule of {owner.pod.key}"
        yield Breach(Rule.ANTI_AFFINITY, subject.place.name, subject.pod.key, detail)


def _first_sharing(domains: Domains, key: str, residents: Iterable[Resident]) -> Resident:
    return next(each for each in residents if domains.may_meet(each.place.domains(key)))


class PodDomains:
    """The placed pods of a group: how many are on each node, and surely in each domain."""

    def __init__(self, key: str, residents: Iterable[Resident] = ()) -> None:
        self._key = key
        self._at: Counter[Place] = Counter()
        self._surely: Counter[str] = Counter()
        for resident in residents:
            self.add(resident)

    def add(self, resident: Resident) -> None:
        self._at[resident.place] += 1
        domain = resident.place.domains(self._key).settled
        if domain is not None:
            self._surely[domain] += 1

    def is_near(self, place: Place, more_than: int = 0) -> bool:
        """Say whether more than `more_than` pods are surely in every domain the place may be in."""
        domains = place.domains(self._key)
        if not domains.is_sure:
            return False
        if self._at[place] > more_than:
            return True
        # A settled domain counts the pod itself; if several domains are possible, none does.
        own = more_than if domains.settled is not None else 0
        return all(self._surely[domain] > own for domain in sorted(domains.values))

    def is_alone_at(self, place: Place) -> bool:
        """Say whether surely no pod of the group is at another place that has the key."""
        others = (each.domains(self._key) for each in self._at if each is not place)
        is_alone = not any(each.values or each.is_open for each in others)
        return is_alone and place.domains(self._key).is_sure


class GradualPlacement:
    """Places pods one by one, a pod with affinity once its terms are met."""

    def __init__(self, cluster: PlannedCluster) -> None:
        self.with_affinity: dict[Resident, tuple[SelectedPods, ...]] = {
            each: groups_of(each.pod.rules.affinity, each.pod, cluster)
            for each in sorted(cluster.pod_index.residents, key=_largest_first)
            if each.is_new and each.pod.rules.affinity
        }
        self._groups: dict[Resident, list[SelectedPods]] = {}
        self._placed: dict[SelectedPods, PodDomains] = {}
        for group in (group for groups in self.with_affinity.values() for group in groups):
            if group not in self._placed:
                self._placed[group] = PodDomains(group.key)
                for resident in cluster.pod_index.select(*group.scopes):
                    self._groups.setdefault(resident, []).append(group)

    def place_without_affinity(self, *, bound: bool) -> None:
        """Place all pods without affinity that are bound already, or else all that are new."""
        for resident in self._groups:
            if resident not in self.with_affinity and resident.is_new != bound:
                self._place(resident)

    def _place(self, resident: Resident) -> None:
        for group in self._groups.get(resident, ()):
            self._placed[group].add(resident)

    def place_with_affinity(self, waiting: Iterable[Resident]) -> list[Resident]:
        """Place the pods whose affinity is met, until none is; return the pods that are left."""
        left = list(waiting)
        waiting = []
        while len(left) != len(waiting):
            waiting, left = left, []
            for each in waiting:
                if all(self._is_met(each, group) for group in self.with_affinity[each]):
                    self._place(each)
                else:
                    left.append(each)
        return left

    def _is_met(self, resident: Resident, group: SelectedPods) -> bool:
        placed = self._placed[group]
        return placed.is_near(resident.place) or may_be_first(resident, group, placed)


def _largest_first(resident: Resident) -> tuple[int, int, datetime, str]:
    pod = resident.pod
    return -pod.requests.get(CPU, 0), -pod.requests.get(MEMORY, 0), pod.created, pod.uid


def may_be_first(resident: Resident, group: SelectedPods, placed: PodDomains) -> bool:
    """Say whether a pod may be placed as the first of its group."""
    return group.selects(resident.pod) and placed.is_alone_at(resident.place)


def check_affinity(cluster: PlannedCluster) -> Iterator[Breach]:
    """Yield a breach for pods whose affinity holds in no order of placement."""
    placement = GradualPlacement(cluster)
    placement.place_without_affinity(bound=True)
    waiting = placement.place_with_affinity(placement.with_affinity)
    placement.place_without_affinity(bound=False)
    unmet = placement.place_with_affinity(waiting)
    for resident in unmet:
        yield _breach(Rule.AFFINITY, resident, placement)
    yield from _check_terms_together(cluster, placement, set(unmet))


def find_affinity_risks(cluster: PlannedCluster) -> Iterator[Breach]:
    """Yield pods whose affinity fails only if all pods without affinity are placed first."""
    best, worst = GradualPlacement(cluster), GradualPlacement(cluster)
    best.place_without_affinity(bound=True)
    waiting = best.place_with_affinity(best.with_affinity)
    best.place_without_affinity(bound=False)
    unmet = {each.pod.key for each in best.place_with_affinity(waiting)}
    worst.place_without_affinity(bound=True)
    worst.place_without_affinity(bound=False)
    for resident in worst.place_with_affinity(worst.with_affinity):
        if resident.pod.key not in unmet:
            yield _breach(Rule.AFFINITY_START, resident, worst)


def _breach(rule: Rule, resident: Resident, placement: GradualPlacement) -> Breach:
    keys = ", ".join(sorted({group.key for group in placement.with_affinity[resident]}))
    return Breach(rule, resident.place.name, resident.pod.key, keys)


def _check_terms_together(
    cluster: PlannedCluster, placement: GradualPlacement, unmet: set[Resident]
) -> Iterator[Breach]:
    placed_by_groups: dict[tuple[SelectedPods, ...], list[tuple[SelectedPods, PodDomains]]] = {}
    for resident, groups in placement.with_affinity.items():
        if len(groups) == 1 or resident in unmet:
            continue
        if groups not in placed_by_groups:
            placed_by_groups[groups] = _match_all(cluster, groups)
        for group, placed in placed_by_groups[groups]:
            is_near = placed.is_near(resident.place, more_than=int(group.selects(resident.pod)))
            if not is_near and not may_be_first(resident, group, placed):
                yield Breach(Rule.AFFINITY_TERMS, resident.place.name, resident.pod.key, group.key)


def _match_all(
    cluster: PlannedCluster, groups: tuple[SelectedPods, ...]
) -> list[tuple[SelectedPods, PodDomains]]:
    """Return, for the key of each group, the pods that are in all groups."""
    scopes = tuple(dict.fromkeys(scope for group in groups for scope in group.scopes))
    members = cluster.pod_index.select(*scopes)
    keys = dict.fromkeys(group.key for group in groups)
    return [(SelectedPods(key, scopes), PodDomains(key, members)) for key in keys]
