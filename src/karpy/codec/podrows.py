"""
Pods of a workload file, one after the other, counted on the way.

To count a pod costs next to nothing while it is at hand. A decision would have to fetch each from
memory again, and most of them run somewhere and ask for nothing.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from karpy.codec.fields import FieldInvalid, JsonObject
from karpy.codec.fingerprints import UNUSUAL, encode
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
_UNKNOWN: Final = -1
_OVER: Final = frozenset({"Failed", "Succeeded"})
_PHASES: Final[Mapping[str | None, str]] = {
    None: "",
    **{each: each for each in ("Pending", "Running", "Succeeded", "Failed", "Unknown")},
}


class _Mold(Struct, gc=False):
    """What pods with one container and no ports have in common that are written alike."""

    namespace: str
    labels: Mapping[str, str]
    requests: Resources
    rules: PodRules
    owners: tuple[Owner, ...]
    limits: Resources
    is_demanding: bool
    sums: dict[str, int]
    """Where their loads are added up, by node."""
    load: int | None = _UNKNOWN
    """What one asks for, as a number to add up; None if it cannot be said so."""
    nodes: list[str] = []
    """The node of each that is counted."""


class PodRows(PodReader):
    """Reads many pods; those with nothing unusual about them take the short way."""

    def __init__(self, *, is_pending_unschedulable: bool = False) -> None:
        """Take whether to trust a pod's conditions."""
        super().__init__(is_pending_unschedulable=is_pending_unschedulable)
        self.pods: list[Pod | JsonObject] = []
        """Those read so far; those that count for nothing but their load are left as they were."""
        self.namespaces: set[str] = set()
        """The namespaces of these."""
        self._molds: dict[bytes, _Mold] = {}
        self._names: dict[str, str] = {}
        """Namespaces and nodes."""
        self._loads = Loads()
        self._sums: dict[str, int] = {}
        """Loads by node, those of daemons apart."""
        self._daemon_sums: dict[str, int] = {}
        self._uncounted: list[Pod] = []
        self._demanding: list[Pod] = []

    def counted(self) -> CountedPods:
        """Return the pods read so far, and their census."""
        return CountedPods(self.census(), self.finished)

    def census(self) -> Census:
        """Return what was counted so far."""
        sums = {**self._daemon_sums, **self._sums}
        for name, load in self._daemon_sums.items():
            sums[name] = self._sums.get(name, 0) + load
        return Census(
            uncounted=tuple(self._uncounted),
            requests=self._spelled(sums),
            daemon_requests=self._spelled(self._daemon_sums),
            alike=tuple(
                [
                    Alike(each.labels, each.namespace, each.nodes)
                    for each in self._molds.values()
                    if each.nodes
                ]
            ),
            demanding=tuple(self._demanding),
        )

    def finished(self) -> list[Pod]:
        """Return all pods, and read those now that were left; raise FieldInvalid."""
        pods: list[Pod] = []
        try:
            pods.extend(each if isinstance(each, Pod) else self.read(each) for each in self.pods)
        except FieldInvalid as error:
            raise error.within(f"pods[{len(pods)}]") from error
        return pods

    def _spelled(self, sums: Mapping[str, int]) -> dict[str, Resources]:
        # The same daemons run on most nodes.
        known = {load: self._loads.requests_of(load) for load in set(sums.values())}
        return {name: known[load] for name, load in sums.items()}

    def read_all(self, objs: Iterable[JsonObject]) -> None:
        """Read pods."""
        molds, take = self._molds, self.pods.append
        # Pods often say the same as the one before, and to see that is faster than to look it up.
        moment, stamp, namespace, node_name = EPOCH, "", "", ""
        for obj in objs:
            try:
                meta, spec, status = obj["metadata"], obj["spec"], obj.get("status") or _NOTHING
                (only,), phase = spec["containers"], _PHASES[status.get("phase")]
                if meta["creationTimestamp"] != stamp or meta["namespace"] != namespace:
                    moment, stamp, namespace = self._origin_of(meta)
                node = spec.get("nodeName") or ""
                node_name = node_name if node == node_name else self._shared_name(node)
                is_plain = len(spec) == (2 if node_name else 1) or SPECIAL.isdisjoint(spec)
                is_odd = "ports" in only or "deletionTimestamp" in meta
                is_odd = is_odd or "containerStatuses" in status
                if is_odd or not (is_plain or RARE.isdisjoint(spec)):
                    self._read_at_length(obj)
                    continue
                if is_plain and "ownerReferences" not in meta:
                    key = encode((namespace, meta.get("labels"), only.get("resources")))
                else:
                    key = _long_key(meta, spec, only)
                mold = molds.get(key) or self._add_mold(key, namespace, meta, spec)
                load = mold.load if node_name and phase not in _OVER else None
                if load == _UNKNOWN:
                    load = self._load_of(mold)
                if load is None or mold.is_demanding or "uid" not in meta or "name" not in meta:
                    self._cast(mold, meta, status, moment, node_name, load)
                else:
                    # Whoever runs and asks for room alone is counted, and read when asked for.
                    take(obj)
            except (*UNREADABLE, *UNUSUAL):
                self._read_at_length(obj)
                continue
            if load is not None:
                mold.nodes.append(node_name)
                mold.sums[node_name] = mold.sums.get(node_name, 0) + load

    def _cast(
        self,
        mold: _Mold,
        meta: JsonObject,
        status: JsonObject,
        created: datetime,
        node: str,
        load: int | None,
    ) -> None:
        """Make a pod; one without a load is not counted."""
        trusts = self._is_pending_unschedulable
        bound, ready = moments_of(status) if node and "conditions" in status else NEVER
        pod = Pod(
            meta["name"],
            mold.namespace,
            meta["uid"],
            created,
            mold.labels,
            mold.requests,
            mold.rules,
            node,
            status.get("nominatedNodeName") or "",
            _PHASES[status.get("phase")],
            not node and (trusts or not status or was_given_up(status)),
            False,
            mold.owners,
            False,
            mold.limits,
            bound,
            ready,
        )
        self.pods.append(pod)
        if load is None:
            self._uncounted.append(pod)
        if mold.is_demanding:
            self._demanding.append(pod)

    def _origin_of(self, meta: JsonObject) -> tuple[datetime, str, str]:
        """Return when a pod was created, as it is written, too, and its namespace."""
        stamp, namespace = meta["creationTimestamp"], self._shared_name(meta["namespace"])
        moment = self._created[stamp]
        self.namespaces.add(namespace)
        return moment, stamp, namespace

    def _shared_name(self, name: str) -> str:
        """Return the one object for equal names; raise TypeError if it is none."""
        if type(name) is not str:
            raise TypeError(name)
        return self._names.setdefault(name, name)

    def _read_at_length(self, obj: JsonObject) -> None:
        pod = self.read(obj)
        self.namespaces.add(pod.namespace)
        self.pods.append(pod)
        self._uncounted.append(pod)
        if is_demanding(pod):
            self._demanding.append(pod)

    def _add_mold(self, key: bytes, namespace: str, meta: JsonObject, spec: JsonObject) -> _Mold:
        (only,) = spec["containers"]
        plain = plain_requests(only.get("resources"))
        if plain:
            requests, limits = self._shared_amounts(plain), _NO_LIMITS
        else:
            requests, _, limits = self._shared_needs(*read_needs({"containers": [only]}, None))
        # Who has the same labels and rules is decided about together, whatever else differs.
        labels, rules = self._shared_labels(meta), self._rules_of(spec, ())
        owners = self._shared_owners(meta) if meta.get("ownerReferences") else ()
        is_daemon = bool(owners) and any(
            (each.api_version, each.kind) == DAEMON_SET for each in owners
        )
        sums = self._daemon_sums if is_daemon else self._sums
        mold = self._molds[key] = _Mold(
            namespace,
            labels,
            requests,
            rules,
            owners,
            limits,
            rules is not NO_RULES and rules.is_demanding,
            sums,
        )
        return mold

    def _load_of(self, mold: _Mold) -> int | None:
        """Work out the load of a mold when the first of its pods has a node; most never do."""
        mold.load = self._loads.load_of(mold.requests)
        return mold.load


def _long_key(meta: JsonObject, spec: JsonObject, only: JsonObject) -> bytes:
    """Tell pods apart that have owners, or rules."""
    parts = meta.get("labels"), only.get("resources"), meta.get("ownerReferences")
    return encode((meta["namespace"], *parts, rule_parts(spec)))
