"""Broken nodes: which of them may be repaired now, and in which order."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.budgets import find_allowances
from karpy.core.disruption.candidates import Candidate, Manner, blocked_notices, find_candidates
from karpy.core.disruption.cost import disruption_cost
from karpy.core.disruption.remedies import Remedy, find_remedy, is_unhealthy
from karpy.core.lifecycle.changes import Count, Remark
from karpy.core.lifecycle.records import about_claim, about_node
from karpy.core.lifecycle.repair import UNHEALTHY_SHARE
from karpy.model.annotations import DO_NOT_REPAIR
from karpy.model.disruption import DisruptionReason
from karpy.model.kinds import NODE_POOL
from karpy.model.labels import NODE_POOL as NODE_POOL_LABEL
from karpy.model.notices import Notice, Subject
from karpy.model.refusals import NodeRefusal, Obstacle
from karpy.model.repairs import RepairAction, RepairPolicy
from karpy.model.surroundings import NodeState, Surroundings

REASON: Final = DisruptionReason.UNHEALTHY
_REBOOTS_MAX: Final = 2
_REBOOTS_COUNT: Final = timedelta(hours=24)
_BLOCKED_WINDOW: Final = 15 * 60.0
_VETO: Final = f'repair is blocked through the "{DO_NOT_REPAIR}" annotation'
_NO_BOUND: Final = "repair requires a termination grace period to bypass blocking pods"

Reboots = Mapping[str, Sequence[datetime]]
"""When nodes were rebooted, by the UID of their claim."""


class Patient(Struct, frozen=True, gc=False):
    """A broken node that may be repaired, and how."""

    state: NodeState
    candidate: Candidate
    remedy: Remedy

    @property
    def bound(self) -> timedelta | None:
        """How long its drain may take at most; None leaves that to its claim."""
        own, claims = self.remedy.grace_period, self.candidate.claim.grace_period
        return own if own is None or claims is None else min(own, claims)


class Triage(Struct, frozen=True, gc=False):
    """Whom to repair first, and a refusal for every other broken node."""

    patients: tuple[Patient, ...] = ()
    refusals: tuple[NodeRefusal, ...] = ()
    notices: tuple[Notice, ...] = ()
    counts: tuple[Count, ...] = ()
    """Gauges: their metrics take on these values."""
    remarks: tuple[Remark, ...] = ()


def find_broken(surroundings: Surroundings, policies: Sequence[RepairPolicy]) -> dict[str, Remedy]:
    """Find the nodes that are not put up with any longer, by the name of their claim."""
    broken = {}
    for state in surroundings.nodes:
        if state.claim is not None and state.node is not None:
            remedy = find_remedy(state.claim, state.node, policies, surroundings.now)
            if remedy is not None:
                broken[state.claim.name] = remedy
    return broken


def triage(
    surroundings: Surroundings, policies: Sequence[RepairPolicy], reboots: Reboots
) -> Triage:
    """Choose the broken nodes that may be repaired, those first that need it most."""
    broken = find_broken(surroundings, policies)
    states = {
        each.claim.name: each
        for each in surroundings.nodes
        if each.claim is not None and each.claim.name in broken
    }
    found = find_candidates(replace(surroundings, nodes=tuple(states.values())), Manner.REPAIR)
    patients = [
        Patient(
            states[each.claim.name],
            each,
            _escalated(broken[each.claim.name], reboots.get(each.claim.meta.uid, ()), surroundings),
        )
        for each in found.candidates
    ]
    refused = _Refused(list(found.refusals), list(found.notices))
    admitted = [each for each in patients if not refused.by_veto(each)]
    gauge = Count(
        "voluntary_disruption_eligible_nodes",
        {"reason": REASON.value.lower()},
        float(len(admitted)),
    )
    if not admitted:
        return Triage((), tuple(refused.refusals), tuple(refused.notices), (gauge,))
    allowances = find_allowances(surroundings, REASON)
    remaining, ward = allowances.remaining(), _Ward(surroundings, policies)
    treatable = [
        each
        for each in sorted(admitted, key=lambda each: _neediest_first(each, surroundings))
        if not refused.by_ward(each, ward) and not refused.by_budget(each, remaining)
    ]
    return Triage(
        tuple(treatable),
        tuple(refused.refusals),
        (*refused.notices, *allowances.notices),
        (gauge, *allowances.counts),
        allowances.remarks,
    )


class _Ward:
    """How many nodes of each pool are unhealthy: with many, something else is wrong."""

    def __init__(self, surroundings: Surroundings, policies: Sequence[RepairPolicy]) -> None:
        self._nodes: dict[str, int] = {}
        self._unhealthy: dict[str, int] = {}
        for state in surroundings.nodes:
            if state.node is not None:
                pool = state.node.meta.labels.get(NODE_POOL_LABEL, "")
                self._nodes[pool] = self._nodes.get(pool, 0) + 1
                if is_unhealthy(state.node, policies):
                    self._unhealthy[pool] = self._unhealthy.get(pool, 0) + 1

    def is_overrun(self, pool: str) -> bool:
        most = -(-self._nodes.get(pool, 0) * UNHEALTHY_SHARE // 100)
        return self._unhealthy.get(pool, 0) > most


class _Refused:
    """Collects who is left alone, and what is told about it."""

    def __init__(self, refusals: list[NodeRefusal], notices: list[Notice]) -> None:
        self.refusals = refusals
        self.notices = notices

    def by_veto(self, patient: Patient) -> bool:
        """Say whether its owner forbids a repair, or its pods do for good."""
        if patient.state.annotations.get(DO_NOT_REPAIR) == "true":
            return self._refuse(patient, Obstacle.DO_NOT_REPAIR, _VETO)
        graces = (patient.remedy.grace_period, patient.candidate.claim.grace_period)
        if patient.candidate.is_blocked and graces == (None, None):
            return self._refuse(patient, Obstacle.REPAIR_NEEDS_GRACE, _NO_BOUND)
        return False

    def by_ward(self, patient: Patient, ward: _Ward) -> bool:
        """Say whether too many nodes of its pool are unhealthy."""
        pool = patient.candidate.pool
        if not ward.is_overrun(pool.name):
            return False
        note = f'more than 20% of nodes in nodepool "{pool.name}" are unhealthy'
        subjects = (
            about_node(patient.candidate.node),
            about_claim(patient.candidate.claim),
            Subject(NODE_POOL, pool.name, uid=pool.meta.uid),
        )
        self.notices += [
            Notice(
                each,
                "NodeRepairBlocked",
                note,
                is_warning=True,
                same_as=(each.uid,),
                window_seconds=_BLOCKED_WINDOW,
            )
            for each in subjects
        ]
        return self._refuse(patient, Obstacle.MOSTLY_UNHEALTHY)

    def by_budget(self, patient: Patient, remaining: Mapping[str, int]) -> bool:
        """Say whether budgets let nothing go; a node that was never ready needs none."""
        if not patient.state.is_initialized or remaining[patient.candidate.pool.name]:
            return False
        return self._refuse(patient, Obstacle.BUDGET_SPENT)

    def _refuse(self, patient: Patient, why: Obstacle, text: str = "") -> bool:
        refusal = NodeRefusal(why, patient.candidate.name, patient.candidate.pool.name)
        self.refusals.append(refusal)
        if text:
            self.notices += blocked_notices(patient.state, refusal, text)
        return True


def _escalated(remedy: Remedy, rebooted: Sequence[datetime], surroundings: Surroundings) -> Remedy:
    """Replace a node that reboots do not mend."""
    recent = [each for each in rebooted if surroundings.now - each < _REBOOTS_COUNT]
    if remedy.action is RepairAction.REBOOT and len(recent) >= _REBOOTS_MAX:
        return replace(remedy, action=RepairAction.REPLACE)
    return remedy


def _neediest_first(patient: Patient, surroundings: Surroundings) -> tuple[object, ...]:
    cost = disruption_cost(
        patient.state.tenants,
        patient.candidate.claim,
        surroundings.now,
        reads_deletion_cost=surroundings.reads_deletion_cost,
    )
    return -patient.remedy.score, cost, patient.candidate.name
