from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Unpack

import pytest
from msgspec.structs import replace

from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Validation
from karpy.core.disruption.progress import (
    FORMING_TIME,
    TAINTING_PACE,
    NodeChange,
    Progress,
    advance,
    command_time_limit,
    fail_launch,
    leave_out_refused,
    start,
    start_validated,
    validation_due,
    with_claim_names,
)
from karpy.core.lifecycle.changes import Changes, Count, Remark
from karpy.model.commands import Command, CommandNode, Replacement, Stage
from karpy.model.conditions import TRUE, Condition
from karpy.model.kinds import NODE
from karpy.model.nodes import Node, RepairAction
from karpy.model.notices import Notice, Subject
from karpy.model.pools import DisruptionReason
from karpy.model.verdicts import Launch, LaunchOption, NodeReason, NodeRefusal
from tests.builders.pods import NOON
from tests.core.disruption.scenes import (
    DISRUPTED,
    HOUR,
    MINUTE,
    NodeFields,
    cluster,
    event_rows,
    node,
    only_claim,
    only_node,
)

SECOND = timedelta(seconds=1)
DEADLINE = "karpenter.sh/nodeclaim-termination-timestamp"
GRACE = "karpenter.sh/reboot-termination-grace-period"
LAUNCH = Launch("web-1", "web", (), {}, {}, (LaunchOption("small", 250_000, "zone-a", "spot"),))
A = CommandNode("a", "a-claim", "web", 1_000_000, 2)
B = CommandNode("b", "b-claim", "web", 1_000_000)
COMMAND = Command(
    "emptiness",
    DisruptionReason.EMPTY,
    (A,),
    consolidation_type="empty",
    proposed=NOON - 15 * SECOND,
    id="id-1",
)
TAINTING = replace(COMMAND, stage=Stage.TAINTING, begun=NOON)
WAITING = replace(COMMAND, stage=Stage.WAITING, begun=NOON, is_counted=True)
DRIFT = replace(
    WAITING, method="drift", reason=DisruptionReason.DRIFTED, consolidation_type="", nodes=(A,)
)
REPAIRED = replace(A, condition="KWOKUnhealthy/Broken", drain_bound=5 * MINUTE)
REPAIR = replace(
    COMMAND,
    method="repair",
    reason=DisruptionReason.UNHEALTHY,
    nodes=(REPAIRED,),
    consolidation_type="",
)
LABELS = {"decision": "delete", "reason": "empty", "consolidation_type": "empty"}
DISRUPTED_LABELS = {
    "reason": "empty",
    "nodepool": "web",
    "capacity_type": "on-demand",
    "consolidation_policy": "when_empty_or_underutilized",
    "termination_mode": "graceful",
}
DECISIONS = "voluntary_disruption_decisions_total"
BY_POOL = "voluntary_disruption_decisions_by_nodepool_total"
FAILURES = "voluntary_disruption_queue_failures_total"
FAILED_VALIDATIONS = "voluntary_disruption_failed_validations_total"


def tainted(name: str, reason: str = "Empty", **fields: Unpack[NodeFields]) -> Node:
    """Build a node as it is once a command has tainted it."""
    fields["taints"] = [DISRUPTED]
    made = node(name, **fields)
    assert made.claim_record is not None
    chosen = Condition("DisruptionReason", TRUE, NOON, reason, reason)
    conditions = made.claim_record.conditions.with_condition(chosen, NOON)
    return replace(made, claim_record=replace(made.claim_record, conditions=conditions))


def advanced(command: Command, *nodes: Node, after: timedelta = SECOND) -> Progress:
    """Return the next step of a command, some time after it began."""
    return advance(command, cluster(*nodes, now=NOON + after))


def taints_of(changes: Iterable[NodeChange]) -> dict[str, object]:
    """Return the taints that changes write on Nodes, by name; None for an unchanged Node."""
    return {
        each.node: None if each.changes.node is None else each.changes.node.taints
        for each in changes
    }


def deleted(progress: Progress) -> list[str]:
    """Return the claims that a step deletes."""
    return [each.claim for each in progress.changes if each.changes.deletes_claim]


def counts_of(progress: Progress) -> Mapping[str, float]:
    return {each.metric: each.value for each in progress.outcome.counts}


