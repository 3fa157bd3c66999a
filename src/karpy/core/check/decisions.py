"""Which pods a plan must decide on, and whether it decides on each of them once."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from karpy.core.check.breaches import Breach, Rule
from karpy.model.pods import DAEMON_SET, NODE, STATEFUL_SET, Pod
from karpy.model.snapshot import Snapshot
from karpy.model.times import parse_duration
from karpy.model.verdicts import Verdict


def is_considered(pod: Pod, displaced: frozenset[str]) -> bool:
    """Say whether a plan owes the pod an answer; `displaced` are UIDs of pods that lose theirs."""
    if pod.is_owned_by(DAEMON_SET) or pod.is_owned_by(NODE):
        return False
    return pod.uid in displaced if pod.node_name else pod.is_active


def may_be_placed(pod: Pod, displaced: frozenset[str]) -> bool:
    """Say whether the pod waits for a node, and for nothing else."""
    waits = bool(pod.node_name) or (pod.is_unschedulable and not pod.nominated_node)
    return is_considered(pod, displaced) and waits


def displaced_pods(snapshot: Snapshot) -> frozenset[str]:
    """Return the UIDs of the pods that need another node, since theirs is being deleted."""
    going = {node.name for node in snapshot.nodes if node.is_deleting}
    return frozenset(
        pod.uid
        for pod in snapshot.pods
        if pod.node_name in going
        and (
            (pod.is_active and not _is_held(pod, snapshot))
            or (pod.is_deleting and pod.is_owned_by(STATEFUL_SET))
        )
    )


def _is_held(pod: Pod, snapshot: Snapshot) -> bool:
    """Say whether an annotation or a budget keeps a pod where it is, so that no drain evicts it."""
    said = pod.disruption.do_not_disrupt
    if said is not None:
        span = parse_duration(said) or timedelta()
        is_young = pod.started is None or snapshot.now < pod.started + span
        if said == "true" or (span > timedelta() and is_young):
            return True
    return any(
        budget.forbids_all and budget.covers(pod) and not (budget.allows_unready and pod.is_unready)
        for budget in snapshot.budgets
    )


def placed_pods(verdict: Verdict) -> list[str]:
    """List the pods that get a place, as often as they get one."""
    on_nodes = [pod for nomination in verdict.nominations for pod in nomination.pods]
    return on_nodes + [pod for launch in verdict.launches for pod in launch.pods]


def check_decisions(snapshot: Snapshot, verdict: Verdict) -> Iterator[Breach]:
    """Look for pods that are forgotten, decided on twice, or not to be decided on."""
    pods = {pod.key: pod for pod in snapshot.pods}
    displaced = displaced_pods(snapshot)
    placed = Counter(placed_pods(verdict))
    refused = Counter(pod for refusal in verdict.refusals for pod in refusal.pods)
    for key in sorted((placed | refused).keys() - pods.keys()):
        yield Breach(Rule.UNKNOWN_POD, pod=key)
    for key, pod in pods.items():
        yield from _check_one(pod, placed[key], refused[key], displaced)


def _check_one(pod: Pod, placed: int, refused: int, displaced: frozenset[str]) -> Iterator[Breach]:
    if max(placed, refused) > 1:
        times = f"placed {placed} times, refused {refused} times"
        yield Breach(Rule.DECIDED_TWICE, pod=pod.key, detail=times)
    if placed and refused:
        yield Breach(Rule.PLACED_AND_REFUSED, pod=pod.key)
    if placed and not may_be_placed(pod, displaced):
        yield Breach(Rule.NOT_WAITING, pod=pod.key, detail="placed")
    if not is_considered(pod, displaced):
        if refused:
            yield Breach(Rule.NOT_WAITING, pod=pod.key, detail="refused")
    elif not placed and not refused:
        yield Breach(Rule.FORGOTTEN, pod=pod.key)
