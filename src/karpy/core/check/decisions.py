"""Which pods a plan must decide on, and whether it decides on each of them once."""

from collections import Counter
from collections.abc import Iterator

from karpy.core.check.breaches import Breach, Rule
from karpy.model.pods import DAEMON_SET, NODE, STATEFUL_SET, Pod
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict


def is_considered(pod: Pod, going: frozenset[str]) -> bool:
    """Say whether a plan owes the pod an answer; `going` are the nodes that are being deleted."""
    if pod.is_owned_by(DAEMON_SET) or pod.is_owned_by(NODE):
        return False
    if pod.node_name:
        return pod.node_name in going and (
            pod.is_active or (pod.is_deleting and pod.is_owned_by(STATEFUL_SET))
        )
    return pod.is_active


def may_be_placed(pod: Pod, going: frozenset[str]) -> bool:
    """Say whether the pod waits for a node, and for nothing else."""
    waits = bool(pod.node_name) or (pod.is_unschedulable and not pod.nominated_node)
    return is_considered(pod, going) and waits


def going_nodes(snapshot: Snapshot) -> frozenset[str]:
    """Return the names of the nodes that are being deleted."""
    return frozenset(node.name for node in snapshot.nodes if node.is_deleting)


def placed_pods(verdict: Verdict) -> list[str]:
    """List the pods that get a place, as often as they get one."""
    on_nodes = [pod for nomination in verdict.nominations for pod in nomination.pods]
    return on_nodes + [pod for launch in verdict.launches for pod in launch.pods]


def check_decisions(snapshot: Snapshot, verdict: Verdict) -> Iterator[Breach]:
    """Look for pods that are forgotten, decided on twice, or not to be decided on."""
    pods = {pod.key: pod for pod in snapshot.pods}
    going = going_nodes(snapshot)
    placed = Counter(placed_pods(verdict))
    refused = Counter(pod for refusal in verdict.refusals for pod in refusal.pods)
    for key in sorted((placed | refused).keys() - pods.keys()):
        yield Breach(Rule.UNKNOWN_POD, pod=key)
    for key, pod in pods.items():
        yield from _check_one(pod, placed[key], refused[key], going)


def _check_one(pod: Pod, placed: int, refused: int, going: frozenset[str]) -> Iterator[Breach]:
    if max(placed, refused) > 1:
        times = f"placed {placed} times, refused {refused} times"
        yield Breach(Rule.DECIDED_TWICE, pod=pod.key, detail=times)
    if placed and refused:
        yield Breach(Rule.PLACED_AND_REFUSED, pod=pod.key)
    if placed and not may_be_placed(pod, going):
        yield Breach(Rule.NOT_WAITING, pod=pod.key, detail="placed")
    if not is_considered(pod, going):
        if refused:
            yield Breach(Rule.NOT_WAITING, pod=pod.key, detail="refused")
    elif not placed and not refused:
        yield Breach(Rule.FORGOTTEN, pod=pod.key)
