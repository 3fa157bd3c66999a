"""Thinking pods away from a node, or onto it, and back again."""

from types import TracebackType
from typing import Protocol, Self

from karpy.sim.scheduler.nodes import NodeInfo
from karpy.sim.scheduler.podinfos import PodInfo
from karpy.sim.scheduler.refusals import Refusal
from karpy.sim.scheduler.surroundings import Surroundings
from karpy.sim.scheduler.volumes import VolumeCheck


class Judge(Protocol):
    """Knows which nodes can take a kind of pod."""

    surroundings: Surroundings

    def refusal(self, node: NodeInfo) -> Refusal | None:
        """Say why a node by itself cannot take such a pod, volumes aside; None if it can."""


def why_not(judge: Judge, node: NodeInfo, check: VolumeCheck | None) -> Refusal | None:
    """Say why a node cannot take a pod, or None; this is the order of kube-scheduler's filters."""
    refusal = judge.refusal(node)
    if refusal is None and check is not None:
        refusal = check.refusal(node)
    return refusal or judge.surroundings.refusal(node)


class Trial:
    """Changes what a judge sees of one node, and takes it all back in the end."""

    def __init__(self, judge: Judge, node: NodeInfo, check: VolumeCheck | None) -> None:
        self._judge = judge
        self._node = node
        self._check = check
        self._changes: dict[str, tuple[PodInfo, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.undo()

    def take(self, pod: PodInfo) -> None:
        """Think a pod away."""
        self._apply(pod, -1)

    def put(self, pod: PodInfo) -> None:
        """Think a pod to be there."""
        self._apply(pod, 1)

    def undo(self) -> None:
        """See everything as it is."""
        for pod, sign in list(self._changes.values()):
            self._apply(pod, -sign)
        assert not self._changes
        self._judge.surroundings.measure()

    def refusal(self) -> Refusal | None:
        """Say why the node could not take the pod then, or None."""
        self._judge.surroundings.measure()
        return why_not(self._judge, self._node, self._check)

    def _apply(self, pod: PodInfo, sign: int) -> None:
        if sign > 0:
            self._node.put(pod)
        else:
            self._node.take(pod)
        live = 0 if pod.is_ending else sign
        self._judge.surroundings.shift(self._node.slot, pod.wants.kin, sign, live)
        if self._check is not None:
            self._check.released -= sign * self._check.exclusive_uses_by(pod)
        if pod.key in self._changes:
            del self._changes[pod.key]
        else:
            self._changes[pod.key] = (pod, sign)
