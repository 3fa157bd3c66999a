"""
Topology spread: whether the plan can come true without breaking a DoNotSchedule constraint.

kube-scheduler looks at a spread constraint when it binds a pod that carries it, never later, and a
plan does not say in which order pods will be bound. So this asks whether some order works. The
best case for a carrier is that it comes before all new pods that are selected but do not carry the
constraint (nothing keeps those from coming later), and that every domain is as full as it will
ever be. What is left to check is, for each domain a carrier may come to:

    pods selected there before + carriers selected there - pods in the emptiest domain <= maxSkew

- A carrier on a node that may come up in several domains counts in each of them; for the emptiest
  domain only pods count whose domain is settled, on nodes that are sure to pass the node filter.
  That is right whatever the cloud picks.
- Domains that count are those of nodes that are there and pass the node filter (as in
  kube-scheduler), and those that a NodePool could open: a zone without nodes is an empty domain.
  Which of the latter pass the filter depends on the required term that a pod is placed by; for
  carriers with several terms they do not count. Nor does a domain that only another launch opens:
  it may come later.
- With fewer domains than minDomains the emptiest counts as empty. Here launches that open one may
  come first.
- The hostname: a fresh node is always possible, so the emptiest is empty.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from karpy.core.check.breaches import Breach, Rule
from karpy.core.check.crowd import Resident, Scope, Tally, settled, spread_scope
from karpy.core.check.defaults import hard_spreads
from karpy.core.check.places import Place
from karpy.core.check.scene import Scene
from karpy.core.check.universe import domains_of_nodes, domains_on_offer
from karpy.core.check.wishes import Values, Wish, is_granted, tolerates, wishes_of
from karpy.model.constraints import SpreadConstraint, Toleration
from karpy.model.labels import HOSTNAME, normalise
from karpy.model.pods import Pod


class NodeFilter(Struct, frozen=True):
    """Which domains of a key a constraint compares."""

    key: str
    wishes: tuple[Wish, ...]
    honors_affinity: bool
    tolerations: tuple[Toleration, ...] | None
    """Given if nodes count only if their taints are tolerated."""

    def counts(self, place: Place) -> bool:
        """Say whether pods at a place may count."""
        return self._is_tolerant_of(place) and (
            not self.honors_affinity or all(place.may_meet(wish) for wish in self.wishes)
        )

    def surely_counts(self, place: Place) -> bool:
        """Say whether pods at a place count whatever the cloud picks."""
        return self._is_tolerant_of(place) and (
            not self.honors_affinity or all(place.meets(wish) for wish in self.wishes)
        )

    def counts_by(self, place: Place, values: Values) -> bool:
        """Say whether pods at a place count if its labels may have these values only."""
        return self._is_tolerant_of(place) and (
            not self.honors_affinity or all(is_granted(wish, values) for wish in self.wishes)
        )

    def admits(self, domain: str) -> bool:
        """Say whether nodes of a domain may count, as far as the key tells."""
        terms = [term for wish in self.wishes for term in wish if self.honors_affinity]
        wanted = [each for term in terms for each in term.expressions if each.key == self.key]
        return all(domain in each for each in wanted)

    def _is_tolerant_of(self, place: Place) -> bool:
        return self.tolerations is None or tolerates(self.tolerations, place.taints)


class Spread(Struct, frozen=True):
    """A constraint as its carriers share it."""

    scope: Scope
    max_skew: int
    min_domains: int | None
    filter: NodeFilter

    @property
    def key(self) -> str:
        return self.filter.key


def as_spread(constraint: SpreadConstraint, pod: Pod) -> Spread:
    """See a pod's constraint with all that its meaning depends on."""
    key = normalise(constraint.topology_key)
    tolerations = pod.rules.tolerations if constraint.honors_taints else None
    return Spread(
        spread_scope(constraint, pod),
        constraint.max_skew,
        constraint.min_domains,
        NodeFilter(key, wishes_of(pod), constraint.honors_affinity, tolerations),
    )


def check_spreads(scene: Scene) -> Iterator[Breach]:
    """Look for spread constraints that hold in no order of arrival."""
    carriers: dict[Spread, list[Resident]] = {}
    for resident in scene.crowd.residents:
        for constraint in hard_spreads(resident.pod, scene.snapshot) if resident.is_new else ():
            carriers.setdefault(as_spread(constraint, resident.pod), []).append(resident)
    filters = {spread.filter for spread in carriers}
    domains = {each: _domains_that_count(scene, each) for each in filters}
    for spread, theirs in carriers.items():
        known = domains[spread.filter]
        yield from _check_spread(spread, theirs, select_counted(scene, spread, surely=True), known)


def select_counted(scene: Scene, spread: Spread, *, surely: bool = False) -> list[Resident]:
    """Return the pods that a constraint selects, at places that may or surely do count."""
    selected = scene.crowd.select(spread.scope)
    counts = spread.filter.surely_counts if surely else spread.filter.counts
    places = {each.place: counts(each.place) for each in selected}
    return [each for each in selected if places[each.place]]


def _check_spread(
    spread: Spread, carriers: list[Resident], selected: list[Resident], domains: frozenset[str]
) -> Iterator[Breach]:
    before = _tally(spread, (each for each in selected if not each.is_new))
    counted = _tally(spread, (each for each in carriers if spread.scope.selects(each.pod)))
    sure = Tally(settled(each.place.domains(spread.key) for each in selected))
    reported: set[str] = set()
    for carrier in carriers:
        its = carrier.place.domains(spread.key)
        if not its.is_sure:
            detail = f"it is not sure to have a label {spread.key}"
            yield Breach(Rule.SPREAD, carrier.place.name, carrier.pod.key, detail)
        for domain in sorted(its.values - reported):
            count = before[domain] + counted[domain]
            least = _emptiest(spread, domains | {domain}, sure)
            if count - least > spread.max_skew:
                reported.add(domain)
                detail = f"{spread.key}: {count} in {domain}, {least} in the emptiest"
                yield Breach(Rule.SPREAD, carrier.place.name, carrier.pod.key, detail)


def _tally(spread: Spread, residents: Iterable[Resident]) -> Tally:
    return Tally(each.place.domains(spread.key) for each in residents)


def _emptiest(spread: Spread, domains: frozenset[str], sure: Tally) -> int:
    """Return the least count, among domains that launches open too if minDomains needs them."""
    missing = (spread.min_domains or 0) - len(domains)
    opened = sorted((sure[domain] for domain in sure.domains - domains), reverse=True)
    if spread.key == HOSTNAME or missing > len(opened):
        return 0
    return min((*(sure[domain] for domain in domains), *opened[: max(0, missing)]))


def _domains_that_count(scene: Scene, asked: NodeFilter) -> frozenset[str]:
    found = domains_of_nodes((each for each in scene.nodes if asked.counts(each)), asked.key)
    if asked.honors_affinity and any(len(wish) > 1 for wish in asked.wishes):
        return found
    pools = scene.market.pools_in_use
    on_offer = domains_on_offer(scene, asked.key, pools, asked.tolerations)
    return found | {domain for domain in on_offer if asked.admits(domain)}
