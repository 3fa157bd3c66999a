"""Notes on workloads without pods, and on static NodePools."""

from collections.abc import Iterable, Iterator
from typing import Final

from karpy.codec.fields import Fields
from karpy.codec.findings import Finding, note
from karpy.codec.workloads import Workload

NAMESPACED: Final = frozenset(
    {
        "CapacityBuffer",
        "DaemonSet",
        "Deployment",
        "Job",
        "LimitRange",
        "Pod",
        "PodTemplate",
        "ReplicaSet",
        "ReplicationController",
        "ResourceQuota",
        "StatefulSet",
    }
)
_SHOWN_MAX: Final = 3


def notes_on(kind: str, fields: Fields, where: str) -> Iterator[Finding]:
    """Mention a static NodePool: its number of nodes does not depend on pods."""
    spec = fields.child("spec")
    if kind == "NodePool" and "replicas" in spec:
        count = spec.number("replicas")
        message = (
            f"keeps {count} nodes whatever pods ask for; the answer launches none of them, and"
            " counts those that the input holds"
        )
        yield note("STATIC_POOL", message, where=where, path="spec.replicas")


def idle_notes(workloads: Iterable[Workload]) -> Iterator[Finding]:
    """Name the workloads that make no pods: scaled to zero, suspended, ended or being deleted."""
    idle = [
        f"{each.kind} {each.namespace}/{each.name}"
        for each in workloads
        # Skip the old ReplicaSets that a Deployment keeps.
        if each.replicas == 0 and not each.owners
    ]
    if idle:
        more = f" and {len(idle) - _SHOWN_MAX} more" if len(idle) > _SHOWN_MAX else ""
        shown = ", ".join(idle[:_SHOWN_MAX])
        message = f"no pod comes of {shown}{more}: zero replicas, suspended, ended or being deleted"
        yield note("NO_REPLICAS", message)
