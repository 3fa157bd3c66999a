"""Pods, DaemonSets, Services, controllers of pods and PodDisruptionBudgets in a decision."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.constraints import (
    DISRUPTED_TAINT,
    NO_SCHEDULE,
    AffinityTerm,
    LabelSelector,
    NodeTerm,
    SpreadConstraint,
    Taint,
    Toleration,
    WeightedNodeTerm,
    WeightedTerm,
)
from karpy.model.requirements import Requirement
from karpy.model.resources import Resources

DAEMON_SET: Final = ("apps/v1", "DaemonSet")
STATEFUL_SET: Final = ("apps/v1", "StatefulSet")
NODE: Final = ("v1", "Node")
CRITICAL_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
DEFAULT_GRACE: Final = timedelta(seconds=30)
_STUCK_AFTER: Final = timedelta(minutes=1)
_DISRUPTED: Final = Taint(DISRUPTED_TAINT, NO_SCHEDULE)
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - what Kubernetes means by an absent host address

DaemonKey: TypeAlias = tuple[str, str]
"""The namespace of a DaemonSet and its UID."""


class HostPort(Struct, frozen=True, gc=False):
    """A host port of a container."""

    port: int
    protocol: str = "TCP"
    address: str = ANY_ADDRESS

    def clashes_with(self, other: "HostPort") -> bool:
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.address == other.address or self.is_any or other.is_any

    @property
    def is_any(self) -> bool:
        return self.address in {ANY_ADDRESS, "::"}


class PodVolume(Struct, frozen=True, gc=False):
    """A volume by PersistentVolumeClaim: a named one, or the one of an ephemeral volume."""

    name: str
    claim: str | None = None
    """Name of the PersistentVolumeClaim; None for an ephemeral volume."""

    def claim_of(self, pod_name: str) -> str:
        return f"{pod_name}-{self.name}" if self.claim is None else self.claim


class PodRules(Struct, frozen=True, gc=False):
    """
    The scheduling constraints of a pod: all that scheduling reads but name, labels and requests.

    Pods of one workload share one object, so that work per object is done once.
    """

    node_selector: tuple[Requirement, ...] = ()
    required_node_terms: tuple[NodeTerm, ...] = ()
    preferred_node_terms: tuple[WeightedNodeTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    spreads: tuple[SpreadConstraint, ...] = ()
    affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[WeightedTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[WeightedTerm, ...] = ()
    ports: tuple[HostPort, ...] = ()
    volumes: tuple[PodVolume, ...] = ()
    claims_devices: bool = False
    """Whether the pod asks for devices by ResourceClaims (dynamic resource allocation)."""
    unreadable: str = ""
    """Why the pod cannot be read; its other constraints are then unknown."""

    @property
    def is_demanding(self) -> bool:
        """Whether a pod has host ports, volumes or anti-affinity."""
        return bool(self.anti_affinity or self.ports or self.volumes)

    @property
    def has_topology(self) -> bool:
        """Whether the constraints refer to the places of other pods."""
        return bool(
            self.spreads
            or self.affinity
            or self.anti_affinity
            or self.preferred_affinity
            or self.preferred_anti_affinity
        )

    def without_preferences(self) -> "PodRules":
        """Return the required constraints alone."""
        return replace(
            self,
            preferred_node_terms=(),
            preferred_affinity=(),
            preferred_anti_affinity=(),
            spreads=tuple(each for each in self.spreads if not each.is_soft),
        )


class PodDisruption(Struct, frozen=True, gc=False):
    """
    The fields of a pod that bear on its disruption: annotations, priority, grace period.

    Pods with equal fields share one object.
    """

    do_not_disrupt: str | None = None
    """The annotation `karpenter.sh/do-not-disrupt`; None without it."""
    disruption_cost: str | None = None
    """The annotation `karpenter.sh/disruption-cost`; None without it."""
    deletion_cost: str | None = None
    """The annotation `controller.kubernetes.io/pod-deletion-cost`; None without it."""
    priority: int = 0
    priority_class: str = ""
    grace: timedelta = DEFAULT_GRACE
    """The terminationGracePeriodSeconds."""

    @property
    def is_critical(self) -> bool:
        """Whether a drain evicts the pod after all others."""
        return self.priority_class in CRITICAL_CLASSES


USUAL_DISRUPTION: Final = PodDisruption()


class Owner(Struct, frozen=True, gc=False):
    """An ownerReference of a pod."""

    api_version: str
    kind: str
    name: str = ""
    uid: str = ""
    is_controller: bool = False


class Pod(Struct, frozen=True, gc=False):
    """One pod, pending or bound; `rules`, `labels` and `requests` are shared between equals."""

    name: str
    namespace: str
    uid: str
    created: datetime
    labels: Mapping[str, str]
    requests: Resources
    """Effective requests, the pod itself (`pods: 1`) included."""
    rules: PodRules
    node_name: str = ""
    nominated_node: str = ""
    phase: str = ""
    is_unschedulable: bool = False
    """Whether kube-scheduler has given up on it for now (PodScheduled, reason Unschedulable)."""
    is_deleting: bool = False
    owners: tuple[Owner, ...] = ()
    is_virtual: bool = False
    """Whether it exists in decisions only, in the place of room that a CapacityBuffer keeps."""
    limits: Resources = {}
    """The limits of its containers; no decision reads them."""
    bound: datetime | None = None
    """When it got its node."""
    ready: datetime | None = None
    """Since when it is ready; None while it is not."""
    is_untried: bool = False
    """Whether kube-scheduler has not tried to schedule it yet."""
    is_expected: bool = False
    """
    Whether a decision leaves it alone, because an earlier decision has found a place for it.

    The place is `node_name`. Without `node_name`, other pods took the place, and the pod waits for
    nodes of the same decision to become schedulable.
    """
    disruption: PodDisruption = USUAL_DISRUPTION
    started: datetime | None = None
    """The startTime that its kubelet has set."""
    deleted: datetime | None = None
    """When its grace period ends (the deletionTimestamp); None unless it is being deleted."""
    is_unready: bool = False
    """Whether its condition Ready is False."""
    scheduler_message: str = ""
    """Why kube-scheduler has found no node for it, while it is unschedulable; only for messages."""

    @property
    def key(self) -> str:
        """Namespace and name: `shop/web-1`."""
        return f"{self.namespace}/{self.name}"

    @property
    def unreadable(self) -> str:
        """Why it cannot be read; empty if it can."""
        return self.rules.unreadable

    @property
    def group(self) -> str:
        """Name the pods that replace each other: those of its controller, or the pod alone."""
        for owner in self.owners:
            if owner.is_controller and owner.uid:
                # The API server does not check ownerReferences: the UID may be of any namespace.
                return f"{self.namespace}/{owner.kind}/{owner.uid}"
        return self.key

    @property
    def is_terminal(self) -> bool:
        return bool(self.phase) and self.phase in {"Failed", "Succeeded"}

    @property
    def is_active(self) -> bool:
        return not self.is_terminal and not self.is_deleting

    @property
    def is_provisionable(self) -> bool:
        """Whether it is pending and waits for a node to be launched."""
        return (
            self.is_unschedulable
            and not self.node_name
            and not self.nominated_node
            and self.is_active
            and not (self.is_owned_by(DAEMON_SET) or self.is_owned_by(NODE))
        )

    @property
    def is_daemon(self) -> bool:
        """Whether a DaemonSet owns it."""
        return self.is_owned_by(DAEMON_SET)

    @property
    def is_static(self) -> bool:
        """Whether it is a static pod: its kubelet runs it, and the API server cannot delete it."""
        return self.is_owned_by(NODE)

    @property
    def is_reschedulable(self) -> bool:
        """Whether it needs another node when its own goes."""
        # Every decision reads this property of every pod: method calls are its cost.
        if self.owners and (self.is_owned_by(DAEMON_SET) or self.is_owned_by(NODE)):
            return False
        # A StatefulSet creates the next pod only once this one is gone: it counts as pending.
        return self.is_active or (self.is_deleting and self.is_owned_by(STATEFUL_SET))

    @property
    def tolerates_disruption(self) -> bool:
        """Whether it stays on a node with the taint `karpenter.sh/disrupted`."""
        return any(each.allows(_DISRUPTED) for each in self.rules.tolerations)

    def is_stuck(self, now: datetime) -> bool:
        """Say whether its grace period ended over a minute ago and it still exists."""
        return self.deleted is not None and now - self.deleted > _STUCK_AFTER

    def is_drainable(self, now: datetime) -> bool:
        """Say whether a drain applies to it."""
        return not (self.tolerates_disruption or self.is_static or self.is_stuck(now))

    def is_waited_for(self, now: datetime) -> bool:
        """Say whether the drain of its node lasts as long as the pod exists."""
        return not self.is_terminal and self.is_drainable(now)

    def is_owned_by(self, kind: tuple[str, str]) -> bool:
        return any((owner.api_version, owner.kind) == kind for owner in self.owners)


class DaemonSet(Struct, frozen=True, gc=False):
    """A DaemonSet and the pod it would run on a node."""

    name: str
    namespace: str
    pod: Pod


class Service(Struct, frozen=True, gc=False):
    """What a Service selects; default spread constraints are deduced from it."""

    name: str
    namespace: str
    selector: Mapping[str, str] | None = None


class PodController(Struct, frozen=True, gc=False):
    """A ReplicaSet, StatefulSet or ReplicationController and what it selects."""

    api_version: str
    kind: str
    name: str
    namespace: str
    uid: str
    selector: tuple[Requirement, ...] = ()


class DisruptionBudget(Struct, frozen=True, gc=False):
    """A PodDisruptionBudget."""

    name: str
    namespace: str
    selector: tuple[Requirement, ...] | None = None
    min_available: str | None = None
    max_unavailable: str | None = None
    disruptions_allowed: int | None = None
    allows_unready: bool = False
    """Whether pods that are not ready can always be evicted: unhealthyPodEvictionPolicy."""

    @property
    def key(self) -> str:
        """Namespace and name: `shop/web`."""
        return f"{self.namespace}/{self.name}"

    @property
    def forbids_all(self) -> bool:
        """Whether its spec never allows an eviction."""
        return self.max_unavailable in {"0", "0%"} or self.min_available == "100%"

    def covers(self, pod: Pod) -> bool:
        """Say whether its selector selects a pod."""
        if self.selector is None or self.namespace != pod.namespace:
            return False
        return LabelSelector(self.selector).selects(pod.labels)


def daemon_set_of(pod: Pod) -> DaemonKey | None:
    """Return the DaemonSet that controls a pod."""
    for owner in pod.owners:
        if owner.is_controller and (owner.api_version, owner.kind) == DAEMON_SET:
            return pod.namespace, owner.uid
    return None


def daemon_pod_rank(pod: Pod) -> tuple[bool, datetime, str]:
    """Return a key for `max`: the newest running pod of a DaemonSet, else the newest pod."""
    # Differs: what a DaemonSet requests on new nodes: Karpenter reads its newest pod, running or
    # not; Karpy prefers pods that run, because the right to create pods is enough to create one
    # that names the DaemonSet as its owner and asks for more than any node has.
    return pod.phase == "Running", pod.created, pod.name


def with_requests_of(daemon: DaemonSet, pod: Pod | None) -> DaemonSet:
    """Return a DaemonSet with the requests and constraints of one of its pods, unless None."""
    if pod is None:
        return daemon
    # The DaemonSet controller replaces the required affinity of each pod by the name of its node.
    terms = daemon.pod.rules.required_node_terms
    rules = replace(pod.rules, required_node_terms=terms)
    made = replace(daemon.pod, requests=pod.requests, limits=pod.limits, rules=rules)
    return replace(daemon, pod=made)
