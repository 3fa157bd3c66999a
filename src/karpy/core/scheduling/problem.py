"""A snapshot made ready: what its decision and all what-if questions about it share."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from karpy.core.announcements import why
from karpy.core.scheduling.effort import Effort, why_not_moved, without_costly
from karpy.core.scheduling.existing import BoundPods, ExistingNodes
from karpy.core.scheduling.instancetypes import TypeTable
from karpy.core.scheduling.interning import Interner
from karpy.core.scheduling.pending import Batch, Eligibility, collect_batch, placing_order
from karpy.core.scheduling.podclasses import (
    Marked,
    Neighbours,
    PodClass,
    StepMaker,
    Steps,
)
from karpy.core.scheduling.relaxation import Ladder
from karpy.core.scheduling.signatures import Signatures
from karpy.core.scheduling.templates import (
    PoolDomains,
    Template,
    assign_daemons,
    build_template,
    has_soft_taint,
    labels_asked_for,
    usable_pools,
)
from karpy.core.scheduling.topology import AnyGroup, Topology
from karpy.core.scheduling.topologygroups import DomainGroup, GroupKind, Site
from karpy.core.scheduling.volumes import NO_VOLUMES, VolumeFacts
from karpy.model.constraints import LabelSelector, SpreadConstraint
from karpy.model.instances import Catalog, InstanceType
from karpy.model.labels import HOSTNAME
from karpy.model.pods import Pod, PodController, PodRules, Service
from karpy.model.pools import NodePool
from karpy.model.requirements import Requirement, from_labels
from karpy.model.settings import PreferencePolicy
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Exclusion, PoolNotice, Reason, Refusal

_REPLICATION_CONTROLLER = ("v1", "ReplicationController")
_SELECTING = frozenset({("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")})


def with_default_spreads(pods: Sequence[Pod], snapshot: Snapshot) -> Sequence[Pod]:
    """Give the default spread constraints to pods without any whose siblings can be selected."""
    defaults = snapshot.settings.default_spreads
    if not defaults:
        return pods
    deducer = _Deducer(snapshot.services, snapshot.controllers)
    shared: dict[tuple[int, LabelSelector], PodRules] = {}
    result = []
    for pod in pods:
        selector = None if pod.rules.spreads else deducer.selector(pod)
        if selector is None:
            result.append(pod)
            continue
        key = (id(pod.rules), selector)
        if key not in shared:
            shared[key] = replace(pod.rules, spreads=_selecting(defaults, selector))
        result.append(replace(pod, rules=shared[key]))
    return result


def _selecting(
    defaults: Sequence[SpreadConstraint], selector: LabelSelector
) -> tuple[SpreadConstraint, ...]:
    return tuple(replace(each, selector=selector) for each in defaults)


class _Deducer:
    """Finds the selector of sibling pods, as kube-scheduler does: by Services and controllers."""

    def __init__(self, services: Sequence[Service], controllers: Sequence[PodController]) -> None:
        self._services: dict[str, list[Mapping[str, str]]] = {}
        for service in services:
            if service.selector is not None:
                self._services.setdefault(service.namespace, []).append(service.selector)
        self._controllers = {
            (each.namespace, each.api_version, each.kind, each.name): each for each in controllers
        }
        self._known: dict[object, LabelSelector | None] = {}

    def selector(self, pod: Pod) -> LabelSelector | None:
        """Return a selector of the pod and its siblings; None without Service and controller."""
        owner = next((each for each in pod.owners if each.is_controller), None)
        controller = None
        if owner is not None:
            key = (pod.namespace, owner.api_version, owner.kind, owner.name)
            controller = self._controllers.get(key)
        memo = (pod.namespace, id(pod.labels), id(controller))
        if memo not in self._known:
            self._known[memo] = self._deduce(pod, controller)
        return self._known[memo]

    def _deduce(self, pod: Pod, controller: PodController | None) -> LabelSelector | None:
        labels: dict[str, str] = {}
        for selector in self._services.get(pod.namespace, ()):
            if all(pod.labels.get(key) == value for key, value in selector.items()):
                labels.update(selector)
        extra: tuple[Requirement, ...] = ()
        if controller is not None:
            kind = (controller.api_version, controller.kind)
            if kind == _REPLICATION_CONTROLLER:
                for each in controller.selector:
                    labels[each.key] = min(each.values)
            elif kind in _SELECTING:
                extra = controller.selector
        if not labels and not extra:
            return None
        own = tuple(Requirement(key, frozenset({value})) for key, value in sorted(labels.items()))
        return LabelSelector(own + extra)


class Planner:
    """Makes and keeps the ladders, steps and classes of all pods of a problem."""

    def __init__(
        self,
        signatures: Signatures,
        topology: Topology,
        existing: ExistingNodes,
        templates: Sequence[Template],
        effort: Effort,
    ) -> None:
        self._topology = topology
        self._effort = effort
        self._maker = StepMaker(signatures, topology, existing, templates, effort)
        self._ladders: dict[object, _LadderGroups] = {}
        self._steps: dict[object, Steps] = {}
        self._plain: dict[int, Steps] = {}
        self._classes: dict[object, PodClass] = {}
        """By the identity of the interned parts of a pod."""
        self._class_by_identity: dict[object, PodClass] = {}
        """By the identity of a pod's own parts, so that equal parts are compared once."""
        self._interner = Interner()
        self._selected: dict[int, tuple[AnyGroup, ...]] = {}
        """By the index of a class, the groups that select its pods."""
        self._counting: dict[int, tuple[AnyGroup, ...]] = {}
        self.queue: list[tuple[Pod, PodClass]] = []
        """The pods of the batch in order, with their classes."""

    def register(
        self,
        batch: Batch,
        movers: Iterable[tuple[Pod, VolumeFacts | None]] = (),
        *,
        respects_preferences: bool,
        can_tolerate: bool,
    ) -> None:
        """Sort pods into classes, and make the topology groups of their ladders."""
        enqueue = self.queue.append
        volumes = batch.volumes
        for pod in batch.pods:
            enqueue((pod, self.class_of(pod, volumes.get(pod.uid) if volumes else None)))
        for pod, facts in movers:
            self.class_of(pod, facts)
        classes = self._classes
        for each in classes.values():
            pod = each.pod
            if id(pod.rules) in self._ladders:
                continue
            ladder_key = _ladder_key(pod)
            if ladder_key not in self._ladders:
                ladder = Ladder(
                    pod.rules,
                    respects_preferences=respects_preferences,
                    can_tolerate=can_tolerate,
                )
                self._ladders[ladder_key] = self._make_groups(pod, ladder)

    def class_of(self, pod: Pod, facts: VolumeFacts | None) -> PodClass:
        """Return the class of a pod; pods with equal parts share it."""
        asked: object = (id(pod.rules), id(pod.requests), id(pod.labels), pod.namespace, facts)
        found = self._class_by_identity.get(asked)
        if found is None:
            same = self._interner.pod(pod)
            key = (id(same.rules), id(same.requests), id(same.labels), pod.namespace, facts)
            found = self._classes.get(key)
            if found is None:
                found = PodClass(same, same.requests, facts or NO_VOLUMES, len(self._classes))
                self._classes[key] = found
            self._class_by_identity[asked] = found
        return found

    def classes(self) -> list[tuple[Pod, PodClass]]:
        """Give each class its steps; return the pods of the batch in order, with their classes."""
        selecting, plain = self._topology.selecting, self._plain
        has_groups = bool(self._topology.groups)
        required = set[int]().union(
            *(ladder.required_affinity for ladder in self._ladders.values())
        )
        for each in self._classes.values():
            pod = each.pod
            selected = selecting(pod.namespace, pod.labels) if has_groups else ()
            if selected or each.volumes is not NO_VOLUMES:
                self._set_steps(each, selected, required)
                continue
            steps = plain.get(id(pod.rules))
            if steps is None:
                if pod.rules.has_topology:
                    self._set_steps(each, (), required)
                    continue
                steps = plain[id(pod.rules)] = self._steps_of(each, (), ())
            each.use_steps(steps)
        return self.queue

    def use_question_steps(self, classes: Sequence[PodClass]) -> None:
        """
        Give some classes the steps for a what-if question about their pods alone.

        Groups that only the rules of other classes make do not count, except the anti-affinities
        of pods on nodes.
        """
        ladders = [self._ladders[_ladder_key(each.pod)] for each in classes]
        owned: set[int] = set()
        required: set[int] = set()
        for ladder in ladders:
            owned |= ladder.owned
            required |= ladder.required_affinity
        for each in classes:
            selected = self._selected.get(each.index)
            if selected is None:
                selected = self._selected[each.index] = self._topology.selecting(
                    each.pod.namespace, each.pod.labels
                )
            groups = tuple(
                group
                for group in selected
                if id(group) in owned or (group.kind is GroupKind.INVERSE and not group.is_empty)
            )
            self._set_steps(each, groups, required)

    def anti_affinity_keys(self, pod_class: PodClass) -> list[str]:
        """Return the topology keys of the required and preferred anti-affinities of a class."""
        rules = pod_class.pod.rules
        preferred = (each.term for each in rules.preferred_anti_affinity)
        return [term.topology_key for term in (*rules.anti_affinity, *preferred)]

    def groups_counting(self, pod_class: PodClass) -> tuple[AnyGroup, ...]:
        """Return the groups that count a pod of a class while it runs on a node."""
        pod = pod_class.pod
        known = self._counting.get(pod_class.index)
        if known is None:
            selected = self._topology.selecting(pod.namespace, pod.labels)
            known = self._counting[pod_class.index] = (
                *(group for group in selected if group.kind is not GroupKind.INVERSE),
                *self._topology.inverse_groups(pod),
            )
        return known

    def waiting_labels(self) -> set[tuple[str, str]]:
        """Return every label that some pod of the batch has, as key and value."""
        distinct = {id(each.pod.labels): each.pod.labels for each in self._classes.values()}
        return set().union(*[labels.items() for labels in distinct.values()])

    def _make_groups(self, pod: Pod, ladder: Ladder) -> "_LadderGroups":
        """Make the groups of all rules of a ladder."""
        topology, rules, made = self._topology, pod.rules, _LadderGroups(ladder)
        if not rules.has_topology:
            return made
        self._effort.spend(len(ladder.spreads) + len(ladder.affinity) + len(ladder.anti_affinity))
        made.spreads = [topology.spread(each, rules, pod) for each in ladder.spreads]
        made.affinity = [
            topology.affinity(GroupKind.AFFINITY, each, pod) for each in ladder.affinity
        ]
        made.anti_affinity = [
            topology.affinity(GroupKind.ANTI_AFFINITY, each, pod) for each in ladder.anti_affinity
        ]
        inverse = [topology.affinity(GroupKind.INVERSE, term, pod) for term in rules.anti_affinity]
        near = [topology.affinity(GroupKind.AFFINITY, term, pod) for term in rules.affinity]
        made.required_affinity = {id(group) for group in near if isinstance(group, DomainGroup)}
        made.owned = {
            id(group)
            for group in (*made.spreads, *made.affinity, *made.anti_affinity, *inverse, *near)
        }
        return made

    def _set_steps(
        self, each: PodClass, groups: tuple[AnyGroup, ...], required: Collection[int]
    ) -> None:
        pod = each.pod
        blocks = tuple(group for group in groups if group.kind is GroupKind.INVERSE)
        # Differs: a pod that other pods of the batch must be near to: Karpenter leaves its domain
        # open, does not count it, and places the others elsewhere; Karpy decides on one domain, so
        # that it counts.
        pinned_keys = tuple(
            sorted(
                {
                    group.key
                    for group in groups
                    if isinstance(group, DomainGroup) and id(group) in required
                }
            )
        )
        ladder_key = _ladder_key(pod)
        key = (ladder_key, blocks, pinned_keys, each.volumes)
        steps = self._steps.get(key)
        if steps is None:
            steps = self._steps[key] = self._steps_of(each, blocks, pinned_keys)
        each.use_steps(steps)
        each.counted = tuple(group for group in groups if group.kind is not GroupKind.INVERSE)
        each.owned_inverse = ()
        if pod.rules.anti_affinity:
            each.owned_inverse = tuple(
                self._topology.affinity(GroupKind.INVERSE, term, pod)
                for term in pod.rules.anti_affinity
            )
        each.is_counted = bool(each.counted or each.owned_inverse)

    def _steps_of(
        self, each: PodClass, blocks: tuple[AnyGroup, ...], pinned_keys: tuple[str, ...]
    ) -> Steps:
        """Return the steps of a class; only the first and the last are made yet."""
        pod, held = each.pod, self._ladders[_ladder_key(each.pod)]

        def mark(groups: Sequence[AnyGroup]) -> list[Marked]:
            self._effort.spend(len(groups))
            return [(group, int(group.selects(pod.namespace, pod.labels))) for group in groups]

        return Steps(
            held.ladder,
            Neighbours(
                mark(held.spreads), mark(held.affinity), mark(held.anti_affinity), mark(blocks)
            ),
            partial(self._maker.prepare, each.volumes),
            partial(self._maker.step, pinned_keys),
        )


