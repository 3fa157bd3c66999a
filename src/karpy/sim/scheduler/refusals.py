"""The reasons why a node cannot take a pod, with the messages of kube-scheduler."""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

NODE_UNSCHEDULABLE: Final = "NodeUnschedulable"
TAINT_TOLERATION: Final = "TaintToleration"
NODE_AFFINITY: Final = "NodeAffinity"
NODE_PORTS: Final = "NodePorts"
NODE_RESOURCES: Final = "NodeResourcesFit"
VOLUME_RESTRICTIONS: Final = "VolumeRestrictions"
VOLUME_LIMITS: Final = "NodeVolumeLimits"
VOLUME_BINDING: Final = "VolumeBinding"
VOLUME_ZONE: Final = "VolumeZone"
TOPOLOGY_SPREAD: Final = "PodTopologySpread"
POD_AFFINITY: Final = "InterPodAffinity"


class SchedulerRefusal(Struct, frozen=True):
    """The refusal of a filter; final if deleting other pods would not lift it."""

    plugin: str
    reasons: tuple[str, ...]
    is_final: bool = True


def _final(plugin: str, reason: str) -> SchedulerRefusal:
    return SchedulerRefusal(plugin, (reason,))


def _for_now(plugin: str, reason: str) -> SchedulerRefusal:
    return SchedulerRefusal(plugin, (reason,), is_final=False)


CORDONED: Final = _final(NODE_UNSCHEDULABLE, "node(s) were unschedulable")
TAINTED: Final = _final(TAINT_TOLERATION, "node(s) had untolerated taint(s)")
UNWANTED: Final = _final(NODE_AFFINITY, "node(s) didn't match Pod's node affinity/selector")
OFF_THE_LIST: Final = _final(NODE_AFFINITY, "node(s) didn't satisfy plugin(s) [NodeAffinity]")
CONTRADICTION: Final = _final(NODE_AFFINITY, "pod affinity terms conflict")
PORTS_TAKEN: Final = _for_now(
    NODE_PORTS, "node(s) didn't have free ports for the requested pod ports"
)
DISK_TAKEN: Final = _for_now(VOLUME_RESTRICTIONS, "node(s) had no available disk")
CLAIM_TAKEN: Final = _for_now(
    VOLUME_RESTRICTIONS,
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod",
)
VOLUMES_FULL: Final = _for_now(VOLUME_LIMITS, "node(s) exceed max volume count")
CLAIMS_UNBOUND: Final = _final(VOLUME_BINDING, "pod has unbound immediate PersistentVolumeClaims")
VOLUME_ELSEWHERE: Final = "node(s) didn't match PersistentVolume's node affinity"
VOLUME_NOT_FOUND: Final = "node(s) didn't find available persistent volumes to bind"
VOLUME_MISSING: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
ZONE_ELSEWHERE: Final = _final(VOLUME_ZONE, "node(s) had no available volume zone")
SPREAD_BROKEN: Final = _for_now(
    TOPOLOGY_SPREAD, "node(s) didn't match pod topology spread constraints"
)
SPREAD_UNLABELLED: Final = _final(
    TOPOLOGY_SPREAD,
    "node(s) didn't match pod topology spread constraints (missing required label)",
)
AFFINITY_UNMET: Final = _final(POD_AFFINITY, "node(s) didn't match pod affinity rules")
ANTI_AFFINITY_BROKEN: Final = _for_now(POD_AFFINITY, "node(s) didn't match pod anti-affinity rules")
OTHERS_AVERSE: Final = _for_now(
    POD_AFFINITY, "node(s) didn't satisfy existing pods anti-affinity rules"
)
NO_VICTIMS: Final = _final("", "No preemption victims found for incoming pod")
HELPLESS: Final = _final("", "Preemption is not helpful for scheduling")
NO_NODES: Final = "no nodes available to schedule pods"


@lru_cache(maxsize=1024)
def short_of(reasons: tuple[str, ...], *, is_final: bool) -> SchedulerRefusal:
    """Return the refusal for lacking resources; final if an empty node would lack them too."""
    return SchedulerRefusal(NODE_RESOURCES, reasons, is_final)


class Diagnosis(Struct, frozen=True):
    """The refusals of all nodes for a pod."""

    nodes: int
    """The number of nodes."""
    refusals: Mapping[str, SchedulerRefusal]
    """The refusals by node, for nodes that were filtered."""
    at_once: SchedulerRefusal | None = None
    """The refusal of all nodes before any was filtered."""

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that refused."""
        refusals = {each.plugin for each in self.refusals.values()}
        if self.at_once is not None:
            refusals.add(self.at_once.plugin)
        if len(self.refusals) < self.nodes and self.at_once is None:
            refusals.add(NODE_AFFINITY)
        return frozenset(refusals)

    def text(self, afterwards: str) -> str:
        """Write the message of the condition; `afterwards` is the message of preemption."""
        if self.at_once is not None:
            said = ", ".join(self.at_once.reasons)
            return f"0/{self.nodes} nodes are available: {said}. {afterwards}".rstrip()
        said = counted(self.nodes, self.refusals.values(), OFF_THE_LIST)
        return f"{said} {afterwards}".rstrip()


def counted(nodes: int, refusals: Iterable[SchedulerRefusal], absent: SchedulerRefusal) -> str:
    """Count reasons over all nodes; nodes without an entry in `refusals` count as `absent`."""
    said = list(refusals)
    reasons = Counter(reason for each in said for reason in each.reasons)
    if len(said) < nodes:
        reasons.update(dict.fromkeys(absent.reasons, nodes - len(said)))
    lines = sorted(f"{count} {reason}" for reason, count in reasons.items())
    return f"0/{nodes} nodes are available: {', '.join(lines)}."
