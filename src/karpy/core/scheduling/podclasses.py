"""Classes of equal pods, and the steps of their ladders, each made when the packer tries it."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from karpy.core.scheduling.effort import Effort
from karpy.core.scheduling.existing import ExistingNodes
from karpy.core.scheduling.relaxation import Ladder, NodeRules
from karpy.core.scheduling.signatures import PodRequirements, Signatures, contradicts
from karpy.core.scheduling.templates import Template
from karpy.core.scheduling.topology import AnyGroup, Topology, pod_domains
from karpy.core.scheduling.topologygroups import (
    AvoidedGroup,
    DomainGroup,
    DomainTable,
    GroupKind,
    HostGroup,
)
from karpy.core.scheduling.volumes import NO_VOLUMES, VolumeFacts
from karpy.model.constraints import Toleration, first_untolerated
from karpy.model.pods import Pod
from karpy.model.requirements import Requirements, collect
from karpy.model.resources import Resources

DEAR_PERCENT = 125
"""Of equal domains one is dear if its lowest price exceeds this percentage of the lowest of all."""


class Reach:
    """The templates (in order of choice) and existing nodes whose taints are tolerated."""

    __slots__ = ("has_every_template", "index", "nodes", "templates")

    def __init__(self, index: int, templates: tuple[Template, ...], nodes: int) -> None:
        self.index = index
        self.templates = templates
        self.nodes = nodes
        self.has_every_template = False


class KeyRule:
    """All rules of a step on the domains of one topology key."""

    __slots__ = (
        "affinities",
        "antis",
        "is_optional",
        "must_pin",
        "pod_mask",
        "pod_names_key",
        "spreads",
        "table",
    )

    def __init__(self, table: DomainTable, node_rules: NodeRules) -> None:
        self.table = table
        self.pod_mask = pod_domains(self.table, node_rules.strict)
        self.spreads: list[tuple[DomainGroup, int]] = []
        self.affinities: list[tuple[DomainGroup, int]] = []
        self.antis: list[AvoidedGroup] = []
        self.must_pin = False
        """Whether one domain must be chosen, because pods of the batch must be near the pod."""
        self.pod_names_key = False
        """Whether the pod has a requirement on the key, so that a claim with it may be narrowed."""
        self.is_optional = True
        """Whether a node without the label is allowed: only anti-affinities are on the key."""

    def add(self, group: DomainGroup | AvoidedGroup, is_selected: int) -> None:
        """Add one more group of the key."""
        if isinstance(group, AvoidedGroup):
            self.antis.append(group)
            return
        (self.spreads if group.kind is GroupKind.SPREAD else self.affinities).append(
            (group, is_selected)
        )
        self.is_optional = False

    def open_domains(self) -> tuple[int, bool]:
        """Return the domains that all groups allow now, and whether one of them must be chosen."""
        mask = self.table.all
        is_pinned = self.must_pin or bool(self.spreads)
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

    def allows_no_domain(self, signature: int) -> bool:
        """Say whether a claim in no known domain is allowed: no label, or no pod to avoid."""
        if not self.is_optional:
            return False
        return self.table.is_absent(signature) or all(anti.is_empty for anti in self.antis)

    def blockers(self) -> list[AnyGroup]:
        """Return the groups of which a count must change before a domain opens."""
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
        List domains as bits: fewest pods of the spreads first, then those not dear, then by name.

        Without `price_in` no domain is dear.
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
    """Put dear domains after the others."""
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
"""A group that a rule of pods makes, and whether (1 or 0) it selects these pods themselves."""


class PreparedRules:
    """Node rules made ready for the packer; steps with equal node rules share them."""

    __slots__ = ("alternatives", "asks", "node_rules", "reach")

    def __init__(
        self, node_rules: NodeRules, reach: Reach, alternatives: tuple[PodRequirements, ...]
    ) -> None:
        self.node_rules = node_rules
        self.reach = reach
        self.alternatives = alternatives
        self.asks: dict[int, Any] = {}
        """The asks made so far, by the identity of requests."""


class Step:
    """One rung of a ladder, made ready for the packer."""

    __slots__ = (
        "alternatives",
        "asks",
        "hosts",
        "keys",
        "node_rules",
        "reach",
        "retries_on_gains",
        "watched",
    )

    def __init__(self, prepared: PreparedRules) -> None:
        self.node_rules = prepared.node_rules
        self.reach = prepared.reach
        self.alternatives = prepared.alternatives
        self.asks = prepared.asks
        self.hosts: list[tuple[HostGroup, int]] = []
        """Groups over hostnames, each with whether (1 or 0) it selects the pods."""
        self.keys: list[KeyRule] = []
        self.watched: list[AnyGroup] = []
        """Groups whose changed counts may make a failed step succeed."""
        self.retries_on_gains = any(required.may_join_later for required in self.alternatives)
        """Whether a label that a claim gets may make a failed step succeed."""


class Neighbours(NamedTuple):
    """The groups of all rules of a ladder on other pods, in the order in which they are dropped."""

    spreads: Sequence[Marked]
    affinity: Sequence[Marked]
    anti_affinity: Sequence[Marked]
    blocks: Sequence[Marked]
    """Anti-affinity groups of other pods that select these pods; they are never dropped."""


class Steps:
    """The steps of a ladder, from the first; each is made when a pod tries it."""

    def __init__(
        self,
        ladder: Ladder,
        neighbours: Neighbours,
        prepare: Callable[[NodeRules], PreparedRules],
        make: Callable[[PreparedRules, Sequence[Marked]], Step],
    ) -> None:
        self._ladder = ladder
        self._neighbours = neighbours
        self._prepare = prepare
        self._make = make
        self._prepared: PreparedRules | None = None
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
            step = self._made[index] = self._make(self.prepared_rules(index), self._held(index))
        return step

    def prepared_rules(self, index: int) -> PreparedRules:
        """Return the node rules of a step, made ready."""
        node_rules = self._ladder[index].node_rules
        if self._prepared is None or self._prepared.node_rules is not node_rules:
            self._prepared = self._prepare(node_rules)
        return self._prepared

    def dropped(self, index: int) -> Marked:
        """Return the one group that a step has and the next step, with equal node rules, drops."""
        rung, below, all_ = self._ladder[index], self._ladder[index + 1], self._neighbours
        if rung.affinity != below.affinity:
            return all_.affinity[rung.affinity]
        if rung.anti_affinity != below.anti_affinity:
            return all_.anti_affinity[rung.anti_affinity]
        return all_.spreads[rung.spreads]

    def last_alike(self, index: int) -> int:
        """Return the last of the steps in a row, from one on, that have equal node rules."""
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
    """Something whose version rises when a failed step may succeed."""

    version: int


class Failure:
    """A failed step: what must change before it is worth another try, with the versions then."""

    __slots__ = ("groups", "version")

    def __init__(self, groups: Sequence[Versioned] | None) -> None:
        """Take what must change; None if any change may help."""
        self.groups = groups
        self.version = 0 if groups is None else sum(group.version for group in groups)

    def is_outdated(self) -> bool:
        """Say whether something has changed, so that the step is worth another try."""
        if self.groups is None:
            return True
        version = 0
        for group in self.groups:
            version += group.version
        return version != self.version


FOR_GOOD = Failure(())
"""A step that no change can make succeed."""


_NOTHING_YET: Final = (None,)
"""The failures or asks of a ladder with one step, until there is one; classes share the tuple."""
_STEPS_KEPT: Final = 64
"""The most steps of a ladder in memory; others are made again when a pod tries them again."""


class PodClass(Struct, eq=False, gc=False):
    """Pods that are alike in everything that the packer reads."""

    pod: Pod
    requests: Resources
    volumes: VolumeFacts
    index: int = 0
    """The position of the class in the order in which classes were made."""
    made_steps: Steps | None = None
    counted: tuple[AnyGroup, ...] = ()
    """Groups that count the pods."""
    owned_inverse: tuple[AnyGroup, ...] = ()
    """Groups of the required anti-affinity of the pods, which keep other pods away."""
    is_counted: bool = False
    """Whether some group counts the pods."""
    is_hopeless: bool = False
    """Whether every step has failed for good."""
    failures: tuple[Failure | None] | list[Failure | None] = _NOTHING_YET
    """By step its failure, or None if it has not failed."""
    asks: tuple[Any] | list[Any] = _NOTHING_YET
    """By step its ask, or None if it is not needed yet."""

    @property
    def steps(self) -> Steps:
        assert self.made_steps is not None
        return self.made_steps

    def use_steps(self, steps: Steps) -> None:
        """Set the steps of the class; none has failed yet."""
        self.made_steps = steps
        self.reset()

    def reset(self) -> None:
        """Forget the failures and asks of all steps."""
        self.is_hopeless = False
        self.failures = self.asks = _NOTHING_YET
        if (length := len(self.steps)) > 1:
            self.failures, self.asks = [None] * length, [None] * length

    def fail(self, step: int, failure: Failure, stop: int | None = None) -> None:
        """Note the failure of a step, and of the steps after it before `stop`."""
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
        """Say whether one of all steps, or of the first `steps`, is worth a try."""
        last = None
        for failure in self.failures if steps is None else self.failures[:steps]:
            # Steps in a row may share a failure.
            if failure is None or (failure is not last and failure.is_outdated()):
                return True
            last = failure
        return False


class StepMaker:
    """Makes rungs and their node rules ready for the packer."""

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

    def prepare(self, volumes: VolumeFacts, node_rules: NodeRules) -> PreparedRules:
        """Make node rules ready."""
        alternatives = self._alternatives(node_rules, volumes)
        return PreparedRules(node_rules, self._reach(node_rules.tolerations), alternatives)

    def step(
        self, pinned_keys: Sequence[str], prepared: PreparedRules, held: Sequence[Marked]
    ) -> Step:
        """
        Make the step of a rung on which some groups are not dropped.

        Of each of `pinned_keys` one domain must be chosen: pods of the batch must be near the pods.
        """
        self._effort.spend(len(held))
        step = Step(prepared)
        rules: dict[str, KeyRule] = {}
        for marked in held:
            group = marked[0]
            if isinstance(group, HostGroup):
                step.hosts.append((group, marked[1]))
                if group.kind is GroupKind.AFFINITY:
                    step.watched.append(group)
                continue
            rule = rules.get(group.key)
            if rule is None:
                rule = rules[group.key] = KeyRule(group.domains, prepared.node_rules)
            rule.add(group, marked[1])
            step.watched.append(group)
        for key in pinned_keys:
            if key not in rules:
                rules[key] = KeyRule(self._topology.table(key), prepared.node_rules)
            rules[key].must_pin = True
        for rule in rules.values():
            rule.pod_names_key = any(
                rule.table.key in required.requirements for required in step.alternatives
            )
            step.retries_on_gains = step.retries_on_gains or not rule.table.is_well_known
        step.keys = [rules[key] for key in sorted(rules)]
        return step

    def _alternatives(
        self, node_rules: NodeRules, facts: VolumeFacts
    ) -> tuple[PodRequirements, ...]:
        if not node_rules.is_possible:
            return ()
        if facts is NO_VOLUMES:
            return (self._pod_requirements(node_rules.full),)
        alternatives = []
        # Differs: a pod with `NotIn` on a label that its volume asks for: Karpenter takes the label
        # for defined and writes the volume's value on a node that is elsewhere; Karpy asks that the
        # node really has the label.
        for alternative in facts.alternatives:
            asked = collect(alternative)
            if not contradicts(node_rules.full, asked):
                alternatives.append(
                    self._pod_requirements(collect((*node_rules.full.values(), *alternative)))
                )
        return tuple(alternatives)

    def _pod_requirements(self, requirements: Requirements) -> PodRequirements:
        required = self._signatures.pod_requirements(requirements)
        if not requirements:
            return required
        well_known = self._signatures.table.well_known
        have = [self._signatures.requirements[each.signature] for each in self._templates]
        required.may_join_later = any(
            not requirement.is_negative
            and key not in well_known
            and any(key not in each for each in have)
            for key, requirement in requirements.items()
        )
        return required

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