def errors_of(progress: Progress) -> list[str]:
    return [each.fields["error"] for each in progress.outcome.remarks if each.is_error]


# --- validation ----------------------------------------------------------------------------------


def test_a_proposal_is_validated_after_fifteen_seconds() -> None:
    assert validation_due(COMMAND) == NOON


def test_a_proposed_command_does_nothing_by_itself() -> None:
    assert advanced(COMMAND, node("a")) == Progress(COMMAND)


def test_a_valid_command_begins() -> None:
    progress = start_validated(COMMAND, Validation(COMMAND), cluster(node("a")))

    assert progress.command == TAINTING
    assert progress.outcome.counts == ()
    assert [each.event for each in progress.outcome.remarks] == ["disrupting node(s)"]


def test_a_command_goes_on_with_the_nodes_that_are_left_of_it() -> None:
    both = replace(COMMAND, nodes=(A, B))

    progress = start_validated(both, Validation(COMMAND), cluster(node("a"), node("b")))

    assert progress.command == TAINTING
    assert [each.claim for each in progress.changes] == ["a-claim"]
    assert progress.outcome.counts == (
        Count(FAILED_VALIDATIONS, {"consolidation_type": "empty"}, 1.0),
    )


def test_a_command_of_which_nothing_is_left_is_abandoned() -> None:
    both = replace(COMMAND, nodes=(A, B))

    progress = start_validated(both, Validation(None, why="churn"), cluster(node("a"), node("b")))

    fields = {
        "command": "Empty/id-1: delete: nodepools=[web]: [a, b] (savings: $2.00)",
        "reason": "churn",
    }
    text = "abandoning emptiness attempt, command is no longer valid"
    assert progress == Progress(
        replace(both, stage=Stage.ABANDONED),
        outcome=Changes(
            counts=(Count(FAILED_VALIDATIONS, {"consolidation_type": "empty"}, 2.0),),
            remarks=(Remark(text, fields),),
        ),
    )


def test_the_events_of_a_rejected_command_are_emitted() -> None:
    notice = Notice(Subject(NODE, "a"), "ConsolidationRejected", "it has changed")

    progress = start_validated(COMMAND, Validation(None, notices=(notice,)), cluster(node("a")))

    assert progress.outcome.notices == (notice,)


# --- tainting ------------------------------------------------------------------------------------


def test_a_command_begins_with_the_taints_of_its_nodes() -> None:
    progress = start(COMMAND, cluster(node("a")))

    after = tainted("a")
    fields = {
        "command": "Empty/id-1: delete: nodepools=[web]: [a] (savings: $1.00)",
        "decision": "delete",
        "disrupted-node-count": "1",
        "replacement-node-count": "0",
        "pod-count": "2",
    }
    assert progress == Progress(
        TAINTING,
        (
            NodeChange(
                "a-claim",
                "a",
                Changes(claim=after.claim_record, node=after.node_record),
                is_disruptive=True,
            ),
        ),
        outcome=Changes(
            remarks=(Remark("disrupting node(s)", fields),), requeue_after=TAINTING_PACE
        ),
    )


def test_a_node_whose_taint_is_not_in_the_snapshot_is_tainted_again() -> None:
    both = replace(TAINTING, nodes=(A, B))

    progress = advanced(both, tainted("a"), node("b"))

    assert progress.command == both
    assert taints_of(progress.changes) == {"b": (DISRUPTED,)}


def test_nodes_that_are_deleted_meanwhile_are_left_out() -> None:
    both = replace(TAINTING, nodes=(A, B))

    gone = advanced(both, node("a"))
    deleting = advanced(both, node("a"), node("b", deleting=True))

    assert (gone.command, deleting.command) == (TAINTING, TAINTING)
    assert [each.claim for each in (*gone.changes, *deleting.changes)] == ["a-claim", "a-claim"]


def test_a_command_is_over_once_all_its_nodes_are_gone() -> None:
    assert advanced(TAINTING) == Progress(replace(TAINTING, stage=Stage.DONE))


def test_replacements_are_not_launched_for_nodes_of_which_one_is_gone() -> None:
    """The replacements were chosen for the pods of all nodes together."""
    both = replace(TAINTING, nodes=(A, B), replacements=(Replacement(LAUNCH),))

    progress = advanced(both, tainted("a"))

    assert progress.command.stage is Stage.FAILED
    assert progress.launches == ()
    assert taints_of(progress.changes) == {"a": ()}
    assert errors_of(progress) == ["one of its nodes was deleted"]


