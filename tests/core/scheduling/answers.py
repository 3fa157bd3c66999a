"""
The answers of the solver in short form, after `core.check` has found no fault.

`node-1` is a node, `default-0` the first launch (of the pool `default`), `NO_HOST` a reason.
"""

from collections.abc import Callable
from itertools import chain, repeat

from karpy.core.check.plan import check_plan
from karpy.core.scheduling.decide import decide
from karpy.core.scheduling.overlays import with_overlays
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Launch, PoolRefusal, Refusal, Verdict
from tests.fuzz.compare import differences
from tests.reference.solver import solve


def decide_checked(snapshot: Snapshot, keep_going: Callable[[], bool] | None = None) -> Verdict:
    """Decide; assert that the judge finds no fault and the reference gives the same answer."""
    verdict = decide(with_overlays(snapshot), keep_going=keep_going)
    breaches = [str(breach) for breach in check_plan(snapshot, verdict)]
    assert not breaches, f"the judge finds the plan wrong: {breaches}"
    if verdict.is_complete:
        differing = differences(verdict, solve(snapshot))
        assert not differing, f"the readable solver says otherwise: {differing}"
    return verdict


def for_looks(count: int) -> Callable[[], bool]:
    """Return a deadline without a clock, which ends after some looks at it."""
    answers = chain(repeat(True, count), repeat(False))
    return lambda: next(answers)


def hosts(snapshot: Snapshot) -> dict[str, str]:
    """Return by name where each considered pod goes."""
    return hosts_in(decide_checked(snapshot))


def hosts_in(verdict: Verdict) -> dict[str, str]:
    """Return where each pod goes according to a verdict."""
    result = {
        _name(pod): refusal.reason.name for refusal in verdict.refusals for pod in refusal.pods
    }
    result |= {_name(pod): launch.name for launch in verdict.launches for pod in launch.pods}
    result |= {_name(pod): each.node for each in verdict.nominations for pod in each.pods}
    return dict(sorted(result.items()))


def launches(snapshot: Snapshot) -> tuple[Launch, ...]:
    """Return the launches, oldest claim first."""
    return decide_checked(snapshot).launches


def only_launch(snapshot: Snapshot) -> Launch:
    """Return the launch of a plan that has just one."""
    (launch,) = launches(snapshot)
    return launch


def pods_launched(snapshot: Snapshot) -> list[list[str]]:
    """Return the pods of each launch, in the order they were placed."""
    return [[_name(pod) for pod in launch.pods] for launch in launches(snapshot)]


def types_launched(snapshot: Snapshot) -> list[list[str]]:
    """Return the types of each launch, cheapest first."""
    return [[option.instance_type for option in each.options] for each in launches(snapshot)]


def values_launched(snapshot: Snapshot, key: str) -> list[list[str]]:
    """Return the values of a key that each launch requires; none if it has no requirement."""
    return [
        sorted(each.requirements[key].values) if key in each.requirements else []
        for each in launches(snapshot)
    ]


def only_refusal(snapshot: Snapshot) -> Refusal:
    """Return the refusal of a plan that has just one."""
    (refusal,) = decide_checked(snapshot).refusals
    return refusal


def only_pool_refusal(snapshot: Snapshot) -> PoolRefusal:
    """Return why the only pool has no node for the pods that are refused."""
    (refused,) = only_refusal(snapshot).pools
    return refused


def _name(pod: str) -> str:
    return pod.partition("/")[2]
