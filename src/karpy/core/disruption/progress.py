"""
The next step of a command, given a snapshot of the cluster.

A command is a value. The controller passes the command with a snapshot, carries out the resulting
changes, and stores the resulting command; nothing sleeps. A change that the next snapshot does not
show is requested again.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.candidates import refusal_notices, subjects_of
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Validation
from karpy.core.disruption.taints import tainted, untainted
from karpy.core.lifecycle.changes import (
    Changes,
    Count,
    Remark,
    about_claim,
    disruption_counts,
    joined,
    termination_mode,
)
from karpy.core.lifecycle.conditions import DISRUPTION_REASON, INITIALIZED, with_true_because
from karpy.core.lifecycle.repair import snake_case, unhealthy_count, with_termination_deadline
from karpy.model.commands import Command, CommandNode, Replacement, Stage
from karpy.model.conditions import REBOOTING
from karpy.model.instances import Catalog
from karpy.model.labels import CAPACITY_TYPE, REBOOT_GRACE_PERIOD
from karpy.model.nodes import Node
from karpy.model.notices import Notice
from karpy.model.records import ClaimRecord
from karpy.model.resources import NODES
from karpy.model.snapshot import Snapshot
from karpy.model.times import write_duration
from karpy.model.verdicts import Launch, NodeRefusal

VALIDATION_DELAY: Final = timedelta(seconds=15)
"""Time between the proposal of a command and its validation."""
PACE: Final = timedelta(seconds=1)
"""Time between two steps of a command."""
TAINTING_PACE: Final = timedelta(milliseconds=250)
"""Short, so that replacements exist before provisioning launches nodes for the same pods."""
FORMING_TIME: Final = timedelta(minutes=2)
"""Time limit for tainting nodes and launching replacements; meanwhile no command is proposed."""
COMMAND_TIME_MIN: Final = timedelta(minutes=10)
COMMAND_TIME_MAX: Final = timedelta(hours=1)
_TIME_PER_NODE: Final = timedelta(milliseconds=80)
_REBOOT_REQUESTED: Final = "RebootRequested"
_LEFT_OUT: Final = "leaving nodes out of a disruption command, pods there forbid it"
_UNTAINTABLE: Final = "leaving nodes out of a disruption command, they could not be tainted"


class NodeChange(Struct, frozen=True, gc=False):
    """The changes to one node: to its NodeClaim, its Node or both."""

    claim: str
    node: str
    changes: Changes
    is_disruptive: bool = False
    """Whether the node is tainted, deleted or rebooted, which needs a confirmation first."""


class Progress(Struct, frozen=True, gc=False):
    """A command after a step, and the changes and launches that the step requests."""

    command: Command
    changes: tuple[NodeChange, ...] = ()
    launches: tuple[Launch, ...] = ()
    """NodeClaims to create, all or none; their names go to `with_claim_names`."""
    outcome: Changes = Changes()
    """Events, metrics and log lines of the command as a whole, and when to take the next step."""


def validation_due(command: Command) -> datetime:
    """Return when a proposed command is validated."""
    assert command.proposed is not None
    return command.proposed + VALIDATION_DELAY


def start(command: Command, snapshot: Snapshot) -> Progress:
    """Begin to carry out a command that needs no validation, or has passed it."""
    begun = replace(command, stage=Stage.TAINTING, begun=snapshot.now)
    remark = Changes(remarks=(_start_remark(begun),))
    progress = _reboot(begun, snapshot) if command.is_reboot else _taint(begun, snapshot)
    return replace(progress, outcome=joined(remark, progress.outcome))


def start_validated(command: Command, validation: Validation, snapshot: Snapshot) -> Progress:
    """Begin to carry out what validation has left of a command, or abandon the command."""
    kept = validation.command
    left = 0 if kept is None else len(kept.nodes)
    counts = failed_validations(command, len(command.nodes) - left)
    # Differs: events about a multi-node command that validation rejects: Karpenter empties the
    # command first and emits no event; Karpy emits one for each node of the command.
    emitted = Changes(notices=validation.notices, counts=counts)
    if kept is None:
        text = f"abandoning {command.method} attempt, command is no longer valid"
        fields = {"command": str(command), "reason": validation.why}
        abandoned = Changes(remarks=(Remark(text, fields),))
        return Progress(replace(command, stage=Stage.ABANDONED), outcome=joined(emitted, abandoned))
    progress = start(kept, snapshot)
    return replace(progress, outcome=joined(emitted, progress.outcome))


def advance(command: Command, snapshot: Snapshot) -> Progress:
    """Take the next step of a command that has begun."""
    match command.stage:
        case Stage.TAINTING:
            return _taint(command, snapshot)
        case Stage.LAUNCHING:
            return _launch_again(command, snapshot)
        case Stage.WAITING:
            return _wait(command, snapshot)
    return Progress(command)


def with_claim_names(command: Command, claims: Sequence[str]) -> Command:
    """Set the NodeClaim names of the replacements, which are in the same order."""
    named = zip(command.replacements, claims, strict=True)
    return replace(
        command,
        replacements=tuple(replace(each, claim=name) for each, name in named),
        stage=Stage.WAITING,
    )


def fail_launch(command: Command, snapshot: Snapshot) -> Progress:
    """Fail a command because a replacement could not be launched; its nodes are kept."""
    return _fail(command, snapshot, "a replacement could not be launched")


def leave_out_refused(
    progress: Progress, refusals: Sequence[NodeRefusal], evaluation: Evaluation
) -> Progress:
    """
    Leave refused nodes out of a command, and remove their taints and conditions.

    The command goes on with its other nodes, unless it has replacements: these were chosen for the
    pods of all nodes together, so the command fails.
    """
    command, refused = progress.command, {each.node for each in refusals}
    left = tuple(each for each in command.nodes if each.node not in refused)
    emitted = _left_out(command, refusals, evaluation)
    if command.replacements or not left:
        given_up = replace(command, stage=Stage.FAILED)
        undone = _untainted({each.claim for each in command.nodes}, evaluation.nodes)
        return replace(progress, command=given_up, changes=undone, launches=(), outcome=emitted)
    claims = {each.claim for each in command.nodes if each.node in refused}
    changes = tuple(each for each in progress.changes if each.claim not in claims)
    return replace(
        progress,
        command=replace(command, nodes=left),
        changes=(*changes, *_untainted(claims, evaluation.nodes)),
        outcome=joined(emitted, progress.outcome),
    )


def failed_validations(command: Command, nodes: int) -> tuple[Count, ...]:
    """Return the count of nodes that failed validation or confirmation."""
    if not nodes:
        return ()
    labels = {"consolidation_type": command.consolidation_type}
    return (Count("voluntary_disruption_failed_validations_total", labels, float(nodes)),)


def command_time_limit(nodes: int) -> timedelta:
    """Return the time limit of a command; it grows with `nodes`, the nodes in all commands."""
    return max(COMMAND_TIME_MIN, min(nodes * _TIME_PER_NODE, COMMAND_TIME_MAX))


def _reboot(command: Command, snapshot: Snapshot) -> Progress:
    """Request the reboot of the node of a command; the command is done then."""
    nodes = _by_claim(snapshot)
    changes = []
    for each in command.nodes:
        node = nodes.get(each.claim)
        if node is not None and node.claim_record is not None and not node.is_terminating:
            written = _request_reboot(each, node.claim_record, command)
            changes.append(NodeChange(each.claim, each.node, written, is_disruptive=True))
    done = replace(command, stage=Stage.DONE)
    counts = _decision_counts(command) if changes else ()
    return Progress(done, tuple(changes), outcome=Changes(counts=counts))


def _request_reboot(node: CommandNode, claim: ClaimRecord, command: Command) -> Changes:
    assert command.begun is not None
    grace = claim.grace_period if node.drain_bound is None else node.drain_bound
    reason = command.reason.value
    message = f"rebooting for {node.condition}"
    written = with_true_because(
        _with_grace(claim, grace), DISRUPTION_REASON, reason, reason, command.begun
    )
    written = with_true_because(written, REBOOTING, _REBOOT_REQUESTED, message, command.begun)
    fields = {"NodeClaim": claim.name, "Node": node.node, "condition": message}
    return Changes(
        written,
        counts=(
            *disruption_counts(claim, reason.lower(), node.pods),
            unhealthy_count(claim, _type_of(node), grace),
        ),
        remarks=(Remark("committed node reboot", fields),),
    )


def _with_grace(claim: ClaimRecord, grace: timedelta | None) -> ClaimRecord:
    annotations = {
        key: value for key, value in claim.meta.annotations.items() if key != REBOOT_GRACE_PERIOD
    }
    if grace is not None:
        annotations[REBOOT_GRACE_PERIOD] = write_duration(grace)
    return replace(claim, meta=replace(claim.meta, annotations=annotations))


def _taint(command: Command, snapshot: Snapshot) -> Progress:
    """Taint nodes until the snapshot shows all taints; leave out nodes deleted meanwhile."""
    nodes = _by_claim(snapshot)
    staying = _staying(command, nodes)
    if not staying:
        return Progress(replace(command, stage=Stage.DONE))
    if command.replacements and len(staying) < len(command.nodes):
        return _fail(command, snapshot, "one of its nodes was deleted")
    command = replace(command, nodes=staying)
    changes = {}
    for each in staying:
        written = tainted(nodes[each.claim], command.reason, snapshot.now)
        if written is not None:
            changes[each.claim] = NodeChange(each.claim, each.node, written, is_disruptive=True)
    if not changes:
        return _after_tainting(command, snapshot)
    if _is_late_to_form(command, snapshot):
        return _without_untainted(command, changes.keys(), snapshot)
    return Progress(command, tuple(changes.values()), outcome=Changes(requeue_after=TAINTING_PACE))


def _after_tainting(command: Command, snapshot: Snapshot) -> Progress:
    if command.replacements:
        return _launch(replace(command, stage=Stage.LAUNCHING), snapshot)
    return _wait(replace(command, stage=Stage.WAITING), snapshot)


def _without_untainted(command: Command, claims: Collection[str], snapshot: Snapshot) -> Progress:
    """Leave out nodes that cannot be tainted, so that the command goes on without them."""
    done = tuple(each for each in command.nodes if each.claim not in claims)
    if command.replacements or not done:
        return _fail(command, snapshot, "tainting its nodes took too long")
    progress = _after_tainting(replace(command, nodes=done), snapshot)
    fields = {"command": str(command), "nodeclaims": ",".join(sorted(claims))}
    remark = Changes(remarks=(Remark(_UNTAINTABLE, fields, is_error=True),))
    return replace(
        progress,
        changes=(*progress.changes, *_untainted(claims, _by_claim(snapshot))),
        outcome=joined(remark, progress.outcome),
    )


def _launch(command: Command, snapshot: Snapshot) -> Progress:
    headroom = find_headroom(command, snapshot)
    if headroom.exceeded:
        return _fail(command, snapshot, f"NodePool `{headroom.exceeded}` is at its limits by now")
    if not headroom.is_known:
        return Progress(command, outcome=Changes(requeue_after=PACE))
    launches = tuple(each.launch for each in command.replacements)
    return Progress(command, launches=launches, outcome=Changes(requeue_after=PACE))


def _launch_again(command: Command, snapshot: Snapshot) -> Progress:
    if _is_late_to_form(command, snapshot):
        return _fail(command, snapshot, "launching its replacements took too long")
    return _launch(command, snapshot)


def _wait(command: Command, snapshot: Snapshot) -> Progress:
    """Wait until all replacements are initialized, then delete the NodeClaims of the nodes."""
    nodes = _by_claim(snapshot)
    seen = tuple(_updated(each, nodes) for each in command.replacements)
    counts = () if command.is_counted else _decision_counts(command)
    command = replace(command, replacements=seen, is_counted=True)
    if any(not each.is_initialized and not _is_staying(each.claim, nodes) for each in seen):
        return _fail(command, snapshot, "a replacement was deleted", counts)
    staying = _staying(command, nodes)
    if not staying:
        # Differs: a command that passes its time limit when all its nodes are being deleted:
        # Karpenter counts the command as failed and removes the taints of the nodes; Karpy counts
        # it as succeeded, because nothing is left to do.
        remark = Remark("command succeeded", {"command": str(command)})
        outcome = Changes(counts=counts, remarks=(remark,))
        return Progress(replace(command, stage=Stage.DONE), outcome=outcome)
    if _is_late(command, snapshot):
        return _fail(command, snapshot, "it took too long", counts)
    notices = tuple(
        notice
        for each in seen
        if not each.is_initialized
        for notice in _waiting_notices(nodes[each.claim].claim_record, command)
    )
    if notices:
        outcome = Changes(notices=notices, counts=counts, requeue_after=PACE)
        return Progress(command, outcome=outcome)
    changes = tuple(
        NodeChange(
            each.claim,
            each.node,
            _deletion(nodes[each.claim], each, command, snapshot),
            is_disruptive=True,
        )
        for each in staying
    )
    return Progress(command, changes, outcome=Changes(counts=counts, requeue_after=PACE))


def _deletion(node: Node, chosen: CommandNode, command: Command, snapshot: Snapshot) -> Changes:
    """Delete the NodeClaim of a node, with events and metrics."""
    claim = node.claim_record
    assert claim is not None
    reason = command.reason.value
    notices = tuple(
        Notice(
            subject,
            "DisruptionTerminating",
            f"Disrupting {subject.kind.name}: {reason}",
            same_as=(subject.uid, reason),
        )
        for subject in subjects_of(node)
    )
    pools = {each.name: each.policy for each in snapshot.pools}
    policy = pools[claim.pool].consolidation.value if claim.pool in pools else ""
    labels = {
        "reason": reason.lower(),
        "nodepool": claim.pool,
        "capacity_type": claim.meta.labels.get(CAPACITY_TYPE, ""),
        "consolidation_policy": snake_case(policy) if command.consolidation_type else "",
        "termination_mode": termination_mode(claim.grace_period),
    }
    counts = [
        Count("nodeclaims_disrupted_total", labels),
        Count("pods_disruption_initiated_total", labels, float(chosen.pods)),
    ]
    if chosen.condition:
        grace = claim.grace_period if chosen.drain_bound is None else chosen.drain_bound
        counts.append(unhealthy_count(claim, _type_of(chosen), grace))
    written = None
    if chosen.drain_bound is not None:
        # Count from now: the time that replacements took to boot must not shorten the drain.
        written = with_termination_deadline(claim, snapshot.now + chosen.drain_bound)
    return Changes(written, deletes_claim=True, notices=notices, counts=tuple(counts))


def _fail(
    command: Command, snapshot: Snapshot, why: str, counts: tuple[Count, ...] = ()
) -> Progress:
    """Fail a command and keep its nodes; emptiness deletes replacements that stay unused."""
    changes = _untainted({each.claim for each in command.nodes}, _by_claim(snapshot))
    missing = sum(not each.is_initialized for each in command.replacements)
    count = Count("voluntary_disruption_queue_failures_total", _labels(command), float(missing))
    remark = Remark(
        "failed terminating nodes while executing a disruption command",
        {"command": str(command), "error": why},
        is_error=True,
    )
    outcome = Changes(counts=(*counts, count), remarks=(remark,))
    return Progress(replace(command, stage=Stage.FAILED), changes, outcome=outcome)


def _untainted(claims: Collection[str], nodes: Mapping[str, Node]) -> tuple[NodeChange, ...]:
    changes = []
    for claim in sorted(claims):
        written = untainted(nodes[claim]) if claim in nodes else None
        if written is not None:
            changes.append(NodeChange(claim, nodes[claim].name, written))
    return tuple(changes)


def _by_claim(snapshot: Snapshot) -> dict[str, Node]:
    return {each.claim: each for each in snapshot.nodes if each.claim}


def _staying(command: Command, nodes: Mapping[str, Node]) -> tuple[CommandNode, ...]:
    return tuple(each for each in command.nodes if _is_staying(each.claim, nodes))


def _is_staying(claim: str, nodes: Mapping[str, Node]) -> bool:
    return claim in nodes and not nodes[claim].is_terminating


def _updated(replacement: Replacement, nodes: Mapping[str, Node]) -> Replacement:
    node = nodes.get(replacement.claim)
    if replacement.is_initialized or node is None or node.claim_record is None:
        return replacement
    is_ready = node.claim_record.conditions.is_true(INITIALIZED) and not node.is_terminating
    return replace(replacement, is_initialized=is_ready)


def _is_late(command: Command, snapshot: Snapshot) -> bool:
    assert command.begun is not None
    nodes = len(snapshot.in_command | command.claims)
    return snapshot.now - command.begun > command_time_limit(nodes)


def _is_late_to_form(command: Command, snapshot: Snapshot) -> bool:
    assert command.begun is not None
    return snapshot.now - command.begun > FORMING_TIME + len(command.nodes) * _TIME_PER_NODE


def _waiting_notices(claim: ClaimRecord | None, command: Command) -> tuple[Notice, ...]:
    assert claim is not None
    subject, reason = about_claim(claim), command.reason.value
    return (
        Notice(
            subject,
            "DisruptionLaunching",
            f"Launching NodeClaim: {reason}",
            same_as=(subject.uid, reason),
        ),
        Notice(
            subject,
            "DisruptionWaitingReadiness",
            "Waiting on readiness to continue disruption",
            same_as=(subject.uid,),
        ),
    )


def _start_remark(command: Command) -> Remark:
    fields = {
        "command": str(command),
        "decision": command.decision,
        "disrupted-node-count": str(len(command.nodes)),
        "replacement-node-count": str(len(command.replacements)),
        "pod-count": str(sum(each.pods for each in command.nodes)),
    }
    if any(each.is_escalated for each in command.nodes):
        fields["reboot-escalated"] = "true"
    return Remark("disrupting node(s)", fields)


def _left_out(command: Command, refusals: Sequence[NodeRefusal], evaluation: Evaluation) -> Changes:
    why = "; ".join(f"{each.node}: {each.why.value} ({each.detail})" for each in refusals)
    return Changes(
        notices=tuple(refusal_notices(refusals, evaluation)),
        counts=failed_validations(command, len(refusals)),
        remarks=(Remark(_LEFT_OUT, {"command": str(command), "nodes": why}),),
    )


def _labels(command: Command) -> dict[str, str]:
    return {
        "decision": command.decision,
        "reason": command.reason.value.lower(),
        "consolidation_type": command.consolidation_type,
    }


def _decision_counts(command: Command) -> tuple[Count, ...]:
    labels = _labels(command)
    pools = dict.fromkeys(each.pool for each in command.nodes)
    by_pool = "voluntary_disruption_decisions_by_nodepool_total"
    return (
        Count("voluntary_disruption_decisions_total", labels),
        *(Count(by_pool, {"nodepool": pool, **labels}) for pool in pools),
        *(_terminate_first_count(command, pool) for pool in pools if command.terminates_first),
    )


def _terminate_first_count(command: Command, pool: str) -> Count:
    return Count(
        "voluntary_disruption_terminate_first_decisions_total",
        {
            "nodepool": pool,
            "reason": command.reason.value.lower(),
            "terminate_first_reason": command.terminates_first,
        },
    )


def _type_of(node: CommandNode) -> str:
    """Return the type of the Node condition that a repair is for."""
    # A condition type may have a slash, a reason has none.
    return node.condition.rpartition("/")[0]


class Headroom(Struct, frozen=True, gc=False):
    """Whether the replacements of a command fit the limits of their NodePools."""

    exceeded: str = ""
    """The NodePool that would exceed its limits; empty if there is none."""
    is_known: bool = True
    """Whether all machines of these NodePools are launched; before that their size is unknown."""


# Differs: limits of a NodePool when a replacement is launched: Karpenter checks them only when it
# decides; Karpy checks them again, because provisioning may have launched nodes since.
def find_headroom(command: Command, snapshot: Snapshot) -> Headroom:
    """Compare the limits of NodePools with their nodes and the replacements of a command."""
    launches = [each.launch for each in command.replacements if each.launch.options]
    pools = {each.pool for each in launches}
    left = {each.name: dict(each.limits) for each in snapshot.pools if each.name in pools}
    for node in snapshot.nodes:
        if node.pool in left and not node.is_deleting and node.claim not in command.claims:
            if left[node.pool] and not node.has_machine:
                return Headroom(is_known=False)
            for resource in left[node.pool]:
                left[node.pool][resource] -= node.capacity.get(resource, 0)
    for launch in launches:
        for resource in left.get(launch.pool, ()):
            left[launch.pool][resource] -= _largest_amount(resource, launch, snapshot.catalog)
    beyond = (
        name for name, amounts in sorted(left.items()) if min(amounts.values(), default=0) < 0
    )
    return Headroom(next(beyond, ""))


def _largest_amount(resource: str, launch: Launch, catalog: Catalog) -> int:
    """Return the largest amount of a resource among the instance types of a launch."""
    if resource == NODES:
        return 1
    names = {each.instance_type for each in launch.options}
    types = (each for each in catalog.types_for(launch.pool) if each.name in names)
    return max((each.capacity.get(resource, 0) for each in types), default=0)