def test_a_node_that_cannot_be_tainted_is_left_out_in_the_end() -> None:
    both = replace(TAINTING, nodes=(A, B))
    half = node("b", true_conditions=["DisruptionReason"])

    waiting = advanced(both, tainted("a"), half, after=FORMING_TIME)
    progress = advanced(both, tainted("a"), half, after=FORMING_TIME + SECOND)

    assert waiting.command == both
    assert progress.command == WAITING
    assert deleted(progress) == ["a-claim"]
    (undone,) = [each.changes.claim for each in progress.changes if each.claim == "b-claim"]
    assert undone is not None
    assert undone.conditions.get("DisruptionReason") is None
    assert progress.outcome.remarks[0] == Remark(
        "leaving nodes out of a disruption command, they could not be tainted",
        {
            "command": "Empty/id-1: delete: nodepools=[web]: [a, b] (savings: $2.00)",
            "nodeclaims": "b-claim",
        },
        is_error=True,
    )


@pytest.mark.parametrize(
    ("command", "nodes"),
    [
        (TAINTING, [node("a")]),
        (
            replace(TAINTING, nodes=(A, B), replacements=(Replacement(LAUNCH),)),
            [tainted("a"), node("b")],
        ),
    ],
    ids=["none is tainted", "replacements are for all"],
)
def test_a_command_that_cannot_taint_what_it_needs_has_failed(
    command: Command, nodes: list[Node]
) -> None:
    progress = advanced(command, *nodes, after=FORMING_TIME + SECOND)

    assert progress.command.stage is Stage.FAILED
    assert errors_of(progress) == ["tainting its nodes took too long"]
    assert set(taints_of(progress.changes).values()) <= {()}


# --- launching -----------------------------------------------------------------------------------


def test_replacements_are_launched_before_anything_is_deleted() -> None:
    command = replace(TAINTING, replacements=(Replacement(LAUNCH),))

    progress = advanced(command, tainted("a"))

    assert progress == Progress(
        replace(command, stage=Stage.LAUNCHING),
        launches=(LAUNCH,),
        outcome=Changes(requeue_after=SECOND),
    )


def test_a_launch_that_failed_is_tried_again_for_a_while() -> None:
    command = replace(TAINTING, stage=Stage.LAUNCHING, replacements=(Replacement(LAUNCH),))

    again = advanced(command, tainted("a"), after=FORMING_TIME)
    late = advanced(command, tainted("a"), after=FORMING_TIME + SECOND)

    assert (again.command, again.launches) == (command, (LAUNCH,))
    assert (late.command.stage, late.launches) == (Stage.FAILED, ())
    assert taints_of(late.changes) == {"a": ()}
    assert errors_of(late) == ["launching its replacements took too long"]


def test_a_command_of_which_a_replacement_is_refused_keeps_its_nodes() -> None:
    command = replace(TAINTING, stage=Stage.LAUNCHING, replacements=(Replacement(LAUNCH),))

    progress = fail_launch(command, cluster(tainted("a")))

    assert (progress.command.stage, progress.launches) == (Stage.FAILED, ())
    assert taints_of(progress.changes) == {"a": ()}
    assert errors_of(progress) == ["a replacement could not be launched"]


def test_pods_need_another_node_once_replacements_are_launched() -> None:
    """If they counted earlier, provisioning would launch nodes for the same pods."""
    command = replace(TAINTING, stage=Stage.LAUNCHING, replacements=(Replacement(LAUNCH),))

    launched = with_claim_names(command, ["web-x"])

    assert command.deleting == frozenset()
    assert launched.deleting == frozenset({"a-claim"})
    assert launched.replacements == (Replacement(LAUNCH, "web-x"),)


# --- waiting -------------------------------------------------------------------------------------


def test_a_node_waits_for_its_replacement() -> None:
    command = replace(WAITING, replacements=(Replacement(LAUNCH, "r-claim"),))

    progress = advanced(command, tainted("a"), only_claim("r", initialized=False))

    assert progress.changes == ()
    assert progress.outcome.requeue_after == SECOND
    assert event_rows(progress.outcome.notices) == [
        ("NodeClaim", "r-claim", "DisruptionLaunching", "Launching NodeClaim: Empty"),
        (
            "NodeClaim",
            "r-claim",
            "DisruptionWaitingReadiness",
            "Waiting on readiness to continue disruption",
        ),
    ]


