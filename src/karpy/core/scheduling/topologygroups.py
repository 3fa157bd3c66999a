"""Topology groups: the domains of topology keys, and pods that are counted together in them."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from karpy.core.scheduling.instancetypes import members
from karpy.core.scheduling.signatures import Signatures
from karpy.model.constraints import LabelSelector, Taint
from karpy.model.requirements import Requirement, Requirements


class DomainTable:
    """One topology key: its domains by name, and the nodes (as bits) that each may hold."""

    __slots__ = (
        "_allowed",
        "_index",
        "_narrowed",
        "_settled",
        "_signatures",
        "all",
        "anywhere",
        "is_well_known",
        "key",
        "names",
        "nodes",
    )

    def __init__(self, key: str, names: Iterable[str], signatures: Signatures) -> None:
        self.key = key
        self.names = tuple(sorted(set(names)))
        self.all = (1 << len(self.names)) - 1
        self.nodes = [0] * len(self.names)
        self.anywhere = 0
        """Nodes that may be in any domain at all."""
        self.is_well_known = key in signatures.table.well_known
        self._index = {name: index for index, name in enumerate(self.names)}
        self._signatures = signatures
        self._allowed: dict[int, int] = {}
        self._narrowed: dict[int, int] = {}
        self._settled: dict[int, int] = {}

    def bit(self, name: str) -> int:
        """Return a domain as a bit, or 0 if it is unknown."""
        index = self._index.get(name)
        return 0 if index is None else 1 << index

    def allowed_by(self, requirement: Requirement | None) -> int:
        """Return the domains one requirement leaves open; none leaves all."""
        if requirement is None:
            return self.all
        if not requirement.complement:
            mask = 0
            for value in requirement.values:
                mask |= self.bit(value)
            return mask
        return sum(1 << bit for bit, name in enumerate(self.names) if name in requirement)

    def of_signature(self, signature: int) -> int:
        """Return the domains a claim may still land in; none if it cannot carry the label."""
        mask = self._allowed.get(signature)
        if mask is None:
            requirement = self._signatures.requirements[signature].get(self.key)
            if requirement is None and not self.is_well_known:
                mask = 0
            else:
                mask = self.allowed_by(requirement)
            self._allowed[signature] = mask
        return mask

    def is_absent(self, signature: int) -> bool:
        """Say whether a claim will not carry the label at all."""
        requirement = self._signatures.requirements[signature].get(self.key)
        if requirement is None:
            return not self.of_signature(signature)
        return requirement.is_negative and not self.of_signature(signature)

    def narrow(self, signature: int, domains: int) -> int:
        """Return the signature of a claim that may land in these domains only."""
        memo = signature << len(self.names) | domains
        narrowed = self._narrowed.get(memo)
        if narrowed is None:
            narrowed = self._signatures.narrow(signature, self.key, self.names, domains)
            self._narrowed[memo] = narrowed
        return narrowed

    def settled(self, signature: int) -> int:
        """Return the domain a claim is sure to land in, or 0."""
        domain = self._settled.get(signature)
        if domain is None:
            requirement = self._signatures.requirements[signature].get(self.key)
            domain = 0
            if (
                requirement is not None
                and not requirement.complement
                and len(requirement.values) == 1
            ):
                domain = self.bit(min(requirement.values))
            self._settled[signature] = domain
        return domain

    def claimed(self, signature: int) -> int:
        """Return the domains a claim may land in by its own word; none if it says nothing."""
        if self.key not in self._signatures.requirements[signature]:
            return 0
        return self.of_signature(signature)

    def nodes_in(self, domains: int) -> int:
        """Return the nodes that may be in any of some domains."""
        if domains == self.all:
            return self.anywhere
        mask = 0
        for nodes in self.nodes:
            if domains & 1:
                mask |= nodes
            domains >>= 1
        return mask

    def place(self, nodes: int, domains: int) -> None:
        """Note where new nodes (as bits) may be."""
        if domains:
            self.anywhere |= nodes
        for bit in members(domains):
            self.nodes[bit] |= nodes

    def keep_only(self, nodes: int) -> None:
        """Forget all nodes but some."""
        self.anywhere &= nodes
        self.nodes = [each & nodes for each in self.nodes]

    def move(self, node: int, before: int, after: int) -> None:
        """Note that a node can be in other domains than before: fewer, or some after none."""
        for bit in members(before & ~after):
            self.nodes[bit] &= ~(1 << node)
        if not after:
            self.anywhere &= ~(1 << node)
        elif not before:
            self.place(1 << node, after)


class Kind(Enum):
    """What a group is counted for."""

    SPREAD = "spread"
    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    INVERSE = "inverse anti-affinity"


class Group:
    """What every kind of group has: a selector, and a version that moves with its counts."""

    __slots__ = ("filter", "key", "kind", "namespaces", "selector", "version")

    def __init__(
        self, kind: Kind, key: str, namespaces: frozenset[str], selector: LabelSelector | None
    ) -> None:
        self.kind = kind
        self.key = key
        self.namespaces = namespaces
        self.selector = selector
        self.filter: NodeFilter | None = None
        self.version = 0
        """Moves when a count does that may turn a no into a yes."""

    @property
    def is_empty(self) -> bool:
        """Whether no pod is counted anywhere."""
        raise NotImplementedError

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (
            self.selector is not None
            and namespace in self.namespaces
            and self.selector.selects(labels)
        )

    def selects_labels(self, labels: Mapping[str, str]) -> bool:
        """Say whether pods with these labels are selected in the namespaces of the group."""
        return self.selector is not None and self.selector.selects(labels)


class Site:
    """A place a group may be asked about: what a node (or a claim) is known to be."""

    __slots__ = ("requirements", "taints")

    def __init__(self, requirements: Requirements, taints: tuple[Taint, ...]) -> None:
        self.requirements = requirements
        self.taints = taints


class NodeFilter:
    """Which nodes a spread counts: those the pod's own node rules would allow."""

    __slots__ = ("_known", "allows")

    def __init__(self, allows: Callable[[Site], bool]) -> None:
        self.allows = allows
        self._known: dict[tuple[int, int], bool] = {}
        """By the identity of what nodes are known to be, which outlives the filter."""

    def accepts(self, site: Site) -> bool:
        """Say as `allows` does whether pods there count; the answer is remembered."""
        key = (id(site.requirements), id(site.taints))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.allows(site)
        return known


