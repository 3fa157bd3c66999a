"""Repair: reboot or replace broken nodes by the repair policies of the cloud provider."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.budgets import Allowances, find_allowances
from karpy.core.disruption.candidates import (
    Candidate,
    DisruptionClass,
    as_command_node,
    find_candidates,
    refuse,
)
from karpy.core.disruption.evaluation import Evaluation
from karpy.core.disruption.method import Proposal, Validation, eligible_count
from karpy.core.disruption.relocations import relocate_keeping_places
from karpy.core.disruption.terminatefirst import (
    NO_RESERVED_CAPACITY,
    headcount_of,
    plan_static,
    relocate_with_credit,
    reservation_of,
    why_shrinking,
)
from karpy.core.lifecycle.changes import Remark, about_claim, about_node
from karpy.core.lifecycle.repair import UNHEALTHY_SHARE
from karpy.core.nodepool.staticcapacity import template_launch
from karpy.model.commands import Command, Replacement
from karpy.model.conditions import FALSE, REBOOTING, TRUE, UNKNOWN, Condition
from karpy.model.kinds import NODE_POOL
from karpy.model.labels import DO_NOT_REPAIR
from karpy.model.labels import NODE_POOL as NODE_POOL_LABEL
from karpy.model.nodes import RepairAction, RepairPolicy
from karpy.model.notices import Notice, Subject
from karpy.model.pools import DisruptionReason
from karpy.model.records import ClaimRecord, NodeRecord
from karpy.model.times import write_duration, write_moment
from karpy.model.verdicts import NodeReason, NodeRefusal

_MOMENT: Final = timedelta(microseconds=1)
_AGEING: Final = timedelta(minutes=30) // _MOMENT
"""Waiting time, in microseconds, that raises the urgency of a repair by one priority."""
_PRIORITIES: Final = range(101)
_STATUSES: Final = frozenset({TRUE, FALSE, UNKNOWN})
_SEVERITY: Final = {RepairAction.REBOOT: 0, RepairAction.REPLACE: 1}
_REBOOTS_MAX: Final = 2
_REBOOTS_COUNT: Final = timedelta(hours=24)
_BLOCKED_WINDOW: Final = 15 * 60.0
_SHOWN_MAX: Final = 3


class Match(Struct, frozen=True, gc=False):
    """A Node condition, a policy that matches it, and when its toleration ends."""

    condition: Condition
    policy: RepairPolicy
    due: datetime


class DueRepair(Struct, frozen=True, gc=False):
    """How a node is repaired, and how urgent that is."""

    action: RepairAction
    match: Match
    """The condition and policy that logs, metrics and conditions name as the cause."""
    grace_period: timedelta | None = None
    """The time limit of the drain; None means that of the NodeClaim."""
    score: Fraction = Fraction()


def find_repair(
    claim: ClaimRecord, node: NodeRecord, policies: Sequence[RepairPolicy], now: datetime
) -> DueRepair | None:
    """Return the repair that is due for a node; None if it is healthy or still tolerated."""
    due = [each for each in find_matches(claim, node, policies) if each.due <= now]
    if not due:
        return None
    first = min(due, key=_most_disruptive_first)
    periods = [each.policy.grace_period for each in due if each.policy.grace_period is not None]
    priorities = sorted({each.priority for each in policies})
    scores = (
        priorities.index(each.policy.priority) + Fraction((now - each.due) // _MOMENT, _AGEING)
        for each in due
    )
    return DueRepair(first.policy.action, first, min(periods, default=None), max(scores))


def find_matches(
    claim: ClaimRecord, node: NodeRecord, policies: Sequence[RepairPolicy]
) -> Iterator[Match]:
    """Yield the policies that match conditions of a node, including those still tolerated."""
    known = {(each.condition, each.status) for each in policies}
    for condition in node.conditions:
        if (condition.type, condition.status) in known:
            # A condition may be older than the Node, or than the reboot that should repair it.
            since = max([condition.changed, *_beginnings(claim, node)])
            for policy in _policies_for(condition, policies):
                yield Match(condition, policy, since + policy.toleration)


def is_unhealthy(node: NodeRecord, policies: Sequence[RepairPolicy]) -> bool:
    """Say whether a policy matches a condition of a node, whatever reason and age that has."""
    known = {(each.condition, each.status) for each in policies}
    return any((each.type, each.status) in known for each in node.conditions)


def find_policy_faults(policies: Sequence[RepairPolicy]) -> tuple[str, ...]:
    """Return the errors in the policies of a cloud; with any error no node is repaired."""
    if not policies:
        return ()
    faults = [fault for each in policies for fault in _faults(each)]
    fallbacks = [each for each in policies if not each.reason_pattern]
    if len(fallbacks) != 1:
        faults.append(f"{len(fallbacks)} policies apply to any reason; it must be exactly one")
    elif fallbacks[0].action is not RepairAction.REPLACE:
        faults.append("the policy that applies to any reason must replace the node")
    return tuple(faults)


def _policies_for(condition: Condition, policies: Sequence[RepairPolicy]) -> list[RepairPolicy]:
    """Return the policies for the reason of a condition, or else the policy for any reason."""
    special = [
        each
        for each in policies
        if (each.condition, each.status) == (condition.type, condition.status)
        and each.reason_pattern
        and re.search(each.reason_pattern, condition.reason) is not None
    ]
    return special or [each for each in policies if not each.reason_pattern]


def _beginnings(claim: ClaimRecord, node: NodeRecord) -> list[datetime]:
    rebooted = claim.conditions.get(REBOOTING)
    found = [node.meta.created] if node.meta.created is not None else []
    if rebooted is not None and rebooted.status == FALSE:
        found.append(rebooted.changed)
    return found


def _most_disruptive_first(match: Match) -> tuple[int, int, datetime, str]:
    policy = match.policy
    return -_SEVERITY[policy.action], -policy.priority, match.due, match.condition.type


def _faults(policy: RepairPolicy) -> Iterator[str]:
    name = f"{policy.condition}={policy.status}"
    if not policy.condition:
        yield "a policy names no condition"
    if policy.status not in _STATUSES:
        yield f"{name}: a status is True, False or Unknown"
    if policy.toleration < timedelta() or (policy.grace_period or timedelta()) < timedelta():
        yield f"{name}: durations are not negative"
    if policy.priority not in _PRIORITIES:
        yield f"{name}: priority {policy.priority} is not between 0 and 100"
    try:
        re.compile(policy.reason_pattern)
    except re.error as error:
        yield f"{name}: `{policy.reason_pattern}` is no regular expression: {error}"


class Broken(Struct, frozen=True, gc=False):
    """A broken node, and how it is repaired."""

    candidate: Candidate
    repair: DueRepair
    cost: Fraction
    """The cost of disrupting its pods."""
    is_escalated: bool = False
    """Whether it is replaced because reboots have not repaired it."""

    @property
    def drain_bound(self) -> timedelta | None:
        """The time limit of its drain; None means that of its NodeClaim."""
        own, claims = self.repair.grace_period, self.candidate.claim.grace_period
        return own if own is None or claims is None else min(own, claims)


class Repair:
    """Repairs one broken node at a time, the most urgent first."""

    name = "repair"
    reason = DisruptionReason.UNHEALTHY
    consolidation_type = ""
    disruption_class = DisruptionClass.REPAIR
    is_validated = False

    def propose(self, evaluation: Evaluation) -> Proposal:
        """Choose the first broken node that can be repaired."""
        policies = evaluation.snapshot.repair.policies
        if not policies:
            return Proposal()
        faults = find_policy_faults(policies)
        if faults:
            fields = {"error": "; ".join(faults)}
            remark = Remark("invalid repair policies, no node is repaired", fields, is_error=True)
            return Proposal(remarks=(remark,))
        due = _find_due(evaluation)
        # Differs: the event DisruptionBlocked of repair: Karpenter emits it for every NodeClaim
        # without a NodePool, also if its node is healthy; Karpy emits it only for unhealthy nodes,
        # because only these need repair.
        nodes = [evaluation.nodes[claim] for claim in due]
        found = find_candidates(evaluation, self.disruption_class, nodes)
        refusals, broken = [*found.refusals], list[Broken]()
        for each in found.candidates:
            one = _broken(each, due[each.claim.name], evaluation)
            refusal = self._why_forbidden(one)
            if refusal is None:
                broken.append(one)
            else:
                refusals.append(refusal)
        gauge = eligible_count(self, len(broken))
        if not broken:
            return Proposal((), tuple(refusals), found.notices, (gauge,))
        allowances = find_allowances(evaluation, self.reason)
        decided, more = self._first(broken, evaluation, allowances, refusals)
        return Proposal(
            () if decided is None else (decided,),
            tuple(refusals),
            (*found.notices, *allowances.notices, *more.notices),
            (gauge, *allowances.counts),
            (*allowances.remarks, *more.remarks),
        )

    def validate(self, command: Command, evaluation: Evaluation) -> Validation:
        """Keep the command: a repair is carried out at once."""
        del evaluation
        return Validation(command)

    def _first(
        self,
        broken: list[Broken],
        evaluation: Evaluation,
        allowances: Allowances,
        refusals: list[NodeRefusal],
    ) -> tuple[Command | None, Proposal]:
        """Repair the first broken node that can be; return the command and the events."""
        shares, notices = _UnhealthyShares(evaluation), list[Notice]()
        command, remarks = None, list[Remark]()
        broken.sort(key=lambda each: (-each.repair.score, each.cost, each.candidate.name))
        broken.sort(key=lambda each: each.candidate.name not in evaluation.put_off)
        for each in broken:
            candidate, pool = each.candidate, each.candidate.pool.name
            if command is not None:
                refusals.append(refuse(candidate, NodeReason.NOT_CONSIDERED, self.name))
            elif shares.is_too_large(pool):
                detail = shares.text(pool)
                refusals.append(refuse(candidate, NodeReason.MOSTLY_UNHEALTHY, self.name, detail))
                notices += _unhealthy_notices(candidate)
            elif candidate.node.is_initialized and not allowances.by_pool[pool].remaining:
                refusals.append(allowances.refusal_of(candidate, self.name))
            else:
                decided = self._repair(each, evaluation)
                if isinstance(decided, Command):
                    command, remarks = decided, [_selection_remark(each)]
                else:
                    refusals.append(decided)
        return command, Proposal(notices=tuple(notices), remarks=tuple(remarks))

    def _repair(self, broken: Broken, evaluation: Evaluation) -> Command | NodeRefusal:
        if broken.repair.action is RepairAction.REBOOT:
            return self._command(broken, evaluation)
        if broken.candidate.pool.is_static:
            return self._replace_static(broken, evaluation)
        return self._replace_dynamic(broken, evaluation)

    def _why_forbidden(self, broken: Broken) -> NodeRefusal | None:
        """Say whether do-not-repair forbids a repair, or pods without a time limit of the drain."""
        candidate = broken.candidate
        if candidate.node.annotations.get(DO_NOT_REPAIR) == "true":
            return refuse(candidate, NodeReason.DO_NOT_REPAIR, self.name)
        graces = (broken.repair.grace_period, candidate.claim.grace_period)
        blocker = candidate.blocker
        if blocker is None or graces != (None, None):
            return None
        return refuse(
            candidate,
            NodeReason.REPAIR_NEEDS_GRACE,
            self.name,
            blocker.detail,
            pods=blocker.pods,
            until=blocker.until,
        )

    def _replace_dynamic(self, broken: Broken, evaluation: Evaluation) -> Command | NodeRefusal:
        candidate = broken.candidate
        found = relocate_keeping_places(candidate, evaluation)
        if found.is_out_of_time:
            return refuse(candidate, NodeReason.OUT_OF_TIME, self.name)
        if found.unplaced and evaluation.snapshot.settings.terminate_first_repair:
            credited = relocate_with_credit(candidate, evaluation)
            if credited is not None:
                first = self._command(broken, evaluation, NO_RESERVED_CAPACITY)
                return replace(first, nominated=credited.nodes)
        if found.unplaced:
            shown = "; ".join(found.unplaced[:_SHOWN_MAX])
            pods = tuple(each.partition(": ")[0] for each in found.unplaced)
            return refuse(candidate, NodeReason.PODS_UNPLACED, self.name, shown, pods=pods)
        replacements = tuple(Replacement(each) for each in found.launches)
        command = self._command(broken, evaluation)
        return replace(command, replacements=replacements, nominated=found.nodes)

    def _replace_static(self, broken: Broken, evaluation: Evaluation) -> Command | NodeRefusal:
        candidate = broken.candidate
        pool, heads = candidate.pool, headcount_of(candidate.pool, evaluation)
        if shrinking := why_shrinking(pool, heads):
            return refuse(candidate, NodeReason.POOL_SHRINKING, self.name, shrinking)
        may_terminate_first = evaluation.snapshot.settings.terminate_first_repair
        plan = plan_static(
            pool, heads, evaluation, wanted=1, may_terminate_first=may_terminate_first
        )
        if plan.slots:
            launch = Replacement(template_launch(pool))
            return replace(self._command(broken, evaluation), replacements=(launch,))
        is_able = not plan.is_full or bool(reservation_of(candidate, evaluation))
        if plan.terminates_first and is_able:
            return self._command(broken, evaluation, plan.terminates_first)
        return refuse(candidate, NodeReason.NO_REPLACEMENT, self.name, plan.why_not)

    def _command(
        self, broken: Broken, evaluation: Evaluation, terminates_first: str = ""
    ) -> Command:
        match = broken.repair.match
        node = replace(
            as_command_node(broken.candidate),
            action=broken.repair.action,
            condition=f"{match.condition.type}/{match.condition.reason}",
            drain_bound=broken.drain_bound,
            is_escalated=broken.is_escalated,
        )
        return Command(
            self.name,
            self.reason,
            (node,),
            terminates_first=terminates_first,
            proposed=evaluation.now,
        )


class _UnhealthyShares:
    """Shares of unhealthy nodes by pool; a large share hints at a cause beyond single nodes."""

    def __init__(self, evaluation: Evaluation) -> None:
        policies = evaluation.snapshot.repair.policies
        self._nodes: dict[str, int] = {}
        self._unhealthy: dict[str, int] = {}
        for node in evaluation.snapshot.nodes:
            if node.node_record is not None:
                pool = node.node_record.meta.labels.get(NODE_POOL_LABEL, "")
                self._nodes[pool] = self._nodes.get(pool, 0) + 1
                if is_unhealthy(node.node_record, policies):
                    self._unhealthy[pool] = self._unhealthy.get(pool, 0) + 1

    def is_too_large(self, pool: str) -> bool:
        most = -(-self._nodes.get(pool, 0) * UNHEALTHY_SHARE // 100)
        return self._unhealthy.get(pool, 0) > most

    def text(self, pool: str) -> str:
        return f"{self._unhealthy.get(pool, 0)} of {self._nodes.get(pool, 0)} nodes are unhealthy"


def _find_due(evaluation: Evaluation) -> dict[str, DueRepair]:
    """Return the repairs that are due, by NodeClaim name."""
    policies, due = evaluation.snapshot.repair.policies, {}
    for node in evaluation.snapshot.nodes:
        if node.claim_record is not None and node.node_record is not None:
            found = find_repair(node.claim_record, node.node_record, policies, evaluation.now)
            if found is not None:
                due[node.claim_record.name] = found
    return due


def _broken(candidate: Candidate, repair: DueRepair, evaluation: Evaluation) -> Broken:
    rebooted = evaluation.snapshot.repair.reboots.get(candidate.claim.meta.uid, ())
    recent = [each for each in rebooted if evaluation.now - each < _REBOOTS_COUNT]
    is_escalated = repair.action is RepairAction.REBOOT and len(recent) >= _REBOOTS_MAX
    if is_escalated:
        repair = replace(repair, action=RepairAction.REPLACE)
    pods = evaluation.pods_on(candidate.node)
    cost = evaluation.costs.of_disruption(pods, candidate.claim, evaluation.now)
    return Broken(candidate, repair, cost, is_escalated)


def _unhealthy_notices(candidate: Candidate) -> Iterator[Notice]:
    pool = candidate.pool
    uid = "" if pool.record is None else pool.record.meta.uid
    subjects = (
        about_node(candidate.record),
        about_claim(candidate.claim),
        Subject(NODE_POOL, pool.name, uid=uid),
    )
    for each in subjects:
        yield Notice(
            each,
            "NodeRepairBlocked",
            f'more than {UNHEALTHY_SHARE}% of nodes in nodepool "{pool.name}" are unhealthy',
            is_warning=True,
            same_as=(each.uid,),
            window_seconds=_BLOCKED_WINDOW,
        )


def _selection_remark(broken: Broken) -> Remark:
    match, grace = broken.repair.match, broken.repair.grace_period
    fields = {
        "Node": broken.candidate.name,
        "NodeClaim": broken.candidate.claim.name,
        "condition": match.condition.type,
        "status": match.condition.status,
        "reason": match.condition.reason,
        "reason-regex": match.policy.reason_pattern,
        "fallback": "false" if match.policy.reason_pattern else "true",
        "action": broken.repair.action.value,
        "eligible-at": write_moment(match.due),
        "termination-grace-period": "" if grace is None else write_duration(grace),
    }
    return Remark("selected repair policy", fields)
