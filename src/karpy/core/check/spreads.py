"""
Topology spread: whether the plan can come true without breaking a DoNotSchedule constraint.

kube-scheduler checks a spread constraint only when it binds a pod that has it (a *carrier* here),
and a plan does not state the order of binding. So the check asks whether some order works. The best
case for a carrier: it is bound before all new pods that are selected but do not have the constraint
(these may always be bound later), and every domain is as full as it will ever be. The rest is
checked, for each domain that a carrier may be in:

    bound selected pods + selected carriers there - pods in the emptiest domain <= maxSkew

- A carrier on a node that may be in several domains counts in each of them. In the emptiest domain
  only pods count whose domain is certain, on nodes that surely pass the node filter. That is right
  whatever the cloud picks.
- The domains are those of existing nodes that pass the node filter (as in kube-scheduler), and
  those that a NodePool could open: a zone without nodes is an empty domain. Which of the latter
  pass the filter depends on the required term by which a pod is placed; for carriers with several
  terms they do not count. Nor does a domain that only another launch opens: it may open later.
- With fewer domains than minDomains, the emptiest domain counts as empty. For this, launches that
  open a domain may come first.
- For the hostname the emptiest domain is empty, because a new node is always possible.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.check.breaches import Breach, Rule
from karpy.core.check.constraints import (
    Alternatives,
    Values,
    alternatives_of,
    holds_surely,
    tolerates,
)
from karpy.core.check.scene import (
    DomainTally,
    NodePlace,
    Place,
    PlannedCluster,
    PodScope,
    Resident,
    settled,
    spread_scope,
)
from karpy.model.constraints import LabelSelector, SpreadConstraint, Toleration
from karpy.model.labels import HOSTNAME, normalise
from karpy.model.pods import Owner, Pod, PodController
from karpy.model.pools import NodePool
from karpy.model.requirements import Requirement, collect, from_labels, merge, one_of
from karpy.model.snapshot import Snapshot

_REPLICATION_CONTROLLER: Final = ("v1", "ReplicationController")
_WITH_SELECTOR: Final = frozenset({("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")})


class NodeFilter(Struct, frozen=True):
    """Which nodes, and hence domains of a key, a spread constraint counts."""

    key: str
    alternatives: tuple[Alternatives, ...]
    honors_affinity: bool
    tolerations: tuple[Toleration, ...] | None
    """Tolerations that a node's taints must match; None if taints are ignored."""

    def counts(self, place: Place) -> bool:
        """Say whether pods at a place may count."""
        return self._is_tolerant_of(place) and (
            not self.honors_affinity or all(place.may_meet(each) for each in self.alternatives)
        )

    def surely_counts(self, place: Place) -> bool:
        """Say whether pods at a place count whatever the cloud picks."""
        return self._is_tolerant_of(place) and (
            not self.honors_affinity or all(place.meets(each) for each in self.alternatives)
        )

    def counts_by(self, place: Place, values: Values) -> bool:
        """Say whether pods at a place count if its labels have these possible values."""
        holds = all(holds_surely(each, values) for each in self.alternatives)
        return self._is_tolerant_of(place) and (not self.honors_affinity or holds)

    def admits(self, domain: str) -> bool:
        """Say whether nodes of a domain may count, judged by the topology key alone."""
        terms = [term for each in self.alternatives for term in each if self.honors_affinity]
        required = [each for term in terms for each in term.expressions if each.key == self.key]
        return all(domain in each for each in required)

    def _is_tolerant_of(self, place: Place) -> bool:
        return self.tolerations is None or tolerates(self.tolerations, place.taints)


class CheckedSpread(Struct, frozen=True):
    """A spread constraint with its node filter; equal for all its carriers."""

    scope: PodScope
    max_skew: int
    min_domains: int | None
    filter: NodeFilter

    @property
    def key(self) -> str:
        return self.filter.key


def as_spread(constraint: SpreadConstraint, pod: Pod) -> CheckedSpread:
    """Return a spread constraint of a pod with selector and node filter resolved."""
    key = normalise(constraint.topology_key)
    tolerations = pod.rules.tolerations if constraint.honors_taints else None
    return CheckedSpread(
        spread_scope(constraint, pod),
        constraint.max_skew,
        constraint.min_domains,
        NodeFilter(key, alternatives_of(pod), constraint.honors_affinity, tolerations),
    )


def check_spreads(cluster: PlannedCluster) -> Iterator[Breach]:
    """Yield a breach for spread constraints that hold in no order of binding."""
    carriers: dict[CheckedSpread, list[Resident]] = {}
    for resident in cluster.pod_index.residents:
        for constraint in hard_spreads(resident.pod, cluster.snapshot) if resident.is_new else ():
            carriers.setdefault(as_spread(constraint, resident.pod), []).append(resident)
    filters = {spread.filter for spread in carriers}
    domains = {each: _domains_that_count(cluster, each) for each in filters}
    for spread, residents in carriers.items():
        known = domains[spread.filter]
        yield from _check_spread(
            spread, residents, select_counted(cluster, spread, surely=True), known
        )


def select_counted(
    cluster: PlannedCluster, spread: CheckedSpread, *, surely: bool = False
) -> list[Resident]:
    """Return the pods that a constraint selects, at places that may count or surely count."""
    selected = cluster.pod_index.select(spread.scope)
    counts = spread.filter.surely_counts if surely else spread.filter.counts
    places = {each.place: counts(each.place) for each in selected}
    return [each for each in selected if places[each.place]]


