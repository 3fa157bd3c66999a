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

from karpy.codec.fields import FieldInvalid, JsonObject
from karpy.codec.fingerprints import UNUSUAL, encode
from karpy.codec.podcrowd import BETWEEN_VALUES, WrittenCrowd
from karpy.codec.pods import (
    EPOCH,
    NEVER,
    NO_RULES,
    RARE,
    SPECIAL,
    UNREADABLE,
    PodReader,
    moments_of,
    read_needs,
    rule_parts,
    was_given_up,
)
from karpy.codec.requests import plain_requests
from karpy.model.census import Alike, Census, CountedPods, is_demanding
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
_PHASES: Final[Mapping[str | None, str]] = {
    None: "",
    **{each: each for each in ("Pending", "Running", "Succeeded", "Failed", "Unknown")},
}


_Row: TypeAlias = tuple[int | None, int]
"""What a running pod asks for, as a number to add up, and as much again if it is a daemon."""
_NO_ROW: Final[_Row] = (None, 0)
"""Of pods written like this each has to be read."""


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
        super().__init__(is_pending_unschedulable=is_pending_unschedulable)
        self.namespaces: set[str] = set()
        """The namespaces of the pods read so far."""
        self._pods: list[Pod | JsonObject] = []
        """Those that count for nothing but their load are left as they were."""
        self._rows: dict[bytes, _Row] = {b"": _NO_ROW}
        """By what matters while nobody asks for labels, which is little."""
        self._counted: defaultdict[str, list[JsonObject]] = defaultdict(list)
        """By the values of their labels, joined."""
        self._molds: dict[bytes, _Mold] = {}
        self._told: dict[int, tuple[_Mold, list[str]]] = {}
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
        told = (Alike(mold.labels, mold.namespace, nodes) for mold, nodes in self._told.values())
        return Census(
            uncounted=tuple(self._uncounted),
            requests=self._spelled(self._sums),
            daemon_requests=self._spelled(self._daemon_sums),
            crowd=WrittenCrowd(self._counted, told),
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

    def _count_running(self, index: int) -> int:
        """Count pods from a place on that run and ask for room alone; return where they end."""
        row_of, joined, counted = self._rows.get, BETWEEN_VALUES.join, self._counted
        stamp = namespace = node = ""
        total = daemons = 0
        pods: list[Any] = self._pods
        while index < len(pods):
            obj = pods[index]
            try:
                meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
                if not spec.get("nodeName"):
                    break
                # Pods often say the same as the one before.
                if meta["creationTimestamp"] != stamp or meta["namespace"] != namespace:
                    _, stamp, namespace = self._origin_of(meta)
                if spec["nodeName"] != node:
                    self._add_up(node, total, daemons)
                    node, total, daemons = self._shared_name(spec["nodeName"]), 0, 0
                text = joined((meta.get("labels") or _NOTHING).values())
                if len(meta) == _BRIEF_META and len(spec) == _BRIEF_SPEC:
                    key = encode((spec["containers"],))
                else:
                    key = _row_key(meta, spec)
                load, daemon_load = row_of(key) or self._add_row(key, meta, spec)
                if load is None or status["phase"] != "Running" or "containerStatuses" in status:
                    break
                if not (meta["name"] and meta["uid"]):
                    break
            except (*UNREADABLE, *UNUSUAL):
                break
            # Whoever runs and asks for room alone is read when asked for.
            counted[text].append(obj)
            total += load
            daemons += daemon_load
            index += 1
        self._add_up(node, total, daemons)
        return index

    def _add_up(self, node: str, total: int, daemons: int) -> None:
        """Take note of what some pods of a node ask for, and what daemons among them do."""
        if total:
            self._sums[node] += total
        if daemons:
            self._daemon_sums[node] += daemons

    def _add_row(self, key: bytes, meta: JsonObject, spec: JsonObject) -> _Row:
        row = self._rows[key] = self._row_of(meta, spec)
        return row

    def _row_of(self, meta: JsonObject, spec: JsonObject) -> _Row:
        containers = spec["containers"]
        if len(containers) != 1 or "ports" in containers[0]:
            return _NO_ROW
        load = self._loads.load_of(self._amounts_of(containers[0])[0])
        owners = self._shared_owners(meta) if meta.get("ownerReferences") else ()
        return load, load if load is not None and _is_daemon(owners) else 0

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
                is_odd = "ports" in only or "deletionTimestamp" in meta
                if is_odd or "containerStatuses" in status or not RARE.isdisjoint(spec):
                    pods[index] = self._read_at_length(obj, index)
                    continue
                if len(spec) == 1 and "ownerReferences" not in meta:
                    key = encode((namespace, meta.get("labels"), only.get("resources")))
                else:
                    key = _mold_key(meta, spec, only)
                mold = self._molds.get(key) or self._add_mold(key, namespace, meta, spec)
                pods[index] = self._cast(mold, meta, status, moment, spec.get("nodeName") or "")
            except (*UNREADABLE, *UNUSUAL):
                pods[index] = self._read_at_length(obj, index)
        return len(pods)

    def _cast(
        self, mold: _Mold, meta: JsonObject, status: JsonObject, created: datetime, node: str
    ) -> Pod:
        """Make a pod, and count it if it is on a node."""
        trusts = self._is_pending_unschedulable
        bound, ready = moments_of(status) if node and "conditions" in status else NEVER
        name, phase = meta["name"], _PHASES[status.get("phase")]
        if type(name) is not str:
            raise TypeError(name)
        node = self._shared_name(node) if node else ""
        pod = Pod(
            name,
            mold.namespace,
            meta["uid"],
            created,
            mold.labels,
            mold.requests,
            mold.rules,
            node,
            status.get("nominatedNodeName") or "",
            phase,
            not node and (trusts or not status or was_given_up(status)),
            False,
            mold.owners,
            False,
            mold.limits,
            bound,
            ready,
        )
        load = self._loads.load_of(mold.requests) if node and phase not in _OVER else None
        if load is None:
            self._uncounted.append(pod)
        else:
            self._told.setdefault(id(mold), (mold, []))[1].append(node)
            self._add_up(node, load, load if _is_daemon(mold.owners) else 0)
        if mold.is_demanding:
            self._demanding.append(pod)
        return pod

    def _origin_of(self, meta: JsonObject) -> tuple[datetime, str, str]:
        """Return when a pod was created, as it is written, too, and its namespace."""
        stamp, namespace = meta["creationTimestamp"], self._shared_name(meta["namespace"])
        moment = self._created.get(stamp) or self._add_created(meta)
        self.namespaces.add(namespace)
        return moment, stamp, namespace

    def _shared_name(self, name: str) -> str:
        """Return the one object for equal names; raise TypeError if it is none."""
        if type(name) is not str:
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
        labels, rules = self._shared_labels(meta), self._rules_of(spec, ())
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


def _is_daemon(owners: tuple[Owner, ...]) -> bool:
    return any((each.api_version, each.kind) == DAEMON_SET for each in owners)


def _row_key(meta: JsonObject, spec: JsonObject) -> bytes:
    """Tell running pods apart that say more than most; nothing if each has to be read."""
    if "deletionTimestamp" in meta or not _DEMANDS.isdisjoint(spec):
        return b""
    owners = meta.get("ownerReferences")
    if not owners or len(owners) > 1:
        return encode((spec["containers"], owners))
    # What sort of owner it is tells daemons from others, and nothing else of it matters.
    return encode((spec["containers"], owners[0]["apiVersion"], owners[0]["kind"]))


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
