"""Pods that were counted before anybody asks, so that a decision need not look at each again."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.pods import Pod
from karpy.model.resources import Resources

Pods = tuple[Pod, ...]


class Census(Struct, frozen=True, gc=False):
    """What is known of pods taken together; pods that are over are left out unless it says so."""

    uncounted: Pods
    """Pods that were not counted, in order: they have no node, or were given one only since."""
    requests: Mapping[str, Resources] = {}
    """By node, what its pods ask for together."""
    daemon_requests: Mapping[str, Resources] = {}
    """By node, what those of them ask for that a DaemonSet owns."""
    alike: tuple[Pods, ...] = ()
    """Pods with a node, those with the same labels together."""
    demanding: Pods = ()
    """All pods, over or not, with a node or without, that take up more than resources; in order."""


class CountedPods(Pods):
    """Pods with the census of just these: whoever makes other pods of them has none."""

    census: Census

    @classmethod
    def of(cls, pods: Iterable[Pod], census: Census) -> "CountedPods":
        counted = cls(pods)
        counted.census = census
        return counted


def is_demanding(pod: Pod) -> bool:
    """Say whether a pod takes up more than resources: ports, volumes, or the places of others."""
    return pod.rules.is_demanding


def census_of(pods: Sequence[Pod]) -> Census | None:
    """Return what was counted of some pods, if anything was."""
    return pods.census if isinstance(pods, CountedPods) else None


def uncounted(pods: Sequence[Pod]) -> Sequence[Pod]:
    """Return the pods that have to be looked at one by one: all, or those without a node."""
    return pods.census.uncounted if isinstance(pods, CountedPods) else pods


def exchange(pods: Pods, changed: Mapping[int, Pod]) -> Pods:
    """Put others in the place of uncounted pods, which are named by identity."""
    exchanged = [changed.get(id(pod), pod) for pod in pods]
    census = census_of(pods)
    if census is None:
        return tuple(exchanged)
    rest = tuple(changed.get(id(pod), pod) for pod in census.uncounted)
    return CountedPods.of(exchanged, replace(census, uncounted=rest))


def with_more(pods: Pods, more: Pods) -> Pods:
    """Append pods that nobody has counted."""
    census = census_of(pods)
    if census is None:
        return (*pods, *more)
    demanding = (*census.demanding, *filter(is_demanding, more))
    rest = (*census.uncounted, *more)
    return CountedPods.of((*pods, *more), replace(census, uncounted=rest, demanding=demanding))
