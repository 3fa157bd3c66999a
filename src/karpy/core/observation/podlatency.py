"""How long pods wait: for a decision, for a node, until they are ready."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from karpy.core.lifecycle.changes import Count
from karpy.model.pods import Pod

PENDING: Final = "Pending"


class PodTiming(Struct, frozen=True, gc=False):
    """When Karpy saw a pod, decided about it, and found a node for it."""

    acked: datetime | None = None
    """When the pod was first seen as unschedulable."""
    decided: datetime | None = None
    """When the first decision about the pod was made, a refusal included."""
    schedulable: datetime | None = None
    """Since when there is a node for the pod; None if the last decision refused it."""


UNKNOWN: Final = PodTiming()


class Waits(Struct, frozen=True, gc=False):
    """Since when a pod waits for each step; None is a step that is done."""

    unstarted: datetime | None = None
    unbound: datetime | None = None
    provisioning_unstarted: datetime | None = None
    provisioning_unbound: datetime | None = None
    undecided: datetime | None = None


NO_WAITS: Final = Waits()


def find_waits(pod: Pod, timing: PodTiming, *, is_starting: bool) -> Waits:
    """Return what a pod waits for; with `is_starting` it was pending and is not ready yet."""
    # Differs: the metric of the time a pod is unbound: Karpenter counts a pod until it runs; Karpy
    # counts it until it is bound, as the name of the metric says.
    is_unbound = is_starting and not pod.node_name and pod.phase == PENDING
    is_undecided = timing.decided is None and not pod.node_name and not pod.is_terminal
    if not (is_starting or (is_undecided and timing.acked)):
        return NO_WAITS
    return Waits(
        unstarted=pod.created if is_starting else None,
        unbound=pod.created if is_unbound else None,
        provisioning_unstarted=timing.schedulable if is_starting else None,
        provisioning_unbound=timing.schedulable if is_unbound else None,
        undecided=timing.acked if is_undecided else None,
    )


def bound_counts(pod: Pod, timing: PodTiming) -> tuple[Count, ...]:
    """Measure how long a pod waited until it was bound."""
    if pod.bound is None:
        return ()
    labels = {"dynamic_resources": has_dynamic_resources(pod)}
    counts = [Count("pods_bound_duration_seconds", labels, _seconds(pod.created, pod.bound))]
    if timing.schedulable is not None:
        waited = _seconds(timing.schedulable, pod.bound)
        counts.append(Count("pods_provisioning_bound_duration_seconds", labels, waited))
    return tuple(counts)


def startup_counts(pod: Pod, timing: PodTiming) -> tuple[Count, ...]:
    """Measure how long a pod waited until it was ready."""
    if pod.ready is None:
        return ()
    counts = [Count("pods_startup_duration_seconds", {}, _seconds(pod.created, pod.ready))]
    if timing.schedulable is not None:
        waited = _seconds(timing.schedulable, pod.ready)
        counts.append(Count("pods_provisioning_startup_duration_seconds", {}, waited))
    return tuple(counts)


def decision_counts(timing: PodTiming) -> tuple[Count, ...]:
    """Measure how long a pod waited for its first decision."""
    if timing.acked is None or timing.decided is None:
        return ()
    waited = _seconds(timing.acked, timing.decided)
    return (Count("pods_scheduling_decision_duration_seconds", {}, waited),)


def has_dynamic_resources(pod: Pod) -> str:
    """Return whether a pod claims devices, as the value of a label."""
    return "true" if pod.rules.claims_devices else "false"


def owner_link(pod: Pod) -> str:
    """Return the first owner of a pod as a path, like the selfLink of former API servers."""
    if not pod.owners:
        return ""
    owner = pod.owners[0]
    kind = owner.kind.lower()
    return f"/apis/{owner.api_version}/namespaces/{pod.namespace}/{kind}s/{owner.name}"


def _seconds(since: datetime, until: datetime) -> float:
    # Kubernetes writes whole seconds: what takes less may seem to end before it began.
    return max(0.0, (until - since).total_seconds())
