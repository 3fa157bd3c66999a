"""
Pods of a workload file, one after the other, counted on the way.

To count a pod costs next to nothing while it is at hand. A decision would have to fetch each from
memory again, and most of them run somewhere and ask for nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.fingerprints import UNUSUAL, encode
from karpy.codec.pods import (
    EPOCH,
    NO_RULES,
    RARE,
    SPECIAL,
    UNREADABLE,
    PodReader,
    moments_of,
    read_labels,
    read_needs,
    read_owners,
    rule_parts,
    was_given_up,
)
from karpy.codec.requests import plain_requests
from karpy.model.census import Alike, Census, CountedPods, Crowd, is_demanding
from karpy.model.loads import Loads
from karpy.model.pods import DAEMON_SET, Owner, Pod, PodRules
from karpy.model.resources import Resources

_NOTHING: Final[JsonObject] = {}
_NO_LIMITS: Final[Resources] = {}
_OVER: Final = frozenset({"Failed", "Succeeded"})
_DEMANDS: Final = RARE | {"affinity", "volumes"}
"""What a running pod may ask others for, and whatever changes what it asks its node for."""
_BRIEF_META: Final = len(("name", "namespace", "uid", "labels", "creationTimestamp"))
_BRIEF_SPEC: Final = len(("containers", "nodeName"))
_NOWHERE: Final = " "
"""No node is called that."""
_PHASES: Final[Mapping[str | None, str]] = {
    None: "",
    **{each: each for each in ("Pending", "Running", "Succeeded", "Failed", "Unknown")},
}


_Row: TypeAlias = tuple[int | None, int, list[str]]
"""
What a running pod asks for, as a number to add up, as much again if it is a daemon, and the nodes
of all that are written like it. Without a number each has to be read.
"""


class _Mold(Struct, gc=False):
    """What pods with one container and no ports have in common that are written alike."""

    namespace: str
    labels: Mapping[str, str]
    requests: Resources
    rules: PodRules
    owners: tuple[Owner, ...]
    limits: Resources
    is_demanding: bool


class PodRows(PodReader):
    """Reads many pods; those with nothing unusual about them take the short way."""

    def __init__(self, *, is_pending_unschedulable: bool = False) -> None:
        """Take whether to trust a pod's conditions."""
        super().__init__(is_pending_unschedulable=is_pending_unschedulable, most=None)
        self.namespaces: set[str] = set()
        """The namespaces of the pods read so far."""
        self._pods: list[Pod | JsonObject] = []
        """Those that count for nothing but their load are left as they were."""
        self._rows: dict[bytes, _Row] = {b"": (None, 0, [])}
        self._crowd: list[Alike] = []
        """Who was counted, row by row."""
        self._known_loads: dict[bytes, int | None] = {}
        """By containers."""
        self._molds: dict[bytes, _Mold] = {}
        self._told: dict[int, list[str]] = {}
        """By mold, the node of each that was read and counted."""
        self._names: dict[str, str] = {}
        """Namespaces and nodes."""
        self._loads = Loads()
        self._sums: defaultdict[str, int] = defaultdict(int)
        """Loads by node."""
        self._daemon_sums: defaultdict[str, int] = defaultdict(int)
        """Those of daemons among them."""
        self._uncounted: list[Pod] = []
        self._demanding: list[Pod] = []

    def counted(self) -> CountedPods:
        """Return the pods read so far, and their census."""
        return CountedPods(self.census(), self.finished)

    def census(self) -> Census:
        """Return what was counted so far."""
        return Census(
            uncounted=tuple(self._uncounted),
            requests=self._spelled(self._sums),
            daemon_requests=self._spelled(self._daemon_sums),
            crowd=Crowd(self._crowd),
            demanding=tuple(self._demanding),
        )

    def finished(self) -> list[Pod]:
        """Return all pods, and read those now that were left; raise FieldInvalid."""
        pods: list[Pod] = []
        try:
            pods.extend(each if isinstance(each, Pod) else self.read(each) for each in self._pods)
        except FieldInvalid as error:
            raise error.within(f"pods[{len(pods)}]") from error
        return pods

    def _spelled(self, sums: Mapping[str, int]) -> dict[str, Resources]:
        # The same daemons run on most nodes.
        known = {load: self._loads.requests_of(load) for load in set(sums.values())}
        return {name: known[load] for name, load in sums.items()}

    def read_all(self, objs: Iterable[JsonObject]) -> None:
        """Read pods; raise FieldInvalid with the place of what is wrong."""
        index = len(self._pods)
        self._pods += objs
        while index < len(self._pods):
            index = self._read_waiting(self._count_running(index))

    def _count_running(self, start: int) -> int:
        """Count pods from a place on that run and ask for room alone; return where they end."""
        row_of = self._rows.get
        node, total, daemons = _NOWHERE, 0, 0
        pods: list[Any] = self._pods
        for index in range(start, len(pods)):
            obj = pods[index]
            try:
                meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
                is_brief = len(meta) == _BRIEF_META and len(spec) == _BRIEF_SPEC
                if is_brief and len(status) == 1 and "deletionTimestamp" not in meta:
                    when, where = meta["creationTimestamp"], meta["namespace"]
                    key = encode((where, when, status, meta["labels"], spec["containers"]))
                else:
                    key = _row_key(meta, spec, status)
                load, daemon_load, nodes = row_of(key) or self._add_row(key, meta, spec, status)
                if load is None:
                    break
                if spec["nodeName"] != node:
                    self._add_up(node, total, daemons)
                    node, total, daemons = self._shared_name(spec["nodeName"]), 0, 0
            except (*UNREADABLE, *UNUSUAL):
                break
            # Whoever runs and asks for room alone is read when asked for.
            nodes.append(node)
            total += load
            daemons += daemon_load
        else:
            index = len(pods)
        self._add_up(node, total, daemons)
        return index

    def _add_up(self, node: str, total: int, daemons: int) -> None:
        """Take note of what some pods of a node ask for, and what daemons among them do."""
        if total:
            self._sums[node] += total
        if daemons:
            self._daemon_sums[node] += daemons

    def _add_row(self, key: bytes, meta: JsonObject, spec: JsonObject, status: JsonObject) -> _Row:
        load = self._load_of(spec["containers"]) if status["phase"] == "Running" else None
        row: _Row = (load, load if load and _has_daemon(meta) else 0, [])
        if load is not None:
            _, _, namespace = self._origin_of(meta)
            self._crowd.append(Alike(read_labels(meta), namespace, row[2]))
        self._rows[key] = row
        return row

    def _load_of(self, containers: list[JsonObject]) -> int | None:
        """Return what a pod asks for as a number; None if it has to be read."""
        key = encode(containers)
        if key not in self._known_loads:
            (only,) = containers
            requests = None if "ports" in only else self._amounts_of(only)[0]
            load = None if requests is None else self._loads.load_of(requests)
            self._known_loads[key] = load
        return self._known_loads[key]

    def _read_waiting(self, start: int) -> int:
        """Read a pod, and those behind it that have no node; return where they end."""
        pods: list[Any] = self._pods
        # Pods often say the same as the one before, and to see that is faster than to look it up.
        moment, stamp, namespace = EPOCH, "", ""
        for index in range(start, len(pods)):
            obj = pods[index]
            try:
                meta, spec, status = obj["metadata"], obj["spec"], obj.get("status") or _NOTHING
                if "nodeName" in spec and index > start:
                    return index
                (only,) = spec["containers"]
                if meta["creationTimestamp"] != stamp or meta["namespace"] != namespace:
                    moment, stamp, namespace = self._origin_of(meta)
                if "ports" in only or "deletionTimestamp" in meta or "containerStatuses" in status:
                    pods[index] = self._read_at_length(obj, index)
                    continue
                if len(spec) == 1 and "ownerReferences" not in meta:
                    key = encode((namespace, meta.get("labels"), only.get("resources")))
                elif RARE.isdisjoint(spec):
                    key = _mold_key(meta, spec, only)
                else:
                    pods[index] = self._read_at_length(obj, index)
                    continue
                mold = self._molds.get(key) or self._add_mold(key, namespace, meta, spec)
                pod = self._cast(mold, meta, status, moment)
                if index == start and spec.get("nodeName"):
                    pod = self._place(pod, mold, spec["nodeName"], status)
                else:
                    self._uncounted.append(pod)
                if mold.is_demanding:
                    self._demanding.append(pod)
                pods[index] = pod
            except (*UNREADABLE, *UNUSUAL):
                pods[index] = self._read_at_length(obj, index)
        return len(pods)

    def _cast(self, mold: _Mold, meta: JsonObject, status: JsonObject, created: datetime) -> Pod:
        """Make a pod that has no node."""
        name, phase = meta["name"], _PHASES[status.get("phase")]
        if type(name) is not str:
            raise TypeError(name)
        return Pod(
            name,
            mold.namespace,
            meta["uid"],
            created,
            mold.labels,
            mold.requests,
            mold.rules,
            "",
            status.get("nominatedNodeName") or "",
            phase,
            self._is_pending_unschedulable or not status or was_given_up(status),
            False,
            mold.owners,
            False,
            mold.limits,
        )

    def _place(self, pod: Pod, mold: _Mold, name: str, status: JsonObject) -> Pod:
        """Put a pod on its node, and count it there unless it is over."""
        node = self._shared_name(name)
        bound, ready = moments_of(status)
        pod = replace(pod, node_name=node, is_unschedulable=False, bound=bound, ready=ready)
        load = None if pod.phase in _OVER else self._loads.find(mold.requests)
        if load is None:
            self._uncounted.append(pod)
            return pod
        nodes = self._told.get(id(mold))
        if nodes is None:
            nodes = self._told[id(mold)] = []
            self._crowd.append(Alike(mold.labels, mold.namespace, nodes))
        nodes.append(node)
        self._add_up(node, load, load if _is_daemon(mold.owners) else 0)
        return pod

    def _origin_of(self, meta: JsonObject) -> tuple[datetime, str, str]:
        """Return when a pod was created, as it is written, too, and its namespace."""
        stamp, namespace = meta["creationTimestamp"], self._shared_name(meta["namespace"])
        moment = self._created_of(meta)
        self.namespaces.add(namespace)
        return moment, stamp, namespace

    def _shared_name(self, name: str) -> str:
        """Return the one object for equal names; raise TypeError if it is none."""
        if type(name) is not str or not name:
            raise TypeError(name)
        return self._names.setdefault(name, name)

    def _read_at_length(self, obj: JsonObject, index: int) -> Pod:
        try:
            pod = self.read(obj)
        except FieldInvalid as error:
            raise error.within(f"pods[{index}]") from error
        self.namespaces.add(pod.namespace)
        self._uncounted.append(pod)
        if is_demanding(pod):
            self._demanding.append(pod)
        return pod

    def _add_mold(self, key: bytes, namespace: str, meta: JsonObject, spec: JsonObject) -> _Mold:
        (only,) = spec["containers"]
        requests, limits = self._amounts_of(only)
        # Who has the same labels and rules is decided about together, whatever else differs.
        labels = self._shared_labels(meta)
        rules = NO_RULES if len(spec) == 1 else self._rules_of(spec, ())
        owners = self._shared_owners(meta) if meta.get("ownerReferences") else ()
        mold = self._molds[key] = _Mold(
            namespace,
            labels,
            requests,
            rules,
            owners,
            limits,
            rules is not NO_RULES and rules.is_demanding,
        )
        return mold

    def _amounts_of(self, only: JsonObject) -> tuple[Resources, Resources]:
        """Return the requests and limits of a pod with a single container."""
        plain = plain_requests(only.get("resources"))
        if plain:
            return self._shared_amounts(plain), _NO_LIMITS
        requests, _, limits = self._shared_needs(*read_needs({"containers": [only]}, None))
        return requests, limits


