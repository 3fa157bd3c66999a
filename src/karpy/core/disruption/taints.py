"""The taint and the condition of a node that a command disrupts: set, removed, cleaned up."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes
from karpy.core.lifecycle.conditions import DISRUPTION_REASON, with_true_because, without
from karpy.model.constraints import DISRUPTED_TAINT, NO_SCHEDULE, Taint, is_disrupted, is_gate
from karpy.model.nodes import Node
from karpy.model.pools import DisruptionReason
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.snapshot import Snapshot

_DISRUPTED: Final = Taint(DISRUPTED_TAINT, NO_SCHEDULE)


def tainted(node: Node, reason: DisruptionReason, now: datetime) -> Changes | None:
    """Taint a node and set DisruptionReason on its claim; None if both are there already."""
    claim, record = node.claim_record, node.node_record
    if claim is None or node.is_terminating:
        return None
    changed = None if record is None or _is_tainted(record) else _with_taint(record)
    written = with_true_because(claim, DISRUPTION_REASON, reason.value, reason.value, now)
    return _changes(claim, written, changed)


def untainted(node: Node) -> Changes | None:
    """Remove the taint and the condition; None if both are absent or the node is terminating."""
    claim, record = node.claim_record, node.node_record
    if claim is None or node.is_terminating:
        return None
    changed = None
    # The taint of a deleting Node belongs to its termination.
    if record is not None and _is_tainted(record) and not record.meta.is_deleting:
        changed = _without_taint(record)
    return _changes(claim, without(claim, DISRUPTION_REASON), changed)


def find_orphaned_taints(snapshot: Snapshot) -> Iterator[tuple[Node, Changes]]:
    """Find taints and conditions that no command owns: left behind by a failure or a restart."""
    for node in sorted(snapshot.nodes, key=lambda each: each.name):
        is_free = not (node.claim in snapshot.in_command or node.is_deleting or node.is_rebooting)
        if is_free and not node.is_foreign:
            changes = untainted(node)
            if changes is not None and not node.is_initialized:
                # A rebooted node keeps its DisruptionReason until it is initialized again.
                changes = None if changes.node is None else replace(changes, claim=None)
            if changes is not None:
                yield node, changes


def _changes(claim: ClaimRecord, written: ClaimRecord, record: NodeRecord | None) -> Changes | None:
    if record is None and written is claim:
        return None
    return Changes(claim=None if written is claim else written, node=record)


def _is_tainted(node: NodeRecord) -> bool:
    return any(map(is_disrupted, node.taints))


def _with_taint(node: NodeRecord) -> NodeRecord:
    others = (each for each in node.taints if not is_gate(each))
    return replace(node, taints=(*others, _DISRUPTED))


def _without_taint(node: NodeRecord) -> NodeRecord:
    kept = (each for each in node.taints if not is_disrupted(each))
    return replace(node, taints=tuple(kept))
