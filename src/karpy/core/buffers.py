"""CapacityBuffers: the virtual pods that reserve their room, and whether that room exists."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.buffers import BufferRecord, PodSource
from karpy.model.conditions import FALSE, TRUE, Condition
from karpy.model.kinds import DEPLOYMENT, POD_TEMPLATE, REPLICA_SET, STATEFUL_SET
from karpy.model.pods import Pod
from karpy.model.resources import Resources
from karpy.model.verdicts import Launch, Nomination, Refusal, Verdict

PERIOD: Final = timedelta(seconds=30)
READY_FOR_PROVISIONING: Final = "ReadyForProvisioning"
PROVISIONING: Final = "Provisioning"
SOURCES: Final = (POD_TEMPLATE, DEPLOYMENT, STATEFUL_SET, REPLICA_SET)
"""Kinds from which the pods of a buffer can be made."""
SCALABLE_KINDS: Final = tuple(kind.name for kind in SOURCES[1:])
_NAME: Final = "capacity-buffer-"
_RESOURCES: Final = {kind.name: kind.resource for kind in SOURCES}
_SCALABLE_GROUPS: Final = frozenset({"", "apps"})
PODS_MAX: Final = 5_000
"""Most pods that a buffer reserves room for."""
TOGETHER_MAX: Final = 10_000
"""Most pods that all buffers together reserve room for: every decision looks at each pod."""


class Resolved(Struct, frozen=True, gc=False):
    """The pod of a buffer, made from its PodTemplate or workload."""

    pod: Pod
    workload_replicas: int = 0
    """Replicas of the workload; 0 for a PodTemplate."""
    template: str = ""
    template_generation: int | None = None


class Unresolved(Struct, frozen=True, gc=False):
    """Why the pod of a buffer cannot be determined."""

    reason: str
    message: str


Resolution = Resolved | Unresolved


class BufferPlacement(Struct, frozen=True, gc=False):
    """How many virtual pods of a buffer fit existing nodes, need launches, or were refused."""

    existing: int = 0
    launched: int = 0
    failed: int = 0


def resolve(buffer: BufferRecord, source: PodSource | None) -> Resolution:
    """Return the pod of a buffer, made from the object it refers to; None is a missing object."""
    why = why_unresolvable(buffer)
    if why is not None:
        return why
    if source is None:
        kind, key = buffer.source
        name = key.partition("/")[2]
        return not_found(buffer, f'{_RESOURCES[kind]} "{name}" not found')
    if buffer.pod_template:
        generation = source.generation
        return Resolved(source.pod, template=buffer.pod_template, template_generation=generation)
    return Resolved(source.pod, source.replicas)


def why_unresolvable(buffer: BufferRecord) -> Unresolved | None:
    """Return why a buffer's reference is invalid, or None; the referenced object is not read."""
    if buffer.pod_template:
        return None
    ref = buffer.scalable
    if ref is None:
        return Unresolved("ResolutionFailed", "Neither podTemplateRef nor scalableRef is set")
    if ref.group not in _SCALABLE_GROUPS or ref.kind not in SCALABLE_KINDS:
        kinds = ", ".join(SCALABLE_KINDS)
        message = f"scalableRef is a {ref.kind} of `{ref.group}`; it can be one of {kinds} of apps"
        return Unresolved("ResolutionFailed", message)
    return None


def not_found(buffer: BufferRecord, message: str) -> Unresolved:
    """Return that the object a buffer refers to does not exist."""
    reason = "PodTemplateNotFound" if buffer.pod_template else "ScalableRefNotFound"
    return Unresolved(reason, message)


