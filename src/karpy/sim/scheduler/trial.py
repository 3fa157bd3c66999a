"""Trials: add pods to a node or remove them, filter, and undo."""

from types import TracebackType
from typing import Protocol, Self

from karpy.sim.scheduler.nodes import NodeInfo
from karpy.sim.scheduler.podinfos import PodInfo
from karpy.sim.scheduler.refusals import SchedulerRefusal
from karpy.sim.scheduler.surroundings import Surroundings
from karpy.sim.scheduler.volumes import VolumeCheck


class Judge(Protocol):
    """A roster or shortlist: says which nodes can take a pod."""

    surroundings: Surroundings

    def refusal(self, node: NodeInfo) -> SchedulerRefusal | None:
        """Return why a node cannot take such a pod, volumes aside; None if it can."""


def why_not(judge: Judge, node: NodeInfo, check: VolumeCheck | None) -> SchedulerRefusal | None:
    """Return why a node cannot take a pod, or None, in the order of kube-scheduler's filters."""
    refusal = judge.refusal(node)
    if refusal is None and check is not None:
        refusal = check.refusal(node)
    return refusal or judge.surroundings.refusal(node)


class Trial:
    """Changes the pods of one node for a judge, and undoes all changes at the end."""

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
        """Remove a pod for the trial."""
        self._apply(pod, -1)

    def put(self, pod: PodInfo) -> None:
        """Add a pod for the trial."""
        self._apply(pod, 1)

    def undo(self) -> None:
        """Undo the changes of the trial."""
        for pod, sign in list(self._changes.values()):
            self._apply(pod, -sign)
        assert not self._changes
        self._judge.surroundings.update_minimums()

    def refusal(self) -> SchedulerRefusal | None:
        """Return why the changed node cannot take the pod, or None."""
        self._judge.surroundings.update_minimums()
        return why_not(self._judge, self._node, self._check)

    def _apply(self, pod: PodInfo, sign: int) -> None:
        if sign > 0:
            self._node.put(pod)
        else:
            self._node.take(pod)
        live = 0 if pod.is_deleting else sign
        self._judge.surroundings.shift(self._node.slot, pod.wants.kin, sign, live)
        if self._check is not None:
            self._check.released -= sign * self._check.exclusive_uses_by(pod)
        if pod.key in self._changes:
            del self._changes[pod.key]
        else:
            self._changes[pod.key] = (pod, sign)