class _LadderGroups:
    """A ladder with the topology groups of its rules, in the order of the ladder."""

    __slots__ = ("affinity", "anti_affinity", "ladder", "owned", "required_affinity", "spreads")

    def __init__(self, ladder: Ladder) -> None:
        self.ladder = ladder
        self.spreads: Sequence[AnyGroup] = ()
        self.affinity: Sequence[AnyGroup] = ()
        self.anti_affinity: Sequence[AnyGroup] = ()
        self.owned: set[int] = set()
        """All groups of the rules, by identity."""
        self.required_affinity: set[int] = set()
        """Groups of required pod affinities on other keys than the hostname, by identity."""


def _ladder_key(pod: Pod) -> object:
    if pod.rules.has_topology:
        return (id(pod.rules), pod.namespace, id(pod.labels))
    return id(pod.rules)


class Offer:
    """What NodePools can launch: types as masks, and a template for each pool with some type."""

    def __init__(self, snapshot: Snapshot) -> None:
        settings, catalog = snapshot.settings, snapshot.catalog
        assert not (settings.node_overlay and snapshot.overlays), "call with_overlays first"
        self._made_of = _parts_of_offer(snapshot)
        self.catalog: Catalog = catalog
        self.pools: Sequence[NodePool]
        self.pools, self.notices = usable_pools(snapshot.pools)
        self.types_of: Mapping[str, tuple[InstanceType, ...]] = {
            pool.name: catalog.types_for(pool.name) for pool in self.pools
        }
        distinct = {id(types): types for types in self.types_of.values()}
        self.table = TypeTable(
            (each for types in distinct.values() for each in types),
            catalog.well_known,
            waits_for_reserved=settings.reserved_capacity,
        )
        self.signatures = Signatures(self.table)
        self.domains = PoolDomains(self.pools, self.types_of)
        self.templates: list[Template] = []
        for pool in self.pools:
            made = build_template(
                pool, self.types_of[pool.name], self.signatures, settings.min_values_policy
            )
            if isinstance(made, Exclusion):
                self.notices.append(PoolNotice(pool.name, made))
                continue
            made.index = len(self.templates)
            assign_daemons(made, snapshot.daemons, self.signatures)
            self.templates.append(made)

    def is_reusable_for(self, snapshot: Snapshot) -> bool:
        """Say whether a snapshot has the same catalog, and equal pools, daemons and settings."""
        (catalog, *rest), (other, *others) = self._made_of, _parts_of_offer(snapshot)
        return catalog is other and rest == others


