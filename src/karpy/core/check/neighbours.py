"""
Required pod affinity and anti-affinity, as kube-scheduler will see them after launch.

*Anti-affinity* works both ways and in every domain that may result: a pod and one that its term
selects may not share any possible domain of the key, unless both are there already.

*Affinity*: a pod must be sure to find, when its turn comes, a selected pod in its domain. It is
sure of pods on its own node, and of pods whose domain is settled, if its node can only come up in
domains that have one. Some order of arrival must work, so the pods arrive in rounds here: first
those without affinity, then those who find what they need among the arrived. A pod whose term
selects the pod itself may be the first of its group if all others that will be selected share its
domain (or are out of reach of its node selector and affinity); where they may come up
elsewhere, they might come first, and then it could not start.

A pod with several terms also needs, for each of them, pods that match *all* of its terms: that is
how kube-scheduler counts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from karpy.core.check.breaches import Breach, Rule
from karpy.core.check.crowd import Resident, Scope, Tally, affinity_scope
from karpy.core.check.domains import Domains
from karpy.core.check.places import Place
from karpy.core.check.scene import Scene
from karpy.core.check.spreads import allows
from karpy.core.check.wishes import wishes_of
from karpy.model.constraints import AffinityTerm
from karpy.model.labels import normalise
from karpy.model.pods import Pod


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
    everyone = Tally(each.place.domains(group.key) for each in selected)
    newcomers = Tally(each.place.domains(group.key) for each in new)
    for owner in owners:
        domains = owner.place.domains(group.key)
        itself = int(owner.is_new and group.selects(owner.pod))
        count, domain = (everyone if owner.is_new else newcomers).most(domains)
        if count <= itself:
            continue
        # Who is there already stays; the breach is the newcomer's.
        guilty = owner if owner.is_new else _first_sharing(domains, group.key, new)
        detail = f"{group.key} {domain}: {count - itself} others, by the rule of {owner.pod.key}"
        yield Breach(Rule.ANTI_AFFINITY, guilty.place.name, guilty.pod.key, detail)


def _first_sharing(domains: Domains, key: str, residents: Iterable[Resident]) -> Resident:
    return next(each for each in residents if domains.may_meet(each.place.domains(key)))


class Company:
    """The selected pods of a group: how many on each node, and surely in each domain."""

    def __init__(self, key: str, residents: Iterable[Resident]) -> None:
        residents = list(residents)
        self.key = key
        self.at = Counter(each.place for each in residents)
        self._surely: Counter[str] = Counter()
        for place, count in self.at.items():
            domain = place.domains(key).settled
            if domain is not None:
                self._surely[domain] += count

    def is_near(self, place: Place, besides: int) -> bool:
        """Say whether more than so many are sure to be in whatever domain the place comes up."""
        domains = place.domains(self.key)
        if not domains.is_sure:
            return False
        if self.at[place] > besides:
            return True
        # The pod itself is among those counted in a settled domain, not in one of several.
        own = besides if domains.settled is not None else 0
        return all(self._surely[domain] > own for domain in sorted(domains.values))

    def elsewhere(self, place: Place) -> list[Place]:
        """Return the places with selected pods that are not sure to share its domain."""
        here = place.domains(self.key)
        return [
            other
            for other in self.at
            if other is not place and not _is_same(here, other.domains(self.key))
        ]


def _is_same(here: Domains, there: Domains) -> bool:
    return here.settled is not None and here.settled == there.settled


_Companies: TypeAlias = dict[Group, Company]


def check_affinity(scene: Scene) -> Iterator[Breach]:
    """Look for pods that are not sure to have those near that they must be near to."""
    seekers: dict[Resident, tuple[Group, ...]] = {
        each: groups_of(each.pod.rules.affinity, each.pod, scene)
        for each in scene.crowd.residents
        if each.is_new and each.pod.rules.affinity
    }
    groups = {group: None for theirs in seekers.values() for group in theirs}
    final = {group: Company(group.key, scene.crowd.select(*group.scopes)) for group in groups}
    stranded = _arrive(scene, seekers, final)
    for seeker in stranded:
        lost = [group for group in seekers[seeker] if not _is_lucky(seeker, group, final)]
        yield _breach(seeker, lost or list(seekers[seeker]), final)
    together: dict[tuple[Group, ...], _Companies] = {}
    for seeker, theirs in seekers.items():
        if len(theirs) > 1 and seeker not in stranded:
            if theirs not in together:
                together[theirs] = _match_all(scene, theirs)
            matched = together[theirs]
            if not all(_is_lucky(seeker, group, matched) for group in matched):
                yield Breach(Rule.AFFINITY_TERMS, seeker.place.name, seeker.pod.key)


def _match_all(scene: Scene, groups: tuple[Group, ...]) -> _Companies:
    """Return, for the key of each group, the pods that are in all of them."""
    scopes = tuple(dict.fromkeys(scope for group in groups for scope in group.scopes))
    return {
        Group(group.key, scopes): Company(group.key, scene.crowd.select(*scopes))
        for group in groups
    }


def _arrive(
    scene: Scene, seekers: dict[Resident, tuple[Group, ...]], final: _Companies
) -> list[Resident]:
    """Let pods come in rounds; return those that never find what they need."""
    waiting = list(seekers)
    while waiting:
        absent = set(waiting)
        arrived = {
            group: Company(
                group.key,
                (each for each in scene.crowd.select(*group.scopes) if each not in absent),
            )
            for group in final
        }
        left = [
            each
            for each in waiting
            if not all(
                arrived[group].is_near(each.place, besides=0) or may_start(each, group, final)
                for group in seekers[each]
            )
        ]
        if len(left) == len(waiting):
            break
        waiting = left
    return waiting


def may_start(seeker: Resident, group: Group, final: _Companies) -> bool:
    """Say whether a pod may be the first of its group: nobody may start it elsewhere."""
    return (
        group.selects(seeker.pod)
        and seeker.place.domains(group.key).is_sure
        and not _rivals(seeker, group, final)
    )


def _rivals(seeker: Resident, group: Group, final: _Companies) -> list[Place]:
    """Return the places elsewhere, within the pod's reach, with pods of the group."""
    wishes = wishes_of(seeker.pod)
    found: list[Place] = []
    for place in final[group].elsewhere(seeker.place):
        domains = place.domains(group.key)
        if domains.is_open or any(
            all(allows(wish, group.key, domain, every=False) for wish in wishes)
            for domain in sorted(domains.values)
        ):
            found.append(place)
    return found


def _is_lucky(seeker: Resident, group: Group, final: _Companies) -> bool:
    besides = int(group.selects(seeker.pod))
    return final[group].is_near(seeker.place, besides) or may_start(seeker, group, final)


def _breach(seeker: Resident, lost: list[Group], final: _Companies) -> Breach:
    """Tell a group that surely is elsewhere from one that only may be."""
    keys = ", ".join(sorted({group.key for group in lost}))
    is_risk = all(
        group.selects(seeker.pod)
        and seeker.place.domains(group.key).is_sure
        and all(each.domains(group.key).settled is None for each in _rivals(seeker, group, final))
        for group in lost
    )
    rule = Rule.AFFINITY_START if is_risk else Rule.AFFINITY
    return Breach(rule, seeker.place.name, seeker.pod.key, keys)
