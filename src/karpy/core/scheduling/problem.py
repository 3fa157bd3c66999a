"""What decisions and questions about one snapshot have in common, built once."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from karpy.core.announcements import why
from karpy.core.scheduling.effort import Effort, why_not_moved, without_costly
from karpy.core.scheduling.existing import BoundPods, ExistingNodes
from karpy.core.scheduling.instancetypes import TypeTable
from karpy.core.scheduling.interning import Interner
from karpy.core.scheduling.pending import Batch, Judge, collect_batch, turn
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
from karpy.core.scheduling.topologygroups import DomainGroup, Kind, Site
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
    """Give pods without spread constraints the cluster's, if the group of each is known."""
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
    """Finds out which pods belong together: by Services and by the controller that owns them."""

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
        """Return a selector for the pods that belong with this one, or None if nothing tells."""
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
    """Knows every ladder, step and class of a decision."""

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
        self._ladders: dict[object, _Constrained] = {}
        self._steps: dict[object, Steps] = {}
        self._plain: dict[int, Steps] = {}
        self._classes: dict[object, PodClass] = {}
        """By what the interner makes of their first pod."""
        self._class_by_identity: dict[object, PodClass] = {}
        """The same by the objects that pods consist of, which saves comparing them."""
        self._interner = Interner()
        self._selected: dict[int, tuple[AnyGroup, ...]] = {}
        """The groups that select a class, by its index."""
        self._counting: dict[int, tuple[AnyGroup, ...]] = {}
        self.queue: list[tuple[Pod, PodClass]] = []

    def register(
        self,
        batch: Batch,
        movers: Iterable[tuple[Pod, VolumeFacts | None]] = (),
        *,
        respects_preferences: bool,
        can_tolerate: bool,
    ) -> None:
        """Tell pods that are alike from others; make every group that their steps count."""
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
                self._ladders[ladder_key] = self._constrain(pod, ladder)

    def class_of(self, pod: Pod, facts: VolumeFacts | None) -> PodClass:
        """Return the class of a pod: equal pods share it, whether they share objects or not."""
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
        """Give each pod its class, in the order of the batch."""
        selecting, plain = self._topology.selecting, self._plain
        has_groups = bool(self._topology.groups)
        required = set[int]().union(*(ladder.required for ladder in self._ladders.values()))
        for each in self._classes.values():
            pod = each.pod
            selected = selecting(pod.namespace, pod.labels) if has_groups else ()
            if selected or each.volumes is not NO_VOLUMES:
                self._complete(each, selected, required)
                continue
            steps = plain.get(id(pod.rules))
            if steps is None:
                if pod.rules.has_topology:
                    self._complete(each, (), required)
                    continue
                steps = plain[id(pod.rules)] = self._steps_of(each, (), ())
            each.climb(steps)
        return self.queue

    def compose(self, classes: Sequence[PodClass]) -> None:
        """
        Give some classes the steps they have in a question about their pods alone.

        Rules of other classes do not count, unless pods on nodes go by them.
        """
        ladders = [self._ladders[_ladder_key(each.pod)] for each in classes]
        owned: set[int] = set()
        required: set[int] = set()
        for ladder in ladders:
            owned |= ladder.owned
            required |= ladder.required
        for each in classes:
            selected = self._selected.get(each.index)
            if selected is None:
                selected = self._selected[each.index] = self._topology.selecting(
                    each.pod.namespace, each.pod.labels
                )
            groups = tuple(
                group
                for group in selected
                if id(group) in owned or (group.kind is Kind.INVERSE and not group.is_empty)
            )
            self._complete(each, groups, required)

    def keys_apart(self, pod_class: PodClass) -> list[str]:
        """Return the labels in whose domains a class keeps away from others."""
        rules = pod_class.pod.rules
        preferred = (each.term for each in rules.preferred_anti_affinity)
        return [term.topology_key for term in (*rules.anti_affinity, *preferred)]

    def counting(self, pod_class: PodClass) -> tuple[AnyGroup, ...]:
        """Return the groups in which pods of a class count that are on nodes."""
        pod = pod_class.pod
        known = self._counting.get(pod_class.index)
        if known is None:
            selected = self._topology.selecting(pod.namespace, pod.labels)
            known = self._counting[pod_class.index] = (
                *(group for group in selected if group.kind is not Kind.INVERSE),
                *self._topology.keeping_away(pod),
            )
        return known

    def waiting_labels(self) -> set[tuple[str, str]]:
        """Return every label that some pod of the batch has, as key and value."""
        distinct = {id(each.pod.labels): each.pod.labels for each in self._classes.values()}
        return set().union(*[labels.items() for labels in distinct.values()])

    def _constrain(self, pod: Pod, ladder: Ladder) -> "_Constrained":
        """Make every group that the steps of a ladder count."""
        topology, rules, made = self._topology, pod.rules, _Constrained(ladder)
        if not rules.has_topology:
            return made
        self._effort.spend(len(ladder.spreads) + len(ladder.affinity) + len(ladder.anti_affinity))
        made.spreads = [topology.spread(each, rules, pod) for each in ladder.spreads]
        made.affinity = [topology.affinity(Kind.AFFINITY, each, pod) for each in ladder.affinity]
        made.anti_affinity = [
            topology.affinity(Kind.ANTI_AFFINITY, each, pod) for each in ladder.anti_affinity
        ]
        inverse = [topology.affinity(Kind.INVERSE, term, pod) for term in rules.anti_affinity]
        near = [topology.affinity(Kind.AFFINITY, term, pod) for term in rules.affinity]
        made.required = {id(group) for group in near if isinstance(group, DomainGroup)}
        made.owned = {
            id(group)
            for group in (*made.spreads, *made.affinity, *made.anti_affinity, *inverse, *near)
        }
        return made

    def _complete(
        self, each: PodClass, groups: tuple[AnyGroup, ...], required: Collection[int]
    ) -> None:
        pod = each.pod
        blocks = tuple(group for group in groups if group.kind is Kind.INVERSE)
        # Differs: a pod that other pods of the batch must be near to: Karpenter leaves its domain
        # open, does not count it, and places the others elsewhere; Karpy decides on one domain, so
        # that it counts.
        settling = tuple(
            sorted(
                {
                    group.key
                    for group in groups
                    if isinstance(group, DomainGroup) and id(group) in required
                }
            )
        )
        ladder_key = _ladder_key(pod)
        key = (ladder_key, blocks, settling, each.volumes)
        steps = self._steps.get(key)
        if steps is None:
            steps = self._steps[key] = self._steps_of(each, blocks, settling)
        each.climb(steps)
        each.counted = tuple(group for group in groups if group.kind is not Kind.INVERSE)
        each.owned_inverse = ()
        if pod.rules.anti_affinity:
            each.owned_inverse = tuple(
                self._topology.affinity(Kind.INVERSE, term, pod) for term in pod.rules.anti_affinity
            )
        each.is_counted = bool(each.counted or each.owned_inverse)

    def _steps_of(
        self, each: PodClass, blocks: tuple[AnyGroup, ...], settling: tuple[str, ...]
    ) -> Steps:
        """Return the steps of a class, none of which is made yet."""
        pod, held = each.pod, self._ladders[_ladder_key(each.pod)]

        def mark(groups: Sequence[AnyGroup]) -> list[Marked]:
            self._effort.spend(len(groups))
            return [(group, int(group.selects(pod.namespace, pod.labels))) for group in groups]

        return Steps(
            held.ladder,
            Neighbours(
                mark(held.spreads), mark(held.affinity), mark(held.anti_affinity), mark(blocks)
            ),
            partial(self._maker.ground, each.volumes),
            partial(self._maker.step, settling),
        )


