"""Compares the verdict of the solver with the placements of the reference solver."""

from collections.abc import Iterator

from karpy.model.requirements import Requirements
from karpy.model.verdicts import Launch, Reason, Verdict
from tests.fuzz.show import show
from tests.reference.launches import PlannedLaunch
from tests.reference.solver import Placements


def differences(verdict: Verdict, expected: Placements) -> list[str]:
    """Return how a verdict differs from the reference; empty if it does not."""
    return [
        *_nominations(verdict, expected),
        *_launches(verdict, expected),
        *_refusals(verdict, expected),
    ]


def _nominations(verdict: Verdict, expected: Placements) -> Iterator[str]:
    fast = {each.node: each.pods for each in verdict.nominations}
    if len(fast) != len(verdict.nominations):
        yield "a node is nominated twice"
    for node in sorted(fast.keys() | expected.nominations.keys()):
        have, want = fast.get(node, ()), expected.nominations.get(node, ())
        if have != want:
            yield f"node {node}: fast puts {_list(have)} there, the law {_list(want)}"


def _launches(verdict: Verdict, expected: Placements) -> Iterator[str]:
    fast = {each.pods: each for each in verdict.launches}
    readable = {each.pods: each for each in expected.launches}
    for pods in sorted(fast.keys() - readable.keys()):
        yield f"launch of {fast[pods].pool} for {_list(pods)}: only fast"
    for pods in sorted(readable.keys() - fast.keys()):
        yield f"launch of {readable[pods].pool} for {_list(pods)}: only the law"
    for pods in sorted(fast.keys() & readable.keys()):
        for problem in _launch(fast[pods], readable[pods]):
            yield f"launch of {fast[pods].pool} for {_list(pods)}: {problem}"
    in_order = [each.pods for each in verdict.launches if each.pods in readable]
    if in_order != [each.pods for each in expected.launches if each.pods in fast]:
        yield "launches are not in the order in which their claims were made"


def _launch(fast: Launch, readable: PlannedLaunch) -> Iterator[str]:
    if fast.pool != readable.pool:
        yield f"fast has pool {fast.pool}, the law {readable.pool}"
    if dict(fast.requirements) != dict(readable.requirements):
        have, want = _texts(fast.requirements), _texts(readable.requirements)
        yield f"requirements: only fast {sorted(have - want)}, only the law {sorted(want - have)}"
    if fast.options != readable.options:
        only_fast = [each for each in fast.options if each not in readable.options]
        only_law = [each for each in readable.options if each not in fast.options]
        yield f"options: only fast {only_fast}, only the law {only_law}, or another order"
    if tuple(sorted(fast.reservations)) != readable.reservations:
        yield f"fast holds {fast.reservations}, the law {readable.reservations}"
    have_total = {name: amount for name, amount in fast.resources.items() if amount}
    want_total = {name: amount for name, amount in readable.resources.items() if amount}
    if have_total != want_total:
        yield f"fast asks for {have_total}, the law for {want_total}"
    if fast.is_min_values_relaxed != readable.is_min_values_relaxed:
        yield f"minValues relaxed: fast says {fast.is_min_values_relaxed}"


def _refusals(verdict: Verdict, expected: Placements) -> Iterator[str]:
    fast: dict[str, Reason] = {}
    for refusal in verdict.refusals:
        for pod in refusal.pods:
            if pod in fast:
                yield f"pod {pod} is refused twice"
            fast[pod] = refusal.reason
    for pod in sorted(fast.keys() | expected.refused.keys()):
        have, want = fast.get(pod), expected.refused.get(pod)
        if have is not want:
            yield f"pod {pod}: fast says {_name(have)}, the law {_name(want)}"


def _texts(requirements: Requirements) -> set[str]:
    return {show(each) for each in requirements.values()}


def _list(pods: tuple[str, ...]) -> str:
    return f"[{' '.join(pods)}]"


def _name(reason: Reason | None) -> str:
    return reason.name if reason else "placed or not considered"