class HostGroup(Group):
    """A group over nodes: each node is a domain of its own."""

    __slots__ = ("at_least", "counts", "is_elsewhere", "max_skew")

    def __init__(
        self, kind: Kind, key: str, namespaces: frozenset[str], selector: LabelSelector | None
    ) -> None:
        super().__init__(kind, key, namespaces, selector)
        self.max_skew = 0
        self.is_elsewhere = False
        """Whether pods of the group are on nodes that take no part in the decision."""
        self.counts: dict[int, int] = {}
        self.at_least: list[int] = [0, 0]
        """Nodes with at least so many of the pods."""

    def add(self, node: int) -> None:
        count = self.counts.get(node, 0) + 1
        self.counts[node] = count
        if count == len(self.at_least):
            self.at_least.append(0)
        self.at_least[count] |= 1 << node
        self.version += 1

    def remove(self, node: int) -> None:
        """Undo `add`."""
        count = self.counts[node]
        self.counts[node] = count - 1
        self.at_least[count] ^= 1 << node
        self.version += 1

    @property
    def is_empty(self) -> bool:
        return not self.at_least[1] and not self.is_elsewhere

    def nodes_with(self, count: int) -> int:
        """Return the nodes with at least `count` of the pods."""
        return self.at_least[count] if count < len(self.at_least) else 0

    def open_to(self, is_selected: int) -> int:
        """Return the nodes (as bits, possibly more than exist) where the rule allows a pod."""
        if self.kind is not Kind.AFFINITY:
            return ~self.blocked_for(is_selected)
        return self.nodes_with(1) or (-1 if is_selected and not self.is_elsewhere else 0)

    def blocked_for(self, is_selected: int) -> int:
        """Return the nodes where a spread or an anti-affinity forbids a pod."""
        if self.kind is Kind.SPREAD:
            too_many = self.max_skew - is_selected + 1
            return self.nodes_with(too_many) if too_many > 0 else -1
        return self.nodes_with(1)

    def allows_alone(self, is_selected: int) -> bool:
        """Say whether the rule allows a pod on a node without pods."""
        if self.kind is Kind.SPREAD:
            return is_selected <= self.max_skew
        if self.kind is Kind.AFFINITY:
            return bool(is_selected) and not self.nodes_with(1) and not self.is_elsewhere
        return True


