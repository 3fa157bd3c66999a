"""How long a decision may take, and pods that would take too much of that."""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from karpy.core.scheduling.interning import Interner
from karpy.model.pods import Pod, PodRules
from karpy.model.verdicts import Reason, Refusal

KeepGoing = Callable[[], bool]

_WORK_BETWEEN_LOOKS: Final = 4096
"""Groups looked at, steps made and the like; together they take some milliseconds."""
CONSTRAINTS_MAX: Final = 500
"""A pod with more of them is placed after all others."""
HEAVY_MIN: Final = 20
"""Pods with as many of them and more count together, the first ones first."""
HEAVY_TOGETHER_MAX: Final = 100_000
"""Once they have more than so many together, the rest of them is placed after all others."""
TOGETHER_MAX: Final = 20_000
"""So many constraints have the pods together that one decision is about beside the usual ones."""
QUESTION_MAX: Final = 2_000
"""So many constraints have pods together that questions about nodes are about: pending pods that
have 20 or more each, and those of one node. There are many questions, and each is about all."""
WORK_MAX: Final = 100_000
"""So much work is done for them at most; it takes seconds, and others wait meanwhile."""


class OutOfTime(Exception):
    """The time of a decision is up; raised where nothing is half done, and never leaves it."""


class Effort:
    """Counts the work of a decision, ends it after the most allowed, and looks at the clock."""

    __slots__ = ("_done", "_is_over", "_keep_going", "_most", "_next_look", "spent")

    def __init__(self, keep_going: KeepGoing | None = None, most: int | None = None) -> None:
        self._keep_going = keep_going
        self._most = most
        self.spent = 0
        self._done = 0
        self._next_look = _WORK_BETWEEN_LOOKS
        self._is_over = False

    def begin(self, keep_going: KeepGoing | None) -> None:
        """Begin anew, with as much time as `keep_going` says."""
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
        """Look at the clock as `spend` does; the work does not count, since it depends on memos."""
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
    """Count what a pod asks of nodes and of other pods, preferences and tolerations included."""
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
    """Return the pods that a question about nodes can be about, and those that cost too much."""
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
    """Say with its numbers why a pod is not moved."""
    return f"{constraints_of(pod.rules)} constraints"


def is_heavy(pods: Iterable[Pod]) -> bool:
    """Say whether pods of one node have so many constraints that moving them takes long."""
    counts = (constraints_of(pod.rules) for pod in pods)
    return sum(each for each in counts if each >= HEAVY_MIN) > CONSTRAINTS_MAX


class Parted(NamedTuple):
    """The pods of a batch, each kind in its order."""

    usual: tuple[Pod, ...]
    costly: tuple[Pod, ...] = ()
    left_out: tuple[Pod, ...] = ()
    """Costly ones that are too many for one decision."""


def part(pods: tuple[Pod, ...]) -> Parted:
    """Tell costly pods from the others."""
    counts = {key: constraints_of(rules) for key, rules in _rules_of(pods).items()}
    if max(counts.values(), default=0) < HEAVY_MIN:
        return Parted(pods)
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
    return Parted(tuple(usual), tuple(admitted), tuple(left_out))


def _rules_of(pods: Iterable[Pod]) -> dict[int, PodRules]:
    return {id(pod.rules): pod.rules for pod in pods}


class _Allowance:
    """How many constraints pods may have together; the first one is always let in."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._together = 0
        self._seen: set[tuple[int, int]] = set()
        self._interner = Interner()

    def admits(self, pod: Pod, count: int) -> bool:
        # Pods that are alike cost no more than one of them.
        alike = id(self._interner.rules(pod.rules)), id(self._interner.labels(pod.labels))
        if alike in self._seen:
            return True
        if self._together and self._together + count > self._most:
            return False
        self._seen.add(alike)
        self._together += count
        return True


def refuse_costly(pods: Iterable[Pod]) -> list[Refusal]:
    """Refuse costly pods for which no time was left, with their numbers."""
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
