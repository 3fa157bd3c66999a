"""The nodes of one decision, existing ones and claims, while pods are placed on them."""

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from karpy.core.scheduling.existing import ExistingNodes
from karpy.core.scheduling.instancetypes import Thresholds
from karpy.core.scheduling.signatures import Signatures
from karpy.core.scheduling.templates import Template
from karpy.core.scheduling.topologygroups import AvoidedGroup, DomainGroup, DomainTable, Site
from karpy.model.pods import HostPort, Pod
from karpy.model.resources import Resources

_HOLDS_NOTHING: frozenset[str] = frozenset()


class LabelGains:
    """Counts in its version how often a claim got a requirement on a further label."""

    __slots__ = ("version",)

    def __init__(self) -> None:
        self.version = 0


class PlannedNodes:
    """
    The pods of each node, and for each claim the requirements and types that are left.

    Existing nodes have the numbers 0 to `existing.count` - 1, claims the next ones; a set of nodes
    is the bits of an integer.
    """

    def __init__(self, existing: ExistingNodes, signatures: Signatures) -> None:
        """Take the existing nodes."""
        count = existing.count
        self.existing = existing
        self.signatures = signatures
        self.existing_mask = (1 << count) - 1
        self.open_nodes = self.existing_mask
        """Existing nodes that take part, as bits."""
        self.size = count
        self.epoch = 0
        """Counts calls of `undo`; what a memo holds about claims is valid within one epoch."""
        self.undo_log: list[tuple[Callable[..., object], *tuple[Any, ...]]] = []
        """Calls that undo changes to existing nodes and groups; `undo` makes the last one first."""
        self.last = -1
        """The node that took a pod last."""
        self.templates: list[Template | None] = [None] * count
        self.signature: list[int] = [-1] * count
        self.types: list[int] = [0] * count
        self.rooms: list[dict[str, Thresholds]] = [{}] * count
        """By node and resource: what each type leaves for pods; shared with the template."""
        self.used: list[dict[str, int]] = [{}] * count
        """By node and resource: the requests of the pods placed on a claim."""
        self.pods: list[list[Pod]] = [[] for _ in range(count)]
        self.held: list[frozenset[str]] = [frozenset()] * count
        """By node: the reservations that a claim holds."""
        self.relaxed: list[bool] = [False] * count
        """By node: whether minValues of a claim were lowered."""
        self.by_template: dict[int, int] = {}
        """By the index of a template: its claims, as bits."""
        self.by_count: list[int] = [0, 0]
        """By number of pods: the claims with so many, as bits."""
        self.counts: list[int] = []
        """The numbers of pods that some claim has, ascending."""
        self.by_first_signature: dict[int, int] = {}
        """By the signature with which claims were made: the claims, as bits."""
        self.first_signatures = 0
        """The signatures with which claims were made, as bits."""
        self.label_gains = LabelGains()
        self.uncounted: dict[int, list[DomainGroup]] = {}
        """By claim: groups that count its pods as soon as its domain is certain."""
        self.tables: list[DomainTable] = []
        self.avoided: Mapping[str, Sequence[AvoidedGroup]] = {}
        self._ports: dict[tuple[str, int], list[tuple[HostPort, int]]] = {}
        self._attached: dict[int, dict[str, set[str]]] = {}

    def open_claim(self, template: Template, signature: int, types: int) -> int:
        """Add a claim without pods; return its number."""
        node = self.size
        self.size += 1
        self.templates.append(template)
        self.signature.append(signature)
        self.types.append(types)
        self.rooms.append(template.rooms)
        self.used.append({})
        self.pods.append([])
        self.held.append(_HOLDS_NOTHING)
        self.relaxed.append(template.is_relaxed)
        bit = 1 << node
        self.by_template[template.index] = self.by_template.get(template.index, 0) | bit
        self.first_signatures |= 1 << signature
        self.by_first_signature[signature] = self.by_first_signature.get(signature, 0) | bit
        self._note_gain(template.signature, signature)
        for table in self.tables:
            table.place(bit, table.of_signature(signature))
        return node

    def undo(self) -> None:
        """Take back all placed pods and all claims."""
        for call, *arguments in reversed(self.undo_log):
            call(*arguments)
        self.undo_log.clear()
        self.uncounted.clear()
        self.epoch += 1
        count = self.existing.count
        if self.size > count:
            for each in (
                self.templates,
                self.signature,
                self.types,
                self.rooms,
                self.used,
                self.pods,
                self.held,
                self.relaxed,
            ):
                del each[count:]
            self.size = count
            for table in self.tables:
                table.keep_only(self.existing_mask)
            self.by_template.clear()
            self.by_count, self.counts = [0, 0], []
            self.by_first_signature.clear()
            self.first_signatures = 0

    def types_left(self, node: int, requests: Resources) -> int:
        """Return the types of a claim that have room for further requests, as bits."""
        types, used, rooms = self.types[node], self.used[node], self.rooms[node]
        for resource, amount in requests.items():
            room, there = rooms[resource], used.get(resource, 0)
            types &= room.at_least[bisect_left(room.values, there + amount)]
            if not types:
                break
        return types

    def retype(self, node: int, signature: int) -> None:
        """Give a claim another signature, and note its new domains."""
        before = self.signature[node]
        self.signature[node] = signature
        self._note_gain(before, signature)
        for table in self.tables:
            old = table.of_signature(before)
            new = table.of_signature(signature)
            if old != new:
                table.move(node, old, new)
            if node in self.uncounted:
                self._count_late(node, table)
            if table.claimed(before) != table.claimed(signature):
                for group in self.avoided.get(table.key, ()):
                    group.update_claim(node, partial(self.domains_in, table))

    def _note_gain(self, before: int, after: int) -> None:
        known = self.signatures.requirements
        if len(known[after]) > len(known[before]):
            self.label_gains.version += 1

    def _count_late(self, node: int, table: DomainTable) -> None:
        """Count pods of a claim whose domain has become certain."""
        # Differs: a pod on a NodeClaim whose zone is decided by a later pod: Karpenter never counts
        # the first pod for spread and affinity; Karpy counts it as soon as the zone is certain.
        domain = table.certain_domain(self.signature[node])
        if domain:
            waiting = self.uncounted[node]
            for group in [each for each in waiting if each.key == table.key]:
                group.add(domain)
                self.undo_log.append((group.remove, domain))
                waiting.remove(group)

    def domain_of(self, table: DomainTable, node: int) -> int:
        """Return the one domain of a node, as a bit; 0 if it has none or a claim allows several."""
        if node < self.existing.count:
            return table.bit(self.existing.labels[node].get(table.key, ""))
        return table.certain_domain(self.signature[node])

    def domains_in(self, table: DomainTable, node: int) -> int:
        """Return the domain of an existing node, or the domains that a claim requires."""
        if node < self.existing.count:
            return table.bit(self.existing.labels[node].get(table.key, ""))
        return table.claimed(self.signature[node])

    def put(self, node: int, pod: Pod, requests: Resources) -> None:
        """Place a pod."""
        pods = self.pods[node]
        pods.append(pod)
        self.last = node
        if node < self.existing.count:
            free = self.existing.free
            for resource, amount in requests.items():
                free[resource][node] -= amount
            self.undo_log.append((_take_back, pods, free, node, requests))
        else:
            used = self.used[node]
            for resource, amount in requests.items():
                used[resource] = used.get(resource, 0) + amount
            self._promote(node, len(pods) - 1, len(pods))
        if pod.rules.ports:
            self.take_ports(node, pod)

    def _promote(self, node: int, before: int, after: int) -> None:
        """Note that a claim has more pods than before."""
        bit, by_count, counts = 1 << node, self.by_count, self.counts
        while after >= len(by_count):
            by_count.append(0)
        there = by_count[after]
        by_count[after] = there | bit
        if not before:
            if not there:
                insort(counts, after)
        else:
            left = by_count[before] = by_count[before] ^ bit
            if not left and not there and after == before + 1:
                counts[bisect_left(counts, before)] = after
            else:
                if not there:
                    insort(counts, after)
                if not left:
                    counts.remove(before)

    def take_ports(self, node: int, pod: Pod) -> None:
        for port in pod.rules.ports:
            users = self._ports.setdefault((port.protocol, port.port), [])
            for index, (known, nodes) in enumerate(users):
                if known == port:
                    users[index] = (known, nodes | 1 << node)
                    self.undo_log.append((users.__setitem__, index, (known, nodes)))
                    break
            else:
                users.append((port, 1 << node))
                self.undo_log.append((users.pop,))

    def with_port_clash(self, ports: tuple[HostPort, ...]) -> int:
        """Return the nodes where one of the ports is taken."""
        mask = 0
        for port in ports:
            for taken, nodes in self._ports.get((port.protocol, port.port), ()):
                if port.clashes_with(taken):
                    mask |= nodes
        return mask

    def attach(self, node: int, attachments: tuple[tuple[str, str], ...]) -> None:
        drivers = self._attached.setdefault(node, {})
        for driver, claim in attachments:
            claims = drivers.setdefault(driver, set())
            if claim not in claims:
                claims.add(claim)
                self.undo_log.append((claims.discard, claim))

    def attached_with(
        self, node: int | None, attachments: tuple[tuple[str, str], ...]
    ) -> dict[str, int]:
        """Count the volumes per driver of a node (None: a new claim) with some more."""
        drivers = self._attached.get(node, {}) if node is not None else {}
        wanted: dict[str, set[str]] = {}
        for driver, claim in attachments:
            wanted.setdefault(driver, set()).add(claim)
        return {
            driver: len(claims | drivers.get(driver, set())) for driver, claims in wanted.items()
        }

    def site(self, node: int) -> Site:
        """Return the labels of a node, or the requirements of a claim, and its taints."""
        if node < self.existing.count:
            return self.existing.site(node)
        template = self.templates[node]
        assert template is not None
        # Parity: a spread with a node filter and a NodeClaim that does not define the label yet: as
        # in Karpenter, its pods are not counted, although its node may get the label in the end.
        return Site(self.signatures.requirements[self.signature[node]], template.taints)


def _take_back(
    pods: list[Pod], free: Mapping[str, list[int]], node: int, requests: Resources
) -> None:
    """Remove the last pod of an existing node."""
    pods.pop()
    for resource, amount in requests.items():
        free[resource][node] += amount
