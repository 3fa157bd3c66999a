"""Nodes, the pods on them, and what changed since a position in their log."""

from collections import Counter
from collections.abc import Iterator, KeysView, Mapping
from typing import Final, TypeAlias, TypeVar

from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.model.constraints import PREFER_NO_SCHEDULE, Taint
from karpy.model.pods import ANY_ADDRESS, HostPort
from karpy.model.resources import CPU, MEMORY, PODS
from karpy.sim.scheduler.kins import CHANGES_MAX, Kin
from karpy.sim.scheduler.podinfos import PodInfo
from karpy.sim.scheduler.terms import NO_TERMS

K = TypeVar("K")

_NO_LABELS: Final[Mapping[str, str]] = {}

Entry: TypeAlias = tuple[int, int | None]
"""A change of the node in a slot: so many pods more, or, if that is None, the node itself."""

Domains: TypeAlias = tuple[list[str | None], Mapping[str, int]]
"""The domain of each slot, and how many nodes each domain has."""


class NodeInfo:
    """A node with what its pods take of it."""

    __slots__ = (
        "allocatable",
        "cpu",
        "is_cordoned",
        "is_there",
        "labels",
        "memory",
        "name",
        "obj",
        "pods",
        "pods_max",
        "ports",
        "slot",
        "soft_taints",
        "taints",
        "used",
        "used_cpu",
        "used_memory",
        "usual_cpu",
        "usual_memory",
    )

    def __init__(self, name: str, slot: int) -> None:
        self.name = name
        self.slot = slot
        self.obj: JsonObject | None = None
        self.is_there = False
        """Pods may be bound to a node that is not there yet, or not any more."""
        self.labels: Mapping[str, str] = _NO_LABELS
        self.taints: tuple[Taint, ...] = ()
        """Taints that keep pods off."""
        self.soft_taints: tuple[Taint, ...] = ()
        self.is_cordoned = False
        self.allocatable: Mapping[str, int] = {}
        self.cpu = self.memory = self.pods_max = 0
        self.pods: dict[str, PodInfo] = {}
        self.ports: dict[HostPort, int] = {}
        self.used: dict[str, int] = {}
        self.used_cpu = self.used_memory = self.usual_cpu = self.usual_memory = 0

    def describe(self, obj: JsonObject | None) -> bool:
        """Take over what a Node says, None if it is gone; say whether that makes a difference."""
        before = self.obj
        self.obj = obj
        if obj is None:
            self.is_there = False
            self.labels = _NO_LABELS
            return before is not None
        if before is not None and _is_same(obj, before):
            return False
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        self.is_there = True
        self.labels = obj["metadata"].get("labels") or _NO_LABELS
        self.is_cordoned = bool(spec.get("unschedulable"))
        taints = [
            Taint(each.get("key") or "", each.get("effect") or "", each.get("value") or "")
            for each in spec.get("taints") or ()
        ]
        self.soft_taints = tuple(each for each in taints if each.effect == PREFER_NO_SCHEDULE)
        self.taints = tuple(each for each in taints if each.effect != PREFER_NO_SCHEDULE)
        self.allocatable = amounts = _allocatable(status)
        self.cpu, self.memory = amounts.get(CPU, 0), amounts.get(MEMORY, 0)
        self.pods_max = amounts.get(PODS, 0)
        return True

    def put(self, pod: PodInfo) -> None:
        """Count a pod in."""
        self.pods[pod.key] = pod
        self._count(pod, 1)

    def take(self, pod: PodInfo) -> None:
        """Count a pod out."""
        del self.pods[pod.key]
        self._count(pod, -1)

    def has_free(self, ports: tuple[HostPort, ...]) -> bool:
        """Say whether no pod here uses one of the ports."""
        taken = self.ports
        return not taken or not any(_clash(mine, other) for mine in ports for other in taken)

    def _count(self, pod: PodInfo, sign: int) -> None:
        self.used_cpu += sign * pod.cpu
        self.used_memory += sign * pod.memory
        self.usual_cpu += sign * pod.usual_cpu
        self.usual_memory += sign * pod.usual_memory
        wants = pod.wants
        if wants.others or pod.requests is not wants.requests:
            used = self.used
            for name, amount in pod.requests.items():
                used[name] = used.get(name, 0) + sign * amount
        for port in wants.ports:
            left = self.ports.get(port, 0) + sign
            if left:
                self.ports[port] = left
            else:
                del self.ports[port]