def test_a_node_waits_for_the_last_of_its_replacements() -> None:
    both = (Replacement(LAUNCH, "r-claim"), Replacement(LAUNCH, "s-claim"))

    progress = advanced(
        replace(WAITING, replacements=both),
        tainted("a"),
        node("r"),
        node("s", initialized=False),
    )

    assert progress.changes == ()
    assert [each.is_initialized for each in progress.command.replacements] == [True, False]


def test_a_node_is_deleted_once_its_replacement_is_initialized() -> None:
    command = replace(WAITING, replacements=(Replacement(LAUNCH, "r-claim"),))

    progress = advanced(command, tainted("a"), node("r"))

    assert progress.command.replacements == (Replacement(LAUNCH, "r-claim", True),)
    assert deleted(progress) == ["a-claim"]


@pytest.mark.parametrize(
    "others",
    [
        [],
        [only_claim("r", initialized=False, deleting=True)],
        [node("r", deleting=True)],
    ],
    ids=["gone", "deleting before it was initialized", "deleting as it is seen initialized"],
)
def test_a_command_fails_if_a_replacement_is_deleted(others: list[Node]) -> None:
    command = replace(WAITING, replacements=(Replacement(LAUNCH, "r-claim"),))

    progress = advanced(command, tainted("a"), *others)

    assert progress.command.stage is Stage.FAILED
    assert taints_of(progress.changes) == {"a": ()}
    assert errors_of(progress) == ["a replacement was deleted"]
    assert progress.outcome.counts == (Count(FAILURES, {**LABELS, "decision": "replace"}, 1.0),)


def test_a_command_whose_replacement_is_deleted_at_once_was_a_decision_all_the_same() -> None:
    launched = with_claim_names(
        replace(TAINTING, stage=Stage.LAUNCHING, replacements=(Replacement(LAUNCH),)), ["r-claim"]
    )

    progress = advanced(launched, tainted("a"))

    assert counts_of(progress) == {DECISIONS: 1.0, BY_POOL: 1.0, FAILURES: 1.0}


def test_a_replacement_that_was_initialized_once_may_go() -> None:
    command = replace(WAITING, replacements=(Replacement(LAUNCH, "r-claim", True),))

    progress = advanced(command, tainted("a"))

    assert progress.command.stage is Stage.WAITING
    assert deleted(progress) == ["a-claim"]


# --- deletion ------------------------------------------------------------------------------------


def test_tainted_nodes_are_deleted_counted_and_named_in_events() -> None:
    progress = advanced(TAINTING, tainted("a"))

    (change,) = progress.changes
    assert progress.command == WAITING
    assert progress.outcome == Changes(
        counts=(Count(DECISIONS, LABELS), Count(BY_POOL, {"nodepool": "web", **LABELS})),
        requeue_after=SECOND,
    )
    assert change == NodeChange(
        "a-claim",
        "a",
        Changes(
            deletes_claim=True,
            notices=change.changes.notices,
            counts=(
                Count("nodeclaims_disrupted_total", DISRUPTED_LABELS),
                Count("pods_disruption_initiated_total", DISRUPTED_LABELS, 2.0),
            ),
        ),
        is_disruptive=True,
    )
    assert event_rows(change.changes.notices) == [
        ("Node", "a", "DisruptionTerminating", "Disrupting Node: Empty"),
        ("NodeClaim", "a-claim", "DisruptionTerminating", "Disrupting NodeClaim: Empty"),
    ]


def test_a_decision_is_counted_for_each_of_its_pools() -> None:
    other = replace(B, pool="batch")

    progress = advanced(
        replace(TAINTING, nodes=(A, other)), tainted("a"), tainted("b", pool="batch")
    )

    assert deleted(progress) == ["a-claim", "b-claim"]
    assert progress.outcome.counts == (
        Count(DECISIONS, LABELS),
        Count(BY_POOL, {"nodepool": "web", **LABELS}),
        Count(BY_POOL, {"nodepool": "batch", **LABELS}),
    )


