"""The census of pods, updated with each change, and the pod of each DaemonSet on a new node."""

from collections import Counter
from collections.abc import Collection
from typing import Final, TypeAlias

from karpy.adapters.mirror.records import Shelf, daemon_reader
from karpy.codec.admission import AS_WRITTEN, AdmissionRules, LimitRange, RuntimeClass
from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.pods import PodReader
from karpy.codec.workloads import DaemonTemplate, read_daemon_set
from karpy.model.census import Census, CountedPods, PlacedPods, is_demanding
from karpy.model.pods import (
    DAEMON_SET,
    DaemonKey,
    DaemonSet,
    Pod,
    daemon_pod_rank,
    daemon_set_of,
    with_requests_of,
)
from karpy.model.resources import Resources

_TAKE: Final = -1
_PUT: Final = 1

_Row: TypeAlias = tuple[int, str]
"""`id` of the labels of pods, and their namespace."""

AMOUNTS_MAX: Final = 5000
"""Most amounts that LimitRanges may add to the DaemonSets of a namespace: takes 0.2 s."""


class CensusBook:
    """The census of all pods on a shelf."""

    def __init__(self, pods: Shelf[Pod]) -> None:
        self._pods = pods
        self._waiting: dict[str, Pod] = {}
        """Unbound pods, in the order of the shelf."""
        self._demanding: dict[str, Pod] = {}
        self._is_disordered = False
        self._requests: dict[str, Resources] = {}
        self._daemon_requests: dict[str, Resources] = {}
        self._placed: dict[_Row, dict[str, Pod]] = {}
        """Bound pods; they keep their labels alive, whose `id` is in the key."""
        self._rows: dict[_Row, PlacedPods] = {}
        self._stale_rows: set[_Row] = set()
        pods.listen(self._on_pod)

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

    def _on_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        _list(self._waiting, key, None if after is None or after.node_name else after)
        _list(self._demanding, key, None if after is None or not is_demanding(after) else after)
        # A changed pod keeps its position on the shelf, but would be last in a list that it joins.
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
                # A standby replica never calls `counted`: its stale rows would accumulate.
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
    """Add a pod's requests to the sum of its node, or subtract them; sums are never mutated."""
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


class DaemonBook:
    """DaemonSets, each with the pod that it would run on a new node."""

    def __init__(self, pods: Shelf[Pod]) -> None:
        self.templates: Shelf[DaemonTemplate] = Shelf()
        self.ranges: Shelf[LimitRange] = Shelf()
        self.runtimes: Shelf[RuntimeClass] = Shelf()
        self._pod_reader = PodReader()
        self.reader = daemon_reader(self._pod_reader)
        self._pods: dict[DaemonKey, dict[str, Pod]] = {}
        """Active pods of DaemonSets, by key."""
        self._chosen: dict[DaemonKey, Pod] = {}
        """The representative pod of each DaemonSet; absent where it is to be found again."""
        self._admitted: dict[str, DaemonSet] = {}
        """DaemonSets after admission of their templates; absent where it is to be repeated."""
        self._daemons: tuple[DaemonSet, ...] | None = ()
        self.templates.listen(self._on_template)
        self.ranges.listen(self._on_rules)
        self.runtimes.listen(self._on_rules)
        pods.listen(self._on_pod)

    def daemons(self) -> tuple[DaemonSet, ...]:
        """Return all DaemonSets as of now."""
        if self._daemons is None:
            self._daemons = tuple(
                with_requests_of(daemon, self._pod_of(daemon)) for daemon in self._as_admitted()
            )
        return self._daemons

    def _as_admitted(self) -> list[DaemonSet]:
        missing = self.templates.values.keys() - self._admitted.keys()
        if missing:
            admission = AdmissionRules(self.ranges.values.values(), self.runtimes.values.values())
            spent: Counter[str] = Counter()
            for key in sorted(missing):
                fields = Fields(self.templates.values[key].obj)
                namespace = fields.child("metadata").text("namespace") or "default"
                spec = fields.child("spec").child("template").child("spec").obj
                spent[namespace] += admission.amounts_added(spec, namespace)
                # Beyond the limit a DaemonSet counts as written, until it has a pod.
                rules = admission if spent[namespace] <= AMOUNTS_MAX else AS_WRITTEN
                self._admitted[key] = self._read(fields, rules)
        return [self._admitted[key] for key in self.templates.values]

    def _read(self, fields: Fields, admission: AdmissionRules) -> DaemonSet:
        try:
            return read_daemon_set(fields, self._pod_reader, admission)
        except FieldInvalid:
            # Without admission the DaemonSet is readable, else it would not be on the shelf.
            return read_daemon_set(fields, self._pod_reader)

    def _pod_of(self, daemon: DaemonSet) -> Pod | None:
        owner = daemon.namespace, daemon.pod.uid
        if owner not in self._chosen and (pods := self._pods.get(owner)):
            self._chosen[owner] = max(pods.values(), key=daemon_pod_rank)
        return self._chosen.get(owner)

    def _on_template(
        self, key: str, before: DaemonTemplate | None, after: DaemonTemplate | None
    ) -> None:
        del before, after
        self._admitted.pop(key, None)
        self._daemons = None

    def _on_rules(self, key: str, before: object, after: object) -> None:
        del key, before, after
        self._admitted.clear()
        self._daemons = None

    def _on_pod(self, key: str, before: Pod | None, after: Pod | None) -> None:
        if before is not None and (owner := daemon_set_of(before)):
            self._drop(owner, key)
        if after is not None and after.is_active and (owner := daemon_set_of(after)):
            self._put(owner, key, after)

    def _drop(self, owner: DaemonKey, key: str) -> None:
        pods = self._pods.get(owner, {})
        pod = pods.pop(key, None)
        if not pods:
            self._pods.pop(owner, None)
        if pod is not None and self._chosen.get(owner) is pod:
            del self._chosen[owner]
            self._daemons = None

    def _put(self, owner: DaemonKey, key: str, pod: Pod) -> None:
        pods = self._pods.setdefault(owner, {})
        pods[key] = pod
        known = self._chosen.get(owner)
        if known is None:
            self._daemons = None
        elif daemon_pod_rank(pod) > daemon_pod_rank(known):
            self._chosen[owner] = pod
            self._daemons = None
