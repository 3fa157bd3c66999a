"""The scheduling rules and requests of pods, read once per workload."""

from collections.abc import Mapping
from typing import Final

from karpy.codec.constraints import read_tolerations
from karpy.codec.fields import Fields, JsonObject
from karpy.codec.podrules import read_ports
from karpy.codec.requests import effective_requests
from karpy.model.constraints import NO_SCHEDULE, Taint, Toleration
from karpy.model.pods import HostPort
from karpy.model.resources import CPU, MEMORY, PODS
from karpy.sim.scheduler.choices import NodeChoice, SchedulerNodeTerm, read_choice, read_preferences
from karpy.sim.scheduler.kins import Kin
from karpy.sim.scheduler.terms import Spread, read_spreads

_CORDON: Final = Taint("node.kubernetes.io/unschedulable", NO_SCHEDULE)
_USUAL: Final = {CPU: "100m", MEMORY: "200Mi"}
"""The requests assumed for a container without requests when nodes are scored."""
DISKS: Final = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
"""Types of volumes that name a disk without a claim."""
_COMPARISONS: Final = frozenset({"Gt", "Lt"})


class Wants:
    """The scheduling rules and requests of the pods of one workload."""

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
    """Requests except CPU and memory, sorted by resource."""
    usual_cpu: int
    usual_memory: int
    """Memory requests with defaults for containers without requests."""
    choice: NodeChoice
    preferences: tuple[tuple[int, SchedulerNodeTerm], ...]
    tolerations: tuple[Toleration, ...]
    ports: tuple[HostPort, ...]
    spreads: tuple[Spread, ...]
    disks: tuple[tuple[str, JsonObject], ...]
    """Volumes that name a disk without a claim."""
    owner: tuple[str, str] | None
    """Kind and name of the controller."""
    demands: object
    """Equal for wants with equal rules on nodes, whatever their rules on other pods."""

    def tolerates(self, taint: Taint) -> bool:
        return any(each.allows(taint) for each in self.tolerations)

    @property
    def tolerates_cordon(self) -> bool:
        return self.tolerates(_CORDON)


def read_wants(serial: int, kin: Kin, meta: JsonObject, spec: JsonObject) -> Wants:
    """Read the rules and requests of a pod; raise FieldInvalid if a field cannot be read."""
    wants = Wants()
    fields = Fields(spec, "spec")
    wants.serial = serial
    wants.kin = kin
    wants.requests = requests = requests_of(spec)
    wants.cpu, wants.memory = requests.get(CPU, 0), requests.get(MEMORY, 0)
    wants.others = tuple(sorted(each for each in requests.items() if each[0] not in {CPU, MEMORY}))
    usual = requests_of(_with_usual_requests(spec))
    wants.usual_cpu, wants.usual_memory = usual.get(CPU, 0), usual.get(MEMORY, 0)
    wants.choice = read_choice(spec)
    wants.preferences = read_preferences(spec)
    # The operators Lt and Gt of tolerations need a feature gate that is off in 1.36.
    wants.tolerations = tuple(
        each for each in read_tolerations(fields) if each.operator not in _COMPARISONS
    )
    wants.ports = _ports(spec)
    wants.spreads = read_spreads(spec, wants.kin.labels)
    wants.disks = tuple(
        (kind, each[kind]) for each in spec.get("volumes") or () for kind in DISKS if each.get(kind)
    )
    wants.owner = owner_of(meta)
    wants.demands = _demands(wants)
    return wants


def requests_of(spec: JsonObject, status: JsonObject | None = None) -> dict[str, int]:
    """Sum up the requests of a pod's containers, from the spec or from the status."""
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
    """Read the host ports of a pod, including those of sidecars."""
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


def owner_of(meta: JsonObject) -> tuple[str, str] | None:
    """Return the kind and the name of the controller of a pod."""
    for each in meta.get("ownerReferences") or ():
        if each.get("controller"):
            return f"{each.get('apiVersion')}/{each.get('kind')}", each.get("name") or ""
    return None