def test_a_decision_is_counted_once() -> None:
    progress = advanced(WAITING, tainted("a"))

    assert deleted(progress) == ["a-claim"]
    assert progress.outcome.counts == ()


def test_a_deletion_that_is_not_seen_is_asked_for_again() -> None:
    both = replace(WAITING, nodes=(A, B))

    progress = advanced(both, tainted("a", deleting=True), tainted("b"))

    assert progress.command == both
    assert deleted(progress) == ["b-claim"]


@pytest.mark.parametrize(
    ("grace", "mode"),
    [(None, "graceful"), (MINUTE, "eventual"), (timedelta(), "forceful")],
)
def test_metrics_say_how_a_node_is_terminated_and_of_no_policy_but_for_consolidation(
    grace: timedelta | None, mode: str
) -> None:
    progress = advanced(DRIFT, tainted("a", grace_period=grace, spot=True))

    (change,) = progress.changes
    assert change.changes.counts[0].labels == {
        "reason": "drifted",
        "nodepool": "web",
        "capacity_type": "spot",
        "consolidation_policy": "",
        "termination_mode": mode,
    }


@pytest.mark.parametrize("nodes", [[], [tainted("a", deleting=True)]], ids=["gone", "deleting"])
def test_a_command_is_done_once_its_nodes_are_being_deleted(nodes: list[Node]) -> None:
    progress = advanced(WAITING, *nodes)

    fields = {"command": "Empty/id-1: delete: nodepools=[web]: [a] (savings: $1.00)"}
    assert progress == Progress(
        replace(WAITING, stage=Stage.DONE),
        outcome=Changes(remarks=(Remark("command succeeded", fields),)),
    )
    assert progress.command.claims == frozenset()


def test_a_command_that_ends_well_but_late_has_not_failed() -> None:
    progress = advanced(WAITING, tainted("a", deleting=True), after=2 * HOUR)

    assert progress.command.stage is Stage.DONE
    assert progress.changes == ()
    assert progress.outcome.counts == ()


# --- failure -------------------------------------------------------------------------------------


def test_a_command_that_takes_too_long_keeps_its_nodes() -> None:
    command = replace(WAITING, replacements=(Replacement(LAUNCH, "r-claim"),))
    nodes = (tainted("a"), only_claim("r", initialized=False))

    in_time = advanced(command, *nodes, after=10 * MINUTE)
    late = advanced(command, *nodes, after=10 * MINUTE + SECOND)

    assert in_time.command.stage is Stage.WAITING
    assert late.command == replace(command, stage=Stage.FAILED)
    (undone,) = late.changes
    assert undone.changes.node == node("a").node_record
    assert undone.changes.claim is not None
    assert undone.changes.claim.conditions.get("DisruptionReason") is None
    assert not undone.is_disruptive
    assert late.outcome == Changes(
        counts=(Count(FAILURES, {**LABELS, "decision": "replace"}, 1.0),),
        remarks=(
            Remark(
                "failed terminating nodes while executing a disruption command",
                {"command": str(command), "error": "it took too long"},
                is_error=True,
            ),
        ),
    )


def test_a_failed_command_keeps_its_replacements() -> None:
    """Pods may be bound to the replacements already; otherwise emptiness deletes them."""
    command = replace(
        WAITING, replacements=(Replacement(LAUNCH, "r-claim"), Replacement(LAUNCH, "s-claim"))
    )

    progress = advanced(command, tainted("a"), node("r"))

    assert progress.command.stage is Stage.FAILED
    assert deleted(progress) == []
    assert counts_of(progress) == {FAILURES: 1.0}


def test_a_failed_command_leaves_nodes_alone_that_are_being_deleted() -> None:
    both = replace(WAITING, nodes=(A, B))

    progress = advanced(both, tainted("a", deleting=True), tainted("b"), after=HOUR)

    assert taints_of(progress.changes) == {"b": ()}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (0, timedelta(minutes=10)),
        (7_500, timedelta(minutes=10)),
        (20_000, timedelta(seconds=1600)),
        (45_000, timedelta(hours=1)),
        (99_000, timedelta(hours=1)),
    ],
)
def test_a_command_may_take_longer_the_more_nodes_are_in_one(
    nodes: int, expected: timedelta
) -> None:
    assert command_time_limit(nodes) == expected