class _KeyGroup(Group):
    """A group over the domains of a label key."""

    __slots__ = ("domains", "nonzero")

    def __init__(
        self,
        kind: Kind,
        table: DomainTable,
        namespaces: frozenset[str],
        selector: LabelSelector | None,
    ) -> None:
        super().__init__(kind, table.key, namespaces, selector)
        self.domains = table
        self.nonzero = 0
        """Domains where a pod of the group is or may still end up."""
        self._begin(table)

    def _begin(self, table: DomainTable) -> None:
        raise NotImplementedError


class DomainGroup(_KeyGroup):
    """A group over the domains of a label key, for spread and affinity."""

    __slots__ = (
        "counts",
        "honors_affinity",
        "is_elsewhere",
        "known",
        "max_skew",
        "min_domains",
        "of_pools",
        "there",
    )

    def _begin(self, table: DomainTable) -> None:
        self.max_skew = 0
        self.min_domains = 0
        self.honors_affinity = True
        self.is_elsewhere = False
        """Whether a pod of the group is in a domain that goes with its node."""
        self.known = table.all
        self.of_pools = table.all
        """Those of the known domains that pools can make nodes in."""
        self.there = 0
        """Domains of nodes that pass the filter by another term than the one a pod is placed by."""
        self.counts = [0] * len(table.names)

    @property
    def is_empty(self) -> bool:
        return not self.nonzero

    def add(self, domain: int) -> None:
        """Count a pod in a domain."""
        if domain:
            self.counts[domain.bit_length() - 1] += 1
            self.nonzero |= domain
            self.version += 1

    def remove(self, domain: int) -> None:
        """Undo `add`."""
        if domain:
            index = domain.bit_length() - 1
            self.counts[index] -= 1
            if not self.counts[index]:
                self.nonzero ^= domain
            self.version += 1

    def within_skew(self, pod_domains: int, is_selected: int) -> int:
        """Return the domains that another pod would leave even enough."""
        # Differs: the least count that a spread compares with: Karpenter takes it over the domains
        # of the pod's first required term, also with `nodeAffinityPolicy: Ignore`; Karpy takes it
        # over all domains then, and otherwise over those of nodes that match any term, as
        # kube-scheduler does.
        considered = self.known & (pod_domains | self.there) if self.honors_affinity else self.known
        counts = self.counts
        is_whole = considered == self.domains.all and not self.min_domains
        least = min(counts) if is_whole and counts else self._least(considered)
        room = self.max_skew + least - is_selected
        mask, bit = 0, 1
        for count in counts:
            if count <= room:
                mask |= bit
            bit <<= 1
        return mask & self.known

    def _least(self, considered: int) -> int:
        if not considered or (self.min_domains and considered.bit_count() < self.min_domains):
            return 0
        return min(self.counts[bit] for bit in members(considered))


class AvoidedGroup(_KeyGroup):
    """A group over the domains of a label key that pods keep away from, or that keeps them away."""

    __slots__ = ("_claims", "_counts", "_settled")

    def _begin(self, table: DomainTable) -> None:
        del table
        self._settled = 0
        self._counts: dict[int, int] = {}
        """Pods that are certain to be in a domain, by its bit."""
        self._claims: dict[int, int] = {}
        """Pods that are not, by their node."""

    def add(self, node: int, domains: int) -> None:
        """Note that a pod is on a node, and where that may be."""
        self.nonzero |= domains
        if domains and not domains & (domains - 1):
            self._settled |= domains
            self._counts[domains] = self._counts.get(domains, 0) + 1
        else:
            self._claims[node] = self._claims.get(node, 0) + 1

    def remove(self, node: int, domains: int) -> None:
        """Undo `add`; claims must be removed before they are forgotten."""
        if domains and not domains & (domains - 1):
            self._counts[domains] -= 1
            if not self._counts[domains]:
                self._settled ^= domains
        else:
            self._claims[node] -= 1
            if not self._claims[node]:
                del self._claims[node]
        self.nonzero = self._settled
        self.version += 1

    @property
    def is_empty(self) -> bool:
        """Whether no pod of the group is anywhere."""
        return not self.nonzero and not self._claims

    def look_again(self, node: int, domains_of: Callable[[int], int]) -> None:
        """Take note that a claim says something else than before about where it may be."""
        if node in self._claims:
            left = self._settled
            for claim in self._claims:
                left |= domains_of(claim)
            if left != self.nonzero:
                self.nonzero = left
                self.version += 1
