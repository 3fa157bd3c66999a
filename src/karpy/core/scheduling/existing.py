"""Existing nodes, registered or not, with the resources that are left on each."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from karpy.core.scheduling.instancetypes import Thresholds
from karpy.core.scheduling.interning import LabelSets
from karpy.core.scheduling.templates import daemon_order, daemon_terms
from karpy.core.scheduling.topologygroups import Site
from karpy.model.census import Census, PlacedPods, census_of
from karpy.model.constraints import (
    TOLERATE_PREFERENCES,
    Taint,
    Toleration,
    first_untolerated,
)
from karpy.model.instances import Catalog
from karpy.model.labels import INSTANCE_TYPE
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, DaemonSet, Pod
from karpy.model.requirements import from_labels, why_incompatible
from karpy.model.resources import Resources, add

_OVER = frozenset({"Failed", "Succeeded"})
_NOTHING: Resources = {}
_name = attrgetter("name")
_is_initialized = attrgetter("is_initialized")


class BoundPods:
    """Pods on existing nodes, in the order of the snapshot."""

    __slots__ = ("demanding", "nodes", "placed", "pods")

    def __init__(self) -> None:
        self.pods: list[Pod] = []
        self.nodes: list[int] = []
        """The number of each pod's node."""
        self.placed: tuple[PlacedPods, ...] = ()
        """Further bound pods, equal ones together; their nodes may be missing here."""
        self.demanding: list[tuple[Pod, int]] = []
        """Bound pods with anti-affinity, host ports or volumes, each with its node's number."""


class Columns(dict[str, list[int]]):
    """By resource, the amount of each node; zeros for a resource that no node lists."""

    def __init__(self, rows: Sequence[Resources]) -> None:
        """Take the resources of each node."""
        super().__init__()
        self._size = len(rows)
        self._lacking: dict[str, list[int]] = {}
        """By resource, the nodes that do not list it."""
        for resource in {name for row in {id(row): row for row in rows}.values() for name in row}:
            self[resource] = [row.get(resource, 0) for row in rows]
            lacking = [number for number, row in enumerate(rows) if resource not in row]
            if lacking:
                self._lacking[resource] = lacking

    def __missing__(self, resource: str) -> list[int]:
        column = self[resource] = [0] * self._size
        return column

    def take_off(self, rows: Sequence[Resources]) -> None:
        """Subtract the requests on each node, as far as the node lists the resources."""
        for resource, column in self.items():
            self[resource] = [
                left - row[resource] if resource in row else left
                for left, row in zip(column, rows, strict=True)
            ]
            # Parity: a resource that an existing node does not list: as in Karpenter, pods there
            # that request it take nothing off, so that it keeps no other pod away.
            for number in self._lacking.get(resource, ()):
                self[resource][number] = 0

    def oversold(self) -> set[int]:
        """Return the nodes of which less than nothing is left."""
        short = [column for column in self.values() if min(column, default=0) < 0]
        return {number for column in short for number, left in enumerate(column) if left < 0}