def _parts_of_offer(snapshot: Snapshot) -> tuple[object, ...]:
    return (
        snapshot.catalog,
        # The status of a NodePool changes with each node, and no launch depends on it.
        tuple([replace(each, record=None) for each in snapshot.pools]),
        snapshot.daemons,
        snapshot.settings,
    )


class Problem:
    """
    A snapshot and the pods that may have to be placed, made ready for the packer.

    Pods are sorted into classes, topology groups are made and counted, and the free resources of
    each node are known. A `State` changes counts and free resources as it places pods, and undoes
    its changes.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        batch: Batch,
        *,
        movers: Iterable[tuple[Pod, VolumeFacts | None]] = (),
        effort: Effort | None = None,
        offer: Offer | None = None,
    ) -> None:
        """Take the batch to place, and the pods on nodes that what-if questions may move."""
        self.snapshot = snapshot
        self.batch = batch
        self.effort = effort or Effort()
        self.offer = offer or Offer(snapshot)
        self.existing = ExistingNodes(snapshot.nodes)
        self.bound = BoundPods()
        self.topology = Topology(
            self.offer.signatures, snapshot.namespaces, self.offer.domains, self.effort
        )
        self.topology.use_nodes(self.existing)
        self.planner = Planner(
            self.offer.signatures,
            self.topology,
            self.existing,
            self.offer.templates,
            self.effort,
        )
        self._movers = movers
        self._optional_keys: set[str] = set()
        """Custom anti-affinity keys of pods on nodes only: watched if these pods are moved."""
        self.movable: dict[str, list[tuple[Pod, PodClass]]] = {}
        """By node, its pods that may be moved, with their classes, in the order of placing."""
        self.refused: dict[str, list[tuple[Pod, Reason, str]]] = {}
        """By node, its pods that cannot be moved, with the reason and its detail."""
        self.queue: Sequence[tuple[Pod, PodClass]] = ()
        """The pods of the batch, with their classes."""

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        previous: "Problem | None" = None,
        effort: Effort | None = None,
        *,
        has_waiting: bool = True,
    ) -> "Problem":
        """
        Make a snapshot ready for what-if questions about its nodes; this may raise OutOfTime.

        Without `has_waiting` the pods of the batch are left out. The offer of the previous problem
        is used again if the snapshot has the same catalog, pools, daemons and settings.
        """
        offer = None
        if previous is not None and previous.offer.is_reusable_for(snapshot):
            offer = previous.offer
            offer.signatures.forget_pod_requirements()
        eligibility = Eligibility(snapshot)
        movable, refused = _movable(snapshot, eligibility)
        movers = [
            (pod, eligibility.volumes.get(pod.uid)) for pods in movable.values() for pod in pods
        ]
        batch = batch_of(snapshot)
        # Costly pods are placed after all others, so that no other pod depends on them.
        waiting, _ = without_costly(batch.pods if has_waiting else ())
        if len(waiting) < len(batch.pods):
            batch = replace(batch, pods=tuple(waiting))
        problem = cls(snapshot, batch, movers=movers, offer=offer, effort=effort)
        problem.prepare()
        problem.refused = refused
        problem.queue = problem.planner.queue
        class_of = problem.planner.class_of
        problem.movable = {
            node: [(pod, class_of(pod, eligibility.volumes.get(pod.uid))) for pod in pods]
            for node, pods in movable.items()
        }
        return problem

    def without_waiting(self) -> "Problem":
        """Return the problem without pods of the batch."""
        return Problem.of(self.snapshot, self, self.effort, has_waiting=False)

    def pods_to_move(
        self, gone: frozenset[str], chosen: frozenset[str] | None
    ) -> tuple[list[tuple[Pod, PodClass]], list[str]]:
        """
        Return the pods of some nodes that must move, and `pod: reason` for pods that cannot.

        `chosen` are the UIDs of the pods to move; by default all pods that Karpy can read.
        """
        movers = [
            entry
            for name in sorted(gone)
            for entry in self.movable.get(name, ())
            if chosen is None or entry[0].uid in chosen
        ]
        movers += [
            entry
            for entry in self.queue
            if entry[0].node_name in gone and (chosen is None or entry[0].uid in chosen)
        ]
        refused = [
            f"{pod.key}: {why(Refusal(reason, (), detail))}"
            for name in sorted(gone)
            for pod, reason, detail in self.refused.get(name, ())
            if (not pod.unreadable if chosen is None else pod.uid in chosen)
        ]
        return movers, refused

    def keeps_watched_keys(self, movers: Collection[PodClass]) -> bool:
        """
        Say whether the watched keys of the problem are also those of some movers alone.

        If not, claims get other labels, and a problem of its own must answer the question.
        """
        return not self._optional_keys.difference(*map(self.planner.anti_affinity_keys, movers))

    def prepare(self) -> None:
        """Sort pods into classes, and count the pods on nodes; this may raise OutOfTime."""
        snapshot = self.snapshot
        if self.existing.count:
            self.bound = self.existing.settle(snapshot.pods, snapshot.daemons)
        self.planner.register(
            self.batch,
            self._movers,
            respects_preferences=snapshot.settings.preference_policy is PreferencePolicy.RESPECT,
            can_tolerate=has_soft_taint(self.offer.pools),
        )
        self.topology.count_bound(self.bound, self.planner.waiting_labels)
        self._count_terminating()
        asked_for = labels_asked_for(snapshot.daemons)
        table = self.offer.table
        waiting = {id(each): each for _, each in self.planner.queue}.values()
        made = set[str]().union(*map(self.planner.anti_affinity_keys, waiting))
        self._optional_keys = {
            key
            for key, groups in self.topology.avoided.items()
            if key not in made
            and key not in table.well_known
            and not table.defines(key)
            and key not in asked_for
            and all(group.kind is not GroupKind.INVERSE or group.is_empty for group in groups)
        }
        self.offer.signatures.watch(asked_for | self.topology.avoided.keys())

    def _count_terminating(self) -> None:
        """Count pods of deleting nodes that are not placed again."""
        deleting = {node.name: node for node in self.snapshot.nodes if node.is_deleting}
        if not deleting:
            return
        placed_again = {pod.uid for pod in self.batch.pods if pod.node_name}
        for pod in self.snapshot.pods:
            node = deleting.get(pod.node_name)
            if node is not None and pod.is_active and pod.uid not in placed_again:
                labels = {**node.labels, HOSTNAME: node.hostname}
                self.topology.count_terminating(pod, Site(from_labels(labels), node.taints), labels)


def batch_of(snapshot: Snapshot, moved: Collection[str] = ()) -> Batch:
    """Return the pods to be placed, with the default spread constraints of the cluster."""
    batch = collect_batch(snapshot, moved)
    if snapshot.settings.default_spreads:
        batch = replace(batch, pods=tuple(with_default_spreads(batch.pods, snapshot)))
    return batch


def _movable(
    snapshot: Snapshot, eligibility: Eligibility
) -> tuple[dict[str, list[Pod]], dict[str, list[tuple[Pod, Reason, str]]]]:
    """Return by node the pods that may be moved, in the order of placing, and the others."""
    is_deleting = {node.name: node.is_deleting for node in snapshot.nodes}
    refused: dict[str, list[tuple[Pod, Reason, str]]] = {}
    movable: list[Pod] = []
    for pod in snapshot.pods:
        if pod.node_name not in is_deleting or not pod.is_reschedulable:
            continue
        why = (Reason.ON_ITS_WAY, pod.node_name) if pod.is_expected else eligibility.why_not(pod)
        if why is None:
            if not is_deleting[pod.node_name]:
                movable.append(pod)
        else:
            refused.setdefault(pod.node_name, []).append((pod, *why))
    if snapshot.settings.default_spreads:
        movable = list(with_default_spreads(movable, snapshot))
    by_node: dict[str, list[Pod]] = {}
    for pod in movable:
        by_node.setdefault(pod.node_name, []).append(pod)
    for node, pods in by_node.items():
        by_node[node], costly = without_costly(sorted(pods, key=placing_order))
        refused.setdefault(node, []).extend(
            (pod, Reason.TOO_COMPLEX, why_not_moved(pod)) for pod in costly
        )
    return by_node, refused
