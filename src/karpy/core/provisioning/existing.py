"""Nodes that exist or are on their way, with what is left on each."""

from collections.abc import Iterable, Mapping, Sequence

from karpy.core.provisioning.templates import daemon_terms
from karpy.core.provisioning.typetable import Thresholds
from karpy.model.constraints import (
    TOLERATE_PREFERENCES,
    Taint,
    Toleration,
    first_untolerated,
)
from karpy.model.instances import Catalog
from karpy.model.labels import ALIASES, HOSTNAME, INSTANCE_TYPE, normalise
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, DaemonSet, Pod
from karpy.model.requirements import from_labels, why_incompatible
from karpy.model.resources import Resources, add

_OVER = frozenset({"Failed", "Succeeded"})


class LabelSet:
    """Labels that several nodes share, the hostname apart."""

    __slots__ = ("index", "labels", "nodes")

    def __init__(self, index: int, labels: Mapping[str, str]) -> None:
        self.index = index
        self.labels = labels
        self.nodes = 0


class ExistingNodes:
    """Every node that may take pods, initialized ones first, numbered from 0."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        alive = [node for node in nodes if not node.is_deleting]
        self.nodes = sorted(alive, key=lambda node: (not node.is_initialized, node.name))
        self.count = len(self.nodes)
        self.number = {node.name: number for number, node in enumerate(self.nodes)}
        self.labels = [_with_hostname(node) for node in self.nodes]
        self.label_sets: list[LabelSet] = []
        self.label_set_of: list[int] = []
        self.by_taints: dict[tuple[Taint, ...], int] = {}
        self.free: list[dict[str, int]] = []
        self.open = 0
        """Nodes that are not oversold to begin with, as bits."""
        self._tables: dict[str, Thresholds] = {}
        known: dict[tuple[str, ...], LabelSet] = {}
        for number, node in enumerate(self.nodes):
            labels = self.labels[number]
            shared = dict(labels)
            del shared[HOSTNAME]
            key = (*shared, *shared.values())
            label_set = known.get(key)
            if label_set is None:
                label_set = known[key] = LabelSet(len(self.label_sets), labels)
                self.label_sets.append(label_set)
            label_set.nodes |= 1 << number
            self.label_set_of.append(label_set.index)
            self.by_taints[node.taints] = self.by_taints.get(node.taints, 0) | 1 << number

    def settle(self, pods: Iterable[Pod], daemons: Sequence[DaemonSet]) -> list[tuple[Pod, int]]:
        """Work out what is left on each node; return the pods bound there."""
        free = self.free = [dict(node.allocatable) for node in self.nodes]
        bound: list[tuple[Pod, int]] = []
        running: dict[int, dict[str, int]] = {}
        known: dict[int, bool] = {}
        number_of = self.number.get
        for pod in pods:
            number = number_of(pod.node_name) if pod.node_name else None
            if number is None or pod.phase in _OVER:
                continue
            bound.append((pod, number))
            left = free[number]
            for resource, amount in pod.requests.items():
                left[resource] = left.get(resource, 0) - amount
            if pod.owners and daemons and _is_daemon(pod, known):
                there = running.setdefault(number, {})
                for resource, amount in pod.requests.items():
                    there[resource] = there.get(resource, 0) + amount
        self._expect_daemons(daemons, running)
        return bound

    def _expect_daemons(
        self, daemons: Sequence[DaemonSet], running: Mapping[int, Mapping[str, int]]
    ) -> None:
        """Take off what daemons will need that do not run yet."""
        free = self.free
        memo: dict[tuple[int, tuple[Taint, ...]], Resources] = {}
        for number, node in enumerate(self.nodes):
            key = (self.label_set_of[number], node.taints)
            coming = memo.get(key)
            if coming is None:
                coming = memo[key] = _daemon_requests(node, self.labels[number], daemons)
            left = free[number]
            for resource, amount in coming.items():
                still = amount - running.get(number, {}).get(resource, 0)
                if still > 0:
                    left[resource] = left.get(resource, 0) - still
        self.open = sum(
            1 << number for number, left in enumerate(free) if min(left.values(), default=0) >= 0
        )

    def tolerated_by(self, tolerations: Sequence[Toleration]) -> int:
        """Return the nodes all of whose taints are tolerated."""
        mask = 0
        for taints, nodes in self.by_taints.items():
            if first_untolerated(taints, tolerations) is None:
                mask |= nodes
        return mask

    def with_room(self, requests: Resources) -> int:
        """Return the nodes that had room for the requests to begin with."""
        mask = self.open
        for resource, amount in requests.items():
            if not mask or amount <= 0:
                continue
            table = self._tables.get(resource)
            if table is None:
                table = self._tables[resource] = Thresholds(
                    (number, left.get(resource, 0)) for number, left in enumerate(self.free)
                )
            mask &= table.reaching(amount)
        return mask


def _is_daemon(pod: Pod, known: dict[int, bool]) -> bool:
    """Say whether a DaemonSet owns the pod; pods of one owner share the answer."""
    answer = known.get(id(pod.owners))
    if answer is None:
        answer = known[id(pod.owners)] = pod.is_owned_by(DAEMON_SET)
    return answer


def attach_limits(node: Node, catalog: Catalog) -> Mapping[str, int | None]:
    """Return a node's volume limits: as published, else its instance type's."""
    # Differs: Karpenter knows the type only of nodes whose NodePool takes part in the decision.
    if not node.pool:
        return node.volume_limits
    name = node.labels.get(INSTANCE_TYPE)
    for each in catalog.types_for(node.pool):
        if each.name == name:
            return {**each.volume_limits, **node.volume_limits}
    return node.volume_limits


def _with_hostname(node: Node) -> Mapping[str, str]:
    labels = node.labels
    if labels.get(HOSTNAME) and not any(alias in labels for alias in ALIASES):
        return labels
    known = {normalise(key): value for key, value in labels.items() if key in ALIASES}
    return {**known, **labels, HOSTNAME: node.hostname}


def _daemon_requests(
    node: Node, labels: Mapping[str, str], daemons: Sequence[DaemonSet]
) -> Resources:
    if not daemons:
        return {}
    have = from_labels(labels)
    # Differs: Karpenter leaves out daemons that do not tolerate a soft taint, but they come all the
    # same.
    return add(
        *(
            daemon.pod.requests
            for daemon in daemons
            if first_untolerated(node.taints, (*daemon.pod.rules.tolerations, TOLERATE_PREFERENCES))
            is None
            and any(why_incompatible(have, wanted) is None for wanted in daemon_terms(daemon.pod))
        )
    )