class NodeTable:
    """
    All nodes, each in a slot of its own, and a log of what happened to them.

    A slot is never given to another node as long as pods are bound to its name.
    """

    def __init__(self) -> None:
        self.nodes: list[NodeInfo | None] = []
        self.count = 0
        """How many nodes there are."""
        self.keys_version = 0
        """Grows when pods with terms on new topology keys appear."""
        self.averse_keys: set[str] = set()
        """Topology keys by which pods here keep others away."""
        self.preferred_keys: set[str] = set()
        """Topology keys by which pods here like, dislike or need others."""
        self.arrivals = 0
        """How often a kind of pods came to the nodes that had not been there."""
        self.renewals = 0
        """How often a node itself changed, or took a slot."""
        self.position = 0
        """How many changes there were."""
        self._by_name: dict[str, NodeInfo] = {}
        self._free: list[int] = []
        self._log: list[Entry] = []
        self._base = 0
        self._priorities: dict[int, int] = {}
        self._claims: dict[str, int] = {}
        self._kins: dict[Kin, int] = {}
        self._domains: dict[str, tuple[int, Domains]] = {}
        """By topology key, and as of which renewal."""

    @property
    def lowest_priority(self) -> int | None:
        """The lowest priority of a pod on any node."""
        return min(self._priorities, default=None)

    def since(self, position: int) -> list[Entry] | None:
        """Return the changes after a position; None if they are no longer kept."""
        return None if position < self._base else self._log[position - self._base :]

    def find(self, name: str) -> NodeInfo | None:
        """Return a node that is there."""
        node = self._by_name.get(name)
        return node if node is not None and node.is_there else None

    def walk(self) -> Iterator[NodeInfo]:
        """Walk through the nodes that are there."""
        return (node for node in self.nodes if node is not None and node.is_there)

    @property
    def kins(self) -> KeysView[Kin]:
        """The kinds of pods that are on nodes."""
        return self._kins.keys()

    def domains(self, key: str) -> Domains:
        """Return the domains of a topology key that the nodes in all slots are in."""
        known = self._domains.get(key)
        if known is None or known[0] != self.renewals:
            values = [
                node.labels.get(key) if node is not None and node.is_there else None
                for node in self.nodes
            ]
            sizes = Counter(each for each in values if each is not None)
            known = self._domains[key] = self.renewals, (values, sizes)
        return known[1]

    def is_claim_used(self, key: str) -> bool:
        """Say whether a pod on a node uses a claim."""
        return self._claims.get(key, 0) > 0

    def describe(self, name: str, obj: JsonObject | None) -> bool:
        """Take over what a Node says, None if it is gone; say whether that makes a difference."""
        node = self._by_name.get(name)
        if node is None:
            if obj is None:
                return False
            node = self._add(name)
        was_there = node.is_there
        is_changed = node.describe(obj)
        if is_changed:
            self.count += node.is_there - was_there
            self.renewals += 1
            self._note(node.slot, None)
            self._drop_if_unused(node)
        return is_changed

    def put(self, pod: PodInfo) -> None:
        """Count a pod in on its node."""
        node = self._by_name.get(pod.node) or self._add(pod.node)
        node.put(pod)
        kin = pod.wants.kin
        known = self._kins.get(kin)
        if known is None:
            self.arrivals += 1
        self._kins[kin] = (known or 0) + 1
        self._note(node.slot, 1)
        kin.changes.append((self.position, node.slot, 1, 0 if pod.is_ending else 1))
        self._priorities[pod.priority] = self._priorities.get(pod.priority, 0) + 1
        if pod.volumes:
            for key in claims_of(pod):
                self._claims[key] = self._claims.get(key, 0) + 1
        if kin.terms is not NO_TERMS:
            self._learn(kin)

    def take(self, pod: PodInfo) -> None:
        """Count a pod out on its node."""
        node = self._by_name[pod.node]
        node.take(pod)
        kin = pod.wants.kin
        self._note(node.slot, -1)
        kin.changes.append((self.position, node.slot, -1, 0 if pod.is_ending else -1))
        _decrease(self._kins, kin)
        _decrease(self._priorities, pod.priority)
        if pod.volumes:
            for key in claims_of(pod):
                _decrease(self._claims, key)
        self._drop_if_unused(node)

    def end(self, pod: PodInfo) -> None:
        """Count a pod as one that is being deleted."""
        pod.is_ending = True
        slot = self._by_name[pod.node].slot
        self._note(slot, 0)
        pod.wants.kin.changes.append((self.position, slot, 0, -1))

    def _learn(self, kin: Kin) -> None:
        averse = {term.key for term in kin.terms.away}
        preferred = {term.key for term in (*kin.terms.near, *kin.terms.preferences)}
        if not (averse <= self.averse_keys and preferred <= self.preferred_keys):
            self.averse_keys |= averse
            self.preferred_keys |= preferred
            self.keys_version += 1

    def _add(self, name: str) -> NodeInfo:
        self.renewals += 1
        slot = self._free.pop() if self._free else len(self.nodes)
        node = self._by_name[name] = NodeInfo(name, slot)
        if slot == len(self.nodes):
            self.nodes.append(node)
        else:
            self.nodes[slot] = node
        return node

    def _drop_if_unused(self, node: NodeInfo) -> None:
        if node.is_there or node.pods:
            return
        del self._by_name[node.name]
        self.nodes[node.slot] = None
        self._free.append(node.slot)

    def _note(self, slot: int, whole: int | None) -> None:
        self.position += 1
        self._log.append((slot, whole))
        if len(self._log) > CHANGES_MAX:
            half = CHANGES_MAX // 2
            del self._log[:half]
            self._base += half
            for kin in self._kins:
                kin.forget(self._base)