def _check_spread(
    spread: CheckedSpread,
    carriers: list[Resident],
    selected: list[Resident],
    domains: frozenset[str],
) -> Iterator[Breach]:
    before = _tally(spread, (each for each in selected if not each.is_new))
    counted = _tally(spread, (each for each in carriers if spread.scope.selects(each.pod)))
    sure = DomainTally(settled(each.place.domains(spread.key) for each in selected))
    reported: set[str] = set()
    for carrier in carriers:
        own = carrier.place.domains(spread.key)
        if not own.is_sure:
            detail = f"it is not sure to have a label {spread.key}"
            yield Breach(Rule.SPREAD, carrier.place.name, carrier.pod.key, detail)
        for domain in sorted(own.values - reported):
            count = before[domain] + counted[domain]
            least = _emptiest(spread, domains | {domain}, sure)
            if count - least > spread.max_skew:
                reported.add(domain)
                detail = f"{spread.key}: {count} in {domain}, {least} in the emptiest"
                yield Breach(Rule.SPREAD, carrier.place.name, carrier.pod.key, detail)


def _tally(spread: CheckedSpread, residents: Iterable[Resident]) -> DomainTally:
    return DomainTally(each.place.domains(spread.key) for each in residents)


def _emptiest(spread: CheckedSpread, domains: frozenset[str], sure: DomainTally) -> int:
    """Return the least count; if minDomains needs more domains, launches may open them."""
    missing = (spread.min_domains or 0) - len(domains)
    opened = sorted((sure[domain] for domain in sure.domains - domains), reverse=True)
    if spread.key == HOSTNAME or missing > len(opened):
        return 0
    return min((*(sure[domain] for domain in domains), *opened[: max(0, missing)]))


def _domains_that_count(cluster: PlannedCluster, node_filter: NodeFilter) -> frozenset[str]:
    found = node_domains(
        (each for each in cluster.nodes if node_filter.counts(each)), node_filter.key
    )
    if node_filter.honors_affinity and any(len(each) > 1 for each in node_filter.alternatives):
        return found
    pools = cluster.market.pools_with_offerings
    on_offer = offered_domains(cluster, node_filter.key, pools, node_filter.tolerations)
    return found | {domain for domain in on_offer if node_filter.admits(domain)}


def hard_spreads(pod: Pod, snapshot: Snapshot) -> tuple[SpreadConstraint, ...]:
    """
    Return the spread constraints that kube-scheduler must obey for a pod.

    The cluster's default constraints apply to pods without own constraints; they count the pods of
    the same Services and the same controller.
    """
    spreads = pod.rules.spreads
    if not spreads and snapshot.settings.default_spreads:
        selector = _deduce_selector(pod, snapshot)
        if selector.expressions:
            defaults = snapshot.settings.default_spreads
            spreads = tuple(replace(each, selector=selector) for each in defaults)
    return tuple(each for each in spreads if not each.is_soft)


def _deduce_selector(pod: Pod, snapshot: Snapshot) -> LabelSelector:
    """Combine the selectors of the Services and the controller of a pod."""
    labels: dict[str, Requirement] = {}
    for service in snapshot.services:
        pairs = service.selector
        if service.namespace == pod.namespace and pairs is not None:
            required = {key: one_of(key, value) for key, value in pairs.items()}
            if LabelSelector(tuple(required.values())).selects(pod.labels):
                labels |= required
    extra: tuple[Requirement, ...] = ()
    owner = next((each for each in pod.owners if each.is_controller), None)
    controller = _find_controller(owner, pod, snapshot)
    if controller is not None and _kind(controller) == _REPLICATION_CONTROLLER:
        labels |= {each.key: each for each in controller.selector}
    elif controller is not None and _kind(controller) in _WITH_SELECTOR:
        extra = controller.selector
    return LabelSelector((*labels.values(), *extra))


def _find_controller(owner: Owner | None, pod: Pod, snapshot: Snapshot) -> PodController | None:
    if owner is None:
        return None
    required = (pod.namespace, owner.name, _kind(owner))
    for each in snapshot.controllers:
        if (each.namespace, each.name, _kind(each)) == required:
            return each
    return None


def _kind(obj: Owner | PodController) -> tuple[str, str]:
    return (obj.api_version, obj.kind)


def offered_domains(
    cluster: PlannedCluster,
    key: str,
    pools: Iterable[NodePool],
    tolerations: Sequence[Toleration] | None = None,
) -> frozenset[str]:
    """
    Return the domains that NodePools could open.

    If `tolerations` are given, NodePools with other taints are left out.
    """
    found: set[str] = set()
    for pool in pools:
        if tolerations is None or tolerates(tolerations, pool.taints):
            found |= _domains_of_pool(cluster, key, pool)
    return frozenset(found)


def node_domains(places: Iterable[NodePlace], key: str) -> frozenset[str]:
    """Return the domains of nodes that are not deleting."""
    return frozenset().union(*(each.domains(key).values for each in places if each.is_staying))


def _domains_of_pool(cluster: PlannedCluster, key: str, pool: NodePool) -> set[str]:
    own = merge(collect(pool.requirements), from_labels(pool.labels)).get(key)
    found = _finite(own)
    for instance_type in cluster.market.types[pool.name].values():
        if (of_type := instance_type.requirements.get(key)) is not None:
            found |= _finite(of_type if own is None else own & of_type)
    return found


def _finite(requirement: Requirement | None) -> set[str]:
    if requirement is None or requirement.complement:
        return set()
    return set(requirement.values)
