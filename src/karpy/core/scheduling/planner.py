"""Turns a batch of pods into classes with steps: groups are made first, then found by labels."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from karpy.core.scheduling.effort import Effort
from karpy.core.scheduling.existing import ExistingNodes
from karpy.core.scheduling.groups import DomainGroup, Kind
from karpy.core.scheduling.interning import Interner
from karpy.core.scheduling.ladder import Ladder
from karpy.core.scheduling.pending import Batch
from karpy.core.scheduling.signatures import Signatures
from karpy.core.scheduling.stepmaker import About, StepMaker
from karpy.core.scheduling.steps import (
    Marked,
    Neighbours,
    PodClass,
    Steps,
)
from karpy.core.scheduling.templates import Template
from karpy.core.scheduling.topology import AnyGroup, Topology
from karpy.core.scheduling.volumes import NO_VOLUMES, VolumeFacts
from karpy.model.pods import Pod


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

    def makes(self, pod_class: PodClass, key: str) -> bool:
        """Say whether a class keeps away from others in the domains of a label."""
        rules = pod_class.pod.rules
        wished = (each.term for each in rules.preferred_anti_affinity)
        return any(term.topology_key == key for term in (*rules.anti_affinity, *wished))

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
        # Differs: Karpenter leaves the domain of a pod open that others must be near to, does not
        # count it, and lets them settle elsewhere.
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
        about = About(each.volumes, settling, bool(pod.rules.ports))

        def mark(groups: Sequence[AnyGroup]) -> list[Marked]:
            self._effort.spend(len(groups))
            return [(group, int(group.selects(pod.namespace, pod.labels))) for group in groups]

        return Steps(
            held.ladder,
            Neighbours(
                mark(held.spreads), mark(held.affinity), mark(held.anti_affinity), mark(blocks)
            ),
            partial(self._maker.ground, about.volumes),
            partial(self._maker.step, about),
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
