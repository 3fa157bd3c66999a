"""How one broken node is repaired: rebooted, replaced, or left alone with a reason."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.disruption.candidates import blocked_notices
from karpy.core.disruption.repairing import REASON, Patient
from karpy.core.disruption.rollout import Replacement, Rollout, Target, as_target
from karpy.core.disruption.simulation import Relocation, relocate, with_credit
from karpy.core.lifecycle.changes import Changes, Count, Remark, disruption_counts
from karpy.core.lifecycle.conditions import DISRUPTION_REASON, with_true_because
from karpy.core.lifecycle.repair import unhealthy_count
from karpy.core.nodepool.staticcapacity import count_claims, grant, template_launch
from karpy.core.scheduling.templates import template_requirements
from karpy.model.annotations import REBOOT_GRACE_PERIOD
from karpy.model.conditions import READY, REBOOTING
from karpy.model.labels import CAPACITY_TYPE, RESERVED
from karpy.model.notices import Notice
from karpy.model.pools import Headcount, NodePool
from karpy.model.questions import TreatmentQuestion
from karpy.model.records import ClaimRecord
from karpy.model.refusals import NodeRefusal, Obstacle
from karpy.model.repairs import RepairAction
from karpy.model.requirements import why_incompatible
from karpy.model.settings import ReservedMode
from karpy.model.snapshot import Snapshot
from karpy.model.times import write_duration, write_moment

REBOOT_REQUESTED: Final = "RebootRequested"
NO_RESERVED_CAPACITY: Final = "no-reserved-capacity"
STATIC_AT_LIMIT: Final = "static-at-limit"
_AT_LIMIT: Final = "static NodePool is at its node limit and cannot stage a replacement"
_FULL: Final = "static NodePool's capacity reservations are full and cannot stage a replacement"
_SHOWN_MAX: Final = 3


class Treatment(Struct, frozen=True, gc=False):
    """What is done about a broken node: at most one of a reboot and a rollout, or neither."""

    reboot: Changes | None = None
    """Holds for its claim."""
    rollout: Rollout | None = None
    expected_on: tuple[str, ...] = ()
    """Nodes that its pods are expected on."""
    refusal: NodeRefusal | None = None
    notices: tuple[Notice, ...] = ()
    remarks: tuple[Remark, ...] = ()


class Visit(Struct, frozen=True, gc=False):
    """One look at broken nodes: the first that something can be done about, and all before it."""

    patient: Patient | None = None
    """None if nothing can be done about any."""
    treatment: Treatment = Treatment()
    """Holds for the patient."""
    refused: tuple[Treatment, ...] = ()
    """Those that were left alone."""
    seen: frozenset[str] = frozenset()
    """Claims of all that had their turn."""


def visit(question: TreatmentQuestion, patients: Sequence[Patient], id_: str = "") -> Visit:
    """Repair the first of the patients that can be, those left out that were tried before."""
    refused, seen = list[Treatment](), set[str]()
    for patient in patients:
        name = patient.candidate.claim.name
        if name in question.tried:
            continue
        seen.add(name)
        treatment = treat(patient, question, id_)
        if treatment.refusal is None:
            return Visit(patient, treatment, tuple(refused), frozenset(seen))
        refused.append(treatment)
    return Visit(refused=tuple(refused), seen=frozenset(seen))


def treat(patient: Patient, question: TreatmentQuestion, id_: str = "") -> Treatment:
    """
    Decide how a node is repaired; a rollout that comes of it has the given ID.

    A node that may go first does so if its replacement could only be had with what the node itself
    occupies.
    """
    now = question.surroundings.now
    if patient.remedy.action is RepairAction.REBOOT:
        return Treatment(request_reboot(patient, now), remarks=(_selected(patient),))
    rollout = Rollout(id_, REASON, "", (_target(patient),), proposed=now)
    if patient.candidate.is_static:
        return _replace_static(patient, rollout, question)
    return _replace_dynamic(patient, rollout, question)


def request_reboot(patient: Patient, now: datetime) -> Changes:
    """Write on the claim of a node that it is to be rebooted; somebody else does it."""
    claim, condition = patient.candidate.claim, patient.remedy.match.condition
    grace = claim.grace_period if patient.bound is None else patient.bound
    reason, message = REASON.value, f"rebooting for {condition.type}/{condition.reason}"
    written = with_true_because(_with_grace(claim, patient), DISRUPTION_REASON, reason, reason, now)
    written = with_true_because(written, REBOOTING, REBOOT_REQUESTED, message, now)
    labels = {"decision": "reboot", "reason": reason.lower(), "consolidation_type": ""}
    by_pool = {"nodepool": patient.candidate.pool.name, **labels}
    return Changes(
        written,
        counts=(
            Count("voluntary_disruption_decisions_total", labels),
            Count("voluntary_disruption_decisions_by_nodepool_total", by_pool),
            *disruption_counts(claim, reason.lower(), patient.candidate.pods),
            unhealthy_count(claim, condition.type, grace),
        ),
        remarks=(
            Remark(
                "committed node reboot",
                {"NodeClaim": claim.name, "Node": patient.candidate.name, "condition": message},
            ),
        ),
    )


def _with_grace(claim: ClaimRecord, patient: Patient) -> ClaimRecord:
    grace = claim.grace_period if patient.bound is None else patient.bound
    annotations = {
        key: value for key, value in claim.meta.annotations.items() if key != REBOOT_GRACE_PERIOD
    }
    if grace is not None:
        annotations[REBOOT_GRACE_PERIOD] = write_duration(grace)
    return replace(claim, meta=replace(claim.meta, annotations=annotations))


def _replace_dynamic(patient: Patient, rollout: Rollout, question: TreatmentQuestion) -> Treatment:
    claims, snapshot = (patient.candidate.claim.name,), question.snapshot
    relocation = relocate(snapshot, claims)
    reservation = _reservation(patient, snapshot)
    if relocation.homeless and question.may_go_first and reservation:
        credited = replace(snapshot, catalog=with_credit(snapshot.catalog, reservation))
        second = relocate(credited, claims, ReservedMode.STRICT)
        if not second.homeless:
            first = replace(rollout, goes_first=NO_RESERVED_CAPACITY)
            return _started(patient, first, replace(second, launches=()))
    if relocation.homeless:
        shown = "; ".join(relocation.homeless[:_SHOWN_MAX])
        return _refused(patient, Obstacle.PODS_UNPLACED, f"not all pods would schedule, {shown}")
    return _started(patient, rollout, relocation)


def _replace_static(patient: Patient, rollout: Rollout, question: TreatmentQuestion) -> Treatment:
    surroundings, snapshot = question.surroundings, question.snapshot
    record = patient.candidate.pool
    claims = [each.claim for each in surroundings.nodes if each.claim is not None]
    heads = count_claims(record.name, claims, surroundings.busy)
    if heads.active + heads.disrupting > (record.replicas or 0):
        return _refused(patient, Obstacle.POOL_SHRINKING)
    pool = next((each for each in snapshot.pools if each.name == record.name), None)
    if pool is None:
        return _refused(patient, Obstacle.POOL_MISSING)
    if question.may_go_first and _are_reservations_full(pool, snapshot):
        why = NO_RESERVED_CAPACITY if _reservation(patient, snapshot) else ""
        return _go_first(patient, rollout, why, _FULL)
    if not _has_room(patient, heads):
        why = STATIC_AT_LIMIT if question.may_go_first else ""
        return _go_first(patient, rollout, why, _AT_LIMIT)
    return _started(patient, rollout, Relocation((template_launch(pool),)))


def _has_room(patient: Patient, heads: Headcount) -> bool:
    return grant(patient.candidate.pool, heads, 1) > 0


def _go_first(patient: Patient, rollout: Rollout, why: str, text: str) -> Treatment:
    """Let a node go before its replacement comes, if there is a reason and the pool will do it."""
    pool = patient.candidate.pool
    if why and pool.conditions.is_true(READY) and not pool.meta.is_deleting:
        return _started(patient, replace(rollout, goes_first=why), Relocation())
    return _refused(patient, Obstacle.NO_REPLACEMENT, text)


def _are_reservations_full(pool: NodePool, snapshot: Snapshot) -> bool:
    """Say whether a pool can only use reservations, and nothing is left of them."""
    wanted, catalog = template_requirements(pool), snapshot.catalog
    may_lack = catalog.well_known | {catalog.reservation_label}
    offerings = [
        offering
        for each in catalog.types_for(pool.name)
        if why_incompatible(wanted, each.requirements, may_lack) is None
        for offering in each.offerings
        if why_incompatible(wanted, offering.requirements, may_lack) is None
    ]
    # Differs: Karpenter calls a pool full, too, that nothing at all is on offer for.
    return bool(offerings) and all(
        each.is_reserved and not each.is_launchable for each in offerings
    )


def _reservation(patient: Patient, snapshot: Snapshot) -> str:
    """Return the reservation that a node uses, if that still exists; empty if it uses none."""
    labels, catalog = patient.state.labels, snapshot.catalog
    name = labels.get(catalog.reservation_label, "")
    if labels.get(CAPACITY_TYPE) != RESERVED or not name:
        return ""
    is_offered = any(
        offering.reservation_id == name and offering.is_available
        for each in catalog.types_for(patient.candidate.pool.name)
        for offering in each.offerings
    )
    return name if is_offered else ""


def _target(patient: Patient) -> Target:
    fault = patient.remedy.match.condition.type
    return replace(as_target(patient.candidate), fault=fault, bound=patient.bound)


def _selected(patient: Patient) -> Remark:
    match, grace = patient.remedy.match, patient.remedy.grace_period
    fields = {
        "Node": patient.candidate.name,
        "NodeClaim": patient.candidate.claim.name,
        "condition": match.condition.type,
        "status": match.condition.status,
        "reason": match.condition.reason,
        "reason-regex": match.policy.reason_pattern,
        "fallback": "false" if match.policy.reason_pattern else "true",
        "action": patient.remedy.action.value,
        "eligible-at": write_moment(match.due),
        "termination-grace-period": "" if grace is None else write_duration(grace),
    }
    return Remark("selected repair policy", fields)


def _started(patient: Patient, rollout: Rollout, relocation: Relocation) -> Treatment:
    replacements = tuple(Replacement(each) for each in relocation.launches)
    return Treatment(
        rollout=replace(rollout, replacements=replacements),
        expected_on=relocation.nodes,
        remarks=(_selected(patient),),
    )


def _refused(patient: Patient, why: Obstacle, text: str = "") -> Treatment:
    refusal = NodeRefusal(why, patient.candidate.name, patient.candidate.pool.name)
    notices = blocked_notices(patient.state, refusal, text) if text else ()
    return Treatment(refusal=refusal, notices=tuple(notices))