def settle(
    buffer: BufferRecord, resolution: Resolution, now: datetime, allowed: int = PODS_MAX
) -> BufferRecord:
    """Set the replicas, at most `allowed`, and ReadyForProvisioning in the status of a buffer."""
    settled = replace(buffer, settled_strategy=buffer.strategy)
    if isinstance(resolution, Unresolved):
        reason, message = resolution.reason, resolution.message
        return _with_condition(settled, READY_FOR_PROVISIONING, FALSE, reason, message, now)
    wanted = _wanted(buffer, resolution)
    # Differs: a CapacityBuffer with a huge number of replicas: Karpenter creates as many virtual
    # pods and may run out of memory; Karpy limits their number, and says so in the condition.
    count = min(wanted, allowed, PODS_MAX)
    settled = replace(
        settled,
        settled_template=resolution.template,
        settled_generation=resolution.template_generation,
        settled_replicas=count,
    )
    message = "Pod template resolved successfully"
    if count < wanted:
        message += f"; {why_limited(count, wanted)}"
    return _with_condition(settled, READY_FOR_PROVISIONING, TRUE, "Resolved", message, now)


def wanted_replicas(buffer: BufferRecord, requests: Resources, workload_replicas: int) -> int:
    """Return the larger of replicas and percentage within limits; else as many as these allow."""
    sizes = []
    if buffer.percentage is not None and workload_replicas > 0 and not buffer.pod_template:
        # A percentage is rounded up to whole pods, so that it reserves at least one.
        sizes.append(-(-workload_replicas * buffer.percentage // 100))
    if buffer.replicas is not None:
        sizes.append(buffer.replicas)
    limits = [
        limit // requests[name] for name, limit in buffer.limits.items() if requests.get(name)
    ]
    if sizes:
        # Parity: a CapacityBuffer with limits on several resources: as Karpenter, Karpy takes the
        # largest number of replicas, although the description of the API speaks of the smallest.
        limits.append(max(sizes))
    return min(limits, default=0)


def why_limited(count: int, wanted: int) -> str:
    """Return the sentence on a buffer that reserves room for fewer pods than it demands."""
    return (
        f"room is kept for {count} of {wanted} pods: at most {PODS_MAX} for one CapacityBuffer,"
        f" and {TOGETHER_MAX} for all together"
    )


def pods_wanted(buffer: BufferRecord, source: PodSource | None) -> int:
    """Return how many pods a buffer demands from its spec and source, without any limit."""
    if buffer.meta.is_deleting:
        return 0
    resolution = resolve(buffer, source)
    return 0 if isinstance(resolution, Unresolved) else _wanted(buffer, resolution)


def allow(wanted: Mapping[str, int]) -> dict[str, int]:
    """
    Return how many pods each buffer may reserve room for, from how many it demands.

    If all buffers together demand more than `TOGETHER_MAX`, the largest buffers are cut first, so
    that no buffer displaces another.
    """
    allowed, left = {}, TOGETHER_MAX
    capped = {key: max(0, min(count, PODS_MAX)) for key, count in wanted.items()}
    ranked = sorted(capped, key=lambda key: (capped[key], key))
    for place, key in enumerate(ranked):
        allowed[key] = min(capped[key], left // (len(ranked) - place))
        left -= allowed[key]
    return allowed


def virtual_pods(buffer: BufferRecord, pod: Pod, now: datetime) -> tuple[Pod, ...]:
    """Return the virtual pods of a buffer; they exist in decisions only."""
    if not buffer.conditions.is_true(READY_FOR_PROVISIONING):
        return ()
    # No PersistentVolumeClaims are created for virtual pods.
    rules = replace(pod.rules, volumes=()) if pod.rules.volumes else pod.rules
    template = replace(
        pod,
        namespace=buffer.namespace,
        created=now,
        rules=rules,
        node_name="",
        nominated_node="",
        phase="",
        is_unschedulable=True,
        is_deleting=False,
        owners=(),
        is_virtual=True,
    )
    name, uid = f"{_NAME}{buffer.meta.name}", buffer.meta.uid
    count = max(0, min(buffer.settled_replicas or 0, PODS_MAX))
    return tuple(
        replace(template, name=f"{name}-{index}", uid=f"{uid}-{index}")
        for index in range(1, count + 1)
    )


def room_of(
    buffer: BufferRecord, source: PodSource | None, now: datetime, allowed: int = PODS_MAX
) -> tuple[Pod, ...]:
    """Return the virtual pods of a buffer from its spec and source, without its status."""
    if buffer.meta.is_deleting:
        return ()
    resolution = resolve(buffer, source)
    if isinstance(resolution, Unresolved):
        return ()
    # The pods have the creation time of the buffer, so that equal inputs give equal pods.
    settled = settle(buffer, resolution, now, allowed)
    return virtual_pods(settled, resolution.pod, buffer.meta.created or now)


def buffer_of(pod: Pod) -> str:
    """Return namespace and name of the buffer of a virtual pod; empty for other pods."""
    if not pod.is_virtual:
        return ""
    return f"{pod.namespace}/{pod.name.removeprefix(_NAME).rpartition('-')[0]}"


def rooms_among(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Return the virtual pods of each buffer among some pods."""
    rooms: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.is_virtual:
            rooms.setdefault(buffer_of(pod), []).append(pod)
    return rooms


def find_placements(
    rooms: Mapping[str, Iterable[Pod]], verdict: Verdict
) -> dict[str, BufferPlacement]:
    """Return where a verdict places the pods of each buffer, for buffers with pods in it."""
    owners = {pod.key: buffer for buffer, pods in rooms.items() for pod in pods}

    def count(parts: Iterable[Nomination | Launch | Refusal]) -> Counter[str]:
        return Counter(owners[key] for each in parts for key in each.pods if key in owners)

    existing, launched = count(verdict.nominations), count(verdict.launches)
    failed = count(verdict.refusals)
    return {
        each: BufferPlacement(existing[each], launched[each], failed[each])
        for each in rooms
        if existing[each] or launched[each] or failed[each]
    }


def judge_placement(
    buffer: BufferRecord, placement: BufferPlacement | None, now: datetime
) -> BufferRecord:
    """Set Provisioning of a buffer: whether its virtual pods fit existing nodes."""
    why = _why_provisioning(buffer, placement)
    return buffer if why is None else _with_condition(buffer, PROVISIONING, *why, now)


def pods_by_node(pods: Iterable[Pod], verdict: Verdict) -> Mapping[str, int]:
    """Count the virtual pods nominated to each node; a node with any does not count as empty."""
    keys = {pod.key for pod in pods}
    counts = {
        each.node: sum(key in keys for key in each.pods)
        for each in sorted(verdict.nominations, key=lambda each: each.node)
    }
    return {node: count for node, count in counts.items() if count}


def _wanted(buffer: BufferRecord, resolved: Resolved) -> int:
    return wanted_replicas(buffer, resolved.pod.requests, resolved.workload_replicas)


def _why_provisioning(
    buffer: BufferRecord, placement: BufferPlacement | None
) -> tuple[str, str, str] | None:
    if not buffer.conditions.is_true(READY_FOR_PROVISIONING):
        return FALSE, "NotReadyForProvisioning", "Buffer is not ReadyForProvisioning"
    wanted = buffer.settled_replicas or 0
    if not wanted:
        return FALSE, "BufferEmpty", "Buffer has zero desired replicas"
    if placement is None:
        return None
    if placement.launched or placement.failed:
        message = (
            f"{placement.launched}/{wanted} virtual pods required new capacity, "
            f"{placement.failed} failed"
        )
        return FALSE, "RequiresNewCapacity", message
    if placement.existing == wanted:
        message = f"All {wanted} virtual pods fit on existing capacity"
        return TRUE, "FitsExistingCapacity", message
    return None


def _with_condition(
    buffer: BufferRecord, type_: str, status: str, reason: str, message: str, now: datetime
) -> BufferRecord:
    condition = Condition(type_, status, now, reason, message, buffer.meta.generation)
    return replace(buffer, conditions=buffer.conditions.with_condition(condition, now))