def test_nodes_of_other_commands_count_for_how_long_it_may_take() -> None:
    command = replace(WAITING, replacements=(Replacement(LAUNCH, "r-claim"),))
    others = frozenset(f"other-{each}" for each in range(20_000))
    late = cluster(
        tainted("a"),
        only_claim("r", initialized=False),
        now=NOON + 20 * MINUTE,
        in_command=others,
    )

    assert advance(command, late).command.stage is Stage.WAITING


@pytest.mark.parametrize("stage", [Stage.DONE, Stage.ABANDONED, Stage.FAILED])
def test_a_command_that_is_over_stays_so(stage: Stage) -> None:
    command = replace(WAITING, stage=stage)

    assert advanced(command, node("a")) == Progress(command)


# --- repair --------------------------------------------------------------------------------------


def test_a_repair_begins_without_a_validation() -> None:
    progress = start(REPAIR, cluster(node("a", true_conditions=[])))

    assert progress.command == replace(REPAIR, stage=Stage.TAINTING, begun=NOON)
    assert taints_of(progress.changes) == {"a": (DISRUPTED,)}
    (change,) = progress.changes
    assert change.changes.claim is not None
    assert change.changes.claim.conditions.get("DisruptionReason") == Condition(
        "DisruptionReason", TRUE, NOON, "Unhealthy", "Unhealthy"
    )


def test_an_escalated_reboot_is_marked_in_the_log() -> None:
    escalated = replace(REPAIR, nodes=(replace(REPAIRED, is_escalated=True),))

    progress = start(escalated, cluster(node("a")))

    (remark,) = progress.outcome.remarks
    assert remark.fields["reboot-escalated"] == "true"


def test_the_drain_of_a_repair_is_bounded_from_its_deletion_on() -> None:
    """The time that the replacement takes to boot must not be taken from the drain."""
    waiting = replace(REPAIR, stage=Stage.WAITING, begun=NOON, is_counted=True)

    progress = advanced(waiting, tainted("a", "Unhealthy", grace_period=HOUR), after=3 * MINUTE)

    (change,) = progress.changes
    assert change.changes.deletes_claim
    assert change.changes.claim is not None
    assert change.changes.claim.meta.annotations == {DEADLINE: "2026-03-02T12:08:00Z"}
    assert [(each.metric, each.labels["termination_mode"]) for each in change.changes.counts] == [
        ("nodeclaims_disrupted_total", "eventual"),
        ("pods_disruption_initiated_total", "eventual"),
        ("nodeclaims_unhealthy_disrupted_total", "eventual"),
    ]
    assert change.changes.counts[-1] == Count(
        "nodeclaims_unhealthy_disrupted_total",
        {
            "condition": "kwok_unhealthy",
            "nodepool": "web",
            "capacity_type": "on-demand",
            "image_id": "",
            "termination_mode": "eventual",
        },
    )


def test_no_drain_is_bounded_while_a_replacement_boots() -> None:
    waiting = replace(
        REPAIR, stage=Stage.WAITING, begun=NOON, replacements=(Replacement(LAUNCH, "r-claim"),)
    )

    progress = advanced(waiting, tainted("a"), only_claim("r", initialized=False))

    assert progress.changes == ()


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("2026-03-02T12:04:00Z", "2026-03-02T12:04:00Z"),
        ("2026-03-02T12:30:00Z", "2026-03-02T12:05:01Z"),
        ("unreadable", "2026-03-02T12:05:01Z"),
    ],
)
def test_of_two_ends_of_a_drain_the_earlier_counts(written: str, kept: str) -> None:
    waiting, found = replace(REPAIR, stage=Stage.WAITING, begun=NOON), tainted("a")
    assert found.claim_record is not None
    meta = replace(found.claim_record.meta, annotations={DEADLINE: written})
    claim = replace(found.claim_record, meta=meta)

    (change,) = advanced(waiting, replace(found, claim_record=claim)).changes

    assert change.changes.claim is not None
    assert change.changes.claim.meta.annotations == {DEADLINE: kept}


def test_a_drain_without_a_bound_is_left_to_its_claim() -> None:
    waiting = replace(DRIFT, nodes=(A,))

    (change,) = advanced(waiting, tainted("a", grace_period=MINUTE)).changes

    assert change.changes.claim is None


