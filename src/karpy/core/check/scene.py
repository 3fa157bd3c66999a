"""The cluster as a plan would leave it: nodes, launches, and the pods on each."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Final, TypeAlias

from msgspec import Struct

from karpy.core.check.breaches import Breach, Rule
from karpy.core.check.constraints import Alternatives, Domains, as_domains, holds_surely
from karpy.core.check.market import LowestPrice, PoolCatalog, Room, Stock, find_lowest_price
from karpy.model.constraints import (
    AffinityTerm,
    LabelSelector,
    SpreadConstraint,
    resolve_label_keys,
)
from karpy.model.labels import HOSTNAME, INSTANCE_TYPE, normalise
from karpy.model.nodes import Node
from karpy.model.pods import DAEMON_SET, NODE, STATEFUL_SET, Pod
from karpy.model.requirements import Requirement, one_of
from karpy.model.resources import Resources, add, fits
from karpy.model.snapshot import Snapshot
from karpy.model.times import parse_duration
from karpy.model.verdicts import Launch, Reason, Verdict

LabelSet: TypeAlias = tuple[str, frozenset[tuple[str, str]]]
"""Namespace and labels of a pod: all that selectors read."""

_AFTER_A_TRY: Final = frozenset(
    {
        Reason.NO_POOL,
        Reason.NO_HOST,
        Reason.WAITS_FOR_RESERVATION,
        Reason.MIN_VALUES_TRUNCATED,
        Reason.UNDECIDED,
        Reason.TOO_COMPLEX,
        Reason.DECISION_FAILED,
    }
)


class NodePlace:
    """A node that exists or was launched before: each label has one value."""

    def __init__(self, node: Node, bound: Sequence[Pod], pods: Sequence[Pod]) -> None:
        self.name = node.name
        self.node = node
        self.taints = node.taints
        self.bound = tuple(bound)
        """Pods bound to the node, except pods that a deleting node displaces."""
        self.pods = tuple(pods)
        """Pods that the plan puts on the node."""
        current = {normalise(key): value for key, value in node.labels.items()}
        self._labels = {**current, **node.labels, HOSTNAME: node.hostname}

    @property
    def is_staying(self) -> bool:
        return not self.node.is_deleting

    def values(self, key: str) -> Requirement | None:
        value = self._labels.get(key)
        return None if value is None else one_of(key, value)

    def meets(self, alternatives: Alternatives) -> bool:
        """Say whether the labels meet one of the alternatives."""
        return holds_surely(alternatives, self.values)

    def may_meet(self, alternatives: Alternatives) -> bool:
        return self.meets(alternatives)

    def domains(self, key: str) -> Domains:
        """Return the domain of the node."""
        return as_domains(self.values(key))

    def stated(self, key: str) -> Domains:
        return self.domains(key)


class LaunchPlace:
    """A node of a launch: it may become any machine of the launch's options."""

    bound: tuple[Pod, ...] = ()
    is_staying = True

    def __init__(self, launch: Launch, stock: Stock, pods: Sequence[Pod]) -> None:
        self.name = launch.name
        self.launch = launch
        self.stock = stock
        self.taints = stock.pool.taints
        self.pods = tuple(pods)
        self._domains: dict[str, Domains] = {}

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The options that are launchable types of the NodePool."""
        own = self.launch.requirements.get(INSTANCE_TYPE)
        names = [option.instance_type for option in self.launch.options]
        return tuple(
            name for name in names if (own is None or name in own) and self.stock.machines(name)
        )

    def rooms(self, name: str) -> tuple[Room, ...]:
        """
        Return the rooms of an option that the cloud may pick.

        If the offerings of a type differ in size, the cloud is assumed to skip sizes that are too
        small for the pods and all daemons of the type. It skips no offering of a sufficient size,
        because it does not know daemons that run in some zones only. If no size fits all daemons of
        the type, the sizes that fit the daemons of their own zone count. If there are none either,
        all rooms are returned, which is a breach.
        """
        rooms = self.stock.rooms(name)
        if len(rooms) == 1:
            return rooms
        expected = self.stock.daemons_expected(name)
        sizes = [room.allocatable for room in rooms if self._is_enough(room, expected)]
        if not sizes:
            sizes = [
                room.allocatable for room in rooms if self._is_enough(room, room.daemon_requests)
            ]
        return tuple(room for room in rooms if room.allocatable in sizes) or rooms

    def _is_enough(self, room: Room, daemons: Resources) -> bool:
        return fits(add(daemons, *(pod.requests for pod in self.pods)), room.allocatable)

    def lowest_price(self, name: str) -> LowestPrice:
        """Return the lowest price of an option among the machines that the cloud may pick."""
        if not self.stock.is_mixed(name):
            return self.stock.lowest_price(name)
        enough = [room.allocatable for room in self.rooms(name)]
        return find_lowest_price(
            [each for each in self.stock.machines(name) if each.allocatable in enough]
        )

    @cached_property
    def _type_set(self) -> frozenset[str]:
        return frozenset(self.types)

    def lacking(self, alternatives: Alternatives) -> list[str]:
        """Return the options, in order, with a machine that meets none of the alternatives."""
        failing = self.stock.lacking(alternatives)
        if self._type_set.isdisjoint(failing):
            return []
        return [name for name in self.types if name in failing]

    def meets(self, alternatives: Alternatives) -> bool:
        """Say whether the labels meet one of the alternatives whatever machine the cloud picks."""
        return not self.lacking(alternatives)

    def may_meet(self, alternatives: Alternatives) -> bool:
        """Say whether the requirements of the launch allow an alternative, whatever is offered."""
        return self.stock.leaves_open(alternatives)

    def domains(self, key: str) -> Domains:
        """Return the domains of all machines that the cloud may pick."""
        if key == HOSTNAME:
            return Domains(frozenset({self.name}))
        if key not in self._domains:
            self._domains[key] = self.stock.domains(key, self.types)
        return self._domains[key]

    def stated(self, key: str) -> Domains:
        """Return the domains that the requirements allow, whatever is offered."""
        return as_domains(self.stock.granted.get(key))


Place: TypeAlias = NodePlace | LaunchPlace


class Resident(Struct, frozen=True, eq=False):
    """A pod and its place."""

    pod: Pod
    place: Place
    is_new: bool
    """Whether the plan puts the pod there; otherwise it is bound already."""


class PodScope(Struct, frozen=True):
    """The pods that a rule selects; `namespaces` is None for all namespaces."""

    namespaces: frozenset[str] | None
    selector: LabelSelector | None

    def selects(self, pod: Pod) -> bool:
        return (
            self.selector is not None
            and (self.namespaces is None or pod.namespace in self.namespaces)
            and self.selector.selects(pod.labels)
        )


class PodIndex:
    """All pods with a place, indexed by namespace and labels."""

    def __init__(self, places: Iterable[Place]) -> None:
        self.residents: list[Resident] = []
        self._by_label_set: dict[LabelSet, list[Resident]] = {}
        self._by_label: dict[tuple[str, str], list[LabelSet]] = {}
        for place in places:
            for pod in place.bound:
                if pod.is_active:
                    self._add(Resident(pod, place, is_new=False))
            for pod in place.pods:
                self._add(Resident(pod, place, is_new=True))

    def _add(self, resident: Resident) -> None:
        self.residents.append(resident)
        label_set = (resident.pod.namespace, frozenset(resident.pod.labels.items()))
        if label_set not in self._by_label_set:
            self._by_label_set[label_set] = []
            for label in sorted(label_set[1]):
                self._by_label.setdefault(label, []).append(label_set)
        self._by_label_set[label_set].append(resident)

    def select(self, *scopes: PodScope) -> list[Resident]:
        """Return the pods that every scope selects."""
        found: list[Resident] = []
        for label_set in self._candidates(scopes[0]):
            members = self._by_label_set[label_set]
            if all(scope.selects(members[0].pod) for scope in scopes):
                found += members
        return found

    def _candidates(self, scope: PodScope) -> Iterable[LabelSet]:
        """Return all label sets, or only those with a label that the selector requires."""
        for wanted in scope.selector.expressions if scope.selector else ():
            if len(wanted.values) == 1 and not wanted.complement:
                return self._by_label.get((wanted.key, min(wanted.values)), ())
        return self._by_label_set


class DomainTally:
    """Number of pods that are or may be in each domain of a key."""

    def __init__(self, domains: Iterable[Domains]) -> None:
        self._all = list(domains)
        self._open = [each for each in self._all if each.is_open]
        self._by_value: Counter[str] = Counter()
        for each in self._all:
            self._by_value.update(each.values)

    @property
    def domains(self) -> frozenset[str]:
        """The domains with at least one pod."""
        return frozenset(self._by_value)

    def most(self, domains: Domains) -> tuple[int, str]:
        """Return the largest number of pods in one of these domains, and that domain."""
        if domains.is_open:
            return sum(map(domains.may_meet, self._all)), "any"
        counts = [(self[value], value) for value in sorted(domains.values)]
        return max(counts, key=lambda each: each[0], default=(0, ""))

    def __getitem__(self, value: str) -> int:
        maybe = sum(value not in each.values and each.may_be(value) for each in self._open)
        return self._by_value[value] + maybe


def settled(domains: Iterable[Domains]) -> list[Domains]:
    """Return the entries with exactly one possible domain."""
    return [each for each in domains if each.settled is not None]


def spread_scope(spread: SpreadConstraint, pod: Pod) -> PodScope:
    """Return which pods a spread constraint of a pod counts."""
    selector = resolve_label_keys(spread.selector, pod.labels, spread.match_label_keys)
    return PodScope(frozenset({pod.namespace}), selector)


def affinity_scope(
    term: AffinityTerm, pod: Pod, namespaces: Mapping[str, Mapping[str, str]]
) -> PodScope:
    """Return which pods an affinity or anti-affinity term of a pod selects."""
    selector = resolve_label_keys(
        term.selector, pod.labels, term.match_label_keys, term.mismatch_label_keys
    )
    return PodScope(_namespaces_of(term, pod, namespaces), selector)


def _namespaces_of(
    term: AffinityTerm, pod: Pod, namespaces: Mapping[str, Mapping[str, str]]
) -> frozenset[str] | None:
    chosen = term.namespace_selector
    if chosen is None:
        return frozenset(term.namespaces) or frozenset({pod.namespace})
    if not chosen.expressions:
        return None
    matching = {name for name, labels in namespaces.items() if chosen.selects(labels)}
    return frozenset(term.namespaces) | matching


def is_considered(pod: Pod, displaced: frozenset[str]) -> bool:
    """Say whether a plan must place or refuse a pod; `displaced` are UIDs from `displaced_pods`."""
    if pod.is_owned_by(DAEMON_SET) or pod.is_owned_by(NODE):
        return False
    return pod.uid in displaced if pod.node_name else pod.is_active


def may_be_placed(pod: Pod, displaced: frozenset[str]) -> bool:
    """Say whether a plan may place a pod: it needs a node and waits for nothing else."""
    waits = bool(pod.node_name) or (pod.is_unschedulable and not pod.nominated_node)
    return is_considered(pod, displaced) and waits


def displaced_pods(snapshot: Snapshot) -> frozenset[str]:
    """Return the UIDs of the pods whose node is deleting and which need another one."""
    deleting = {node.name for node in snapshot.nodes if node.is_deleting}
    return frozenset(
        pod.uid
        for pod in snapshot.pods
        if pod.node_name in deleting
        and (
            (pod.is_active and not _is_held(pod, snapshot))
            or (pod.is_deleting and pod.is_owned_by(STATEFUL_SET))
        )
    )


def _is_held(pod: Pod, snapshot: Snapshot) -> bool:
    """Say whether do-not-disrupt or a PodDisruptionBudget keeps every drain from evicting a pod."""
    value = pod.disruption.do_not_disrupt
    if value is not None:
        span = parse_duration(value) or timedelta()
        is_young = pod.started is None or snapshot.now < pod.started + span
        if value == "true" or (span > timedelta() and is_young):
            return True
    return any(
        budget.forbids_all and budget.covers(pod) and not (budget.allows_unready and pod.is_unready)
        for budget in snapshot.budgets
    )


def placed_pods(verdict: Verdict) -> list[str]:
    """Return the placed pods, each as often as it is placed."""
    on_nodes = [pod for nomination in verdict.nominations for pod in nomination.pods]
    return on_nodes + [pod for launch in verdict.launches for pod in launch.pods]


def check_decisions(snapshot: Snapshot, verdict: Verdict) -> Iterator[Breach]:
    """Yield pods that are forgotten, decided on twice, or not to be decided on."""
    pods = {pod.key: pod for pod in snapshot.pods}
    displaced = displaced_pods(snapshot)
    placed = Counter(placed_pods(verdict))
    refused = Counter(pod for refusal in verdict.refusals for pod in refusal.pods)
    for key in sorted((placed | refused).keys() - pods.keys()):
        yield Breach(Rule.UNKNOWN_POD, pod=key)
    for key, pod in pods.items():
        yield from _check_one(pod, placed[key], refused[key], displaced)


def _check_one(pod: Pod, placed: int, refused: int, displaced: frozenset[str]) -> Iterator[Breach]:
    if max(placed, refused) > 1:
        times = f"placed {placed} times, refused {refused} times"
        yield Breach(Rule.DECIDED_TWICE, pod=pod.key, detail=times)
    if placed and refused:
        yield Breach(Rule.PLACED_AND_REFUSED, pod=pod.key)
    if placed and not may_be_placed(pod, displaced):
        yield Breach(Rule.NOT_WAITING, pod=pod.key, detail="placed")
    if not is_considered(pod, displaced):
        if refused:
            yield Breach(Rule.NOT_WAITING, pod=pod.key, detail="refused")
    elif not placed and not refused:
        yield Breach(Rule.FORGOTTEN, pod=pod.key)


class PlannedCluster:
    """
    A snapshot with a verdict carried out: nodes, launches, and the pods on each.

    Unknown names and pods that are placed twice are ignored; `check_decisions` and `check_names`
    report them.
    """

    def __init__(self, snapshot: Snapshot, verdict: Verdict) -> None:
        self.snapshot = snapshot
        self.verdict = verdict
        self.market = PoolCatalog(snapshot)
        self.pods = {pod.key: pod for pod in snapshot.pods}
        self._seen: set[str] = set()
        nominated: dict[str, list[Pod]] = {}
        for nomination in verdict.nominations:
            nominated.setdefault(nomination.node, []).extend(self._take(nomination.pods))
        bound = self._bound_pods()
        self.nodes = [
            NodePlace(
                node,
                bound.get(node.name, ()),
                () if node.is_deleting else nominated.get(node.name, ()),
            )
            for node in snapshot.nodes
        ]
        self.launches = [
            LaunchPlace(
                launch,
                self.market.stock(self.market.pools[launch.pool], launch.requirements),
                self._take(launch.pods),
            )
            for launch in verdict.launches
            if launch.pool in self.market.pools
        ]

    def _take(self, keys: tuple[str, ...]) -> list[Pod]:
        found: list[Pod] = []
        for key in keys:
            if key in self.pods and key not in self._seen:
                self._seen.add(key)
                found.append(self.pods[key])
        return found

    def _bound_pods(self) -> dict[str, list[Pod]]:
        """
        Return the pods that stay on their node, by node.

        Among them are pods of a deleting node that were refused without trying a node.
        """
        displaced = displaced_pods(self.snapshot)
        refusals = (each for each in self.verdict.refusals if each.reason not in _AFTER_A_TRY)
        left_alone = {pod for refusal in refusals for pod in refusal.pods}
        bound: dict[str, list[Pod]] = {}
        for pod in self.snapshot.pods:
            is_moved = is_considered(pod, displaced) and pod.key not in left_alone
            if pod.node_name and not pod.is_terminal and not is_moved:
                bound.setdefault(pod.node_name, []).append(pod)
        return bound

    @cached_property
    def places(self) -> list[Place]:
        """Nodes that exist, then launches."""
        return [*self.nodes, *self.launches]

    @cached_property
    def pod_index(self) -> PodIndex:
        """All pods with a place, bound and new."""
        return PodIndex(self.places)
