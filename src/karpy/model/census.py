"""Pods that are counted as they come and go, so that a decision need not look at each again."""

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
    """The node of each."""


class Census(Struct, frozen=True, gc=False):
    """What pods come to together; pods that are terminal are left out unless it says so."""

    uncounted: Pods
    """Pods that are not counted, in order: they have no node, or were given one only since."""
    requests: Mapping[str, Resources] = {}
    """By node, what its pods ask for together."""
    daemon_requests: Mapping[str, Resources] = {}
    """By node, what those of them ask for that a DaemonSet owns."""
    placed: tuple[PlacedPods, ...] = ()
    """Those with a node, by labels and namespace."""
    demanding: Pods = ()
    """All pods, terminal or not, with a node or without, that take up more than resources."""


class CountedPods(Sequence[Pod]):
    """Pods with the census of just these; a plain tuple of the same pods is equal."""

    __slots__ = ("_pods", "census")

    def __init__(self, pods: Iterable[Pod], census: Census) -> None:
        """Take all pods, and what is known of them together."""
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
    """Say whether a pod takes up more than resources: ports, volumes, or the places of others."""
    return pod.rules.is_demanding


def census_of(pods: Sequence[Pod]) -> Census | None:
    """Return the census of pods; None if they have none."""
    return pods.census if isinstance(pods, CountedPods) else None


def uncounted(pods: Sequence[Pod]) -> Sequence[Pod]:
    """Return the pods that have to be looked at one by one: all, or those without a node."""
    return pods.census.uncounted if isinstance(pods, CountedPods) else pods


def exchange(pods: Sequence[Pod], changed: Mapping[int, Pod]) -> Sequence[Pod]:
    """Replace uncounted pods; `changed` has the new ones by the identity of the old."""
    exchanged = [changed.get(id(pod), pod) for pod in pods]
    census = census_of(pods)
    if census is None:
        return tuple(exchanged)
    rest = tuple(changed.get(id(pod), pod) for pod in census.uncounted)
    return CountedPods(exchanged, replace(census, uncounted=rest))


def without(pods: Sequence[Pod], gone: Collection[int]) -> Sequence[Pod]:
    """Leave out uncounted pods; `gone` has their identities."""
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
