"""What a DaemonSet takes of a new node, known from a pod of it that is there."""

from datetime import datetime
from typing import TypeAlias

from msgspec.structs import replace

from karpy.model.pods import DAEMON_SET, DaemonSet, Pod

DaemonKey: TypeAlias = tuple[str, str]
"""The namespace of a DaemonSet and its UID."""


def daemon_set_of(pod: Pod) -> DaemonKey | None:
    """Return the DaemonSet that controls a pod."""
    for owner in pod.owners:
        if owner.is_controller and (owner.api_version, owner.kind) == DAEMON_SET:
            return pod.namespace, owner.uid
    return None


def precedence(pod: Pod) -> tuple[bool, datetime, str]:
    """Rank the pods of a DaemonSet: of those that run the newest counts, else the newest."""
    # Differs: what a DaemonSet requests on new nodes: Karpenter reads its newest pod, running or
    # not; Karpy prefers pods that run, because the right to create pods is enough to create one
    # that names the DaemonSet as its owner and asks for more than any node has.
    return pod.phase == "Running", pod.created, pod.name


def as_it_runs(daemon: DaemonSet, pod: Pod | None) -> DaemonSet:
    """Return a DaemonSet whose pods ask for what a pod of it asks for; None changes nothing."""
    if pod is None:
        return daemon
    # The affinity of a pod names the node that it was made for, in place of what the template says.
    terms = daemon.pod.rules.required_node_terms
    rules = replace(pod.rules, required_node_terms=terms)
    made = replace(daemon.pod, requests=pod.requests, limits=pod.limits, rules=rules)
    return replace(daemon, pod=made)
