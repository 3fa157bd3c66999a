"""
Checks of every decision; all faults found, as text.

One finding is ignored: a host for a refused pod in a NodePool with limits. The reference charges a
claim with its largest type at its creation; the judge sees only its final types, and may therefore
find room that the limits do not leave.
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from karpy.core.scheduling.overlays import with_overlays
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Reason, Verdict
from tests.fuzz.compare import differences
from tests.reference.solver import solve

DECIDE = "karpy.core.scheduling.decide"
CHECK = "karpy.core.check.plan"
ALONE = "karpy.core.check.alone"


class Check(Enum):
    """The checks of every decision."""

    CRASH = "it ends"
    TWICE = "deciding twice is deciding once"
    LAW = "the fast solver and the readable one agree"
    PLAN = "the judge finds nothing wrong"
    WITNESS = "no pod is refused that has a host"


@dataclass(frozen=True)
class Finding:
    """One fault of a decision."""

    check: Check
    text: str

    def __str__(self) -> str:
        """Return the name of the check and its text."""
        return f"{self.check.name}: {self.text}"


def missing() -> list[str]:
    """Return the modules under test that do not exist yet."""
    return [name for name in (DECIDE, CHECK, ALONE) if find_spec(name) is None]


def judge(snapshot: Snapshot, checks: frozenset[Check] = frozenset(Check)) -> list[Finding]:
    """
    Decide on a snapshot and return all faults of the decision.

    The solver gets the catalog with overlays applied; the reference and the judge apply them
    themselves.
    """
    decide: Callable[[Snapshot], Verdict] = import_module(DECIDE).decide
    try:
        corrected = with_overlays(snapshot)
        verdict = decide(corrected)
    except Exception:  # noqa: BLE001 - any error is a finding
        return [Finding(Check.CRASH, _last_lines(traceback.format_exc()))]
    findings: list[Finding] = []
    if Check.TWICE in checks and decide(corrected) != verdict:
        findings.append(Finding(Check.TWICE, "the second verdict differs from the first"))
    if Check.LAW in checks:
        found = differences(verdict, solve(snapshot))
        findings += [Finding(Check.LAW, text) for text in found]
    if Check.PLAN in checks and find_spec(CHECK):
        breaches = import_module(CHECK).check_plan(snapshot, verdict)
        findings += [Finding(Check.PLAN, str(breach)) for breach in breaches]
    if Check.WITNESS in checks and find_spec(ALONE):
        findings += [Finding(Check.WITNESS, text) for text in _witnesses(snapshot, verdict)]
    return findings


def _witnesses(snapshot: Snapshot, verdict: Verdict) -> list[str]:
    find: Callable[[Snapshot, Verdict, str], tuple[Any, ...]] = import_module(ALONE).find_hosts
    unlimited = {pool.name for pool in snapshot.pools if not pool.limits}
    refused = [
        pod
        for refusal in verdict.refusals
        if refusal.reason is Reason.NO_HOST
        for pod in refusal.pods
    ]
    return [
        f"pod {pod} is refused, but there is {host}"
        for pod in refused
        for host in find(snapshot, verdict, pod)[:1]
        if host.pool in unlimited
    ]


def _last_lines(trace: str) -> str:
    lines = [line.strip() for line in trace.strip().splitlines()]
    return " | ".join([lines[-1], *lines[-3:-1]])