@pytest.mark.parametrize(
    ("condition", "label"),
    [
        ("Ready/KubeletNotReady", "ready"),
        ("Ready/", "ready"),
        ("example.com/DiskBroken/IOError", "example.com/disk_broken"),
    ],
)
def test_metrics_name_the_type_of_the_condition(condition: str, label: str) -> None:
    chosen = replace(REPAIRED, condition=condition)
    waiting = replace(REPAIR, stage=Stage.WAITING, begun=NOON, nodes=(chosen,))

    (change,) = advanced(waiting, tainted("a")).changes

    assert change.changes.counts[-1].labels["condition"] == label


def test_a_node_that_is_deleted_before_its_replacement_is_counted_as_such() -> None:
    command = replace(REPAIR, stage=Stage.WAITING, begun=NOON, terminates_first="static-at-limit")

    progress = advanced(command, tainted("a"))

    labels = {
        "nodepool": "web",
        "reason": "unhealthy",
        "terminate_first_reason": "static-at-limit",
    }
    assert deleted(progress) == ["a-claim"]
    assert progress.outcome.counts[0].labels["decision"] == "terminate-first"
    assert progress.outcome.counts[-1] == Count(
        "voluntary_disruption_terminate_first_decisions_total", labels
    )


# --- reboots -------------------------------------------------------------------------------------


def rebooted(bound: timedelta | None = None, **fields: Unpack[NodeFields]) -> Progress:
    """Return the changes that a reboot command makes on its node."""
    chosen = replace(A, action=RepairAction.REBOOT, condition="Slow/Swapping", drain_bound=bound)
    return start(replace(REPAIR, nodes=(chosen,)), cluster(node("a", **fields)))


def test_a_reboot_is_asked_for_on_the_claim_and_is_over_with_that() -> None:
    progress = rebooted(5 * MINUTE)

    (change,) = progress.changes
    claim = change.changes.claim
    assert progress.command.stage is Stage.DONE
    assert (change.changes.node, change.changes.deletes_claim) == (None, False)
    assert claim is not None
    assert claim.conditions.get("Rebooting") == Condition(
        "Rebooting", TRUE, NOON, "RebootRequested", "rebooting for Slow/Swapping"
    )
    assert claim.conditions.get("DisruptionReason") == Condition(
        "DisruptionReason", TRUE, NOON, "Unhealthy", "Unhealthy"
    )
    assert change.changes.remarks == (
        Remark(
            "committed node reboot",
            {"NodeClaim": "a-claim", "Node": "a", "condition": "rebooting for Slow/Swapping"},
        ),
    )


def test_a_reboot_is_counted_as_a_decision_and_as_a_disruption() -> None:
    progress = rebooted(timedelta(), grace_period=HOUR)

    (change,) = progress.changes
    labels = {"decision": "reboot", "reason": "unhealthy", "consolidation_type": ""}
    assert progress.outcome.counts == (
        Count(DECISIONS, labels),
        Count(BY_POOL, {"nodepool": "web", **labels}),
    )
    assert [
        (each.metric, each.labels["termination_mode"], each.value) for each in change.changes.counts
    ] == [
        ("nodeclaims_disrupted_total", "eventual", 1.0),
        ("pods_disruption_initiated_total", "eventual", 2.0),
        ("nodeclaims_unhealthy_disrupted_total", "forceful", 1.0),
    ]


@pytest.mark.parametrize(
    ("bound", "grace", "written"),
    [
        (None, None, {}),
        (None, HOUR, {GRACE: "1h0m0s"}),
        (5 * MINUTE, HOUR, {GRACE: "5m0s"}),
        (timedelta(), None, {GRACE: "0s"}),
    ],
    ids=["unbounded", "that of the claim", "its own", "at once"],
)
def test_the_drain_before_a_reboot_ends_by_its_bound_or_that_of_the_claim(
    bound: timedelta | None, grace: timedelta | None, written: Mapping[str, str]
) -> None:
    (change,) = rebooted(bound, grace_period=grace).changes

    assert change.changes.claim is not None
    assert change.changes.claim.meta.annotations == written