class ExistingNodes:
    """Every node that may take pods, initialized ones first, numbered from 0."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        alive = [node for node in nodes if not node.is_deleting]
        # Two sorts by one field each are faster than one by two.
        alive.sort(key=_name)
        self.nodes = sorted(alive, key=_is_initialized, reverse=True)
        self.count = len(self.nodes)
        self.number = {node.name: number for number, node in enumerate(self.nodes)}
        self.labels: list[Mapping[str, str]] = []
        self.label_set_of: list[int] = []
        self.by_taints: dict[tuple[Taint, ...], int] = {}
        self.free = Columns([node.allocatable for node in self.nodes])
        """What is left on each node, by resource."""
        self.open = 0
        """Nodes that are not oversold to begin with, as bits."""
        self._tables: dict[str, Thresholds] = {}
        self._settled: dict[str, list[int]] = {}
        """What was left before any pod was placed."""
        self._sites: dict[int, Site] = {}
        sets, bit = LabelSets(), 1
        for node in self.nodes:
            labels, label_set = sets.find(node)
            label_set.nodes |= bit
            self.labels.append(labels)
            self.label_set_of.append(label_set.index)
            self.by_taints[node.taints] = self.by_taints.get(node.taints, 0) | bit
            bit <<= 1
        self.label_sets = sets.all

    def settle(self, pods: Sequence[Pod], daemons: Sequence[DaemonSet]) -> BoundPods:
        """Work out what is left on each node; return the pods bound there."""
        census = census_of(pods)
        if census is None:
            bound, running = self._count(pods, has_daemons=bool(daemons))
        else:
            bound, running = self._count(census.uncounted, has_daemons=bool(daemons))
            self._take_counted(census, bound, running)
        if daemons:
            self._expect_daemons(daemons, running)
        self._settled = {name: [*column] for name, column in self.free.items()}
        self.open = (1 << self.count) - 1
        for number in self.free.oversold():
            self.open ^= 1 << number
        return bound

    def _count(
        self, pods: Iterable[Pod], *, has_daemons: bool
    ) -> tuple[BoundPods, dict[int, Resources]]:
        """Take off what pods ask for; return them, and what the daemons among them ask for."""
        bound = BoundPods()
        asked: dict[int, dict[str, int]] = {}
        running: dict[int, Resources] = {}
        known: dict[int, bool] = {}
        number_of = self.number.get
        for pod in pods:
            number = number_of(pod.node_name) if pod.node_name else None
            if number is None or pod.phase in _OVER:
                continue
            bound.pods.append(pod)
            bound.nodes.append(number)
            rules, requests = pod.rules, pod.requests
            total = asked.setdefault(number, {})
            for resource, amount in requests.items():
                total[resource] = total.get(resource, 0) + amount
            if rules.anti_affinity or rules.ports or rules.volumes:
                bound.demanding.append((pod, number))
            if has_daemons and pod.owners and _is_daemon(pod, known):
                running[number] = add(running.get(number, _NOTHING), requests)
        if bound.pods:
            self.free.take_off([asked.get(number, _NOTHING) for number in range(self.count)])
        return bound, running

    def _take_counted(
        self, census: Census, bound: BoundPods, running: dict[int, Resources]
    ) -> None:
        """Take off what pods ask for that were counted; add them to those that were not."""
        asked = census.requests.get
        self.free.take_off([asked(node.name, _NOTHING) for node in self.nodes])
        for name, requests in census.daemon_requests.items():
            number = self.number.get(name)
            if number is None:
                continue
            if number in running:
                running[number] = add(running[number], requests)
            else:
                running[number] = requests
        bound.placed = census.placed
        moved = {pod.key: pod for pod in bound.pods}
        bound.demanding.clear()
        for each in census.demanding:
            pod = moved.get(each.key, each) if moved else each
            number = self.number.get(pod.node_name) if pod.node_name else None
            if number is not None and pod.phase not in _OVER:
                bound.demanding.append((pod, number))

    def _expect_daemons(
        self, daemons: Sequence[DaemonSet], running: Mapping[int, Resources]
    ) -> None:
        """Take off what daemons will need that do not run yet."""
        coming: dict[tuple[int, tuple[Taint, ...]], list[Pod]] = {}
        totals: dict[tuple[int, tuple[Taint, ...]], Resources] = {}
        fitting: dict[tuple[object, frozenset[tuple[str, int]]], Resources] = {}
        # The same daemons run on most nodes, and what they ask for is one object there.
        known: dict[tuple[int, tuple[Taint, ...], int], Resources] = {}
        rows: list[Resources] = []
        for number, node in enumerate(self.nodes):
            label_set, here = self.label_set_of[number], running.get(number, _NOTHING)
            missing = known.get((label_set, node.taints, id(here)))
            if missing is None:
                like = (label_set, node.taints)
                if like not in coming:
                    coming[like] = _daemons_of(node, self.labels[number], daemons)
                    totals[like] = add(*(each.requests for each in coming[like]))
                missing = known[label_set, node.taints, id(here)] = _rest(totals[like], here)
            if missing and not _has_room(node, missing):
                like, size = (label_set, node.taints), frozenset(node.allocatable.items())
                if (like, size) not in fitting:
                    fitting[like, size] = _that_fit(node, coming[like])
                missing = _rest(fitting[like, size], here)
            rows.append(missing)
        if any(rows):
            self.free.take_off(rows)

    def site(self, node: int) -> Site:
        """Return what topology knows of a node."""
        known = self._sites.get(node)
        if known is None:
            known = Site(from_labels(self.labels[node]), self.nodes[node].taints)
            self._sites[node] = known
        return known

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
                left = self._settled.get(resource) or [0] * self.count
                table = self._tables[resource] = Thresholds(enumerate(left))
            mask &= table.reaching(amount)
        return mask


def _rest(coming: Resources, here: Resources) -> Resources:
    """Return the requests of daemons that are to come, without those that run already."""
    rest = {name: amount - here.get(name, 0) for name, amount in coming.items()}
    return {name: amount for name, amount in rest.items() if amount > 0}


def _is_daemon(pod: Pod, known: dict[int, bool]) -> bool:
    """Say whether a DaemonSet owns the pod; pods of one owner share the answer."""
    answer = known.get(id(pod.owners))
    if answer is None:
        answer = known[id(pod.owners)] = pod.is_owned_by(DAEMON_SET)
    return answer


def attach_limits(node: Node, catalog: Catalog) -> Mapping[str, int | None]:
    """Return the volume limits that a node publishes, else those of its instance type."""
    # Differs: the volume limit of a node whose NodePool takes no part in the decision: Karpenter
    # knows none until the node publishes it; Karpy takes that of the instance type.
    if not node.pool:
        return node.volume_limits
    name = node.labels.get(INSTANCE_TYPE)
    for each in catalog.types_for(node.pool):
        if each.name == name:
            return {**each.volume_limits, **node.volume_limits}
    return node.volume_limits


def _daemons_of(node: Node, labels: Mapping[str, str], daemons: Sequence[DaemonSet]) -> list[Pod]:
    have = from_labels(labels)
    # Differs: a DaemonSet that does not tolerate a PreferNoSchedule taint of an existing node:
    # Karpenter leaves no room for its pod; Karpy does, because kube-scheduler places it there
    # nevertheless.
    return [
        daemon.pod
        for daemon in daemons
        if first_untolerated(node.taints, (*daemon.pod.rules.tolerations, TOLERATE_PREFERENCES))
        is None
        and any(why_incompatible(have, wanted) is None for wanted in daemon_terms(daemon.pod))
    ]


def _that_fit(node: Node, daemons: Sequence[Pod]) -> Resources:
    """Return the requests of the daemons that have room together on a node without pods."""
    # Differs: a DaemonSet whose pod is too large for an existing node: Karpenter puts no pod there
    # any more; Karpy leaves it out, as kube-scheduler does.
    total: Resources = {}
    for pod in sorted(daemons, key=daemon_order):
        more = add(total, pod.requests)
        if _has_room(node, more):
            total = more
    return total


def _has_room(node: Node, requests: Resources) -> bool:
    """Say whether a node without pods has room for requests of the resources that it lists."""
    there = node.allocatable
    return all(amount <= there.get(name, amount) for name, amount in requests.items())
