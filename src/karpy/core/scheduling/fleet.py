"""
The nodes of one decision while it is being made: existing ones first, then claims.

Scratch state, created and dropped within one call. Nodes are numbered; sets of nodes are bits of an
integer. A claim only ever gets tighter: fewer types, fewer domains, less room.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from functools import partial

from karpy.core.scheduling.domains import DomainTable
from karpy.core.scheduling.existing import ExistingNodes
from karpy.core.scheduling.groups import AvoidedGroup, DomainGroup, Site
from karpy.core.scheduling.signatures import Signatures
from karpy.core.scheduling.templates import Template
from karpy.core.scheduling.typetable import Thresholds
from karpy.model.pods import HostPort, Pod
from karpy.model.requirements import from_labels
from karpy.model.resources import Resources

_HOLDS_NOTHING: frozenset[str] = frozenset()


class Gains:
    """Counts how often a claim got a label it did not have before."""

    __slots__ = ("version",)

    def __init__(self) -> None:
        self.version = 0


class Fleet:
    """What each node holds and may still become."""

    def __init__(self, existing: ExistingNodes, signatures: Signatures) -> None:
        """Take the nodes that are there."""
        count = existing.count
        self.existing = existing
        self.signatures = signatures
        self.existing_mask = (1 << count) - 1
        self.size = count
        self.templates: list[Template | None] = [None] * count
        self.signature: list[int] = [-1] * count
        self.types: list[int] = [0] * count
        self.rooms: list[dict[str, Thresholds]] = [{}] * count
        """What the types of a claim leave for pods, by resource; shared with its template."""
        self.moment = 0
        """How many pods have been placed."""
        self.used: list[dict[str, int]] = [{}] * count
        """Requests of the pods placed on each claim, by resource."""
        self.tight: dict[int, tuple[str, int]] = {}
        """The resource that a claim last had too little of, and the most that it has left."""
        self.pods: list[list[Pod]] = [[] for _ in range(count)]
        self.held: list[frozenset[str]] = [frozenset()] * count
        """Reservations a claim holds."""
        self.relaxed: list[bool] = [False] * count
        self.by_template: dict[int, int] = {}
        """Claims by the template they were made from."""
        self.by_count: list[int] = [0, 0]
        """Claims with so many pods, as bits."""
        self.counts: list[int] = []
        """The pod counts that some claim has, ascending."""
        self.born_as: dict[int, int] = {}
        """Claims by the signature they were made with."""
        self.birth_signatures = 0
        """Signatures some claim was made with, as bits."""
        self.gains = Gains()
        self.uncounted: dict[int, list[DomainGroup]] = {}
        """Groups that would count pods of a claim if only it were certain where it will be."""
        self.tables: list[DomainTable] = []
        self.avoided: Mapping[str, Sequence[AvoidedGroup]] = {}
        self._ports: dict[tuple[str, int], list[tuple[HostPort, int]]] = {}
        self._attached: dict[int, dict[str, set[str]]] = {}
        self._sites: dict[int, Site] = {}

    def open_claims(self, template: Template, signature: int, types: int, count: int) -> int:
        """Add claims without pods, all alike; return the number of the first."""
        first = self.size
        self.size += count
        self.templates += [template] * count
        self.signature += [signature] * count
        self.types += [types] * count
        self.rooms += [template.rooms] * count
        self.used += [{} for _ in range(count)]
        self.pods += [[] for _ in range(count)]
        self.held += [_HOLDS_NOTHING] * count
        self.relaxed += [template.is_relaxed] * count
        bits = (1 << self.size) - (1 << first)
        self.by_template[template.index] = self.by_template.get(template.index, 0) | bits
        self.birth_signatures |= 1 << signature
        self.born_as[signature] = self.born_as.get(signature, 0) | bits
        self._note_gain(template.signature, signature, count)
        for table in self.tables:
            table.place(bits, table.of_signature(signature))
        return first

    def types_left(self, node: int, requests: Resources) -> int:
        """Return the types of a claim that have room for more, as bits."""
        tight = self.tight.get(node)
        if tight is not None and requests.get(tight[0], 0) > tight[1]:
            return 0
        types, used, rooms = self.types[node], self.used[node], self.rooms[node]
        for resource, amount in requests.items():
            room, there = rooms[resource], used.get(resource, 0)
            types &= room.at_least[bisect_left(room.values, there + amount)]
            if not types:
                self.tight[node] = resource, room.largest(self.types[node]) - there
                break
        return types

    def take(self, node: int, pod: Pod, requests: Resources, mask: int) -> bool:
        """Place a pod without ports on a claim if one of some types has room; keep only those."""
        types, used, rooms = self.types[node] & mask, self.used[node], self.rooms[node]
        for resource, amount in requests.items():
            room = rooms[resource]
            total = used[resource] = used.get(resource, 0) + amount
            types &= room.at_least[bisect_left(room.values, total)]
        if not types:
            for resource, amount in requests.items():
                used[resource] -= amount
                if not used[resource]:
                    del used[resource]
            # Remember what there was too little of.
            self.types_left(node, requests)
            return False
        self.types[node] = types
        pods = self.pods[node]
        pods.append(pod)
        self.moment += 1
        count = len(pods)
        self._promote(node, count - 1, count)
        return True

    def retype(self, node: int, signature: int) -> None:
        """Note the requirements a claim has now."""
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
                    group.requeue_after(node, partial(self.domains_in, table))

    def _note_gain(self, before: int, after: int, count: int = 1) -> None:
        known = self.signatures.requirements
        if len(known[after]) > len(known[before]):
            self.gains.version += count

    def _count_late(self, node: int, table: DomainTable) -> None:
        """Count pods of a claim in a domain that has only now become certain."""
        # Differs: Karpenter never counts pods placed on a claim while its domain was open.
        domain = table.settled(self.signature[node])
        if domain:
            waiting = self.uncounted[node]
            for group in [each for each in waiting if each.key == table.key]:
                group.add(domain)
                waiting.remove(group)

    def domain_of(self, table: DomainTable, node: int) -> int:
        """Return the one domain where a node is or a claim will be, or 0."""
        if node < self.existing.count:
            return table.bit(self.existing.labels[node].get(table.key, ""))
        return table.settled(self.signature[node])

    def domains_in(self, table: DomainTable, node: int) -> int:
        """Return where a node is, or a claim says it may be."""
        if node < self.existing.count:
            return table.bit(self.existing.labels[node].get(table.key, ""))
        return table.claimed(self.signature[node])

    def put(self, node: int, pod: Pod, requests: Resources) -> None:
        """Place a pod."""
        pods = self.pods[node]
        pods.append(pod)
        self.moment += 1
        if node < self.existing.count:
            free = self.existing.free
            for resource, amount in requests.items():
                free[resource][node] -= amount
        else:
            used = self.used[node]
            for resource, amount in requests.items():
                used[resource] = used.get(resource, 0) + amount
            self._promote(node, len(pods) - 1, len(pods))
        if pod.rules.ports:
            self.take_ports(node, pod)

    def put_more(self, node: int, more: Sequence[Pod], requests: Resources) -> None:
        """Place several pods that ask alike, and for no ports, on one claim."""
        pods, used = self.pods[node], self.used[node]
        count = len(pods)
        pods += more
        self.moment += len(more)
        for resource, amount in requests.items():
            used[resource] = used.get(resource, 0) + amount * len(more)
        self._promote(node, count, len(pods))

    def put_each(self, first: int, pods: Sequence[Pod], requests: Resources) -> None:
        """Place pods without ports on new claims, one on each."""
        stop = first + len(pods)
        self.pods[first:stop] = [[pod] for pod in pods]
        self.used[first:stop] = [dict(requests) for _ in pods]
        self.moment += len(pods)
        if not self.by_count[1]:
            insort(self.counts, 1)
        self.by_count[1] |= (1 << stop) - (1 << first)

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

    def turns_of(self, node: int, claims: int, most: int) -> int:
        """Count the pods a claim takes in a row, up to so many, before another of them is due."""
        mine, by_count = len(self.pods[node]), self.by_count
        others = claims & ~(1 << node)
        if others & (by_count[mine] | by_count[mine - 1]):
            return 0
        for count in self.counts:
            if by_count[count] & others:
                return min(most, max(0, count - mine))
        return most

    def take_ports(self, node: int, pod: Pod) -> None:
        for port in pod.rules.ports:
            users = self._ports.setdefault((port.protocol, port.port), [])
            for index, (known, nodes) in enumerate(users):
                if known == port:
                    users[index] = (known, nodes | 1 << node)
                    break
            else:
                users.append((port, 1 << node))

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
            drivers.setdefault(driver, set()).add(claim)

    def attached_with(
        self, node: int | None, attachments: tuple[tuple[str, str], ...]
    ) -> dict[str, int]:
        """Count volumes per driver if these came to those of a node (None: a fresh one)."""
        drivers = self._attached.get(node, {}) if node is not None else {}
        wanted: dict[str, set[str]] = {}
        for driver, claim in attachments:
            wanted.setdefault(driver, set()).add(claim)
        return {
            driver: len(claims | drivers.get(driver, set())) for driver, claims in wanted.items()
        }

    def site(self, node: int) -> Site:
        """Return what is known of a node: labels or requirements, and its taints."""
        if node < self.existing.count:
            known = self._sites.get(node)
            if known is None:
                labels: Mapping[str, str] = self.existing.labels[node]
                known = Site(from_labels(labels), self.existing.nodes[node].taints)
                self._sites[node] = known
            return known
        template = self.templates[node]
        assert template is not None
        # Parity: a claim that does not say yet what a spreading pod asks for is not counted, though
        # its node may well have the label in the end.
        return Site(self.signatures.requirements[self.signature[node]], template.taints)
