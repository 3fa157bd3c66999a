"""Sums over pods, updated as pods change, so that a decision need not read each pod."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import overload

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.pods import Pod
from karpy.model.resources import Resources

Pods = tuple[Pod, ...]


class PlacedPods(Struct, frozen=True, gc=False):
    """Pods of one namespace with the same labels, all on nodes; none of them is being deleted."""

    labels: Mapping[str, str]
    namespace: str
    nodes: Sequence[str]
    """The node of each pod."""


class Census(Struct, frozen=True, gc=False):
    """Sums over pods; terminal pods are left out, except from `demanding`."""

    uncounted: Pods
    """Pods outside the sums, in order: without a node, or placed since the sums were taken."""
    requests: Mapping[str, Resources] = {}
    """The sum of the requests of a node's pods, by node."""
    daemon_requests: Mapping[str, Resources] = {}
    """The sum of the requests of a node's DaemonSet pods, by node."""
    placed: tuple[PlacedPods, ...] = ()
    """Pods with a node, by labels and namespace."""
    demanding: Pods = ()
    """Pods with host ports, volumes or anti-affinity, terminal or not, with or without a node."""


class CountedPods(Sequence[Pod]):
    """Pods with their census; equal to a plain tuple of the same pods."""

    __slots__ = ("_pods", "census")

    def __init__(self, pods: Iterable[Pod], census: Census) -> None:
        """Take pods, and the census of exactly these pods."""
        self._pods = tuple(pods)
        self.census = census

    @overload
    def __getitem__(self, index: int) -> Pod: ...

    @overload
    def __getitem__(self, index: slice) -> Pods: ...

    def __getitem__(self, index: int | slice) -> Pod | Pods:
        return self._pods[index]

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._pods)

    def __len__(self) -> int:
        return len(self._pods)

    def __eq__(self, other: object) -> bool:
        """Compare as a tuple of pods would."""
        if isinstance(other, CountedPods):
            return self._pods == other._pods
        return self._pods == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._pods)

    def __repr__(self) -> str:
        return repr(self._pods)


def is_demanding(pod: Pod) -> bool:
    """Say whether a pod has host ports, volumes or anti-affinity."""
    return pod.rules.is_demanding


def census_of(pods: Sequence[Pod]) -> Census | None:
    """Return the census of pods; None for pods that come without one."""
    return pods.census if isinstance(pods, CountedPods) else None


def uncounted(pods: Sequence[Pod]) -> Sequence[Pod]:
    """Return the pods that no sum covers: all of them if they have no census."""
    return pods.census.uncounted if isinstance(pods, CountedPods) else pods


def exchange(pods: Sequence[Pod], changed: Mapping[int, Pod]) -> Sequence[Pod]:
    """Replace uncounted pods; `changed` maps the `id()` of an old pod to the new pod."""
    exchanged = [changed.get(id(pod), pod) for pod in pods]
    census = census_of(pods)
    if census is None:
        return tuple(exchanged)
    rest = tuple(changed.get(id(pod), pod) for pod in census.uncounted)
    return CountedPods(exchanged, replace(census, uncounted=rest))


def without(pods: Sequence[Pod], gone: Collection[int]) -> Sequence[Pod]:
    """Leave out uncounted pods; `gone` holds their `id()`s."""
    rest = tuple(pod for pod in pods if id(pod) not in gone)
    census = census_of(pods)
    if census is None:
        return rest
    waiting = tuple(pod for pod in census.uncounted if id(pod) not in gone)
    demanding = tuple(pod for pod in census.demanding if id(pod) not in gone)
    return CountedPods(rest, replace(census, uncounted=waiting, demanding=demanding))


def with_more(pods: Sequence[Pod], more: Pods) -> Sequence[Pod]:
    """Append pods that are not counted."""
    census = census_of(pods)
    if census is None:
        return (*pods, *more)
    demanding = (*census.demanding, *filter(is_demanding, more))
    rest = (*census.uncounted, *more)
    return CountedPods((*pods, *more), replace(census, uncounted=rest, demanding=demanding))