class _Constrained:
    """A ladder with the groups of all that it asks of other pods, in the ladder's order."""

    __slots__ = ("affinity", "anti_affinity", "ladder", "owned", "required", "spreads")

    def __init__(self, ladder: Ladder) -> None:
        self.ladder = ladder
        self.spreads: Sequence[AnyGroup] = ()
        self.affinity: Sequence[AnyGroup] = ()
        self.anti_affinity: Sequence[AnyGroup] = ()
        self.owned: set[int] = set()
        """The groups that the rules make, by identity."""
        self.required: set[int] = set()
        """Those of them that pods must be near to, in domains of a label."""


def _ladder_key(pod: Pod) -> object:
    if pod.rules.has_topology:
        return (id(pod.rules), pod.namespace, id(pod.labels))
    return id(pod.rules)


class Offer:
    """What NodePools can make: types as masks, and a template for each pool that has any."""

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

    def is_made_of(self, snapshot: Snapshot) -> bool:
        """Say whether another snapshot has the same types, and equal pools and daemons."""
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

    Pods are sorted into classes, topology groups are made and counted, and what is left on each
    node is known. Placing pods changes counts and room; the state that does so can undo it.
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
        """Take the batch to place, and pods on nodes that questions may move."""
        self.snapshot = snapshot
        self.batch = batch
        self.effort = effort or Effort()
        self.offer = offer or Offer(snapshot)
        self.existing = ExistingNodes(snapshot.nodes)
        self.bound = BoundPods()
        self.topology = Topology(
            self.offer.signatures, snapshot.namespaces, self.offer.domains, self.effort
        )
        self.topology.know_nodes(self.existing)
        self.planner = Planner(
            self.offer.signatures,
            self.topology,
            self.existing,
            self.offer.templates,
            self.effort,
        )
        self._movers = movers
        self._optional_keys: set[str] = set()
        """Labels by which pods on nodes are kept apart; none of the batch is, and none must be."""
        self.movable: dict[str, list[tuple[Pod, PodClass]]] = {}
        """By node that stays, its pods that may be moved, with their classes; in turn."""
        self.refused: dict[str, list[tuple[Pod, Reason, str]]] = {}
        """By node, its pods that can be placed nowhere, with the reason."""
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
        Make a snapshot ready for questions about its nodes; it may end by OutOfTime.

        Without `has_waiting` pods that wait for a place take no part.

        What can be launched is taken from the previous problem if its parts are the same objects.
        """
        offer = None
        if previous is not None and previous.offer.is_made_of(snapshot):
            offer = previous.offer
            offer.signatures.forget_wants()
        judge = Judge(snapshot)
        movable, refused = _movable(snapshot, judge)
        movers = [(pod, judge.volumes.get(pod.uid)) for pods in movable.values() for pod in pods]
        batch = batch_of(snapshot)
        # Those left out need no place: they come after all others when pods are placed.
        waiting, _ = without_costly(batch.pods if has_waiting else ())
        if len(waiting) < len(batch.pods):
            batch = replace(batch, pods=tuple(waiting))
        problem = cls(snapshot, batch, movers=movers, offer=offer, effort=effort)
        problem.prepare()
        problem.refused = refused
        problem.queue = problem.planner.queue
        class_of = problem.planner.class_of
        problem.movable = {
            node: [(pod, class_of(pod, judge.volumes.get(pod.uid))) for pod in pods]
            for node, pods in movable.items()
        }
        return problem

    def without_waiting(self) -> "Problem":
        """Return the same problem without pods that wait for a place."""
        return Problem.of(self.snapshot, self, self.effort, has_waiting=False)

    def pods_to_move(
        self, gone: frozenset[str], chosen: frozenset[str] | None
    ) -> tuple[list[tuple[Pod, PodClass]], list[str]]:
        """
        Return the pods of some nodes that must move, and sentences on those that cannot.

        They are chosen by UID, by default all that can be read.
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

    def keeps_labels(self, movers: Collection[PodClass]) -> bool:
        """Say whether the labels by which pods are kept apart are those of a question's pods."""
        return not self._optional_keys.difference(*map(self.planner.keys_apart, movers))

    def prepare(self) -> None:
        """Sort pods into classes, and count what is there; it may end by OutOfTime."""
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
        made = set[str]().union(*map(self.planner.keys_apart, waiting))
        self._optional_keys = {
            key
            for key, groups in self.topology.avoided.items()
            if key not in made
            and key not in table.well_known
            and not table.defines(key)
            and key not in asked_for
            and all(group.kind is not Kind.INVERSE or group.is_empty for group in groups)
        }
        self.offer.signatures.watch(asked_for | self.topology.avoided.keys())

    def _count_terminating(self) -> None:
        """Count pods that stay on a node being deleted until it is gone."""
        deleting = {node.name: node for node in self.snapshot.nodes if node.is_deleting}
        if not deleting:
            return
        placed_again = {pod.uid for pod in self.batch.pods if pod.node_name}
        for pod in self.snapshot.pods:
            node = deleting.get(pod.node_name)
            if node is not None and pod.is_active and pod.uid not in placed_again:
                labels = {**node.labels, HOSTNAME: node.hostname}
                self.topology.count_leaving(pod, Site(from_labels(labels), node.taints), labels)


def batch_of(snapshot: Snapshot, moved: Collection[str] = ()) -> Batch:
    """Choose the pods that wait for a place, the cluster's default spreads given to them."""
    batch = collect_batch(snapshot, moved)
    if snapshot.settings.default_spreads:
        batch = replace(batch, pods=tuple(with_default_spreads(batch.pods, snapshot)))
    return batch


def _movable(
    snapshot: Snapshot, judge: Judge
) -> tuple[dict[str, list[Pod]], dict[str, list[tuple[Pod, Reason, str]]]]:
    """Return by node the pods that may be moved, in turn, and those that may not."""
    is_deleting = {node.name: node.is_deleting for node in snapshot.nodes}
    refused: dict[str, list[tuple[Pod, Reason, str]]] = {}
    movable: list[Pod] = []
    for pod in snapshot.pods:
        if pod.node_name not in is_deleting or not pod.is_reschedulable:
            continue
        why = (Reason.ON_ITS_WAY, pod.node_name) if pod.is_expected else judge.why_not(pod)
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
        by_node[node], costly = without_costly(sorted(pods, key=turn))
        refused.setdefault(node, []).extend(
            (pod, Reason.TOO_COMPLEX, why_not_moved(pod)) for pod in costly
        )
    return by_node, refused
