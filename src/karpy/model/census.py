"""Pods that were counted before anybody asks, so that a decision need not look at each again."""

from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Mapping, Sequence
from typing import Final, TypeAlias, overload

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.pods import Pod
from karpy.model.resources import Resources

Pods = tuple[Pod, ...]
Labels: TypeAlias = KeysView[tuple[str, str]]
"""Labels as key and value."""


class Alike(Struct, frozen=True, gc=False):
    """Pods on nodes that nobody needs to tell apart; none of them is being deleted."""

    labels: Mapping[str, str]
    namespace: str
    nodes: Sequence[str]
    """The node of each."""


class Crowd:
    """Pods with a node, those with the same labels together, but for those being deleted."""

    def __init__(self, rows: Iterable[Alike] = ()) -> None:
        self._rows = tuple(rows)

    def having(self, labels: Labels | None = None) -> Iterable[Alike]:
        """Return those with at least one of some labels, by default all."""
        if labels is None:
            return self._rows
        return [row for row in self._rows if not labels.isdisjoint(row.labels.items())]


NOBODY: Final = Crowd()


class Census(Struct, frozen=True, gc=False):
    """What is known of pods taken together; pods that are over are left out unless it says so."""

    uncounted: Pods
    """Pods that were not counted, in order: they have no node, or were given one only since."""
    requests: Mapping[str, Resources] = {}
    """By node, what its pods ask for together."""
    daemon_requests: Mapping[str, Resources] = {}
    """By node, what those of them ask for that a DaemonSet owns."""
    crowd: Crowd = NOBODY
    """Those with a node, whose labels may be looked for."""
    demanding: Pods = ()
    """All pods, over or not, with a node or without, that take up more than resources; in order."""


class CountedPods(Sequence[Pod]):
    """
    Pods with the census of just these: whoever makes other pods of them has none.

    Most decisions need the census alone; the pods are made when somebody asks for them.
    """

    __slots__ = ("_make", "_pods", "census")

    def __init__(self, census: Census, make: Callable[[], Iterable[Pod]]) -> None:
        """Take who makes the pods; always the same ones."""
        self.census = census
        self._make = make
        self._pods: Pods | None = None

    @classmethod
    def of(cls, pods: Iterable[Pod], census: Census) -> "CountedPods":
        counted = cls(census, tuple)
        counted._pods = tuple(pods)
        return counted

    @overload
    def __getitem__(self, index: int) -> Pod: ...

    @overload
    def __getitem__(self, index: slice) -> Pods: ...

    def __getitem__(self, index: int | slice) -> Pod | Pods:
        return self._made()[index]

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())

    def __eq__(self, other: object) -> bool:
        """Compare as a tuple of pods would."""
        if isinstance(other, CountedPods):
            return self._made() == other._made()
        return self._made() == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._made())

    def __repr__(self) -> str:
        return repr(self._made())

    def _made(self) -> Pods:
        if self._pods is None:
            self._pods = tuple(self._make())
        return self._pods


def is_demanding(pod: Pod) -> bool:
    """Say whether a pod takes up more than resources: ports, volumes, or the places of others."""
    return pod.rules.is_demanding


def census_of(pods: Sequence[Pod]) -> Census | None:
    """Return what was counted of some pods, if anything was."""
    return pods.census if isinstance(pods, CountedPods) else None


def uncounted(pods: Sequence[Pod]) -> Sequence[Pod]:
    """Return the pods that have to be looked at one by one: all, or those without a node."""
    return pods.census.uncounted if isinstance(pods, CountedPods) else pods


def exchange(pods: Sequence[Pod], changed: Mapping[int, Pod]) -> Sequence[Pod]:
    """Put others in the place of uncounted pods, which are named by identity."""
    exchanged = [changed.get(id(pod), pod) for pod in pods]
    census = census_of(pods)
    if census is None:
        return tuple(exchanged)
    rest = tuple(changed.get(id(pod), pod) for pod in census.uncounted)
    return CountedPods.of(exchanged, replace(census, uncounted=rest))


def without(pods: Sequence[Pod], gone: Collection[int]) -> Sequence[Pod]:
    """Leave out uncounted pods, which are named by identity."""
    rest = tuple(pod for pod in pods if id(pod) not in gone)
    census = census_of(pods)
    if census is None:
        return rest
    waiting = tuple(pod for pod in census.uncounted if id(pod) not in gone)
    demanding = tuple(pod for pod in census.demanding if id(pod) not in gone)
    return CountedPods.of(rest, replace(census, uncounted=waiting, demanding=demanding))


def with_more(pods: Sequence[Pod], more: Pods) -> Sequence[Pod]:
    """Append pods that nobody has counted."""
    census = census_of(pods)
    if census is None:
        return (*pods, *more)
    demanding = (*census.demanding, *filter(is_demanding, more))
    rest = (*census.uncounted, *more)
    return CountedPods.of((*pods, *more), replace(census, uncounted=rest, demanding=demanding))
