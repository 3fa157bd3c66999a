"""Answers what-if questions: where the pods of some nodes would go if these nodes were gone."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import replace

from karpy.barriers import Barrier
from karpy.core.announcements import why
from karpy.core.scheduling.effort import CONSTRAINTS_MAX, OutOfTime, constraints_of
from karpy.core.scheduling.packers.greedy import PlacingResult
from karpy.core.scheduling.pending import placing_order
from karpy.core.scheduling.podclasses import PodClass
from karpy.core.scheduling.problem import Problem, batch_of
from karpy.core.scheduling.refusals import Refuser
from karpy.core.scheduling.state import State
from karpy.errors import KarpyError
from karpy.model.instances import MICROS_PER_DOLLAR, Catalog
from karpy.model.pods import Pod
from karpy.model.resources import CPU, MEMORY
from karpy.model.settings import MinValuesPolicy, ReservedMode
from karpy.model.verdicts import Launch, Nomination, Reason, Refusal

Entry = tuple[Pod, PodClass]
_WHOLE: Final = 1000
_CROWDED: Final = "if kube-scheduler puts moved pods where CapacityBuffers have their room"


class Relocation(Struct, frozen=True, gc=False):
    """The answer to a what-if question: where the moved pods go, and which find no place."""

    launches: tuple[Launch, ...] = ()
    """New nodes that take at least one moved pod; pending pods may be on them, too."""
    nodes: tuple[str, ...] = ()
    """Names of existing nodes that take moved pods."""
    unplaced: tuple[str, ...] = ()
    """Moved pods without a place, each as `namespace/name: reason`."""
    placements: tuple[Nomination, ...] = ()
    """The moved pods by the existing node that takes them."""
    other_placements: Mapping[str, str] = {}
    """By UID of a pending pod, or a pod of a deleting node, the existing node that takes it."""
    pods: int = 0
    """How many pods had to move."""
    needs_more_nodes: bool = False
    """Whether the search ended because it takes more new nodes than allowed."""
    is_out_of_time: bool = False
    """Whether the search ended because time was up."""


class QuestionTerms(TypedDict, total=False):
    """What a what-if question allows and requires, besides a place for each moved pod."""

    closed: Collection[str]
    """Names of nodes that take no moved pod."""
    price_below: int | None
    """A new node must cost less, in micro-dollars per hour; None for any price."""
    new_nodes_max: int | None
    """How many new nodes the pods may take; None for any number."""
    reserved_mode: ReservedMode
    stops_early: bool
    """Whether the search ends at the first pod that finds no place."""
    keeps_places: bool
    """Whether waiting pods that have room on an existing node now must find a place, too."""
    is_crowded: bool
    """Whether `keeps_places` must also hold if moved pods take the room of virtual pods first."""


class _AllTerms(Struct, frozen=True):
    """The terms of a what-if question, with defaults."""

    closed: Collection[str] = ()
    price_below: int | None = None
    new_nodes_max: int | None = None
    reserved_mode: ReservedMode = ReservedMode.FALLBACK
    stops_early: bool = True
    keeps_places: bool = False
    is_crowded: bool = False


class WhatIf:
    """
    Answers what-if questions about one snapshot, one after the other.

    Pods are placed in Karpenter's order, whatever the setting `packing` says. Each question changes
    the state of the problem, and undoes its changes.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._state: State | None = None
        self._other: tuple[Catalog, WhatIf] | None = None
        """The last other catalog, with the `WhatIf` for it."""
        self.answered: set[str] = set()
        """Names of all nodes that answered questions were about; the caller may clear it."""
        self.was_cut = False
        """Whether time was up before some question was answered."""
        self.failures: list[KarpyError] = []
        """Errors raised by questions; these are answered without the pods that may be the cause."""
        self._placed_now: frozenset[str] | None = None
        """UIDs of the waiting pods that have room on an existing node now."""

    def ask(
        self,
        without: Collection[str],
        *,
        moved: Sequence[Pod] | None = None,
        catalog: Catalog | None = None,
        **given: Unpack[QuestionTerms],
    ) -> Relocation:
        """
        Find places for the pods of the nodes named in `without`, as if these nodes were deleting.

        `moved` are the pods on these nodes that must move, by default all reschedulable pods that
        Karpy can read. Pending pods are placed, too, but need not find a place. New nodes are of
        types that cost less than `price_below` wherever they are launched. The search ends when it
        takes more than `new_nodes_max` new nodes, and at the first moved pod without a place;
        if `stops_early` is False, it goes on, and each such pod gets a full reason. With
        `keeps_places` the nodes may be without pods: virtual pods may have their room there.
        """
        if catalog is not None and catalog is not self._problem.snapshot.catalog:
            return self._with_catalog(catalog).ask(without, moved=moved, **given)
        terms = _AllTerms(**given)
        problem, gone = self._problem, frozenset(without)
        chosen = None if moved is None else frozenset(pod.uid for pod in moved)
        movers, refused = problem.pods_to_move(gone, chosen)
        count = len(movers) + len(refused)
        if not count and not (terms.keeps_places and _has_virtual(problem)):
            return Relocation()
        if refused and terms.stops_early:
            return Relocation(unplaced=_sorted(refused), pods=count)
        found, errors = list[Relocation](), list[KarpyError]()
        with Barrier(errors.append):
            found.append(self._search_in_time(gone, movers, terms))
        if errors:
            self.failures += errors
            self._state = self._placed_now = None
            if problem.queue:
                # A waiting pod may be the cause; without it, later questions can be answered.
                self._problem = problem.without_waiting()
                return self.ask(without, moved=moved, **given)
            found.append(_unanswered(movers, Reason.DECISION_FAILED))
        unplaced = _sorted((*refused, *found[0].unplaced))
        return replace(found[0], unplaced=unplaced, pods=count)

    def _search_in_time(
        self, gone: frozenset[str], movers: list[Entry], terms: _AllTerms
    ) -> Relocation:
        try:
            self._problem.effort.check()
            found = self._beside_buffers(gone, movers, terms, self._kept(terms))
        except OutOfTime:
            # The state may be between two changes: the next question makes another one.
            self._state, self.was_cut = None, True
            return replace(_unanswered(movers, Reason.UNDECIDED), is_out_of_time=True)
        self.answered |= gone
        return found

    def _beside_buffers(
        self, gone: frozenset[str], movers: list[Entry], terms: _AllTerms, kept: frozenset[str]
    ) -> Relocation:
        """Search; if `is_crowded`, search again with moved pods first in the room of buffers."""
        found = self._search(gone, movers, terms, kept)
        rooms = self._rooms_of_buffers(found, kept) if terms.is_crowded else ()
        if not rooms or found.unplaced or found.needs_more_nodes:
            return found
        # Kube-scheduler may bind moved pods there. Then a node is launched for the buffer,
        # which consolidation may delete again, without end.
        crowded = self._search(gone, movers, terms, kept, rooms)
        unplaced = tuple(f"{each} ({_CROWDED})" for each in crowded.unplaced)
        return replace(crowded, unplaced=unplaced)

    def _with_catalog(self, catalog: Catalog) -> "WhatIf":
        if self._other is None or self._other[0] is not catalog:
            snapshot = replace(self._problem.snapshot, catalog=catalog)
            self._other = catalog, WhatIf(Problem.of(snapshot, effort=self._problem.effort))
        return self._other[1]

    def _rooms_of_buffers(self, found: Relocation, kept: frozenset[str]) -> tuple[str, ...]:
        """Name the existing nodes of virtual pods that must keep a place."""
        if not kept:
            return ()
        virtual = (pod.uid for pod, _ in self._problem.queue if pod.is_virtual)
        rooms = {
            found.other_placements[uid]
            for uid in virtual
            if uid in kept and uid in found.other_placements
        }
        return tuple(sorted(rooms))

    def _kept(self, terms: _AllTerms) -> frozenset[str]:
        """Return the UIDs of the waiting pods that must find a place, too."""
        if not (terms.keeps_places and self._problem.queue):
            return frozenset()
        if self._placed_now is None:
            today = self._search(frozenset(), [], _AllTerms(reserved_mode=terms.reserved_mode))
            self._placed_now = frozenset(today.other_placements)
        return self._placed_now

    def _search(
        self,
        gone: frozenset[str],
        movers: list[Entry],
        terms: _AllTerms,
        kept: frozenset[str] = frozenset(),
        crowded: Sequence[str] = (),
    ) -> Relocation:
        found = self._answer_with_state(gone, movers, terms, kept, crowded)
        return found or _answer_afresh(self._problem, gone, movers, terms, kept, crowded)

    def _answer_with_state(
        self,
        gone: frozenset[str],
        movers: list[Entry],
        terms: _AllTerms,
        kept: frozenset[str],
        crowded: Sequence[str],
    ) -> Relocation | None:
        """
        Answer by a change of the state of the problem.

        None if domains or labels vanish with the nodes: then a problem of its own must answer.
        """
        problem = self._problem
        numbers = [
            number for name in gone if (number := problem.existing.number.get(name)) is not None
        ]
        changed = problem.topology.without_nodes(sum(1 << number for number in numbers))
        if changed is None or not problem.keeps_watched_keys([each for _, each in movers]):
            return None
        if self._state is None:
            pods = len(problem.batch.pods) + sum(map(len, problem.movable.values()))
            self._state = State(problem, terms.reserved_mode, pods)
        state = self._state
        try:
            state.remove_nodes(numbers, movers, changed, terms.reserved_mode)
            moving = {pod.uid for pod, _ in movers}
            waiting = [entry for entry in problem.queue if entry[0].uid not in moving]
            queue = _in_turn([*waiting, *movers], moving)
            problem.planner.use_question_steps(list({id(each): each for _, each in queue}.values()))
            return _Search(state, terms, moving, kept, crowded).run(queue)
        finally:
            state.undo()


