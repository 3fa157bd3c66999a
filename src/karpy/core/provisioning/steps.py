"""Pods as classes, and the steps of each class's ladder, ready for the packer."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Protocol

from msgspec import Struct

from karpy.core.provisioning.groups import AvoidedGroup, DomainGroup, HostGroup
from karpy.core.provisioning.ladder import Rung
from karpy.core.provisioning.signatures import Want
from karpy.core.provisioning.templates import Template
from karpy.core.provisioning.topology import AnyGroup, Topology, pod_domains
from karpy.core.provisioning.volumes import VolumeFacts
from karpy.model.pods import Pod
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

    def __init__(self, topology: Topology, key: str, rung: Rung) -> None:
        self.table = topology.table(key)
        self.pod_mask = pod_domains(self.table, rung.strict)
        self.spreads: list[tuple[DomainGroup, int]] = []
        self.affinities: list[tuple[DomainGroup, int]] = []
        self.antis: list[AvoidedGroup] = []
        self.settles = False
        """Whether one domain must be chosen so that others can count on the pod being there."""

        self.may_appear = False
        """Whether a claim says something else about the label once it has taken the pod."""
        self.is_optional = True
        """Whether a node that does not carry the label will do: nothing can be broken there."""

    def open_domains(self) -> tuple[int, bool]:
        """Return the domains that suit every group now, and whether one of them must be chosen."""
        mask = self.table.all
        is_pinned = self.settles or bool(self.spreads)
        for spread, is_selected in self.spreads:
            mask &= spread.within_skew(self.pod_mask, is_selected)
        for affinity, is_selected in self.affinities:
            # Differs: Karpenter starts anew if the pods to be near to are only where this pod
            # cannot go; kube-scheduler does not.
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
        """Say whether a claim in no known domain will do: no label, or nobody to avoid."""
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
    # Differs: Karpenter leaves it to chance which of equal domains it takes. Going by the last cent
    # would part pods that could share a node, since what is cheapest depends on their size.
    prices = {domain: price_in(domain) for domain in domains}
    most = min(prices.values()) * DEAR_PERCENT // 100
    return sorted(domains, key=lambda domain: prices[domain] > most)


class Step:
    """One rung of a ladder, made ready."""

    __slots__ = (
        "asks_for_room",
        "hosts",
        "is_exclusive",
        "is_patient",
        "is_simple",
        "keys",
        "reach",
        "rung",
        "shapes",
        "spread",
        "takes_any_claim",
        "wants",
        "watched",
    )

    def __init__(self, rung: Rung, reach: Reach, wants: tuple[Want, ...]) -> None:
        self.rung = rung
        self.reach = reach
        self.wants = wants
        self.shapes: dict[int, Any] = {}
        """Its shapes as far as they are known, by the identity of requests."""
        self.hosts: list[tuple[HostGroup, int]] = []
        self.keys: list[KeyRule] = []
        self.watched: list[AnyGroup] = []
        """Groups whose counts may turn a no into a yes."""
        self.takes_any_claim = reach.has_every_template and any(
            not want.requirements for want in wants
        )
        """Whether every claim is worth a try."""
        self.is_simple = False
        """Whether nothing is asked but room and labels, and to be spread over one key."""
        self.spread: KeyRule | None = None
        """The rule for that key."""
        self.asks_for_room = False
        """Whether every claim will do that has room."""
        self.is_exclusive = False
        """Whether two pods that take this step never share a node, and nothing else binds them."""
        self.is_patient = any(want.is_patient for want in wants)
        """Whether a label that a claim gains may turn a no into a yes."""


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


_NOTHING_YET = (None,)
"""For each step; most classes share it to the end."""


class Opening:
    """How a claim was made for a pod of a class, if the next one will need one of the same kind."""

    __slots__ = ("index", "moment", "signature", "template", "types")

    def __init__(self, index: int, template: Template, signature: int, types: int) -> None:
        self.index = index
        """The step that was taken."""
        self.template = template
        self.signature = signature
        self.types = types
        self.moment = 0
        """When that was: how many pods had been placed."""


class PodClass(Struct, eq=False, gc=False):
    """Pods that are alike in all that matters to the packer."""

    pod: Pod
    requests: Resources
    volumes: VolumeFacts
    steps: Sequence[Step] = ()
    counted: tuple[AnyGroup, ...] = ()
    """Groups that count the pods."""
    owned_inverse: tuple[AnyGroup, ...] = ()
    """Groups by which the pods keep others away."""
    reopening: Opening | None = None
    is_single: bool = True
    """Whether there is one pod only."""
    spread: KeyRule | None = None
    """The rule by which the first step spreads pods, if it asks for little else."""
    is_counted: bool = False
    is_simple: bool = False
    """Whether the first step is."""
    is_alone: bool = False
    """Whether there is one pod only, for which every claim will do, and which nobody counts."""
    is_hopeless: bool = False
    """Whether every step has failed for good."""
    failures: tuple[Failure | None, ...] = _NOTHING_YET
    """What became of each step, if it was tried and did not work."""
    shapes: tuple[Any, ...] = _NOTHING_YET
    """The shape of each step, once it is needed."""

    def climb(self, steps: Sequence[Step]) -> None:
        """Take the steps of the ladder."""
        first = steps[0]
        self.steps = steps
        self.is_simple = first.is_simple
        self.spread = first.spread
        self.is_alone = self.is_single and first.asks_for_room
        if len(steps) > 1:
            self.failures = self.shapes = _NOTHING_YET * len(steps)

    def fail(self, step: int, failure: Failure) -> None:
        """Note that a step did not work."""
        self.failures = (*self.failures[:step], failure, *self.failures[step + 1 :])

    def shape(self, step: int, shape: object) -> None:
        """Note the shape of a step."""
        if len(self.shapes) == 1:
            self.shapes = (shape,)
            return
        self.shapes = (*self.shapes[:step], shape, *self.shapes[step + 1 :])

    def may_succeed(self, steps: int | None = None) -> bool:
        """Say whether one of the steps, or of the first few, has not been seen to fail."""
        for failure in self.failures[:steps]:
            if failure is None or failure.may_have_passed():
                return True
        return False
