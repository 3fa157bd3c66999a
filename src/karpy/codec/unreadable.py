"""Stand-ins for unreadable objects: they keep their node and its room, and block disruption."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeVar

from msgspec.structs import replace

from karpy.codec.constraints import read_tolerations
from karpy.codec.fields import Fields, JsonObject
from karpy.codec.objects import read_budget
from karpy.codec.podrules import read_volumes
from karpy.codec.pods import (
    EPOCH,
    NEVER,
    NO_RULES,
    PodReader,
    moments_of,
    read_labels,
    read_owners,
    was_given_up,
)
from karpy.codec.records import read_claim_record, read_node_record
from karpy.codec.requests import effective_requests
from karpy.codec.storage import read_attachment
from karpy.model.labels import DO_NOT_DISRUPT
from karpy.model.pods import (
    DEFAULT_GRACE,
    DisruptionBudget,
    Owner,
    Pod,
    PodDisruption,
    PodRules,
)
from karpy.model.records import ClaimRecord, Identity, NodeRecord
from karpy.model.resources import PODS, Resources
from karpy.model.storage import VolumeAttachment
from karpy.model.times import span

T = TypeVar("T")

WITHOUT_ROOM: Final[Resources] = {PODS: 10**9}
"""The requests of a pod whose requests cannot be read: its node has no room for other pods."""
_YES: Final = "true"


def unreadable_pod(obj: JsonObject, problem: str, known: Pod | None = None) -> Pod:
    """Return a pod with all fields that can be read; `known` is its last readable version."""
    rules = PodRules(unreadable=problem)
    meta, spec, status = (_part(obj, key) for key in ("metadata", "spec", "status"))
    if known is not None and not spec.obj:
        return replace(known, rules=rules)
    name, namespace = _text(meta, "name"), _text(meta, "namespace") or "default"
    node_name = _text(spec, "nodeName")
    bound, ready = _or(NEVER, lambda: moments_of(status.obj)) if node_name else NEVER
    return Pod(
        name=name,
        namespace=namespace,
        uid=_text(meta, "uid") or f"{namespace}/{name}",
        created=_or(None, lambda: meta.time("creationTimestamp")) or EPOCH,
        labels=_or({}, lambda: read_labels(meta.obj)),
        requests=_or(WITHOUT_ROOM, lambda: effective_requests(spec, status)),
        rules=rules,
        node_name=node_name,
        nominated_node=_text(status, "nominatedNodeName"),
        phase=_text(status, "phase"),
        is_unschedulable=not node_name and _or(False, lambda: was_given_up(status.obj)),
        is_deleting="deletionTimestamp" in meta,
        owners=_owners(meta),
        bound=bound,
        ready=ready,
        disruption=PodDisruption(
            # Unreadable annotations may hold do-not-disrupt.
            do_not_disrupt=_or({DO_NOT_DISRUPT: _YES}, lambda: meta.labels("annotations")).get(
                DO_NOT_DISRUPT
            ),
            priority_class=_text(spec, "priorityClassName"),
        ),
        started=_or(None, lambda: status.time("startTime")),
        deleted=_or(None, lambda: meta.time("deletionTimestamp")),
    )


def unreadable_budget(obj: JsonObject) -> DisruptionBudget:
    """Return a stand-in for a PodDisruptionBudget: it allows no eviction in its namespace."""
    meta = _part(obj, "metadata")
    namespace = _text(meta, "namespace") or "default"
    return DisruptionBudget(_text(meta, "name"), namespace, selector=())


def bound_pod(obj: JsonObject) -> Pod:
    """Read a pod of a node; of an unreadable pod, the fields that can be read, for a drain."""
    try:
        return PodReader().read(obj)
    except Exception as error:
        pod, spec = unreadable_pod(obj, _why(error)), _part(obj, "spec")
        rules = replace(
            pod.rules,
            tolerations=_or(NO_RULES.tolerations, lambda: read_tolerations(spec)),
            volumes=_or(NO_RULES.volumes, lambda: read_volumes(spec)),
        )
        grace = _or(DEFAULT_GRACE, lambda: _grace(spec))
        return replace(pod, rules=rules, disruption=replace(pod.disruption, grace=grace))


def pod_budget(obj: JsonObject) -> DisruptionBudget:
    """Read a PodDisruptionBudget; an unreadable one allows no eviction in its namespace."""
    try:
        return read_budget(Fields(obj))
    except Exception:
        return unreadable_budget(obj)


def attachment(obj: JsonObject) -> VolumeAttachment:
    """Read a VolumeAttachment; the termination of a node waits for an unreadable one, too."""
    try:
        return read_attachment(Fields(obj))
    except Exception:
        name, spec = _text(_part(obj, "metadata"), "name"), _part(obj, "spec")
        volume = _text(_part(spec.obj, "source"), "persistentVolumeName")
        return VolumeAttachment(name, _text(spec, "nodeName"), volume or name)


def claim_record(obj: JsonObject) -> ClaimRecord:
    """Read a NodeClaim; an unreadable one keeps its name and provider ID only."""
    try:
        return read_claim_record(Fields(obj))
    except Exception:
        meta, status = _part(obj, "metadata"), _part(obj, "status")
        identity = Identity(_text(meta, "name"), uid=_text(meta, "uid"))
        return ClaimRecord(identity, provider_id=_text(status, "providerID"))


def node_record(obj: JsonObject) -> NodeRecord:
    """Read a Node; an unreadable one keeps its name, labels and provider ID only."""
    try:
        return read_node_record(Fields(obj))
    except Exception:
        meta, spec = _part(obj, "metadata"), _part(obj, "spec")
        identity = Identity(
            name=_text(meta, "name"),
            uid=_text(meta, "uid"),
            created=_or(None, lambda: meta.time("creationTimestamp")),
            deleted=_or(None, lambda: meta.time("deletionTimestamp")),
            labels=_or({}, lambda: meta.labels("labels")),
        )
        return NodeRecord(identity, provider_id=_text(spec, "providerID"))


def _grace(spec: Fields) -> timedelta:
    seconds = spec.number("terminationGracePeriodSeconds")
    return DEFAULT_GRACE if seconds is None else span(seconds)


def _owners(meta: Fields) -> tuple[Owner, ...]:
    return _or((), lambda: read_owners(meta))


def _part(obj: JsonObject, key: str) -> Fields:
    value = obj.get(key)
    return Fields(value if isinstance(value, dict) else {}, key)


def _text(fields: Fields, key: str) -> str:
    value = fields.obj.get(key)
    return value if isinstance(value, str) else ""


def _or(default: T, read: Callable[[], T]) -> T:
    """Return what `read` returns, or the default if it fails."""
    try:
        return read()
    except Exception:
        return default


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
