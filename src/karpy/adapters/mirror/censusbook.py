"""Keeps pods counted as they come and go."""

from collections.abc import Collection
from typing import Final, TypeAlias

from karpy.adapters.mirror.shelves import Shelf
from karpy.model.census import Census, CountedPods, PlacedPods, is_demanding
from karpy.model.pods import DAEMON_SET, Pod
from karpy.model.resources import Resources

_TAKE: Final = -1
_PUT: Final = 1
_Row: TypeAlias = tuple[int, str]
"""The identity of the labels of pods, and their namespace."""


class CensusBook:
    """The census of all pods on a shelf."""

    def __init__(self, pods: Shelf[Pod]) -> None:
        self._pods = pods
        self._waiting: dict[str, Pod] = {}
        """Pods without a node, in the order of the shelf."""
        self._demanding: dict[str, Pod] = {}
        self._is_disordered = False
        self._requests: dict[str, Resources] = {}
        self._daemon_requests: dict[str, Resources] = {}
        self._placed: dict[_Row, dict[str, Pod]] = {}
        """Pods with a node, which keep their labels alive."""
        self._rows: dict[_Row, PlacedPods] = {}
        self._stale_rows: set[_Row] = set()
        pods.listen(self._hear)

    def counted(self) -> CountedPods:
        """Return all pods and their census as of now."""
        if self._is_disordered:
            self._put_in_order()
        for row in self._stale_rows:
            placed = self._placed.get(row)
            if placed is None:
                self._rows.pop(row, None)
            else:
                self._rows[row] = _summed_up(placed.values())
        self._stale_rows.clear()
        census = Census(
            uncounted=tuple(self._waiting.values()),
            requests=self._requests.copy(),
            daemon_requests=self._daemon_requests.copy(),
            placed=tuple(self._rows.values()),
            demanding=tuple(self._demanding.values()),
        )
        return CountedPods(self._pods.values.values(), census)

    def _hear(self, key: str, before: Pod | None, after: Pod | None) -> None:
        _list(self._waiting, key, None if after is None or after.node_name else after)
        _list(self._demanding, key, None if after is None or not is_demanding(after) else after)
        # The shelf has an object that comes back under its name where it was; a list has it last.
        if before is not None and after is not None:
            waits_again = bool(before.node_name and not after.node_name)
            demands_now = is_demanding(after) and not is_demanding(before)
            self._is_disordered = self._is_disordered or waits_again or demands_now
        if before is not None and before.node_name and not before.is_terminal:
            self._count(key, before, _TAKE)
        if after is not None and after.node_name and not after.is_terminal:
            self._count(key, after, _PUT)

    def _count(self, key: str, pod: Pod, sign: int) -> None:
        _add(self._requests, pod, sign)
        if pod.is_owned_by(DAEMON_SET):
            _add(self._daemon_requests, pod, sign)
        if pod.is_deleting:
            return
        row = (id(pod.labels), pod.namespace)
        self._stale_rows.add(row)
        if sign == _PUT:
            self._placed.setdefault(row, {})[key] = pod
            return
        placed = self._placed[row]
        del placed[key]
        if not placed:
            del self._placed[row]
            if row not in self._rows:
                # A replica that only watches never counts, and would remember such rows for ever.
                self._stale_rows.discard(row)

    def _put_in_order(self) -> None:
        pods = self._pods.values
        self._waiting = {key: pod for key, pod in pods.items() if not pod.node_name}
        self._demanding = {key: pod for key, pod in pods.items() if is_demanding(pod)}
        self._is_disordered = False


def _summed_up(placed: Collection[Pod]) -> PlacedPods:
    first = next(iter(placed))
    return PlacedPods(first.labels, first.namespace, tuple([each.node_name for each in placed]))


def _list(pods: dict[str, Pod], key: str, pod: Pod | None) -> None:
    if pod is None:
        pods.pop(key, None)
    else:
        pods[key] = pod


def _add(sums: dict[str, Resources], pod: Pod, sign: int) -> None:
    """Add a pod's requests to those of its node, or take them off; sums never change in place."""
    there = dict(sums.get(pod.node_name, ()))
    for resource, amount in pod.requests.items():
        total = there.get(resource, 0) + sign * amount
        if total:
            there[resource] = total
        else:
            there.pop(resource, None)
    if there:
        sums[pod.node_name] = there
    else:
        sums.pop(pod.node_name, None)
