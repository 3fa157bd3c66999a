"""
Pods from JSON bytes, as an API server sends them; parts that pods share are read once.

The parts of a pod that come from its template stay bytes and are looked up. Only a pod with
unknown parts is read in full; of every other pod only the names and the status are read.
"""

from datetime import datetime
from typing import Final

from msgspec import Raw, Struct, ValidationError, field
from msgspec.json import Decoder, decode
from msgspec.structs import replace

from karpy.codec.fields import FieldInvalid, JsonObject
from karpy.codec.memos import Memo
from karpy.codec.pods import DISRUPTION_ANNOTATIONS, MESSAGE_MAX, MOST, PodReader, shared_moment
from karpy.model.pods import Pod

_NOTHING: Final = Raw(b"")
_RESIZE: Final = "PodResizePending"
_MOMENTS_MOST: Final = 4096
_NAMES_MOST: Final = 8192
_MESSAGES_MOST: Final = 1024
_USUAL_SCHEDULER: Final = "default-scheduler"


class _Wire(Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a pod's JSON that are decoded; all other fields are skipped."""


_DO_NOT_DISRUPT, _DISRUPTION_COST, _DELETION_COST = DISRUPTION_ANNOTATIONS


class _Annotations(Struct, frozen=True, gc=False):
    """The annotations that decisions read; most pods have others that differ from pod to pod."""

    do_not_disrupt: str | None = field(default=None, name=_DO_NOT_DISRUPT)
    disruption_cost: str | None = field(default=None, name=_DISRUPTION_COST)
    deletion_cost: str | None = field(default=None, name=_DELETION_COST)


_NO_ANNOTATIONS: Final = _Annotations()


class _Meta(_Wire, frozen=True, gc=False):
    name: str
    namespace: str | None = None
    uid: str | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None
    labels: Raw = _NOTHING
    owner_references: Raw = _NOTHING
    annotations: _Annotations | None = None


class _Container(_Wire, frozen=True, gc=False):
    name: str | None = None
    resources: Raw = _NOTHING
    ports: Raw = _NOTHING
    restart_policy: str | None = None


class _Volume(_Wire, frozen=True, gc=False):
    name: str | None = None
    persistent_volume_claim: Raw = _NOTHING
    ephemeral: Raw = _NOTHING


class _Spec(_Wire, frozen=True, gc=False):
    containers: tuple[_Container, ...] | None = None
    init_containers: tuple[_Container, ...] | None = None
    volumes: tuple[_Volume, ...] | None = None
    node_name: str | None = None
    node_selector: Raw = _NOTHING
    affinity: Raw = _NOTHING
    tolerations: Raw = _NOTHING
    topology_spread_constraints: Raw = _NOTHING
    resource_claims: Raw = _NOTHING
    overhead: Raw = _NOTHING
    resources: Raw = _NOTHING
    host_network: bool | None = None
    scheduler_name: str | None = None
    priority: int | None = None
    priority_class_name: str | None = None
    termination_grace_period_seconds: int | None = None


class _ContainerStatus(_Wire, frozen=True, gc=False):
    name: str | None = None
    resources: Raw = _NOTHING
    allocated_resources: Raw = _NOTHING


class _Condition(_Wire, frozen=True, gc=False):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: Raw = _NOTHING
    last_transition_time: str | None = None


class _Status(_Wire, frozen=True, gc=False):
    phase: str | None = None
    nominated_node_name: str | None = None
    conditions: tuple[_Condition, ...] | None = None
    container_statuses: tuple[_ContainerStatus, ...] | None = None
    init_container_statuses: tuple[_ContainerStatus, ...] | None = None
    start_time: str | None = None


class _Pod(_Wire, frozen=True, gc=False):
    metadata: _Meta
    spec: _Spec
    status: _Status = _Status()


_decoder: Final = Decoder(_Pod)


class PodJsonReader:
    """Reads pods from objects and from bytes; pods share equal parts."""

    def __init__(self, most: int = MOST) -> None:
        """Start with caches for at least `most` workloads."""
        self._reader = PodReader(most=most)
        self._templates: Memo[tuple[object, ...], Pod] = Memo(most)
        self._moments: Memo[datetime, datetime] = Memo(_MOMENTS_MOST)
        self._names: Memo[str, str] = Memo(_NAMES_MOST)
        self._messages: Memo[str, str] = Memo(_MESSAGES_MOST)

    def from_object(self, obj: JsonObject) -> Pod:
        """Read a plain object; raise FieldInvalid if it cannot be read."""
        pod = self._reader.read(obj)
        if pod.node_name or pod.is_unschedulable:
            return pod
        conditions = (obj.get("status") or {}).get("conditions") or ()
        types = [each.get("type") for each in conditions]
        return replace(pod, is_untried=_is_untried(obj["spec"].get("schedulerName"), types))

    def from_bytes(self, data: bytes) -> Pod:
        """Read JSON; raise FieldInvalid or DecodeError if it cannot be read."""
        try:
            wire = _decoder.decode(data)
        except ValidationError as error:
            # Reading the pod field by field may raise a fault that names the wrong field.
            self._reader.read(_plain(data))
            hint = "compare it with a pod that works"
            raise FieldInvalid("", f"cannot be read: {error}", hint) from error
        meta, spec, status = wire.metadata, wire.spec, wire.status
        key = _key(meta, spec, status)
        template, created = self._templates.get(key), meta.creation_timestamp
        is_bare = status.phase is None and status.conditions is None
        if template is None or created is None or is_bare:
            return self._templates.put(key, self.from_object(_plain(data)))
        # Many pods have the name of the same node.
        node_name = self._shared(spec.node_name)
        annotations = meta.annotations or _NO_ANNOTATIONS
        deleted = meta.deletion_timestamp
        return Pod(
            meta.name,
            template.namespace,
            meta.uid or f"{template.namespace}/{meta.name}",
            self._moments.share(created, created),
            template.labels,
            template.requests,
            template.rules,
            node_name,
            self._shared(status.nominated_node_name),
            self._shared(status.phase),
            not node_name and _was_given_up(status),
            deleted is not None,
            template.owners,
            limits=template.limits,
            bound=_since("PodScheduled", status) if node_name else None,
            ready=_since("Ready", status) if node_name else None,
            is_untried=not node_name and _is_untried(spec.scheduler_name, _types(status)),
            disruption=self._reader.share_disruption(
                annotations.do_not_disrupt,
                annotations.disruption_cost,
                annotations.deletion_cost,
                spec.priority,
                spec.priority_class_name,
                spec.termination_grace_period_seconds,
            ),
            started=shared_moment(status.start_time) if node_name and status.start_time else None,
            deleted=None if deleted is None else shared_moment(deleted),
            is_unready=bool(node_name) and _is_false("Ready", status),
            scheduler_message="" if node_name else self._scheduler_message(status),
        )

    def _scheduler_message(self, status: _Status) -> str:
        """Return kube-scheduler's message on an unschedulable pod, as a shared string."""
        for condition in status.conditions or ():
            if condition.type == "PodScheduled" and condition.reason == "Unschedulable":
                raw = bytes(condition.message)
                text = decode(raw) if raw else ""
                cut = text[:MESSAGE_MAX] if type(text) is str else ""
                return self._messages.share(cut, cut) if cut else ""
        return ""

    def _shared(self, name: str | None) -> str:
        return self._names.share(name, name) if name else ""


def _key(meta: _Meta, spec: _Spec, status: _Status) -> tuple[object, ...]:
    """Return a key that is equal only for pods with equal labels, requests, rules and owners."""
    statuses = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    resized = any(bytes(each.resources) for each in statuses)
    return (
        meta.namespace,
        bytes(meta.labels),
        bytes(meta.owner_references),
        bytes(spec.node_selector),
        bytes(spec.affinity),
        bytes(spec.tolerations),
        bytes(spec.topology_spread_constraints),
        bytes(spec.resource_claims),
        bytes(spec.overhead),
        bytes(spec.resources),
        spec.host_network,
        _containers_key(spec.containers),
        _containers_key(spec.init_containers) if spec.init_containers else None,
        _volumes_key(spec.volumes) if spec.volumes else None,
        _resize_key(status, statuses) if resized else None,
    )


def _containers_key(containers: tuple[_Container, ...] | None) -> tuple[object, ...]:
    return tuple(
        [
            (each.name, bytes(each.resources), bytes(each.ports), each.restart_policy)
            for each in containers or ()
        ]
    )


def _volumes_key(volumes: tuple[_Volume, ...]) -> tuple[object, ...]:
    """Return a key of the volumes with claims; most pods also have one with a random name."""
    return tuple(
        [
            (each.name, bytes(each.persistent_volume_claim), bytes(each.ephemeral))
            for each in volumes
            if bytes(each.persistent_volume_claim) or bytes(each.ephemeral)
        ]
    )


def _resize_key(status: _Status, statuses: tuple[_ContainerStatus, ...]) -> tuple[object, ...]:
    return (
        *((each.name, bytes(each.resources), bytes(each.allocated_resources)) for each in statuses),
        *((each.type, each.reason) for each in status.conditions or () if each.type == _RESIZE),
    )


def _was_given_up(status: _Status) -> bool:
    for condition in status.conditions or ():
        if condition.type == "PodScheduled":
            return condition.reason == "Unschedulable"
    return False


def _is_untried(scheduler: str | None, conditions: list[str | None]) -> bool:
    """Say whether a pod is for kube-scheduler, which has not tried to schedule it yet."""
    # A pod with a scheduling gate has the condition PodScheduled from the start.
    return scheduler in {None, "", _USUAL_SCHEDULER} and "PodScheduled" not in conditions


def _types(status: _Status) -> list[str | None]:
    return [each.type for each in status.conditions or ()]


def _since(type_: str, status: _Status) -> datetime | None:
    for condition in status.conditions or ():
        if condition.type == type_:
            is_so = condition.status == "True"
            return shared_moment(condition.last_transition_time or "") if is_so else None
    return None


def _is_false(type_: str, status: _Status) -> bool:
    return any(each.type == type_ and each.status == "False" for each in status.conditions or ())


def _plain(data: bytes) -> JsonObject:
    obj = decode(data)
    if not isinstance(obj, dict):
        raise FieldInvalid("", "is no object", "check what the API server sends")
    return obj