def _unanswered(movers: list[Entry], reason: Reason) -> Relocation:
    first = sorted(pod.key for pod, _ in movers)[:1]
    return Relocation(unplaced=tuple(f"{key}: {why(Refusal(reason, ()))}" for key in first))


def _has_virtual(problem: Problem) -> bool:
    return any(pod.is_virtual for pod, _ in problem.queue)


def _answer_afresh(
    problem: Problem,
    gone: frozenset[str],
    movers: list[Entry],
    terms: _AllTerms,
    kept: frozenset[str],
    crowded: Sequence[str],
) -> Relocation:
    """Answer with a problem of its own, in which the nodes are deleting."""
    snapshot, moving = problem.snapshot, {pod.uid for pod, _ in movers}
    nodes = tuple(
        replace(node, is_deleting=True) if node.name in gone else node for node in snapshot.nodes
    )
    snapshot = replace(snapshot, nodes=nodes)
    batch = batch_of(snapshot, moving)
    known = moving.union(pod.uid for pod in problem.batch.pods)
    pods = tuple(
        pod
        for pod in batch.pods
        if pod.uid in known and (pod.node_name not in gone or pod.uid in moving)
    )
    other = Problem(snapshot, replace(batch, pods=pods), effort=problem.effort)
    other.prepare()
    queue = other.planner.classes()
    state = State(other, terms.reserved_mode, len(queue))
    return _Search(state, terms, moving, kept, crowded).run(_in_turn(queue, moving))


