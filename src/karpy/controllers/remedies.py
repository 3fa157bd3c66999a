"""Broken nodes are rebooted or replaced, one at a time."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.codec.uids import derived_uid
from karpy.controllers.context import ControllerContext
from karpy.controllers.lookout import Look
from karpy.controllers.nominations import Nominations
from karpy.controllers.offloading import decide_aside
from karpy.controllers.rollouts import OnVerdict, Rollouts
from karpy.core.disruption.advancing import Change
from karpy.core.disruption.decide import verdict_of_triage, verdict_of_visit
from karpy.core.disruption.remedies import find_remedy
from karpy.core.disruption.repairing import REASON, Patient, Triage, triage
from karpy.core.disruption.rollout import PACE
from karpy.core.disruption.treatment import Treatment, Visit, visit
from karpy.core.lifecycle.changes import Changes, Count
from karpy.model.questions import BrokenNodesQuestion, TreatmentQuestion
from karpy.model.repairs import RepairPolicy
from karpy.model.snapshot import Snapshot
from karpy.model.surroundings import Surroundings
from karpy.ports.cluster import Cluster

_REMEMBERED: Final = timedelta(hours=24)
_DURATION: Final = "voluntary_disruption_decision_evaluation_duration_seconds"
_LABELS: Final = {"reason": REASON.value.lower(), "consolidation_type": ""}


class RepairRules(Struct, frozen=True):
    """When nodes are broken, and how they may be repaired; without policies none is."""

    policies: tuple[RepairPolicy, ...] = ()
    may_go_first: bool = False
    """Whether a node may go before its replacement comes if there is no other way."""


class Remedies:
    """Observe, decide, apply. Whom to repair and how is decided in core.disruption."""

    def __init__(
        self,
        context: ControllerContext,
        cluster: Cluster,
        nominations: Nominations,
        rollouts: Rollouts,
        rules: RepairRules,
        on_verdict: OnVerdict = lambda *_: None,
    ) -> None:
        self._context = context
        self._cluster = cluster
        self._nominations = nominations
        self._rollouts = rollouts
        self._rules = rules
        self._on_verdict = on_verdict
        self._reboots: dict[str, list[datetime]] = {}
        """When nodes were rebooted, by the UID of their claim."""
        self._repairs = 0

    def needed(self) -> frozenset[str]:
        """Return the claims of nodes that are broken for too long."""
        policies, now = self._rules.policies, self._context.clock.now()
        return frozenset(
            claim.record.name
            for node in (self._context.records.nodes.all() if policies else ())
            for claim in self._context.claims_of(node.record)
            if find_remedy(claim.record, node.record, policies, now) is not None
        )

    async def give(self, look: Look) -> timedelta | None:
        """Begin to repair a node; return after how long to look again, None if none was."""
        if not self._rules.policies:
            return None
        around = self._rollouts.amid(look.surroundings)
        began = self._context.clock.now()
        question = self._question(around)
        found = await decide_aside(lambda: triage(around, question.policies, question.reboots))
        self._on_verdict(question, verdict_of_triage(found))
        is_begun = await self._treat(self._treatment(question, found), found.patients, look)
        took = self._context.clock.now() - began
        await self._context.writer.carry_out(_summed_up(found, took))
        return PACE if is_begun else None

    async def _treat(
        self, question: TreatmentQuestion, patients: Sequence[Patient], look: Look
    ) -> bool:
        """Begin to repair one of the patients; say whether any was."""
        while True:
            visited = await self._visit(question, patients)
            self._on_verdict(question, verdict_of_visit(visited))
            await self._context.writer.carry_out(_told(visited))
            if visited.patient is None:
                return False
            if await self._begin(visited.patient, visited.treatment, look):
                return True
            # Each round takes one more out, so that there is a last one.
            question = replace(question, tried=question.tried | visited.seen)
            if all(each.candidate.claim.name in question.tried for each in patients):
                return False

    async def _visit(self, question: TreatmentQuestion, patients: Sequence[Patient]) -> Visit:
        self._repairs += 1
        id_ = derived_uid("Repair", str(question.surroundings.now), str(self._repairs))
        return await decide_aside(lambda: visit(question, patients, id_))

    async def _begin(self, patient: Patient, treatment: Treatment, look: Look) -> bool:
        """Do what was decided; say whether anything was."""
        if treatment.rollout is not None:
            for node in treatment.expected_on:
                self._nominations.note(node)
            await self._rollouts.start(treatment.rollout, look)
            return True
        if treatment.reboot is None:
            return False
        claim = patient.candidate.claim
        change = Change(claim.name, patient.candidate.name, treatment.reboot)
        if not await self._rollouts.change(change, look):
            return False
        self._remember(claim.meta.uid)
        return True

    def _question(self, around: Surroundings) -> BrokenNodesQuestion:
        reboots = {uid: tuple(times) for uid, times in self._reboots.items()}
        return BrokenNodesQuestion(around, self._rules.policies, reboots)

    def _treatment(self, asked: BrokenNodesQuestion, found: Triage) -> TreatmentQuestion:
        around = asked.surroundings
        # Where there is nobody to repair, nobody asks for pods.
        nobody = Snapshot(now=around.now, catalog=around.catalog)
        return TreatmentQuestion(
            around,
            self._cluster.snapshot() if found.patients else nobody,
            asked.policies,
            asked.reboots,
            self._rules.may_go_first,
        )

    def _remember(self, uid: str) -> None:
        now = self._context.clock.now()
        self._reboots.setdefault(uid, []).append(now)
        self._reboots = {
            key: recent
            for key, times in self._reboots.items()
            if (recent := [each for each in times if now - each < _REMEMBERED])
        }


def _told(visited: Visit) -> Changes:
    all_ = (*visited.refused, visited.treatment)
    return Changes(
        notices=tuple(notice for each in all_ for notice in each.notices),
        remarks=tuple(remark for each in all_ for remark in each.remarks),
    )


def _summed_up(found: Triage, duration: timedelta) -> Changes:
    took = Count(_DURATION, _LABELS, duration.total_seconds())
    return Changes(notices=found.notices, counts=(*found.counts, took), remarks=found.remarks)
