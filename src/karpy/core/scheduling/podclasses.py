"""Pods as classes, and the steps of each class's ladder, made when the packer gets there."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from karpy.core.scheduling.effort import Effort
from karpy.core.scheduling.existing import ExistingNodes
from karpy.core.scheduling.relaxation import Footing, Ladder
from karpy.core.scheduling.signatures import Signatures, Want, contradicts
from karpy.core.scheduling.templates import Template
from karpy.core.scheduling.topology import AnyGroup, Topology, pod_domains
from karpy.core.scheduling.topologygroups import (
    AvoidedGroup,
    DomainGroup,
    DomainTable,
    HostGroup,
    Kind,
)
from karpy.core.scheduling.volumes import NO_VOLUMES, VolumeFacts
from karpy.model.constraints import Toleration, first_untolerated
from karpy.model.pods import Pod
from karpy.model.requirements import Requirements, collect
from karpy.model.resources import Resources

DEAR_PERCENT = 125
"""How much of the lowest price may be paid to go by the name of a domain."""


class Reach:
    """What some tolerations open: templates in order of choice, and existing nodes."""

    __slots__ = ("has_every_template", "index", "nodes", "templates")

    def __init__(self, index: int, templates: tuple[Template, ...], nodes: int) -> None:
        self.index = index
        self.templates = templates
        self.nodes = nodes
        self.has_every_template = False


class KeyRule:
    """All that a step asks of the domains of one key."""

    __slots__ = (
        "affinities",
        "antis",
        "is_optional",
        "may_appear",
        "pod_mask",
        "settles",
        "spreads",
        "table",
    )

    def __init__(self, table: DomainTable, footing: Footing) -> None:
        self.table = table
        self.pod_mask = pod_domains(self.table, footing.strict)
        self.spreads: list[tuple[DomainGroup, int]] = []
        self.affinities: list[tuple[DomainGroup, int]] = []
        self.antis: list[AvoidedGroup] = []
        self.settles = False
        """Whether one domain must be chosen so that others can count on the pod being there."""

        self.may_appear = False
        """Whether a claim says something else about the label once it has taken the pod."""
        self.is_optional = True
        """Whether a node that does not carry the label will do: nothing can be broken there."""

    def hold(self, group: DomainGroup | AvoidedGroup, is_selected: int) -> None:
        """Take in one more group of the key."""
        if isinstance(group, AvoidedGroup):
            self.antis.append(group)
            return
        (self.spreads if group.kind is Kind.SPREAD else self.affinities).append(
            (group, is_selected)
        )
        self.is_optional = False

    def open_domains(self) -> tuple[int, bool]:
        """Return the domains that suit every group now, and whether one of them must be chosen."""
        mask = self.table.all
        is_pinned = self.settles or bool(self.spreads)
        for spread, is_selected in self.spreads:
            mask &= spread.within_skew(self.pod_mask, is_selected)
        for affinity, is_selected in self.affinities:
            # Differs: a required pod affinity whose pods run only in domains where this pod cannot
            # go: Karpenter starts a second group elsewhere; Karpy leaves the pod pending, as
            # kube-scheduler does.
            if affinity.nonzero:
                mask &= affinity.nonzero & self.pod_mask
            elif is_selected and not affinity.is_elsewhere:
                mask &= self.pod_mask
                is_pinned = True
            else:
                return 0, False
        for anti in self.antis:
            mask &= self.pod_mask & ~anti.nonzero
        return mask, is_pinned

    def is_free_in_no_domain(self, signature: int) -> bool:
        """Say whether a claim in no known domain will do: no label, or no pod to avoid."""
        if not self.is_optional:
            return False
        return self.table.is_absent(signature) or all(anti.is_empty for anti in self.antis)

    def blockers(self) -> list[AnyGroup]:
        """Return the groups whose counts would have to change for a domain to open; none: never."""
        for affinity, is_selected in self.affinities:
            may_begin = is_selected and not affinity.nonzero and not affinity.is_elsewhere
            if not affinity.nonzero & self.pod_mask and not may_begin:
                return [affinity]
        for anti in self.antis:
            if not self.pod_mask & ~anti.nonzero:
                return [anti]
        return [*(group for group, _ in (*self.spreads, *self.affinities)), *self.antis]

    def preferred(self, domains: int, price_in: Callable[[int], int] | None) -> list[int]:
        """
        List domains as bits: fewest pods of the spreads first, then not dear, then by name.

        Without `price_in` none is dear.
        """
        groups = [group.counts for group, _ in self.spreads]

        def pods_in(domain: int) -> int:
            return sum(counts[domain.bit_length() - 1] for counts in groups)

        bits = [1 << bit for bit in range(domains.bit_length()) if domains >> bit & 1]
        if groups:
            bits.sort(key=pods_in)
        if price_in is None:
            return bits
        return [
            domain
            for _, equals in groupby(bits, pods_in)
            for domain in _dear_last([*equals], price_in)
        ]


def _dear_last(domains: Sequence[int], price_in: Callable[[int], int]) -> Sequence[int]:
    """Put off domains where everything costs much more than the cheapest in another."""
    if len(domains) == 1:
        return domains
    # Differs: several domains that a spread allows equally: Karpenter takes one at random; Karpy
    # takes the first by name and puts off those that cost over a quarter more. It does not take the
    # cheapest, because that depends on the size of the pod and would separate pods that could share
    # a node.
    prices = {domain: price_in(domain) for domain in domains}
    most = min(prices.values()) * DEAR_PERCENT // 100
    return sorted(domains, key=lambda domain: prices[domain] > most)


Marked: TypeAlias = tuple[AnyGroup, int]
"""A group, and whether (as a number) it selects the pods that it is a rule for."""


class Ground:
    """What rungs in a row ask of a node, made ready."""

    __slots__ = ("asks", "footing", "reach", "wants")

    def __init__(self, footing: Footing, reach: Reach, wants: tuple[Want, ...]) -> None:
        self.footing = footing
        self.reach = reach
        self.wants = wants
        self.asks: dict[int, Any] = {}
        """The asks as far as they are known, by the identity of requests."""


class Step:
    """One rung of a ladder, made ready."""

    __slots__ = (
        "asks",
        "footing",
        "hosts",
        "is_patient",
        "keys",
        "reach",
        "wants",
        "watched",
    )

    def __init__(self, ground: Ground) -> None:
        self.footing = ground.footing
        self.reach = ground.reach
        self.wants = wants = ground.wants
        self.asks = ground.asks
        self.hosts: list[tuple[HostGroup, int]] = []
        self.keys: list[KeyRule] = []
        self.watched: list[AnyGroup] = []
        """Groups whose counts may turn a no into a yes."""
        self.is_patient = any(want.is_patient for want in wants)
        """Whether a label that a claim gains may turn a no into a yes."""


class Neighbours(NamedTuple):
    """The groups of all that a ladder asks of other pods, first what is dropped first."""

    spreads: Sequence[Marked]
    affinity: Sequence[Marked]
    anti_affinity: Sequence[Marked]
    blocks: Sequence[Marked]
    """Groups by which other pods keep these away; they are never dropped."""


class Steps:
    """The steps of a ladder from the top, each made when a pod gets there."""

    def __init__(
        self,
        ladder: Ladder,
        neighbours: Neighbours,
        prepare: Callable[[Footing], Ground],
        make: Callable[[Ground, Sequence[Marked]], Step],
    ) -> None:
        self._ladder = ladder
        self._neighbours = neighbours
        self._prepare = prepare
        self._make = make
        self._ground: Ground | None = None
        self._made: dict[int, Step] = {}
        self._length = len(ladder)
        self.first = self[0]
        self.last = self[-1]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Step:
        index %= self._length
        step = self._made.get(index)
        if step is None:
            if len(self._made) >= _STEPS_KEPT:
                self._made = {0: self.first, self._length - 1: self.last}
            step = self._made[index] = self._make(self.ground(index), self._held(index))
        return step

    def ground(self, index: int) -> Ground:
        """Return what a step asks of a node."""
        footing = self._ladder[index].footing
        if self._ground is None or self._ground.footing is not footing:
            self._ground = self._prepare(footing)
        return self._ground

    def dropped(self, index: int) -> Marked:
        """Return what a step asks of other pods and the next one, equal otherwise, does not."""
        rung, below, all_ = self._ladder[index], self._ladder[index + 1], self._neighbours
        if rung.affinity != below.affinity:
            return all_.affinity[rung.affinity]
        if rung.anti_affinity != below.anti_affinity:
            return all_.anti_affinity[rung.anti_affinity]
        return all_.spreads[rung.spreads]

    def last_alike(self, index: int) -> int:
        """Return the last step from one on that asks the same of a node."""
        return self._ladder.last_alike(index)

    def _held(self, index: int) -> list[Marked]:
        rung, all_ = self._ladder[index], self._neighbours
        return [
            *all_.spreads[rung.spreads :],
            *all_.affinity[rung.affinity :],
            *all_.anti_affinity[rung.anti_affinity :],
            *all_.blocks,
        ]


class Versioned(Protocol):
    """Something whose version moves when a no may become a yes."""

    version: int


class Failure:
    """Why a step did not work, as far as that may change."""

    __slots__ = ("groups", "version")

    def __init__(self, groups: Sequence[Versioned] | None) -> None:
        self.groups = groups
        self.version = 0 if groups is None else sum(group.version for group in groups)

    def may_have_passed(self) -> bool:
        """Say whether anything has happened that could make it work now."""
        if self.groups is None:
            return True
        version = 0
        for group in self.groups:
            version += group.version
        return version != self.version


FOR_GOOD = Failure(())
"""Nothing that can still happen helps."""


_NOTHING_YET: Final = (None,)
"""For each step; most classes share it to the end."""
_STEPS_KEPT: Final = 64
"""Of longer ladders steps are made again when pods get there again: thousands are too large."""


class PodClass(Struct, eq=False, gc=False):
    """Pods that are alike in all that matters to the packer."""

    pod: Pod
    requests: Resources
    volumes: VolumeFacts
    index: int = 0
    """How many classes have their first pod before its own."""
    ladder: Steps | None = None
    counted: tuple[AnyGroup, ...] = ()
    """Groups that count the pods."""
    owned_inverse: tuple[AnyGroup, ...] = ()
    """Groups by which the pods keep others away."""
    is_counted: bool = False
    is_hopeless: bool = False
    """Whether every step has failed for good."""
    failures: tuple[Failure | None] | list[Failure | None] = _NOTHING_YET
    """What became of each step, if it was tried and did not work."""
    asks: tuple[Any] | list[Any] = _NOTHING_YET
    """The ask of each step, once it is needed."""

    @property
    def steps(self) -> Steps:
        assert self.ladder is not None
        return self.ladder

    def climb(self, steps: Steps) -> None:
        """Take the steps of the ladder."""
        self.ladder = steps
        self.begin()

    def begin(self) -> None:
        """Forget what became of the steps."""
        self.is_hopeless = False
        self.failures = self.asks = _NOTHING_YET
        if (length := len(self.steps)) > 1:
            self.failures, self.asks = [None] * length, [None] * length

    def fail(self, step: int, failure: Failure, stop: int | None = None) -> None:
        """Note that a step did not work, nor would those after it up to another."""
        if isinstance(self.failures, list):
            stop = step + 1 if stop is None else stop
            self.failures[step:stop] = [failure] * (stop - step)
        else:
            self.failures = (failure,)

    def ask(self, step: int, ask: object) -> None:
        """Note the ask of a step."""
        if isinstance(self.asks, list):
            self.asks[step] = ask
        else:
            self.asks = (ask,)

    def may_succeed(self, steps: int | None = None) -> bool:
        """Say whether one of the steps, or of the first few, has not been seen to fail."""
        last = None
        for failure in self.failures if steps is None else self.failures[:steps]:
            # Steps in a row share what became of them.
            if failure is None or (failure is not last and failure.may_have_passed()):
                return True
            last = failure
        return False


class StepMaker:
    """Turns rungs into steps; steps keep it for those that are made later."""

    def __init__(
        self,
        signatures: Signatures,
        topology: Topology,
        existing: ExistingNodes,
        templates: Sequence[Template],
        effort: Effort,
    ) -> None:
        self._signatures = signatures
        self._topology = topology
        self._existing = existing
        self._templates = templates
        self._effort = effort
        self._reaches: dict[tuple[Toleration, ...], Reach] = {}

    def ground(self, volumes: VolumeFacts, footing: Footing) -> Ground:
        """Make ready what some steps ask of a node."""
        wants = self._wants(footing, volumes)
        return Ground(footing, self._reach(footing.tolerations), wants)

    def step(self, settling: Sequence[str], ground: Ground, held: Sequence[Marked]) -> Step:
        """
        Make one step of some pods.

        `settling` has the keys of which one domain must be chosen: other pods depend on which.
        """
        self._effort.spend(len(held))
        step = Step(ground)
        rules: dict[str, KeyRule] = {}
        for marked in held:
            group = marked[0]
            if isinstance(group, HostGroup):
                step.hosts.append((group, marked[1]))
                if group.kind is Kind.AFFINITY:
                    step.watched.append(group)
                continue
            rule = rules.get(group.key)
            if rule is None:
                rule = rules[group.key] = KeyRule(group.domains, ground.footing)
            rule.hold(group, marked[1])
            step.watched.append(group)
        for key in settling:
            if key not in rules:
                rules[key] = KeyRule(self._topology.table(key), ground.footing)
            rules[key].settles = True
        for rule in rules.values():
            rule.may_appear = any(rule.table.key in want.requirements for want in step.wants)
            step.is_patient = step.is_patient or not rule.table.is_well_known
        step.keys = [rules[key] for key in sorted(rules)]
        return step

    def _wants(self, footing: Footing, facts: VolumeFacts) -> tuple[Want, ...]:
        if not footing.is_possible:
            return ()
        if facts is NO_VOLUMES:
            return (self._want(footing.full),)
        wants = []
        # Differs: a pod with `NotIn` on a label that its volume asks for: Karpenter takes the label
        # for defined and writes the volume's value on a node that is elsewhere; Karpy asks that the
        # node really has the label.
        for alternative in facts.alternatives:
            asked = collect(alternative)
            if not contradicts(footing.full, asked):
                wants.append(self._want(collect((*footing.full.values(), *alternative))))
        return tuple(wants)

    def _want(self, requirements: Requirements) -> Want:
        want = self._signatures.want(requirements)
        if not requirements:
            return want
        well_known = self._signatures.table.well_known
        have = [self._signatures.requirements[each.signature] for each in self._templates]
        want.is_patient = any(
            not requirement.is_negative
            and key not in well_known
            and any(key not in each for each in have)
            for key, requirement in requirements.items()
        )
        return want

    def _reach(self, tolerations: tuple[Toleration, ...]) -> Reach:
        reach = self._reaches.get(tolerations)
        if reach is None:
            templates = tuple(
                each
                for each in self._templates
                if first_untolerated(each.taints, tolerations) is None
            )
            nodes = self._existing.tolerated_by(tolerations)
            reach = self._reaches[tolerations] = Reach(len(self._reaches), templates, nodes)
            reach.has_every_template = len(templates) == len(self._templates)
        return reach
