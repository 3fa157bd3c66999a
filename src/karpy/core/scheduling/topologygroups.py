"""Topology groups: pods that a spread, affinity or anti-affinity counts, domain by domain."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from karpy.core.scheduling.instancetypes import members
from karpy.core.scheduling.signatures import Signatures
from karpy.model.constraints import LabelSelector, Taint
from karpy.model.requirements import Requirement, Requirements


class DomainTable:
    """The domains of one topology key, each with the nodes (as bits) that may be in it."""

    __slots__ = (
        "_allowed",
        "_certain",
        "_index",
        "_narrowed",
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
        """By number of a domain, its name."""
        self.all = (1 << len(self.names)) - 1
        self.nodes = [0] * len(self.names)
        self.anywhere = 0
        """Nodes that may be in at least one domain."""
        self.is_well_known = key in signatures.table.well_known
        self._index = {name: index for index, name in enumerate(self.names)}
        self._signatures = signatures
        self._allowed: dict[int, int] = {}
        self._narrowed: dict[int, int] = {}
        self._certain: dict[int, int] = {}

    def bit(self, name: str) -> int:
        """Return the domain of a name as a bit, or 0 if there is none."""
        index = self._index.get(name)
        return 0 if index is None else 1 << index

    def allowed_by(self, requirement: Requirement | None) -> int:
        """Return the domains that a requirement allows; all if there is no requirement."""
        if requirement is None:
            return self.all
        if not requirement.complement:
            mask = 0
            for value in requirement.values:
                mask |= self.bit(value)
            return mask
        return sum(1 << bit for bit, name in enumerate(self.names) if name in requirement)

    def of_signature(self, signature: int) -> int:
        """Return the domains that a claim may be launched in; 0 if it cannot have the label."""
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
        """Say whether the node of a claim will not have the label."""
        requirement = self._signatures.requirements[signature].get(self.key)
        if requirement is None:
            return not self.of_signature(signature)
        return requirement.is_negative and not self.of_signature(signature)

    def narrow(self, signature: int, domains: int) -> int:
        """Return the signature of a claim restricted to some domains."""
        memo = signature << len(self.names) | domains
        narrowed = self._narrowed.get(memo)
        if narrowed is None:
            narrowed = self._signatures.narrow(signature, self.key, self.names, domains)
            self._narrowed[memo] = narrowed
        return narrowed

    def certain_domain(self, signature: int) -> int:
        """Return the only domain that a claim allows, or 0."""
        domain = self._certain.get(signature)
        if domain is None:
            requirement = self._signatures.requirements[signature].get(self.key)
            domain = 0
            if (
                requirement is not None
                and not requirement.complement
                and len(requirement.values) == 1
            ):
                domain = self.bit(min(requirement.values))
            self._certain[signature] = domain
        return domain

    def claimed(self, signature: int) -> int:
        """Return the domains that a claim's requirement on the key allows; 0 if it has none."""
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
        """Note the domains in which new nodes (as bits) may be."""
        if domains:
            self.anywhere |= nodes
        for bit in members(domains):
            self.nodes[bit] |= nodes

    def keep_only(self, nodes: int) -> None:
        """Forget all nodes but some."""
        self.anywhere &= nodes
        self.nodes = [each & nodes for each in self.nodes]

    def move(self, node: int, before: int, after: int) -> None:
        """Note that the possible domains of a node change: to fewer, or from none to some."""
        for bit in members(before & ~after):
            self.nodes[bit] &= ~(1 << node)
        if not after:
            self.anywhere &= ~(1 << node)
        elif not before:
            self.place(1 << node, after)


class GroupKind(Enum):
    """The rule that a group is counted for."""

    SPREAD = "spread"
    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    INVERSE = "inverse anti-affinity"


class Group:
    """The pods that one topology rule counts, found by namespaces and selector."""

    __slots__ = ("filter", "key", "kind", "namespaces", "selector", "version")

    def __init__(
        self, kind: GroupKind, key: str, namespaces: frozenset[str], selector: LabelSelector | None
    ) -> None:
        self.kind = kind
        self.key = key
        self.namespaces = namespaces
        self.selector = selector
        self.filter: SpreadFilter | None = None
        self.version = 0
        """Rises when a count changes, so that a failed step may succeed."""

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
    """The labels of a node (or the requirements of a claim), and its taints."""

    __slots__ = ("requirements", "taints")

    def __init__(self, requirements: Requirements, taints: tuple[Taint, ...]) -> None:
        self.requirements = requirements
        self.taints = taints


class SpreadFilter:
    """Which nodes a spread counts, by its nodeAffinityPolicy and nodeTaintsPolicy."""

    __slots__ = ("_known", "allows")

    def __init__(self, allows: Callable[[Site], bool]) -> None:
        self.allows = allows
        self._known: dict[tuple[int, int], bool] = {}
        """By the identity of the requirements and taints of a site; both outlive the filter."""

    def accepts(self, site: Site) -> bool:
        """Say whether pods at a site count; `allows` is called once for equal sites."""
        key = (id(site.requirements), id(site.taints))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self.allows(site)
        return known


