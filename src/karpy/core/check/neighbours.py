"""
Required pod affinity and anti-affinity, as kube-scheduler will see them after launch.

*Anti-affinity* works both ways and in every domain that may result: a pod and one that its term
selects may not share any possible domain of the key, unless both are there already.

*Affinity*: a pod must be sure to find, when its turn comes, a selected pod in its domain. It is
sure of pods on its own node, and of pods whose domain is settled, if its node can only come up in
domains that have one. A pod whose term selects the pod itself may also be the first of its group,
if no pod of the group is anywhere else yet, be it out of the pod's own reach.

That depends on the order of arrival, which a plan does not say. So the pods arrive here one by one:
those with affinity as soon as they can, largest first as they were placed, and the new pods without
affinity when no other pod can come. The pods left in the end come in an unknown order: a
breach. If instead the pods without affinity come first, a pod may be left that was not before: a
risk, not a breach.

A pod with several terms also needs, for each of them, pods that match *all* of its terms: that is
how kube-scheduler counts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import Struct

from karpy.core.check.breaches import Breach, Rule
from karpy.core.check.constraints import Domains
from karpy.core.check.scene import Place, Resident, Scene, Scope, Tally, affinity_scope
from karpy.model.constraints import AffinityTerm
from karpy.model.labels import normalise
from karpy.model.pods import Pod
from karpy.model.resources import CPU, MEMORY


class Group(Struct, frozen=True):
    """The pods that every scope selects, seen by the domains of one key."""

    key: str
    scopes: tuple[Scope, ...]

    def selects(self, pod: Pod) -> bool:
        return all(scope.selects(pod) for scope in self.scopes)


def groups_of(terms: Iterable[AffinityTerm], pod: Pod, scene: Scene) -> tuple[Group, ...]:
    """Return what each term of a pod is about."""
    namespaces = scene.snapshot.namespaces
    return tuple(
        Group(normalise(term.topology_key), (affinity_scope(term, pod, namespaces),))
        for term in terms
    )


def check_anti_affinity(scene: Scene) -> Iterator[Breach]:
    """Look for pods that must be kept apart and may come together."""
    owners: dict[Group, list[Resident]] = {}
    for resident in scene.crowd.residents:
        for group in groups_of(resident.pod.rules.anti_affinity, resident.pod, scene):
            owners.setdefault(group, []).append(resident)
    for group, theirs in owners.items():
        yield from _check_apart(scene, group, theirs)


def _check_apart(scene: Scene, group: Group, owners: list[Resident]) -> Iterator[Breach]:
    selected = scene.crowd.select(*group.scopes)
    new = [each for each in selected if each.is_new]
    present = Tally(each.place.domains(group.key) for each in selected)
    newcomers = Tally(each.place.domains(group.key) for each in new)
    for owner in owners:
        domains = owner.place.domains(group.key)
        itself = int(owner.is_new and group.selects(owner.pod))
        count, domain = (present if owner.is_new else newcomers).most(domains)
        if count <= itself:
            continue
        # Who is there already stays; the breach is the newcomer's.
        guilty = owner if owner.is_new else _first_sharing(domains, group.key, new)
        detail = f"{group.key} {domain}: {count - itself} others, by the rule of {owner.pod.key}"
        yield Breach(Rule.ANTI_AFFINITY, guilty.place.name, guilty.pod.key, detail)


def _first_sharing(domains: Domains, key: str, residents: Iterable[Resident]) -> Resident:
    return next(each for each in residents if domains.may_meet(each.place.domains(key)))


class Company:
    """Those of a group that have arrived: how many on each node, and surely in each domain."""

    def __init__(self, key: str, residents: Iterable[Resident] = ()) -> None:
        self._key = key
        self._at: Counter[Place] = Counter()
        self._surely: Counter[str] = Counter()
        for resident in residents:
            self.join(resident)

    def join(self, resident: Resident) -> None:
        self._at[resident.place] += 1
        domain = resident.place.domains(self._key).settled
        if domain is not None:
            self._surely[domain] += 1

    def is_near(self, place: Place, besides: int = 0) -> bool:
        """Say whether more than so many are sure to be in whatever domain the place comes up."""
        domains = place.domains(self._key)
        if not domains.is_sure:
            return False
        if self._at[place] > besides:
            return True
        # The pod itself is among those counted in a settled domain, not in one of several.
        own = besides if domains.settled is not None else 0
        return all(self._surely[domain] > own for domain in sorted(domains.values))

    def may_be_started(self, place: Place) -> bool:
        """Say whether no pod is or may come up at another place that carries the key."""
        others = (each.domains(self._key) for each in self._at if each is not place)
        is_alone = not any(each.values or each.is_open for each in others)
        return is_alone and place.domains(self._key).is_sure


class Arrivals:
    """Pods that come one by one, each when its affinity lets it."""

    def __init__(self, scene: Scene) -> None:
        self.seekers: dict[Resident, tuple[Group, ...]] = {
            each: groups_of(each.pod.rules.affinity, each.pod, scene)
            for each in sorted(scene.crowd.residents, key=_largest_first)
            if each.is_new and each.pod.rules.affinity
        }
        self._groups: dict[Resident, list[Group]] = {}
        self._arrived: dict[Group, Company] = {}
        for group in (group for theirs in self.seekers.values() for group in theirs):
            if group not in self._arrived:
                self._arrived[group] = Company(group.key)
                for resident in scene.crowd.select(*group.scopes):
                    self._groups.setdefault(resident, []).append(group)

    def come(self, *, bound: bool) -> None:
        """Place all pods without affinity: the bound ones, or the new ones."""
        for resident in self._groups:
            if resident not in self.seekers and resident.is_new != bound:
                self._join(resident)

    def _join(self, resident: Resident) -> None:
        for group in self._groups.get(resident, ()):
            self._arrived[group].join(resident)

    def let_in(self, waiting: Iterable[Resident]) -> list[Resident]:
        """Place the pods whose affinity is met; return the others."""
        left = list(waiting)
        waiting = []
        while len(left) != len(waiting):
            waiting, left = left, []
            for each in waiting:
                if all(self._finds(each, group) for group in self.seekers[each]):
                    self._join(each)
                else:
                    left.append(each)
        return left

    def _finds(self, seeker: Resident, group: Group) -> bool:
        company = self._arrived[group]
        return company.is_near(seeker.place) or may_start(seeker, group, company)


def _largest_first(resident: Resident) -> tuple[int, int, datetime, str]:
    pod = resident.pod
    return -pod.requests.get(CPU, 0), -pod.requests.get(MEMORY, 0), pod.created, pod.uid


def may_start(seeker: Resident, group: Group, company: Company) -> bool:
    """Say whether a pod may be the first of its group."""
    return group.selects(seeker.pod) and company.may_be_started(seeker.place)


def check_affinity(scene: Scene) -> Iterator[Breach]:
    """Look for pods that are sure to miss those that they must be near to."""
    arrivals = Arrivals(scene)
    arrivals.come(bound=True)
    waiting = arrivals.let_in(arrivals.seekers)
    arrivals.come(bound=False)
    stranded = arrivals.let_in(waiting)
    for seeker in stranded:
        yield _breach(Rule.AFFINITY, seeker, arrivals)
    yield from _check_terms_together(scene, arrivals, set(stranded))


def find_affinity_risks(scene: Scene) -> Iterator[Breach]:
    """Look for pods that miss those that they must be near to, if those come first."""
    lucky, unlucky = Arrivals(scene), Arrivals(scene)
    lucky.come(bound=True)
    waiting = lucky.let_in(lucky.seekers)
    lucky.come(bound=False)
    stranded = {each.pod.key for each in lucky.let_in(waiting)}
    unlucky.come(bound=True)
    unlucky.come(bound=False)
    for seeker in unlucky.let_in(unlucky.seekers):
        if seeker.pod.key not in stranded:
            yield _breach(Rule.AFFINITY_START, seeker, unlucky)


def _breach(rule: Rule, seeker: Resident, arrivals: Arrivals) -> Breach:
    keys = ", ".join(sorted({group.key for group in arrivals.seekers[seeker]}))
    return Breach(rule, seeker.place.name, seeker.pod.key, keys)


def _check_terms_together(
    scene: Scene, arrivals: Arrivals, stranded: set[Resident]
) -> Iterator[Breach]:
    companies: dict[tuple[Group, ...], list[tuple[Group, Company]]] = {}
    for seeker, theirs in arrivals.seekers.items():
        if len(theirs) == 1 or seeker in stranded:
            continue
        if theirs not in companies:
            companies[theirs] = _match_all(scene, theirs)
        for group, company in companies[theirs]:
            is_near = company.is_near(seeker.place, besides=int(group.selects(seeker.pod)))
            if not is_near and not may_start(seeker, group, company):
                yield Breach(Rule.AFFINITY_TERMS, seeker.place.name, seeker.pod.key, group.key)


def _match_all(scene: Scene, groups: tuple[Group, ...]) -> list[tuple[Group, Company]]:
    """Return, for the key of each group, the pods that are in all of them."""
    scopes = tuple(dict.fromkeys(scope for group in groups for scope in group.scopes))
    members = scene.crowd.select(*scopes)
    keys = dict.fromkeys(group.key for group in groups)
    return [(Group(key, scopes), Company(key, members)) for key in keys]