# Differs: a node is disrupted while pods of another one still wait for theirs: Karpenter places
# large pods first, so that pods to be moved may take the room that was made for those that wait;
# Karpy places pods that wait first.
def _in_turn(queue: list[Entry], moving: Collection[str]) -> list[Entry]:
    """Sort waiting pods before moved ones (given by UID), and virtual pods last."""
    queue.sort(
        key=lambda entry: (entry[0].is_virtual, entry[0].uid in moving, placing_order(entry[0]))
    )
    return _costly_last(queue)


def _costly_last(queue: list[Entry]) -> list[Entry]:
    costs = {id(each): constraints_of(each.pod.rules) for _, each in queue}
    if max(costs.values(), default=0) <= CONSTRAINTS_MAX:
        return queue
    return sorted(queue, key=lambda entry: costs[id(entry[1])] > CONSTRAINTS_MAX)


def _sorted(unplaced: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(unplaced))


class _Search:
    """One what-if question: places pods until the answer is certain."""

    def __init__(
        self,
        state: State,
        terms: _AllTerms,
        moving: Collection[str],
        kept: Collection[str],
        crowded: Sequence[str],
    ) -> None:
        """Take the UIDs of the pods that must move, and of waiting pods that must keep a place."""
        # Differs: consolidation while pods of deleting nodes or pending pods find no place on
        # existing nodes: Karpenter counts their new nodes against the command and moves little or
        # nothing; Karpy asks for places for the moved pods alone.
        self._state = state
        self._terms = terms
        self._moving = moving
        self._needing = {*moving, *kept} if kept else moving
        self._number = state.problem.existing.number
        # Kube-scheduler binds pods to nodes with the room of buffers, whether closed or not.
        self._closed = self._mask(terms.closed) & ~self._mask(crowded)
        self._crowded = [self._number[name] for name in crowded]
        self._other_placements: dict[str, int] = {}
        self._claims: dict[int, None] = {}
        """New nodes with pods that must find a place."""
        self._placements: dict[int, list[str]] = {}
        self._unplaced: dict[str, str] = {}
        self._needs_more = False

    def run(self, queue: list[Entry]) -> Relocation:
        """Place pods in their order until no more can be placed, or the answer is certain."""
        packer = self._state.packer
        packer.ceiling = self._terms.price_below
        if self._closed:
            queue = self._with_own_classes(queue)
        waiting: set[str] = set()
        hopeless: list[Entry] = []
        while queue:
            again: list[Entry] = []
            waiting.clear()
            for entry in queue:
                pod, pod_class = entry
                is_moved = pod.uid in self._moving
                packer.closed = self._closed if is_moved else 0
                packer.preferred = self._emptiest_first() if is_moved else ()
                outcome = (
                    PlacingResult.REFUSED if pod_class.is_hopeless else packer.place(pod_class, pod)
                )
                if outcome is PlacingResult.PLACED:
                    if self._is_answered_by(pod):
                        return self._answer()
                    continue
                if outcome is PlacingResult.WAITS:
                    waiting.add(pod.uid)
                is_needing = pod.uid in self._needing
                is_lost = pod_class.is_hopeless or (
                    is_needing and outcome is PlacingResult.TOO_DEAR
                )
                if not is_lost:
                    again.append(entry)
                elif is_needing and self._terms.stops_early:
                    self._unplaced[pod.key] = self._brief_reason()
                    return self._answer()
                else:
                    hopeless.append(entry)
            if len(again) == len(queue) or not any(each.may_succeed() for _, each in again):
                hopeless += again
                break
            queue = again
        self._note_reasons([entry for entry in hopeless if entry[0].uid in self._needing], waiting)
        return self._answer()

    def _mask(self, names: Iterable[str]) -> int:
        """Return existing nodes as bits."""
        mask = 0
        for name in names:
            if name in self._number:
                mask |= 1 << self._number[name]
        return mask

    def _emptiest_first(self) -> Sequence[int]:
        """Return the nodes with room of buffers, emptiest first, as kube-scheduler prefers them."""
        existing = self._state.problem.existing

        def emptiness(node: int) -> int:
            there = existing.nodes[node].allocatable
            return sum(
                existing.free[name][node] * _WHOLE // there[name]
                for name in (CPU, MEMORY)
                if there.get(name)
            )

        return sorted(self._crowded, key=emptiness, reverse=True)

    def _with_own_classes(self, queue: list[Entry]) -> list[Entry]:
        """Give waiting pods classes of their own, because nodes are closed to moved pods only."""
        twins: dict[int, PodClass] = {}
        result: list[Entry] = []
        for pod, pod_class in queue:
            if pod.uid in self._moving:
                result.append((pod, pod_class))
                continue
            if id(pod_class) not in twins:
                twins[id(pod_class)] = twin = replace(pod_class)
                twin.reset()
            result.append((pod, twins[id(pod_class)]))
        return result

    def _is_answered_by(self, pod: Pod) -> bool:
        """Note the node of a placed pod; say whether the answer is certain now."""
        planned, existing = self._state.planned, self._state.problem.existing
        node = planned.last
        if node >= existing.count:
            if pod.uid not in self._needing:
                return False
            self._claims[node] = None
            most = self._terms.new_nodes_max
            self._needs_more = most is not None and len(self._claims) > most
            return self._needs_more
        if pod.uid not in self._moving:
            self._other_placements[pod.uid] = node
            return False
        self._placements.setdefault(node, []).append(pod.key)
        if existing.nodes[node].is_initialized:
            return False
        name = existing.nodes[node].name
        self._unplaced[pod.key] = f"would schedule against uninitialized node {name}"
        return self._terms.stops_early

    def _note_reasons(self, left: list[Entry], waiting: set[str]) -> None:
        """Note the reason why each pod finds no place."""
        if not left:
            return
        if self._terms.stops_early:
            self._unplaced[left[0][0].key] = self._brief_reason()
            return
        offer = self._state.problem.offer
        reason = Reason.NO_HOST if offer.pools else Reason.NO_POOL
        refuser = Refuser(self._state.packer, offer.templates, offer.notices, reason)
        for refusal in refuser.refuse(left, waiting):
            self._unplaced.update(dict.fromkeys(refusal.pods, why(refusal)))

    def _brief_reason(self) -> str:
        price = self._terms.price_below
        if price is None:
            return why(Refusal(Reason.NO_HOST, ()))
        detail = f"no other node, and no new one for less than ${price / MICROS_PER_DOLLAR:.4f}/h"
        return why(Refusal(Reason.NO_HOST, (), detail))

    def _answer(self) -> Relocation:
        existing = self._state.problem.existing
        is_lost = self._needs_more or (self._unplaced and self._terms.stops_early)
        launches = () if is_lost else tuple(self._launches())
        placements = tuple(
            Nomination(existing.nodes[node].name, tuple(keys))
            for node, keys in sorted(self._placements.items())
        )
        return Relocation(
            launches,
            tuple(each.node for each in placements),
            tuple(f"{key}: {reason}" for key, reason in self._unplaced.items()),
            placements,
            {uid: existing.nodes[node].name for uid, node in self._other_placements.items()},
            needs_more_nodes=self._needs_more,
        )

    def _launches(self) -> Iterable[Launch]:
        """Return the launches of new nodes; pods of nodes that cannot be launched are unplaced."""
        planned, snapshot = self._state.planned, self._state.problem.snapshot
        launcher = self._state.launcher
        is_strict = snapshot.settings.min_values_policy is MinValuesPolicy.STRICT
        price = self._terms.price_below
        for node in sorted(self._claims):
            launch = launcher.launch(node, is_strict=is_strict, price_below=price)
            if launch is not None:
                yield launch
                continue
            lacking = why(Refusal(Reason.MIN_VALUES_TRUNCATED, ()))
            reason = lacking if price is None else self._brief_reason()
            for pod in planned.pods[node]:
                if pod.uid in self._needing:
                    self._unplaced[pod.key] = reason
