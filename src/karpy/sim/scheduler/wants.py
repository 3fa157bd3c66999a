"""What a pod asks of a node, read once for all pods that ask alike."""

from collections.abc import Mapping
from datetime import datetime
from itertools import count
from marshal import dumps
from typing import Final
from weakref import WeakValueDictionary

from karpy.codec.constraints import read_tolerations
from karpy.codec.fields import Fields, JsonObject
from karpy.codec.podrules import read_ports
from karpy.codec.requests import effective_requests
from karpy.model.constraints import NO_SCHEDULE, Taint, Toleration
from karpy.model.pods import HostPort
from karpy.model.resources import CPU, MEMORY, PODS
from karpy.sim.scheduler.choices import NodeChoice, NodeTerm, read_choice, read_preferences
from karpy.sim.scheduler.terms import PodTerms, Spread, read_pod_terms, read_spreads

_FORMAT: Final = 2
"""The newest marshal format whose bytes depend on the value alone."""
_NOTHING: Final[JsonObject] = {}
_CORDON: Final = Taint("node.kubernetes.io/unschedulable", NO_SCHEDULE)
_USUAL: Final = {CPU: "100m", MEMORY: "200Mi"}
"""What a container without requests counts as when nodes are compared."""
_DISKS: Final = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
_COMPARISONS: Final = frozenset({"Gt", "Lt"})


class Kin:
    """Pods that look alike to other pods: namespace, labels, and terms about others."""

    __slots__ = (
        "__weakref__",
        "labels",
        "namespace",
        "serial",
        "terms",
    )

    def __init__(
        self, serial: int, namespace: str, labels: Mapping[str, str], terms: PodTerms
    ) -> None:
        self.serial = serial
        self.namespace = namespace
        self.labels = labels
        self.terms = terms


class Wants:
    """What pods of one workload ask for."""

    __slots__ = (
        "__weakref__",
        "choice",
        "cpu",
        "demands",
        "disks",
        "kin",
        "memory",
        "others",
        "owner",
        "ports",
        "preferences",
        "requests",
        "serial",
        "spreads",
        "tolerations",
        "usual_cpu",
        "usual_memory",
    )

    serial: int
    kin: Kin
    requests: Mapping[str, int]
    cpu: int
    memory: int
    others: tuple[tuple[str, int], ...]
    """Requests but for CPU and memory, those that every node counts first."""
    usual_cpu: int
    usual_memory: int
    """Requests with something for containers that ask for nothing."""
    choice: NodeChoice
    preferences: tuple[tuple[int, NodeTerm], ...]
    tolerations: tuple[Toleration, ...]
    ports: tuple[HostPort, ...]
    spreads: tuple[Spread, ...]
    disks: tuple[tuple[str, JsonObject], ...]
    """Volumes that are disks by themselves, without a claim."""
    owner: tuple[str, str] | None
    """Kind and name of the controller."""
    demands: object
    """Equal for wants that ask the same of a node, whatever they ask of other pods."""

    def tolerates(self, taint: Taint) -> bool:
        return any(each.allows(taint) for each in self.tolerations)

    @property
    def tolerates_cordon(self) -> bool:
        return self.tolerates(_CORDON)


class PodInfo:
    """One pod as the scheduler sees it."""

    __slots__ = (
        "cpu",
        "is_ending",
        "key",
        "memory",
        "node",
        "obj",
        "priority",
        "requests",
        "usual_cpu",
        "usual_memory",
        "wants",
    )

    def __init__(self, obj: JsonObject, wants: Wants) -> None:
        meta, spec = obj["metadata"], obj["spec"]
        self.key: str = f"{meta['namespace']}/{meta['name']}"
        self.wants = wants
        self.priority: int = spec.get("priority") or 0
        self.node: str = spec.get("nodeName") or ""
        self.is_ending = "deletionTimestamp" in meta
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
        """Say whether a later state of the pod shares all that counts with the one known."""
        meta, was = obj["metadata"], self.obj["metadata"]
        return (
            obj["spec"] is self.obj["spec"]
            and meta.get("labels") is was.get("labels")
            and meta.get("ownerReferences") is was.get("ownerReferences")
            and self.requests is self.wants.requests
            and _resized(obj) is None
        )

    def is_like(self, other: "PodInfo") -> bool:
        """Say whether it counts for as much as another state of the same pod."""
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

    @property
    def nominated(self) -> str:
        """The node that was made free for it."""
        return (self.obj.get("status") or _NOTHING).get("nominatedNodeName") or ""

    @property
    def volumes(self) -> list[JsonObject]:
        return self.obj["spec"].get("volumes") or []

    def started(self, now: datetime) -> datetime:
        """Say since when it runs; a pod that does not yet, since now."""
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
"""Fields of a pod's specification that are read here."""


