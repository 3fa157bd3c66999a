"""Pods of a node as tenants carry them."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.model.constraints import DISRUPTED_TAINT, NO_SCHEDULE, Taint, Toleration
from karpy.model.pods import PodDisruption

CRITICAL_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
DEFAULT_GRACE: Final = timedelta(seconds=30)
_STUCK_AFTER: Final = timedelta(minutes=1)
_TERMINAL: Final = frozenset({"Failed", "Succeeded"})
_DISRUPTED: Final = Taint(DISRUPTED_TAINT, NO_SCHEDULE)


class LeavingPod(Struct, frozen=True, gc=False):
    """A pod on a node that is emptied."""

    name: str
    namespace: str
    uid: str
    node_name: str = ""
    phase: str = ""
    started: datetime | None = None
    deleted: datetime | None = None
    """When its time is over, grace included; None while it stays."""
    grace: timedelta = DEFAULT_GRACE
    """How long it may take to stop."""
    priority_class: str = ""
    do_not_disrupt: str | None = None
    """What its annotation says; None without one."""
    tolerations: tuple[Toleration, ...] = ()
    is_daemon: bool = False
    is_static: bool = False
    """Whether the kubelet made it by itself; the API server cannot end it."""
    volume_claims: tuple[str, ...] = ()
    """Names of its PersistentVolumeClaims."""
    unreadable: str = ""
    """Why the pod cannot be read in full; what is missing here is not known then."""

    @property
    def disruption(self) -> PodDisruption:
        """Return what the pod says about its own disruption."""
        return PodDisruption(do_not_disrupt=self.do_not_disrupt, grace=self.grace)

    @property
    def key(self) -> str:
        """Namespace and name, as users write it."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_terminal(self) -> bool:
        return self.phase in _TERMINAL

    @property
    def is_deleting(self) -> bool:
        return self.deleted is not None

    @property
    def is_active(self) -> bool:
        return not self.is_terminal and not self.is_deleting

    @property
    def is_critical(self) -> bool:
        return self.priority_class in CRITICAL_CLASSES

    @property
    def tolerates_disruption(self) -> bool:
        """Whether it stays on a node that is marked as going."""
        return any(each.allows(_DISRUPTED) for each in self.tolerations)

    def is_stuck(self, now: datetime) -> bool:
        """Say whether its time was over a minute ago and it is still there."""
        return self.deleted is not None and now - self.deleted > _STUCK_AFTER

    def is_drainable(self, now: datetime) -> bool:
        """Say whether a drain is about it at all."""
        return not (self.tolerates_disruption or self.is_static or self.is_stuck(now))

    def is_waited_for(self, now: datetime) -> bool:
        """Say whether the node is not empty as long as this pod is there."""
        return not self.is_terminal and self.is_drainable(now)
