"""Nodes, the pods on them, and a log of their changes."""

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
"""A slot, and how many pods its node gained; None if the node itself changed."""

Domains: TypeAlias = tuple[list[str | None], Mapping[str, int]]
"""The domain of each slot, and the number of nodes in each domain."""


class NodeInfo:
    """A node with the resources and ports that its pods use."""

    __slots__ = (
        "allocatable",
        "cpu",
        "exists",
        "is_cordoned",
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
        self.exists = False
        """Whether the Node exists: pods may be bound to one that is not created yet, or deleted."""
        self.labels: Mapping[str, str] = _NO_LABELS
        self.taints: tuple[Taint, ...] = ()
        """Taints with effect NoSchedule or NoExecute."""
        self.soft_taints: tuple[Taint, ...] = ()
        self.is_cordoned = False
        self.allocatable: Mapping[str, int] = {}
        self.cpu = self.memory = self.pods_max = 0
        self.pods: dict[str, PodInfo] = {}
        self.ports: dict[HostPort, int] = {}
        self.used: dict[str, int] = {}
        self.used_cpu = self.used_memory = self.usual_cpu = self.usual_memory = 0

    def describe(self, obj: JsonObject | None) -> bool:
        """Update from a Node, None if it was deleted; say whether a relevant field changed."""
        before = self.obj
        self.obj = obj
        if obj is None:
            self.exists = False
            self.labels = _NO_LABELS
            return before is not None
        if before is not None and _is_same(obj, before):
            return False
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        self.exists = True
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
        """Add a pod."""
        self.pods[pod.key] = pod
        self._count(pod, 1)

    def take(self, pod: PodInfo) -> None:
        """Remove a pod."""
        del self.pods[pod.key]
        self._count(pod, -1)

    def has_free(self, ports: tuple[HostPort, ...]) -> bool:
        """Say whether no pod on the node uses one of the ports."""
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
    All nodes, each in a slot of its own, and a log of their changes.

    A slot is not reused while pods are bound to the name of its node.
    """

    def __init__(self) -> None:
        self.nodes: list[NodeInfo | None] = []
        self.count = 0
        """How many Nodes exist."""
        self.keys_version = 0
        """Counts how often new topology keys came into use in affinity terms of pods."""
        self.anti_affinity_keys: set[str] = set()
        """Topology keys of required anti-affinity terms of pods on nodes."""
        self.affinity_keys: set[str] = set()
        """Topology keys of all other affinity terms of pods on nodes."""
        self.arrivals = 0
        """Counts the pod classes that appeared on nodes."""
        self.renewals = 0
        """Counts the changes of Nodes, and the slots taken."""
        self.position = 0
        """Counts all changes."""
        self._by_name: dict[str, NodeInfo] = {}
        self._free: list[int] = []
        self._log: list[Entry] = []
        self._base = 0
        self._priorities: dict[int, int] = {}
        self._claims: dict[str, int] = {}
        self._kins: dict[Kin, int] = {}
        self._domains: dict[str, tuple[int, Domains]] = {}
        """Domains by topology key, with the `renewals` at which they were computed."""

    @property
    def lowest_priority(self) -> int | None:
        """The lowest priority of a pod on any node."""
        return min(self._priorities, default=None)

    def since(self, position: int) -> list[Entry] | None:
        """Return the changes after a position; None if they were dropped from the log."""
        return None if position < self._base else self._log[position - self._base :]

    def find(self, name: str) -> NodeInfo | None:
        """Return an existing node, or None."""
        node = self._by_name.get(name)
        return node if node is not None and node.exists else None

    def walk(self) -> Iterator[NodeInfo]:
        """Yield the existing nodes."""
        return (node for node in self.nodes if node is not None and node.exists)

    @property
    def kins(self) -> KeysView[Kin]:
        """The pod classes with pods on nodes."""
        return self._kins.keys()

    def domains(self, key: str) -> Domains:
        """Return the domains of a topology key for the nodes of all slots."""
        known = self._domains.get(key)
        if known is None or known[0] != self.renewals:
            values = [
                node.labels.get(key) if node is not None and node.exists else None
                for node in self.nodes
            ]
            sizes = Counter(each for each in values if each is not None)
            known = self._domains[key] = self.renewals, (values, sizes)
        return known[1]

    def is_claim_used(self, key: str) -> bool:
        """Say whether a pod on a node uses a claim."""
        return self._claims.get(key, 0) > 0

    def describe(self, name: str, obj: JsonObject | None) -> bool:
        """Update from a Node, None if it was deleted; say whether a relevant field changed."""
        node = self._by_name.get(name)
        if node is None:
            if obj is None:
                return False
            node = self._add(name)
        existed = node.exists
        is_changed = node.describe(obj)
        if is_changed:
            self.count += node.exists - existed
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
        kin.changes.append((self.position, node.slot, 1, 0 if pod.is_deleting else 1))
        self._priorities[pod.priority] = self._priorities.get(pod.priority, 0) + 1
        if pod.volumes:
            for key in claims_of(pod):
                self._claims[key] = self._claims.get(key, 0) + 1
        if kin.terms is not NO_TERMS:
            self._learn(kin)

    def take(self, pod: PodInfo) -> None:
        """Remove a pod from its node."""
        node = self._by_name[pod.node]
        node.take(pod)
        kin = pod.wants.kin
        self._note(node.slot, -1)
        kin.changes.append((self.position, node.slot, -1, 0 if pod.is_deleting else -1))
        _decrease(self._kins, kin)
        _decrease(self._priorities, pod.priority)
        if pod.volumes:
            for key in claims_of(pod):
                _decrease(self._claims, key)
        self._drop_if_unused(node)

    def end(self, pod: PodInfo) -> None:
        """Count a pod as deleting."""
        pod.is_deleting = True
        slot = self._by_name[pod.node].slot
        self._note(slot, 0)
        pod.wants.kin.changes.append((self.position, slot, 0, -1))

    def _learn(self, kin: Kin) -> None:
        averse = {term.key for term in kin.terms.away}
        preferred = {term.key for term in (*kin.terms.near, *kin.terms.preferences)}
        if not (averse <= self.anti_affinity_keys and preferred <= self.affinity_keys):
            self.anti_affinity_keys |= averse
            self.affinity_keys |= preferred
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
        if node.exists or node.pods:
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
    """Return the keys of the claims that a pod refers to."""
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
    """Say whether the fields of a Node that the scheduler reads are unchanged."""
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
        # A Node whose quantities cannot be read has no allocatable resources.
        return {}
