"""The world as a plan would leave it."""

from functools import cached_property
from typing import Final

from karpy.core.check.crowd import Crowd
from karpy.core.check.decisions import displaced_pods, is_considered
from karpy.core.check.market import Market
from karpy.core.check.places import LaunchPlace, NodePlace, Place
from karpy.model.pods import Pod
from karpy.model.refusals import Reason
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict

_AFTER_A_TRY: Final = frozenset(
    {
        Reason.NO_POOL,
        Reason.NO_HOST,
        Reason.WAITS_FOR_RESERVATION,
        Reason.MIN_VALUES_TRUNCATED,
        Reason.UNDECIDED,
        Reason.TOO_COMPLEX,
        Reason.DECISION_FAILED,
    }
)


class Scene:
    """
    A snapshot with a verdict carried out: each pod at its place.

    What is wrong with the verdict as a document (unknown names, a pod placed twice) is left out
    here, so that one mistake is reported once.
    """

    def __init__(self, snapshot: Snapshot, verdict: Verdict) -> None:
        self.snapshot = snapshot
        self.verdict = verdict
        self.market = Market(snapshot)
        self.pods = {pod.key: pod for pod in snapshot.pods}
        self._seen: set[str] = set()
        nominated: dict[str, list[Pod]] = {}
        for nomination in verdict.nominations:
            nominated.setdefault(nomination.node, []).extend(self._take(nomination.pods))
        bound = self._bound_pods()
        self.nodes = [
            NodePlace(
                node,
                bound.get(node.name, ()),
                () if node.is_deleting else nominated.get(node.name, ()),
            )
            for node in snapshot.nodes
        ]
        self.launches = [
            LaunchPlace(
                launch,
                self.market.stock(self.market.pools[launch.pool], launch.requirements),
                self._take(launch.pods),
            )
            for launch in verdict.launches
            if launch.pool in self.market.pools
        ]

    def _take(self, keys: tuple[str, ...]) -> list[Pod]:
        found: list[Pod] = []
        for key in keys:
            if key in self.pods and key not in self._seen:
                self._seen.add(key)
                found.append(self.pods[key])
        return found

    def _bound_pods(self) -> dict[str, list[Pod]]:
        """
        Return the pods that stay where they are, by node.

        Among them are those of a going node that were refused at once: no plan moves them.
        """
        displaced = displaced_pods(self.snapshot)
        refusals = (each for each in self.verdict.refusals if each.reason not in _AFTER_A_TRY)
        left_alone = {pod for refusal in refusals for pod in refusal.pods}
        bound: dict[str, list[Pod]] = {}
        for pod in self.snapshot.pods:
            is_moved = is_considered(pod, displaced) and pod.key not in left_alone
            if pod.node_name and not pod.is_terminal and not is_moved:
                bound.setdefault(pod.node_name, []).append(pod)
        return bound

    @cached_property
    def places(self) -> list[Place]:
        """Nodes that exist, then launches."""
        return [*self.nodes, *self.launches]

    @cached_property
    def crowd(self) -> Crowd:
        """Everybody who will be somewhere."""
        return Crowd(self.places)
