"""Nodes that exist or are on their way, with what is left on each."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from karpy.core.provisioning.bits import from_flags
from karpy.core.provisioning.labelsets import LabelSets
from karpy.core.provisioning.templates import daemon_terms
from karpy.core.provisioning.typetable import Thresholds
from karpy.model.census import NOBODY, Census, Crowd, census_of
from karpy.model.constraints import (
    TOLERATE_PREFERENCES,
    Taint,
    Toleration,
    first_untolerated,
)
from karpy.model.instances import Catalog
from karpy.model.labels import INSTANCE_TYPE
from karpy.model.loads import Loads
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

    __slots__ = ("crowd", "demanding", "nodes", "pods")

    def __init__(self) -> None:
        self.pods: list[Pod] = []
        self.nodes: list[int] = []
        """The number of each pod's node."""
        self.crowd: Crowd = NOBODY
        """More of them, whose nodes may take no part."""
        self.demanding: list[tuple[Pod, int]] = []
        """Those of all that take up more than resources."""


class Columns(dict[str, list[int]]):
    """Amounts of each resource, one for each node; of a resource that no node has, nothing."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def __missing__(self, resource: str) -> list[int]:
        column = self[resource] = [0] * self._size
        return column

    def fill(self, rows: Sequence[Resources]) -> None:
        """Take what each node has."""
        for resource in {name for row in rows for name in row}:
            self[resource] = [row.get(resource, 0) for row in rows]


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
        self.free = Columns(self.count)
        """What is left on each node, by resource."""
        self.open = 0
        """Nodes that are not oversold to begin with, as bits."""
        self._left: list[dict[str, int]] = []
        """The same by node, until all is counted."""
        self._tables: dict[str, Thresholds] = {}
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
        self._left = [dict(node.allocatable) for node in self.nodes]
        census = census_of(pods)
        if census is None:
            bound, running = self._count(pods, has_daemons=bool(daemons))
        else:
            bound, running = self._count(census.uncounted, has_daemons=bool(daemons))
            self._take_counted(census, bound, running)
        self._expect_daemons(daemons, running)
        self.free.fill(self._left)
        return bound

    def _count(
        self, pods: Iterable[Pod], *, has_daemons: bool
    ) -> tuple[BoundPods, dict[int, Resources]]:
        """Take off what pods ask for; return them, and what the daemons among them ask for."""
        loads, bound = Loads(), BoundPods()
        known_load, take, take_node = loads.known.get, bound.pods.append, bound.nodes.append
        sums = [0] * self.count
        running: dict[int, Resources] = {}
        known: dict[int, bool] = {}
        number_of = self.number.get
        for pod in pods:
            number = number_of(pod.node_name) if pod.node_name else None
            if number is None or pod.phase in _OVER:
                continue
            take(pod)
            take_node(number)
            rules, requests = pod.rules, pod.requests
            load = known_load(id(requests))
            if load is None:
                load = self._load_of(requests, loads, number)
            sums[number] += load
            if rules.anti_affinity or rules.ports or rules.volumes:
                bound.demanding.append((pod, number))
            if has_daemons and pod.owners and _is_daemon(pod, known):
                running[number] = add(running.get(number, _NOTHING), requests)
        for load, left in zip(sums, self._left, strict=True):
            loads.take_off(load, left)
        return bound, running

    def _take_counted(
        self, census: Census, bound: BoundPods, running: dict[int, Resources]
    ) -> None:
        """Take off what pods ask for that were counted; add them to those that were not."""
        asked = census.requests.get
        for node, left in zip(self.nodes, self._left, strict=True):
            _take_off(asked(node.name, _NOTHING), left)
        for name, requests in census.daemon_requests.items():
            number = self.number.get(name)
            if number is None:
                continue
            if number in running:
                running[number] = add(running[number], requests)
            else:
                running[number] = requests
        bound.crowd = census.crowd
        moved = {pod.key: pod for pod in bound.pods}
        bound.demanding.clear()
        for each in census.demanding:
            pod = moved.get(each.key, each) if moved else each
            number = self.number.get(pod.node_name) if pod.node_name else None
            if number is not None and pod.phase not in _OVER:
                bound.demanding.append((pod, number))

    def _load_of(self, requests: Resources, loads: Loads, number: int) -> int:
        """Return requests as a number to add up; take those off at once that are none."""
        load = loads.load_of(requests)
        if load is not None:
            return load
        _take_off(requests, self._left[number])
        return 0

    def _expect_daemons(
        self, daemons: Sequence[DaemonSet], running: Mapping[int, Resources]
    ) -> None:
        """Take off what daemons will need that do not run yet."""
        free = self._left
        memo: dict[tuple[int, tuple[Taint, ...]], Resources] = {}
        # The same daemons run on most nodes, and what they ask for is one object there.
        missing: dict[tuple[int, int], Resources] = {}
        for number, node in enumerate(self.nodes if daemons else ()):
            key = (self.label_set_of[number], node.taints)
            coming = memo.get(key)
            if coming is None:
                coming = memo[key] = _daemon_requests(node, self.labels[number], daemons)
            here = running.get(number, _NOTHING)
            still = missing.get((id(coming), id(here)))
            if still is None:
                still = missing[id(coming), id(here)] = _rest(coming, here)
            _take_off(still, free[number])
        self.open = from_flags([not left or min(left.values()) >= 0 for left in free])

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
                table = self._tables[resource] = Thresholds(enumerate(self.free[resource]))
            mask &= table.reaching(amount)
        return mask


def _rest(coming: Resources, here: Resources) -> Resources:
    """Return what is to come and not here yet."""
    rest = {name: amount - here.get(name, 0) for name, amount in coming.items()}
    return {name: amount for name, amount in rest.items() if amount > 0}


def _take_off(requests: Resources, left: dict[str, int]) -> None:
    """Subtract requests from what is left, of the resources that are there."""
    # Parity: what a node has never had cannot run short; it keeps no other pod away.
    for resource, amount in requests.items():
        if resource in left:
            left[resource] -= amount


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


def _daemon_requests(
    node: Node, labels: Mapping[str, str], daemons: Sequence[DaemonSet]
) -> Resources:
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
