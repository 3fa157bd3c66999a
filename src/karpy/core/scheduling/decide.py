"""Decides where pending pods go: a snapshot in, launches, nominations and refusals out."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from karpy.barriers import Barrier
from karpy.core.scheduling.effort import (
    WORK_MAX,
    Effort,
    KeepGoing,
    OutOfTime,
    refuse_costly,
    split_by_cost,
)
from karpy.core.scheduling.launches import Launcher
from karpy.core.scheduling.packers.greedy import PlacingResult
from karpy.core.scheduling.packers.portfolio import (
    Draft,
    better,
    is_worth_another_look,
    other_orders,
)
from karpy.core.scheduling.pending import Batch, collect_batch
from karpy.core.scheduling.podclasses import PodClass
from karpy.core.scheduling.problem import Problem, with_default_spreads
from karpy.core.scheduling.refusals import Refuser
from karpy.core.scheduling.state import State
from karpy.core.scheduling.templates import usable_pools
from karpy.errors import KarpyError, LimitPassed
from karpy.model.census import uncounted, without
from karpy.model.pods import Pod
from karpy.model.settings import MinValuesPolicy, Packing
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, Nomination, Reason, Refusal, Verdict

_PODS_BETWEEN_LOOKS_AT_THE_CLOCK = 16
Entry = tuple[Pod, PodClass]
"""A pod to place, with its class."""

CULPRITS_MAX: Final = 16
"""If decisions fail with more pods than this, the pods are hardly the cause."""

Decide = Callable[[Snapshot, KeepGoing], Verdict]


def decide(snapshot: Snapshot, *, keep_going: KeepGoing | None = None) -> Verdict:
    """
    Decide where pending pods go: onto existing nodes, or onto which new ones.

    The same snapshot gives the same verdict. When `keep_going` returns False, the decision ends
    early, with what is decided so far.
    """
    batch = collect_batch(snapshot)
    if snapshot.settings.default_spreads:
        batch = replace(batch, pods=tuple(with_default_spreads(batch.pods, snapshot)))
    usual, costly, left_out = split_by_cost(batch.pods)
    draft = _decide_best(snapshot, replace(batch, pods=usual), keep_going)
    verdict, undecided = draft.verdict, costly
    if costly and verdict.is_complete:
        # The usual pods are decided again, with the costly pods behind them: if that takes too
        # long, the first verdict stands.
        whole = replace(batch, pods=(*draft.pods, *costly))
        most = 2 * draft.work + WORK_MAX
        with_all = _Decision(snapshot, whole, keep_going, most).run().verdict
        late = _undecided(with_all)
        if late.isdisjoint(pod.key for pod in usual):
            verdict = _without_undecided(with_all)
            undecided = tuple(pod for pod in costly if pod.key in late)
        verdict = replace(verdict, is_complete=with_all.is_complete)
    more = refuse_costly((*undecided, *left_out))
    return replace(verdict, refusals=(*verdict.refusals, *more)) if more else verdict


def _decide_best(snapshot: Snapshot, batch: Batch, keep_going: KeepGoing | None) -> Draft:
    """Decide in the usual order, then in other orders if the settings say so and time is left."""
    if not batch.pods:
        notices = tuple(usable_pools(snapshot.pools)[1])
        return Draft(Verdict(refusals=batch.refusals, pools=notices))
    draft = _Decision(snapshot, batch, keep_going).run()
    if snapshot.settings.packing is Packing.CHEAPEST and is_worth_another_look(draft):
        for other in other_orders(batch, snapshot.catalog.well_known):
            if keep_going is not None and not keep_going():
                break
            draft = better(draft, _Decision(snapshot, other, keep_going).run(), batch)
    return draft


def _undecided(verdict: Verdict) -> frozenset[str]:
    return frozenset(
        key for each in verdict.refusals if each.reason is Reason.UNDECIDED for key in each.pods
    )


def _without_undecided(verdict: Verdict) -> Verdict:
    refusals = tuple(each for each in verdict.refusals if each.reason is not Reason.UNDECIDED)
    return replace(verdict, refusals=refusals)


class _Decision:
    """The scratch state of one decision, from the batch to the verdict."""

    def __init__(
        self,
        snapshot: Snapshot,
        batch: Batch,
        keep_going: KeepGoing | None,
        most_work: int | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.batch = batch
        self.keep_going = keep_going
        self.effort = Effort(keep_going, most_work)
        self.problem = Problem(snapshot, batch, effort=self.effort)

    def run(self) -> Draft:
        try:
            self.problem.prepare()
            queue = self.problem.planner.classes()
            state = State(self.problem, self.snapshot.settings.reserved_mode, len(queue))
            self.packer, self.planned = state.packer, state.planned
            if self.keep_going is not None:
                queue = self._hopeless_last(queue)
        except OutOfTime:
            return Draft(self._verdict_without_time(), pods=self.batch.pods)
        verdict = self._verdict(self._pack(queue))
        return Draft(verdict, self.packer.steps_down, self.batch.pods, self.effort.spent)

    def _verdict_without_time(self) -> Verdict:
        keys = tuple(pod.key for pod in self.batch.pods)
        refusals = (*self.batch.refusals, Refusal(Reason.UNDECIDED, keys))
        return Verdict(
            refusals=refusals, pools=tuple(self.problem.offer.notices), is_complete=False
        )

    def _hopeless_last(self, queue: list[Entry]) -> list[Entry]:
        known: dict[int, bool] = {}
        for _, each in queue:
            if id(each) not in known:
                known[id(each)] = not self.packer.has_host(each)
        return sorted(queue, key=lambda entry: known[id(entry[1])])

    def _pack(self, queue: list[Entry]) -> "_Leftover":
        """Place pods, round by round, until a round places none; return the pods left over."""
        is_first_round = True
        hopeless: list[Entry] = []
        waiting: set[str] = set()
        # Each round but the last places at least one pod, which limits the number of rounds.
        for _ in range(len(queue) + 1):
            left = _Leftover(hopeless)
            tried = self._run_round(queue, left)
            if tried < len(queue):
                rest = queue[tried:]
                left.waiting |= waiting.intersection(pod.uid for pod, _ in rest)
                (left.undecided if is_first_round else left.again).extend(rest)
                left.is_complete = False
                return left
            if len(left.again) == len(queue) or not any(
                each.may_succeed() for _, each in left.again
            ):
                return left
            queue, waiting = left.again, left.waiting
            is_first_round = False
        raise LimitPassed(what=f"still packing after {len(self.batch.pods) + 1} rounds")

    def _run_round(self, queue: list[Entry], left: "_Leftover") -> int:
        """Try each pod once; return how many were tried before time was up."""
        packer, keep_going = self.packer, self.keep_going
        turn, looked = 0, 0 if keep_going else len(queue)
        while turn < len(queue):
            if turn >= looked and keep_going is not None:
                looked = min(turn + _PODS_BETWEEN_LOOKS_AT_THE_CLOCK, len(queue))
                if not keep_going():
                    return turn
            pod, pod_class = entry = queue[turn]
            if pod_class.is_hopeless:
                left.hopeless.append(entry)
            else:
                try:
                    outcome = packer.place(pod_class, pod)
                except OutOfTime:
                    return turn
                if outcome is not PlacingResult.PLACED:
                    left.add(entry, outcome)
            turn += 1
        return turn

    def _verdict(self, left: "_Leftover") -> Verdict:
        launches, dropped = self._launches()
        existing, pods = self.problem.existing, self.planned.pods
        nominations = tuple(
            Nomination(existing.nodes[node].name, tuple(pod.key for pod in pods[node]))
            for node in range(existing.count)
            if pods[node]
        )
        refusals = list(self.batch.refusals)
        if dropped:
            refusals.append(Refusal(Reason.MIN_VALUES_TRUNCATED, tuple(dropped)))
        if left.hopeless or left.again:
            why = Reason.NO_HOST if self.problem.offer.pools else Reason.NO_POOL
            refuser = Refuser(
                self.packer, self.problem.offer.templates, self.problem.offer.notices, why
            )
            refusals += refuser.refuse((*left.hopeless, *left.again), left.waiting)
        if left.undecided:
            refusals.append(Refusal(Reason.UNDECIDED, tuple(pod.key for pod, _ in left.undecided)))
        return Verdict(
            tuple(launches),
            nominations,
            tuple(refusals),
            tuple(self.problem.offer.notices),
            left.is_complete,
        )

    def _launches(self) -> tuple[list[Launch], list[str]]:
        """Return the launches of all claims, and the pods of claims that cannot be launched."""
        launcher = Launcher(
            self.planned, self.problem.offer.signatures, self.snapshot.catalog.reservation_label
        )
        is_strict = self.snapshot.settings.min_values_policy is MinValuesPolicy.STRICT
        launches: list[Launch] = []
        dropped: list[str] = []
        for node in range(self.problem.existing.count, self.planned.size):
            launch = launcher.launch(node, is_strict=is_strict)
            if launch is None:
                dropped += [pod.key for pod in self.planned.pods[node]]
            else:
                launches.append(launch)
        return launches, dropped


class _Leftover:
    """Pods without a place: tried and not placed, or not tried because time was up."""

    def __init__(self, hopeless: list[Entry]) -> None:
        self.hopeless = hopeless
        """Pods of which every step has failed for good."""
        self.again: list[Entry] = []
        """Pods to try in the next round."""
        self.undecided: list[Entry] = []
        """Pods that were never tried."""
        self.waiting: set[str] = set()
        """UIDs of the pods that wait for a reservation."""
        self.is_complete = True

    def add(self, entry: Entry, outcome: PlacingResult) -> None:
        """Take a pod that was tried and not placed."""
        pod, pod_class = entry
        (self.hopeless if pod_class.is_hopeless else self.again).append(entry)
        if outcome is PlacingResult.WAITS:
            self.waiting.add(pod.uid)


class Culprit(NamedTuple):
    """A pod that makes decisions fail, with the error."""

    pod: Pod
    error: KarpyError


class GuardedVerdict(NamedTuple):
    """A verdict, and the pods that were left out of it because decisions failed with them."""

    verdict: Verdict
    culprits: Sequence[Culprit] = ()


def decide_guarded(
    snapshot: Snapshot, keep_going: KeepGoing = lambda: True, make: Decide | None = None
) -> GuardedVerdict:
    """
    Decide as `decide` does, but refuse the pods with which `decide` raises a `KarpyError`.

    The error is raised all the same if it occurs without any waiting pod, or if time is up before
    the pods are found. `make` replaces `decide`.
    """
    make = make or (lambda some, going: decide(some, keep_going=going))
    errors: list[KarpyError] = []
    with Barrier(errors.append):
        return GuardedVerdict(make(snapshot, keep_going))
    culprits = _find_culprits(snapshot, keep_going, make, errors[0])
    verdict = make(_without(snapshot, [each.pod for each in culprits]), keep_going)
    refusals = tuple(
        Refusal(Reason.DECISION_FAILED, (pod.key,), error.message) for pod, error in culprits
    )
    return GuardedVerdict(replace(verdict, refusals=(*verdict.refusals, *refusals)), culprits)


def _find_culprits(
    snapshot: Snapshot, keep_going: KeepGoing, make: Decide, error: KarpyError
) -> list[Culprit]:
    """Find the waiting pods with which decisions fail, one after the other, by bisection."""
    waiting = [pod for pod in uncounted(snapshot.pods) if not pod.node_name]

    def error_with(pods: Sequence[Pod]) -> KarpyError | None:
        if not keep_going():
            raise error
        kept = {id(pod) for pod in pods}
        errors: list[KarpyError] = []
        with Barrier(errors.append):
            make(_without(snapshot, [pod for pod in waiting if id(pod) not in kept]), keep_going)
        return errors[0] if errors else None

    if (blameless := error_with(())) is not None:
        raise blameless
    left, culprits, last = waiting.copy(), list[Culprit](), error
    while True:
        # The decision fails with the first `some` pods, and does not with the first `few`.
        few, some = 0, len(left)
        while some - few > 1:
            half = (few + some) // 2
            caught = error_with(left[:half])
            few, some = (half, some) if caught is None else (few, half)
            last = caught or last
        culprits.append(Culprit(left.pop(some - 1), last))
        caught = error_with(left)
        if caught is None:
            return culprits
        if len(culprits) >= CULPRITS_MAX:
            raise caught
        last = caught


def _without(snapshot: Snapshot, pods: Sequence[Pod]) -> Snapshot:
    return replace(snapshot, pods=without(snapshot.pods, {id(pod) for pod in pods}))