class HostGroup(Group):
    """A group over hostnames: each node is a domain of its own."""

    __slots__ = ("at_least", "counts", "is_elsewhere", "max_skew")

    def __init__(
        self, kind: GroupKind, key: str, namespaces: frozenset[str], selector: LabelSelector | None
    ) -> None:
        super().__init__(kind, key, namespaces, selector)
        self.max_skew = 0
        self.is_elsewhere = False
        """Whether pods of the group are on nodes that take no part in the decision."""
        self.counts: dict[int, int] = {}
        self.at_least: list[int] = [0, 0]
        """By count: nodes (as bits) with at least so many pods of the group."""

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
        """Return the nodes with at least `count` pods of the group."""
        return self.at_least[count] if count < len(self.at_least) else 0

    def open_to(self, is_selected: int) -> int:
        """Return the nodes (as bits) where the rule allows a pod; bits of no node may be set."""
        if self.kind is not GroupKind.AFFINITY:
            return ~self.blocked_for(is_selected)
        return self.nodes_with(1) or (-1 if is_selected and not self.is_elsewhere else 0)

    def blocked_for(self, is_selected: int) -> int:
        """Return the nodes where a spread or an anti-affinity forbids a pod."""
        if self.kind is GroupKind.SPREAD:
            too_many = self.max_skew - is_selected + 1
            return self.nodes_with(too_many) if too_many > 0 else -1
        return self.nodes_with(1)

    def allows_alone(self, is_selected: int) -> bool:
        """Say whether the rule allows a pod on a node without pods."""
        if self.kind is GroupKind.SPREAD:
            return is_selected <= self.max_skew
        if self.kind is GroupKind.AFFINITY:
            return bool(is_selected) and not self.nodes_with(1) and not self.is_elsewhere
        return True


class _KeyGroup(Group):
    """A group over the domains of a label key."""

    __slots__ = ("domains", "nonzero")

    def __init__(
        self,
        kind: GroupKind,
        table: DomainTable,
        namespaces: frozenset[str],
        selector: LabelSelector | None,
    ) -> None:
        super().__init__(kind, table.key, namespaces, selector)
        self.domains = table
        self.nonzero = 0
        """Domains in which a pod of the group is or may be."""
        self._begin(table)

    def _begin(self, table: DomainTable) -> None:
        raise NotImplementedError


class DomainGroup(_KeyGroup):
    """A group over the domains of a label key, for spread and affinity."""

    __slots__ = (
        "by_other_terms",
        "counts",
        "honors_affinity",
        "is_elsewhere",
        "known",
        "max_skew",
        "min_domains",
        "of_pools",
    )

    def _begin(self, table: DomainTable) -> None:
        self.max_skew = 0
        self.min_domains = 0
        self.honors_affinity = True
        self.is_elsewhere = False
        """Whether a pod of the group is in a domain that only a deleting node is in."""
        self.known = table.all
        """Domains that the rule takes into account."""
        self.of_pools = table.all
        """Known domains in which a NodePool can launch nodes."""
        self.by_other_terms = 0
        """Domains of existing nodes that pass the filter, if pods have several required terms."""
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
        """Return the domains in which one more pod keeps the skew within `max_skew`."""
        # Differs: the least count that a spread compares with: Karpenter takes it over the domains
        # of the pod's first required term, also with `nodeAffinityPolicy: Ignore`; Karpy takes it
        # over all domains then, and otherwise over those of nodes that match any term, as
        # kube-scheduler does.
        considered = (
            self.known & (pod_domains | self.by_other_terms) if self.honors_affinity else self.known
        )
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
    """A group over the domains of a label key, for anti-affinity and its inverse."""

    __slots__ = ("_certain", "_claims", "_counts")

    def _begin(self, table: DomainTable) -> None:
        del table
        self._certain = 0
        """Domains in which some pod certainly is."""
        self._counts: dict[int, int] = {}
        """By domain (as a bit), the number of pods that certainly are in it."""
        self._claims: dict[int, int] = {}
        """By claim, the number of pods whose domain is not certain."""

    def add(self, node: int, domains: int) -> None:
        """Count a pod on a node that may be in some domains."""
        self.nonzero |= domains
        if domains and not domains & (domains - 1):
            self._certain |= domains
            self._counts[domains] = self._counts.get(domains, 0) + 1
        else:
            self._claims[node] = self._claims.get(node, 0) + 1

    def remove(self, node: int, domains: int) -> None:
        """Undo `add`; call it before a claim on which the pod is gets taken back."""
        if domains and not domains & (domains - 1):
            self._counts[domains] -= 1
            if not self._counts[domains]:
                self._certain ^= domains
        else:
            self._claims[node] -= 1
            if not self._claims[node]:
                del self._claims[node]
        self.nonzero = self._certain
        self.version += 1

    @property
    def is_empty(self) -> bool:
        """Whether no pod of the group is counted on any node."""
        return not self.nonzero and not self._claims

    def update_claim(self, node: int, domains_of: Callable[[int], int]) -> None:
        """Update `nonzero` after the possible domains of a claim have changed."""
        if node in self._claims:
            left = self._certain
            for claim in self._claims:
                left |= domains_of(claim)
            if left != self.nonzero:
                self.nonzero = left
                self.version += 1