def _has_daemon(meta: JsonObject) -> bool:
    owners = meta.get("ownerReferences")
    return bool(owners) and _is_daemon(read_owners(Fields(meta, "metadata")))


def _is_daemon(owners: tuple[Owner, ...]) -> bool:
    return any((each.api_version, each.kind) == DAEMON_SET for each in owners)


def _row_key(meta: JsonObject, spec: JsonObject, status: JsonObject) -> bytes:
    """Tell running pods apart that say more than most; nothing if each has to be read."""
    is_odd = "deletionTimestamp" in meta or "containerStatuses" in status
    if is_odd or not _DEMANDS.isdisjoint(spec):
        return b""
    return encode(
        (
            meta["namespace"],
            meta["creationTimestamp"],
            status["phase"],
            meta.get("labels"),
            spec["containers"],
            meta.get("ownerReferences"),
        )
    )


def _mold_key(meta: JsonObject, spec: JsonObject, only: JsonObject) -> bytes:
    """Tell pods apart that say more than most."""
    labels, resources, owners = (
        meta.get("labels"),
        only.get("resources"),
        meta.get("ownerReferences"),
    )
    if owners is None and SPECIAL.isdisjoint(spec):
        return encode((meta["namespace"], labels, resources))
    return encode((meta["namespace"], labels, resources, owners, rule_parts(spec)))
