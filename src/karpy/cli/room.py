"""CapacityBuffers of manifests or a cluster: their virtual pods, and findings about them."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from karpy.cli.options import Question
from karpy.cli.tables import count_of, heading, labelled
from karpy.cli.terminal import Line
from karpy.codec.buffers import FoundBuffer
from karpy.codec.findings import Finding, finding_of, note
from karpy.core.buffers import (
    READY_FOR_PROVISIONING,
    SCALABLE_KINDS,
    BufferPlacement,
    Unresolved,
    allow,
    find_placements,
    pods_wanted,
    resolve,
    room_of,
    rooms_among,
    why_limited,
    why_unresolvable,
)
from karpy.errors import NotRead
from karpy.model.buffers import ACTIVE_CAPACITY
from karpy.model.census import with_more
from karpy.model.labels import NAMESPACE_NAME
from karpy.model.pods import Pod
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict

_MISSING_HINT: Final = "add the object that it names to the input"
_ABSENT_HINT: Final = "create the object that it names"
_KIND_HINT: Final = (
    f"name a PodTemplate, or a {', '.join(SCALABLE_KINDS[:-1])} or {SCALABLE_KINDS[-1]}"
)


def with_room(
    snapshot: Snapshot, buffers: Sequence[FoundBuffer], question: Question, *, is_live: bool = False
) -> tuple[Snapshot, tuple[Finding, ...]]:
    """
    Add the virtual pods of all buffers to a snapshot; return findings about what is left out.

    An object that is missing in a live cluster (`is_live`) is missing for the operator, too.
    """
    if not buffers:
        return snapshot, ()
    wanted = {each.record.key: pods_wanted(each.record, each.source) for each in buffers}
    allowed = allow(wanted)
    rooms = [
        room_of(each.record, each.source, snapshot.now, allowed[each.record.key])
        for each in buffers
    ]
    findings = [
        finding
        for each in buffers
        for finding in _findings(
            each, wanted[each.record.key], allowed[each.record.key], is_live=is_live
        )
    ]
    # An operator whose gate is open sets this condition of every buffer.
    is_heeded = all(each.record.conditions.get(READY_FOR_PROVISIONING) for each in buffers)
    if not question.feature_gates.capacity_buffer and not is_heeded:
        message = (
            "CapacityBuffers count in the answer; the operator heeds them only with"
            " `--feature-gates CapacityBuffer=true`"
        )
        findings.append(note("BUFFER_GATE", message))
    namespaces = {
        each.record.namespace: {NAMESPACE_NAME: each.record.namespace} for each in buffers
    }
    snapshot = replace(
        snapshot,
        pods=with_more(snapshot.pods, tuple(chain.from_iterable(rooms))),
        namespaces={**namespaces, **snapshot.namespaces},
    )
    return snapshot, tuple(findings)


def room_lines(snapshot: Snapshot, verdict: Verdict, width: int) -> list[Line]:
    """Write the number of virtual pods of each buffer, and their nodes."""
    rooms = rooms_among(snapshot.pods)
    if not rooms:
        return []
    placements = find_placements(rooms, verdict)
    label_width = 4 + max(len(key) for key in rooms)
    lines = [heading("CapacityBuffers")]
    for key, pods in rooms.items():
        text = _placed_text(len(pods), placements.get(key, BufferPlacement()))
        lines += labelled(f"  {key}", text, width, label_width=label_width, lines_max=3)
    return lines


def room_answer(snapshot: Snapshot, verdict: Verdict) -> list[dict[str, Any]]:
    """Write the virtual pods of each buffer as JSON."""
    rooms = rooms_among(snapshot.pods)
    placements = find_placements(rooms, verdict)
    return [_room_answer(key, pods, placements.get(key)) for key, pods in rooms.items()]


def _room_answer(
    key: str, pods: Sequence[Pod], placement: BufferPlacement | None
) -> dict[str, Any]:
    found = placement or BufferPlacement()
    return {
        "name": key,
        "virtualPods": [pod.key for pod in pods],
        "podsOnNewNodes": found.launched,
        "podsOnExistingNodes": found.existing,
        "podsPending": found.failed,
    }


def _placed_text(count: int, placement: BufferPlacement) -> str:
    parts = [
        f"{number:,} {where}"
        for number, where in (
            (placement.existing, "on nodes that exist"),
            (placement.launched, "on new nodes"),
            (placement.failed, "without a place"),
        )
        if number
    ]
    return f"{count_of(count, 'virtual pod')}: {', '.join(parts) or 'not decided'}"


def _findings(found: FoundBuffer, wanted: int, allowed: int, *, is_live: bool) -> Iterator[Finding]:
    """Yield the findings about a buffer: virtual pods over its limits, or left out."""
    buffer, where = found.record, found.where
    path = "spec.podTemplateRef" if buffer.pod_template else "spec.scalableRef"
    resolution = resolve(buffer, found.source)
    if buffer.meta.is_deleting:
        yield note("BUFFER_EMPTY", "is being deleted and keeps no room", where=where)
        return
    if isinstance(resolution, Unresolved):
        is_wrong = why_unresolvable(buffer) is not None
        missing_hint = _ABSENT_HINT if is_live else _MISSING_HINT
        hint = _KIND_HINT if is_wrong else missing_hint
        error = NotRead(problem=f"keeps no room: {resolution.message}", hint=hint)
        # The operator, too, keeps no room for an invalid buffer.
        is_left_out = not (is_wrong or is_live)
        yield finding_of(error, where=where, path=path, is_warning=True, is_left_out=is_left_out)
        return
    if not wanted:
        message = "asks for no pods by replicas, percentage and limits, and keeps no room"
        yield note("BUFFER_EMPTY", message, where=where)
        return
    if allowed < wanted:
        yield note("BUFFER_LIMIT", why_limited(allowed, wanted), where=where)
    if buffer.strategy != ACTIVE_CAPACITY:
        message = f"is `{buffer.strategy}`, which counts as `{ACTIVE_CAPACITY}`"
        yield note("BUFFER_STRATEGY", message, where=where, path="spec.provisioningStrategy")
    if resolution.pod.rules.volumes:
        message = "keeps room for pods without the volumes of its template"
        yield note("BUFFER_VOLUMES", message, where=where, path=path)
