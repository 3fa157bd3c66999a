"""What decisions and questions about one snapshot have in common, built once."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from karpy.core.announcements import why
from karpy.core.scheduling.defaults import with_default_spreads
from karpy.core.scheduling.effort import Effort
from karpy.core.scheduling.existing import BoundPods, ExistingNodes
from karpy.core.scheduling.groups import Kind, Site
from karpy.core.scheduling.pending import Batch, Judge, collect_batch, turn
from karpy.core.scheduling.planner import Planner
from karpy.core.scheduling.signatures import Signatures
from karpy.core.scheduling.steps import PodClass
from karpy.core.scheduling.templates import (
    PoolDomains,
    Template,
    assign_daemons,
    build_template,
    has_soft_taint,
    labels_asked_for,
    usable_pools,
)
from karpy.core.scheduling.topology import Topology
from karpy.core.scheduling.typetable import TypeTable
from karpy.core.scheduling.volumes import VolumeFacts
from karpy.model.instances import Catalog, InstanceType
from karpy.model.labels import HOSTNAME
from karpy.model.pods import Pod
from karpy.model.pools import NodePool
from karpy.model.refusals import Exclusion, Reason, Refusal
from karpy.model.requirements import from_labels
from karpy.model.settings import PreferencePolicy
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import PoolNotice


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
        self._waiting: Sequence[PodClass] = ()
        """The classes of the batch."""
        self._optional_keys: Sequence[str] = ()
        """Labels by which some pods are kept apart, but none that is on a node requires it."""
        self.movable: dict[str, list[tuple[Pod, PodClass]]] = {}
        """By node that stays, its pods that may be moved, with their classes; in turn."""
        self.refused: dict[str, list[tuple[Pod, Reason, str]]] = {}
        """By node, its pods that can be placed nowhere, with the reason."""
        self.queue: Sequence[tuple[Pod, PodClass]] = ()
        """The pods of the batch, with their classes."""

    @classmethod
    def of(cls, snapshot: Snapshot, previous: "Problem | None" = None) -> "Problem":
        """
        Make a snapshot ready for questions about its nodes.

        What can be launched is taken from the previous problem if its parts are the same objects.
        """
        offer = None
        if previous is not None and previous.offer.is_made_of(snapshot):
            offer = previous.offer
            offer.signatures.forget_wants()
        judge = Judge(snapshot)
        movable, refused = _movable(snapshot, judge)
        movers = [(pod, judge.volumes.get(pod.uid)) for pods in movable.values() for pod in pods]
        problem = cls(snapshot, batch_of(snapshot), movers=movers, offer=offer)
        problem.prepare()
        problem.refused = refused
        problem.queue = problem.planner.queue
        class_of = problem.planner.class_of
        problem.movable = {
            node: [(pod, class_of(pod, judge.volumes.get(pod.uid))) for pod in pods]
            for node, pods in movable.items()
        }
        return problem

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
        return all(
            any(self.planner.makes(each, key) for each in (*movers, *self._waiting))
            for key in self._optional_keys
        )

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
        self._waiting = [*{id(each): each for _, each in self.planner.queue}.values()]
        self._optional_keys = [
            key
            for key, groups in self.topology.avoided.items()
            if key not in table.well_known
            and not table.defines(key)
            and key not in asked_for
            and all(group.kind is not Kind.INVERSE or group.is_empty for group in groups)
        ]
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


def batch_of(snapshot: Snapshot) -> Batch:
    """Choose the pods that wait for a place, the cluster's default spreads given to them."""
    batch = collect_batch(snapshot)
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
    for pods in by_node.values():
        pods.sort(key=turn)
    return by_node, refused
