"""Bounds the time of a decision, and separates pods that would take too much of it."""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from karpy.core.scheduling.interning import Interner
from karpy.model.pods import Pod, PodRules
from karpy.model.verdicts import Reason, Refusal

KeepGoing = Callable[[], bool]

_WORK_BETWEEN_LOOKS: Final = 4096
"""Work (groups compared, steps made) between two looks at the clock: some milliseconds."""
CONSTRAINTS_MAX: Final = 500
"""A pod with more constraints is placed after all others."""
HEAVY_MIN: Final = 20
"""Pods with fewer constraints are never put off."""
HEAVY_TOGETHER_MAX: Final = 100_000
"""The most constraints, all together, of pods with `HEAVY_MIN` or more; pods beyond are put off."""
TOGETHER_MAX: Final = 20_000
"""The most constraints, all together, of the pods put off; pods beyond are refused."""
QUESTION_MAX: Final = 2_000
"""The most constraints, all together, of pods with `HEAVY_MIN` or more in a what-if question: of
pending pods, and of the pods of one node. Every question places the pending pods again."""
WORK_MAX: Final = 100_000
"""The most work for pods put off. It takes seconds, for which the launches of the others wait."""


class OutOfTime(Exception):
    """The time of a decision is up; raised between two changes of state, caught by the decision."""


class Effort:
    """Counts the work of a decision, and raises OutOfTime at its end of time or work."""

    __slots__ = ("_done", "_is_over", "_keep_going", "_most", "_next_look", "spent")

    def __init__(self, keep_going: KeepGoing | None = None, most: int | None = None) -> None:
        self._keep_going = keep_going
        self._most = most
        self.spent = 0
        self._done = 0
        self._next_look = _WORK_BETWEEN_LOOKS
        self._is_over = False

    def begin(self, keep_going: KeepGoing | None) -> None:
        """Start a new period of time, which lasts until `keep_going` returns False."""
        self._keep_going, self._is_over = keep_going, False
        self._next_look = self._done + _WORK_BETWEEN_LOOKS

    def check(self) -> None:
        """Look at the clock; raise OutOfTime if time is up."""
        if self._is_over or self._must_end():
            raise OutOfTime

    def spend(self, work: int) -> None:
        """Count some work that is about to be done; raise OutOfTime if time is up."""
        self.spent += work
        self.pass_time(work)

    def pass_time(self, work: int) -> None:
        """Look at the clock as `spend` does, but do not count work, because memos may save it."""
        self._done += work
        if self._done >= self._next_look:
            self._next_look = self._done + _WORK_BETWEEN_LOOKS
            if self._is_over or self._must_end():
                self._is_over, self._next_look = True, 0
                raise OutOfTime

    def _must_end(self) -> bool:
        if self._most is not None and self.spent > self._most:
            return True
        return self._keep_going is not None and not self._keep_going()


def constraints_of(rules: PodRules) -> int:
    """Count the constraints of a pod on nodes and other pods, with preferences and tolerations."""
    terms = (*rules.required_node_terms, *(each.term for each in rules.preferred_node_terms))
    lists = (
        rules.node_selector,
        terms,
        *(each.expressions for each in terms),
        rules.tolerations,
        rules.spreads,
        rules.affinity,
        rules.anti_affinity,
        rules.preferred_affinity,
        rules.preferred_anti_affinity,
        rules.ports,
        rules.volumes,
    )
    return sum(map(len, lists))


def without_costly(pods: Iterable[Pod]) -> tuple[list[Pod], list[Pod]]:
    """Return the pods that take part in what-if questions, and those that cost too much time."""
    kept: list[Pod] = []
    costly: list[Pod] = []
    heavy = _Allowance(QUESTION_MAX)
    counts: dict[int, int] = {}
    for pod in pods:
        count = counts.get(id(pod.rules))
        if count is None:
            count = counts[id(pod.rules)] = constraints_of(pod.rules)
        is_kept = count < HEAVY_MIN or (count <= CONSTRAINTS_MAX and heavy.admits(pod, count))
        (kept if is_kept else costly).append(pod)
    return kept, costly


def why_not_moved(pod: Pod) -> str:
    """Return how many constraints keep a pod from being moved."""
    return f"{constraints_of(pod.rules)} constraints"


def is_heavy(pods: Iterable[Pod]) -> bool:
    """Say whether moving the pods of one node takes long, because of many constraints."""
    counts = (constraints_of(pod.rules) for pod in pods)
    return sum(each for each in counts if each >= HEAVY_MIN) > CONSTRAINTS_MAX


class SplitBatch(NamedTuple):
    """The pods of a batch by how much time they cost, each part in the order of the batch."""

    usual: tuple[Pod, ...]
    costly: tuple[Pod, ...] = ()
    left_out: tuple[Pod, ...] = ()
    """Costly pods beyond what one decision places."""


def split_by_cost(pods: tuple[Pod, ...]) -> SplitBatch:
    """Split pods into usual ones, costly ones, and costly ones beyond `TOGETHER_MAX`."""
    counts = {key: constraints_of(rules) for key, rules in _rules_of(pods).items()}
    if max(counts.values(), default=0) < HEAVY_MIN:
        return SplitBatch(pods)
    usual: list[Pod] = []
    costly: list[Pod] = []
    heavy = _Allowance(HEAVY_TOGETHER_MAX)
    for pod in pods:
        count = counts[id(pod.rules)]
        is_usual = count < HEAVY_MIN or (count <= CONSTRAINTS_MAX and heavy.admits(pod, count))
        (usual if is_usual else costly).append(pod)
    together = _Allowance(TOGETHER_MAX)
    admitted: list[Pod] = []
    left_out: list[Pod] = []
    for pod in costly:
        is_admitted = together.admits(pod, counts[id(pod.rules)])
        (admitted if is_admitted else left_out).append(pod)
    return SplitBatch(tuple(usual), tuple(admitted), tuple(left_out))


def _rules_of(pods: Iterable[Pod]) -> dict[int, PodRules]:
    return {id(pod.rules): pod.rules for pod in pods}


class _Allowance:
    """Admits pods until their constraints reach a sum; the first pod is always admitted."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._together = 0
        self._seen: set[tuple[int, int]] = set()
        self._interner = Interner()

    def admits(self, pod: Pod, count: int) -> bool:
        # Equal pods cost as much time as one of them.
        alike = id(self._interner.rules(pod.rules)), id(self._interner.labels(pod.labels))
        if alike in self._seen:
            return True
        if self._together and self._together + count > self._most:
            return False
        self._seen.add(alike)
        self._together += count
        return True


def refuse_costly(pods: Iterable[Pod]) -> list[Refusal]:
    """Refuse costly pods, with the numbers of their constraints."""
    by_count: dict[int, list[str]] = {}
    for pod in pods:
        by_count.setdefault(constraints_of(pod.rules), []).append(pod.key)
    return [
        Refusal(Reason.TOO_COMPLEX, tuple(keys), _why(count)) for count, keys in by_count.items()
    ]


def _why(count: int) -> str:
    if count > CONSTRAINTS_MAX:
        return f"{count} constraints; pods with up to {CONSTRAINTS_MAX} come first"
    return (
        f"{count} constraints, and pods with {HEAVY_MIN} or more have over "
        f"{HEAVY_TOGETHER_MAX:,} together; pods with fewer come first"
    )
