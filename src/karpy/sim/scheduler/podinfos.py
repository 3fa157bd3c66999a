"""Pods with the fields that the scheduler reads."""

from datetime import datetime
from itertools import count
from marshal import dumps
from typing import Final
from weakref import WeakValueDictionary

from karpy.codec.fields import JsonObject
from karpy.model.resources import CPU, MEMORY
from karpy.sim.scheduler.kins import Kin
from karpy.sim.scheduler.terms import read_pod_terms
from karpy.sim.scheduler.wants import DISKS, Wants, owner_of, read_wants, requests_of

_FORMAT: Final = 2
"""The newest marshal format whose bytes depend on the value alone."""
_NOTHING: Final[JsonObject] = {}


class PodInfo:
    """One pod with the fields that the scheduler reads."""

    __slots__ = (
        "cpu",
        "is_deleting",
        "key",
        "memory",
        "node",
        "obj",
        "priority",
        "requests",
        "usual_cpu",
        "usual_memory",
        "volumes",
        "wants",
    )

    def __init__(self, obj: JsonObject, wants: Wants) -> None:
        meta = obj["metadata"]
        self.key: str = f"{meta['namespace']}/{meta['name']}"
        self.wants = wants
        self.volumes: list[JsonObject] = obj["spec"].get("volumes") or []
        self.renew(obj)

    def renew(self, obj: JsonObject) -> None:
        """Update to a later state of the pod with equal wants."""
        spec, wants = obj["spec"], self.wants
        self.priority: int = spec.get("priority") or 0
        self.node: str = spec.get("nodeName") or ""
        self.is_deleting = "deletionTimestamp" in obj["metadata"]
        self.obj = obj
        self.requests = wants.requests
        self.cpu, self.memory = wants.cpu, wants.memory
        self.usual_cpu, self.usual_memory = wants.usual_cpu, wants.usual_memory
        resized = _resized(obj)
        if resized is not None:
            self.requests = requests = resized
            self.cpu, self.memory = requests.get(CPU, 0), requests.get(MEMORY, 0)
            self.usual_cpu = max(self.cpu, wants.usual_cpu)
            self.usual_memory = max(self.memory, wants.usual_memory)

    def is_same(self, obj: JsonObject) -> bool:
        """Say whether a later state of the pod shares all relevant objects with the known one."""
        meta, was = obj["metadata"], self.obj["metadata"]
        return (
            obj["spec"] is self.obj["spec"]
            and meta.get("labels") is was.get("labels")
            and meta.get("ownerReferences") is was.get("ownerReferences")
            and self.is_sized(obj)
        )

    def is_sized(self, obj: JsonObject) -> bool:
        """Say whether a later state of the pod uses, as before, the requests of its spec."""
        return self.requests is self.wants.requests and _resized(obj) is None

    def is_like(self, other: "PodInfo") -> bool:
        """Say whether the pod counts the same as another state of it."""
        return (
            self.wants is other.wants
            and self.node == other.node
            and self.priority == other.priority
            and self.requests == other.requests
        )

    @property
    def uid(self) -> str:
        uid: str = self.obj["metadata"]["uid"]
        return uid

    @property
    def namespace(self) -> str:
        namespace: str = self.obj["metadata"]["namespace"]
        return namespace

    @property
    def name(self) -> str:
        name: str = self.obj["metadata"]["name"]
        return name

    def nominated(self) -> str:
        """Return `status.nominatedNodeName`."""
        return (self.obj.get("status") or _NOTHING).get("nominatedNodeName") or ""

    def started(self, now: datetime) -> datetime:
        """Return when the pod started, `now` if it has not."""
        text = (self.obj.get("status") or _NOTHING).get("startTime")
        return datetime.fromisoformat(text) if text else now


_READ: Final = (
    "containers",
    "initContainers",
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "overhead",
    "resources",
    "hostNetwork",
    "volumes",
    "priority",
)
"""Fields of a pod's spec that the scheduler reads."""


def is_alike(obj: JsonObject, before: JsonObject) -> bool:
    """Say whether nothing changed that the scheduler reads; shared fields are not compared."""
    meta, was = obj["metadata"], before["metadata"]
    if meta is not was and (
        meta.get("labels") != was.get("labels")
        or meta.get("ownerReferences") != was.get("ownerReferences")
    ):
        return False
    spec, had = obj["spec"], before["spec"]
    if spec is had or spec == {**had, "nodeName": spec.get("nodeName")}:
        # The usual change of the spec is `nodeName`.
        return True
    return all(spec.get(field) == had.get(field) for field in _READ)


class PodInfos:
    """Reads pods, and keeps the wants of each workload while it has pods."""

    def __init__(self) -> None:
        self._serials = count(1)
        self._kins: WeakValueDictionary[bytes, Kin] = WeakValueDictionary()
        self._wants: WeakValueDictionary[bytes, Wants] = WeakValueDictionary()
        self._latest: tuple[JsonObject, Wants] | None = None
        """The latest pod read: pods of one workload arrive in a row."""

    def read(self, obj: JsonObject) -> PodInfo:
        """Read a pod; raise FieldInvalid if it cannot be read."""
        latest = self._latest
        if latest is not None and _are_twins(obj, latest[0]):
            return PodInfo(obj, latest[1])
        wants = self._read(obj)
        self._latest = obj, wants
        return PodInfo(obj, wants)

    def _read(self, obj: JsonObject) -> Wants:
        meta, spec = obj["metadata"], obj["spec"]
        key = _key(meta, spec)
        wants = self._wants.get(key)
        if wants is None:
            kin = self._kin(meta, spec)
            wants = self._wants[key] = read_wants(next(self._serials), kin, meta, spec)
        return wants

    def _kin(self, meta: JsonObject, spec: JsonObject) -> Kin:
        namespace: str = meta["namespace"]
        labels: dict[str, str] = meta.get("labels") or {}
        key = dumps((namespace, labels, spec.get("affinity")), _FORMAT)
        kin = self._kins.get(key)
        if kin is None:
            terms = read_pod_terms(spec, namespace, labels)
            kin = self._kins[key] = Kin(next(self._serials), namespace, labels, terms)
        return kin


def _are_twins(obj: JsonObject, other: JsonObject) -> bool:
    """Say whether two pods share all that the scheduler reads."""
    meta, others = obj["metadata"], other["metadata"]
    return (
        obj["spec"] is other["spec"]
        and meta.get("labels") is others.get("labels")
        and meta.get("ownerReferences") is others.get("ownerReferences")
        and meta["namespace"] == others["namespace"]
    )


def _key(meta: JsonObject, spec: JsonObject) -> bytes:
    volumes = spec.get("volumes")
    return dumps(
        (
            meta["namespace"],
            meta.get("labels"),
            owner_of(meta),
            [(each.get("resources"), each.get("ports")) for each in spec["containers"]],
            spec.get("initContainers"),
            spec.get("nodeSelector"),
            spec.get("affinity"),
            spec.get("tolerations"),
            spec.get("topologySpreadConstraints"),
            spec.get("overhead"),
            spec.get("resources"),
            spec.get("hostNetwork"),
            [each for each in volumes if any(each.get(kind) for kind in DISKS)]
            if volumes
            else None,
        ),
        _FORMAT,
    )


def _resized(obj: JsonObject) -> dict[str, int] | None:
    """Sum up the requests that the kubelet reports after a resize; None if it reports none."""
    status = obj.get("status")
    if not status or "containerStatuses" not in status:
        return None
    for each in status["containerStatuses"] or ():
        if each.get("resources"):
            return requests_of(obj["spec"], status)
    return None
