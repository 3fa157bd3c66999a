"""Static drift: replace drifted nodes of static NodePools."""

from collections.abc import Iterator, Sequence

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
from karpy.core.disruption.terminatefirst import (
    StaticPlan,
    are_reservations_full,
    headcount_of,
    plan_static,
    reservation_of,
    why_shrinking,
    with_missing_nodes,
)
from karpy.core.lifecycle.conditions import DRIFTED
from karpy.core.nodepool.staticcapacity import template_launch
from karpy.model.commands import Command, Replacement
from karpy.model.pools import DisruptionReason
from karpy.model.verdicts import NodeReason, NodeRefusal


class StaticDrift:
    """Replaces each drifted node from the template, as many as budgets and limits allow."""

    name = "static-drift"
    reason = DisruptionReason.DRIFTED
    consolidation_type = ""
    disruption_class = DisruptionClass.EVENTUAL
    is_validated = False

    def propose(self, evaluation: Evaluation) -> Proposal:
        """Choose drifted nodes of each static pool, in order of their names."""
        found = find_candidates(evaluation, self.disruption_class)
        by_pool: dict[str, list[Candidate]] = {}
        refusals = [*found.refusals]
        for each in found.candidates:
            if not each.pool.is_static:
                continue
            if each.claim.conditions.is_true(DRIFTED):
                by_pool.setdefault(each.pool.name, []).append(each)
            else:
                refusals.append(refuse(each, NodeReason.NOT_DRIFTED, self.name))
        gauge = eligible_count(self, sum(map(len, by_pool.values())))
        if not by_pool:
            return Proposal((), tuple(refusals), found.notices, (gauge,))
        allowances = find_allowances(evaluation, self.reason)
        commands: list[Command] = []
        for _, drifted in sorted(by_pool.items()):
            for decided in self._replace(drifted, allowances, evaluation):
                if isinstance(decided, Command):
                    commands.append(decided)
                else:
                    refusals.append(decided)
        return Proposal(
            tuple(commands),
            tuple(refusals),
            (*found.notices, *allowances.notices),
            (gauge, *allowances.counts),
            allowances.remarks,
        )

    def validate(self, command: Command, evaluation: Evaluation) -> Validation:
        """Keep the command: drift is carried out at once."""
        del evaluation
        return Validation(command)

    def _replace(
        self, drifted: Sequence[Candidate], allowances: Allowances, evaluation: Evaluation
    ) -> Iterator[Command | NodeRefusal]:
        """Yield a command or a refusal for each drifted node of one pool."""
        pool = drifted[0].pool
        may_terminate_first = evaluation.snapshot.settings.terminate_first_drift
        if may_terminate_first and are_reservations_full(pool, evaluation.snapshot.catalog):
            drifted = sorted(drifted, key=lambda each: not reservation_of(each, evaluation))
        chosen, spent = allowances.within(drifted, self.name)
        yield from spent
        if not chosen:
            return
        heads = headcount_of(pool, evaluation)
        if shrinking := why_shrinking(pool, heads):
            for each in chosen:
                yield refuse(each, NodeReason.POOL_SHRINKING, self.name, shrinking)
            return
        plan = plan_static(
            pool, heads, evaluation, wanted=len(chosen), may_terminate_first=may_terminate_first
        )
        if plan.terminates_first:
            left = with_missing_nodes(allowances.by_pool[pool.name], pool, evaluation)
            for each in chosen[left.remaining :]:
                yield refuse(each, NodeReason.BUDGET_SPENT, self.name, str(left))
            chosen = chosen[: left.remaining]
        yield from self._carry_out(plan, chosen, evaluation)

    def _carry_out(
        self, plan: StaticPlan, chosen: Sequence[Candidate], evaluation: Evaluation
    ) -> Iterator[Command | NodeRefusal]:
        for number, each in enumerate(chosen):
            first = plan.terminates_first
            if plan.is_full and not reservation_of(each, evaluation):
                first = ""
            if number >= plan.slots and not first:
                yield refuse(each, NodeReason.NO_REPLACEMENT, self.name, plan.why_not)
                continue
            yield Command(
                self.name,
                self.reason,
                (as_command_node(each),),
                (Replacement(template_launch(each.pool)),) if number < plan.slots else (),
                terminates_first="" if number < plan.slots else first,
                proposed=evaluation.now,
            )