@pytest.mark.parametrize("nodes", [[], [node("a", deleting=True)]], ids=["gone", "deleting"])
def test_a_terminating_node_is_not_rebooted(nodes: list[Node]) -> None:
    chosen = replace(A, action=RepairAction.REBOOT)

    progress = start(replace(REPAIR, nodes=(chosen,)), cluster(*nodes))

    assert (progress.command.stage, progress.changes) == (Stage.DONE, ())
    assert progress.outcome.counts == ()


# --- nodes that pods keep after all --------------------------------------------------------------


A_IS_NEEDED = NodeRefusal(NodeReason.NOT_EMPTY, "a", "shop/x")
BOTH = replace(WAITING, nodes=(A, B))
BOTH_NODES = Evaluation(cluster(tainted("a"), tainted("b")))


def deleting(*names: str) -> tuple[NodeChange, ...]:
    changes = Changes(deletes_claim=True)
    return tuple(NodeChange(f"{each}-claim", each, changes, is_disruptive=True) for each in names)


def test_a_node_that_is_needed_is_left_out_and_its_taint_removed() -> None:
    refusal = NodeRefusal(NodeReason.POD_DO_NOT_DISRUPT, "a", "shop/x")

    progress = leave_out_refused(Progress(BOTH, deleting("a", "b")), (refusal,), BOTH_NODES)

    assert progress.command == replace(BOTH, nodes=(B,))
    assert progress.changes[0] == deleting("b")[0]
    assert taints_of(progress.changes[1:]) == {"a": ()}
    assert progress.outcome.counts == (
        Count(FAILED_VALIDATIONS, {"consolidation_type": "empty"}, 1.0),
    )
    assert event_rows(progress.outcome.notices) == [
        (
            kind,
            name,
            "DisruptionBlocked",
            'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=shop/x)',
        )
        for kind, name in (("Node", "a"), ("NodeClaim", "a-claim"))
    ]
    assert progress.outcome.remarks[0].fields["nodes"] == (
        "a: the annotation karpenter.sh/do-not-disrupt of a pod forbids disruption (shop/x)"
    )


@pytest.mark.parametrize(
    ("command", "left"),
    [
        (WAITING, {"a": ()}),
        (replace(BOTH, replacements=(Replacement(LAUNCH),)), {"a": (), "b": ()}),
    ],
    ids=["nothing is left", "replacements are for all"],
)
def test_a_command_that_cannot_do_without_a_node_is_given_up(
    command: Command, left: Mapping[str, object]
) -> None:
    planned = Progress(command, deleting("a"), launches=(LAUNCH,))

    progress = leave_out_refused(planned, (A_IS_NEEDED,), BOTH_NODES)

    assert (progress.command, progress.launches) == (replace(command, stage=Stage.FAILED), ())
    assert taints_of(progress.changes) == left


# --- all stages ----------------------------------------------------------------------------------


def test_a_replacement_goes_through_all_stages() -> None:
    """Each step starts from the objects that the step before has written."""
    proposed = replace(COMMAND, replacements=(Replacement(LAUNCH),))

    def seen(command: Command, at: datetime, *nodes: Node) -> Progress:
        return advance(command, cluster(*nodes, now=at))

    begun = start_validated(proposed, Validation(proposed), cluster(node("a")))
    launching = seen(begun.command, NOON + SECOND, tainted("a"))
    launched = with_claim_names(launching.command, ["r-claim"])
    booting = only_claim("r", initialized=False)
    waiting = seen(launched, NOON + 2 * SECOND, tainted("a"), booting)
    deleting_it = seen(waiting.command, NOON + MINUTE, tainted("a"), node("r"))
    done = seen(deleting_it.command, NOON + MINUTE + SECOND, tainted("a", deleting=True), node("r"))

    steps = [begun, launching, waiting, deleting_it, done]
    assert [each.command.stage for each in steps] == [
        Stage.TAINTING,
        Stage.LAUNCHING,
        Stage.WAITING,
        Stage.WAITING,
        Stage.DONE,
    ]
    assert [deleted(each) for each in steps] == [[], [], [], ["a-claim"], []]
    assert [counts_of(each) for each in steps] == [{}, {}, {DECISIONS: 1.0, BY_POOL: 1.0}, {}, {}]


def test_nodes_without_a_claim_do_not_stop_a_command() -> None:
    progress = advanced(TAINTING, only_node("other", pool=""), tainted("a"))

    assert deleted(progress) == ["a-claim"]
