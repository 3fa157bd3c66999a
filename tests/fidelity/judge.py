"""Checks of every cluster; all faults found, as text."""

import asyncio
from dataclasses import dataclass, replace
from enum import Enum

from karpy.codec.fields import JsonObject
from karpy.core.check.breaches import Rule
from karpy.core.check.plan import check_plan
from karpy.core.scheduling.decide import decide
from karpy.model.snapshot import Snapshot
from karpy.sim.loop import run
from tests.fidelity.clusters import Cluster
from tests.fidelity.embeddedworld import embedded_world
from tests.fidelity.known import Excuses, Known
from tests.fidelity.plans import find_breaches, read_snapshot, try_plan
from tests.fidelity.stories import Difference, Step, ask_alone, ask_together, follow
from tests.fidelity.worlds import World


class Check(Enum):
    """The checks of every cluster."""

    ALONE = "both schedulers find a node for a pod alone, or neither does"
    TOGETHER = "the same on top of other pods, and each could do what the other did"
    REASON = "both give the same reason if there is no node"
    BREACH = "the core's judge finds nothing wrong in what kube-scheduler did"
    ACCEPTED = "the core's judge finds nothing wrong in the core's plan"
    PLAN = "kube-scheduler binds every pod as a plan that the judge accepts has it"


@dataclass(frozen=True)
class Finding:
    """One fault."""

    check: Check
    text: str

    def __str__(self) -> str:
        """Return the name of the check and its text."""
        return f"{self.check.name}: {self.text}"


@dataclass(frozen=True)
class Outcome:
    """The result for a cluster: the number of questions, and the faults."""

    findings: tuple[Finding, ...] = ()
    known: tuple[Known, ...] = ()
    asked: int = 0
    bound: int = 0
    planned: int = 0
    is_second_look: bool = False
    """Whether the first run found a fault."""


async def examine(real: World, cluster: Cluster) -> Outcome:
    """
    Compare both schedulers and the core on a cluster.

    kube-scheduler may receive an event late, so that a fault counts only if it occurs twice.
    """
    outcome = await _examine_once(real, cluster)
    if outcome.findings:
        outcome = replace(await _examine_once(real, cluster), is_second_look=True)
    return outcome


async def _examine_once(real: World, cluster: Cluster) -> Outcome:
    try:
        await real.settle(cluster)
        return await _look_at(real, cluster)
    finally:
        await real.clean(cluster)


async def _look_at(real: World, cluster: Cluster) -> Outcome:
    story = await _compare(real, cluster)
    kept = [step for step in story.steps if step.is_kept]
    pods = {step.key: step.admitted for step in kept}
    snapshot = read_snapshot(story.before, pods.values())
    excuses = Excuses(cluster)
    found: list[Finding | Known] = [*story.findings]
    found += [
        excuses.why_breach(breach) or Finding(Check.BREACH, str(breach))
        for breach in find_breaches(snapshot, kept)
    ]
    # A plan assumes that deleting pods are gone.
    ending = [each for each in cluster.bound if each["metadata"]["name"] in cluster.ending]
    await asyncio.gather(*(real.remove(each) for each in [*pods.values(), *ending]))
    if cluster.has_volumes or ending:
        snapshot = read_snapshot(await real.listed(), pods.values())
    planned = await _plan(real, cluster, snapshot, found)
    return Outcome(
        tuple(each for each in found if isinstance(each, Finding)),
        tuple(each for each in found if isinstance(each, Known)),
        asked=len(story.steps),
        bound=sum(bool(step.answer.node) for step in story.steps),
        planned=planned,
    )


@dataclass(frozen=True)
class _Story:
    steps: list[Step]
    before: list[JsonObject]
    """The objects before the first pod was placed."""
    findings: list[Finding]


async def _compare(real: World, cluster: Cluster) -> _Story:
    """Compare the schedulers in both directions; storage is copied in one direction only."""
    if cluster.has_volumes or cluster.seed % 2 == 0:
        alone = await ask_alone(real, cluster)
        before = await real.listed()
        together = await ask_together(real, cluster)
        differences = await asyncio.to_thread(run, _follow_embedded(cluster, alone + together))
        names = "kube-scheduler", "embedded"
    else:
        alone, together = await asyncio.to_thread(run, _lead_embedded(cluster))
        differences = await follow(real, alone)
        before = await real.listed()
        differences += await follow(real, together)
        names = "embedded", "kube-scheduler"
    findings = [_as_finding(each, *names) for each in differences]
    return _Story(alone + together, before, findings)


async def _follow_embedded(cluster: Cluster, steps: list[Step]) -> list[Difference]:
    async with embedded_world() as embedded:
        await embedded.settle(cluster)
        return await follow(embedded, steps)


async def _lead_embedded(cluster: Cluster) -> tuple[list[Step], list[Step]]:
    async with embedded_world() as embedded:
        await embedded.settle(cluster)
        return await ask_alone(embedded, cluster), await ask_together(embedded, cluster)


def _as_finding(difference: Difference, leader: str, follower: str) -> Finding:
    step = difference.step
    check = Check.TOGETHER if step.is_kept else Check.ALONE
    if difference.is_about_reasons:
        check = Check.REASON
    said = f"{leader}: {step.answer}; {follower}: {difference.answer}"
    return Finding(check, f"{step.key}: {said}")


async def _plan(
    real: World, cluster: Cluster, snapshot: Snapshot, found: list[Finding | Known]
) -> int:
    """Let the core decide with the existing nodes, and kube-scheduler carry out the plan."""
    verdict = decide(snapshot)
    breaches = check_plan(snapshot, verdict)
    found += [
        Known.TERMS_TOGETHER
        if breach.rule is Rule.AFFINITY_TERMS
        else Finding(Check.ACCEPTED, str(breach))
        for breach in breaches
    ]
    if breaches:
        return 0
    trial = await try_plan(real, snapshot, verdict, cluster)
    node_of = {pod: each.node for each in verdict.nominations for pod in each.pods}
    found += trial.excused
    found += [
        Finding(Check.PLAN, f"{key} on {node_of[key]}: kube-scheduler says {answer}")
        for key, answer in trial.missed.items()
    ]
    return len(node_of)