def claims_of(pod: PodInfo) -> list[str]:
    """Name the claims that a pod refers to, by namespace and name."""
    return [
        f"{pod.namespace}/{each['persistentVolumeClaim'].get('claimName')}"
        for each in pod.volumes
        if each.get("persistentVolumeClaim")
    ]


def _decrease(counts: dict[K, int], key: K) -> None:
    left = counts[key] - 1
    if left:
        counts[key] = left
    else:
        del counts[key]


def _clash(mine: HostPort, other: HostPort) -> bool:
    if mine.port != other.port or mine.protocol != other.protocol:
        return False
    return mine.address == other.address or ANY_ADDRESS in {mine.address, other.address}


def _is_same(obj: JsonObject, before: JsonObject) -> bool:
    """Say whether all that counts of a Node is as it was."""
    if obj["metadata"].get("labels") != before["metadata"].get("labels"):
        return False
    spec, was = obj.get("spec") or {}, before.get("spec") or {}
    if spec is not was and (
        spec.get("taints") != was.get("taints")
        or bool(spec.get("unschedulable")) != bool(was.get("unschedulable"))
    ):
        return False
    status, had = obj.get("status") or {}, before.get("status") or {}
    return status is had or all(
        status.get(field) == had.get(field) for field in ("allocatable", "capacity")
    )


def _allocatable(status: JsonObject) -> Mapping[str, int]:
    try:
        fields = Fields(status, "status")
        return fields.quantities("allocatable") or fields.quantities("capacity")
    except FieldInvalid:
        # A node that cannot be read offers nothing.
        return {}