def is_alike(obj: JsonObject, before: JsonObject) -> bool:
    """Say whether nothing of a pod changed that is read here; what is shared need not be read."""
    meta, was = obj["metadata"], before["metadata"]
    if meta is not was and (
        meta.get("labels") != was.get("labels")
        or meta.get("ownerReferences") != was.get("ownerReferences")
    ):
        return False
    spec, had = obj["spec"], before["spec"]
    if spec is had or spec == {**had, "nodeName": spec.get("nodeName")}:
        # Most likely it has got a node since.
        return True
    return all(spec.get(field) == had.get(field) for field in _READ)


class PodInfos:
    """Reads pods and keeps what those of one workload share, for as long as there are any."""

    def __init__(self) -> None:
        self._serials = count(1)
        self._kins: WeakValueDictionary[bytes, Kin] = WeakValueDictionary()
        self._wants: WeakValueDictionary[bytes, Wants] = WeakValueDictionary()
        self._latest: tuple[JsonObject, Wants] | None = None
        """Pods of one workload come in a row."""

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
            wants = self._wants[key] = self._read_wants(meta, spec)
        return wants

    def _read_wants(self, meta: JsonObject, spec: JsonObject) -> Wants:
        wants = Wants()
        fields = Fields(spec, "spec")
        wants.serial = next(self._serials)
        wants.kin = self._kin(meta, spec)
        wants.requests = requests = _requests(spec)
        wants.cpu, wants.memory = requests.get(CPU, 0), requests.get(MEMORY, 0)
        wants.others = tuple(
            sorted(each for each in requests.items() if each[0] not in {CPU, MEMORY})
        )
        usual = _requests(_with_usual_requests(spec))
        wants.usual_cpu, wants.usual_memory = usual.get(CPU, 0), usual.get(MEMORY, 0)
        wants.choice = read_choice(spec)
        wants.preferences = read_preferences(spec)
        # Comparing tolerations are behind a gate that is off in 1.36.
        wants.tolerations = tuple(
            each for each in read_tolerations(fields) if each.operator not in _COMPARISONS
        )
        wants.ports = _ports(spec)
        wants.spreads = read_spreads(spec, wants.kin.labels)
        wants.disks = tuple(
            (kind, each[kind])
            for each in spec.get("volumes") or ()
            for kind in _DISKS
            if each.get(kind)
        )
        wants.owner = _owner(meta)
        wants.demands = _demands(wants)
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
    """Say whether two pods share all that is read here."""
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
            _owner(meta),
            [(each.get("resources"), each.get("ports")) for each in spec["containers"]],
            spec.get("initContainers"),
            spec.get("nodeSelector"),
            spec.get("affinity"),
            spec.get("tolerations"),
            spec.get("topologySpreadConstraints"),
            spec.get("overhead"),
            spec.get("resources"),
            spec.get("hostNetwork"),
            [each for each in volumes if any(each.get(kind) for kind in _DISKS)]
            if volumes
            else None,
        ),
        _FORMAT,
    )


def _requests(spec: JsonObject, status: JsonObject | None = None) -> dict[str, int]:
    requests = effective_requests(Fields(spec, "spec"), Fields(status or {}, "status"))
    requests.pop(PODS, None)
    return requests


def _with_usual_requests(spec: JsonObject) -> JsonObject:
    filled = dict(spec)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            filled[field] = [_with_usual(each) for each in spec[field]]
    return filled


def _with_usual(container: JsonObject) -> JsonObject:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": {**_USUAL, **asked}}}


def _ports(spec: JsonObject) -> tuple[HostPort, ...]:
    """Read the ports taken of a node, those of sidecars too."""
    sidecars = [
        each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"
    ]
    together = {**spec, "containers": [*sidecars, *spec["containers"]]} if sidecars else spec
    return read_ports(Fields(together, "spec"))


def _demands(wants: Wants) -> object:
    if wants.disks:
        return wants.serial
    return (
        wants.cpu,
        wants.memory,
        wants.others,
        wants.usual_cpu,
        wants.usual_memory,
        wants.choice,
        wants.preferences,
        wants.tolerations,
        wants.ports,
    )


def _owner(meta: JsonObject) -> tuple[str, str] | None:
    for each in meta.get("ownerReferences") or ():
        if each.get("controller"):
            return f"{each.get('apiVersion')}/{each.get('kind')}", each.get("name") or ""
    return None


def _resized(obj: JsonObject) -> dict[str, int] | None:
    """Sum up requests as the kubelet reports them; None if it reports none of its own."""
    status = obj.get("status")
    if not status or "containerStatuses" not in status:
        return None
    if not any(each.get("resources") for each in status["containerStatuses"] or ()):
        return None
    return _requests(obj["spec"], status)
