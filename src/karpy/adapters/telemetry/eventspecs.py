"""All events that Karpy emits, as data; reasons and objects are Karpenter's."""

from typing import Final

from msgspec import Struct

_NODE_AND_CLAIM: Final = ("Node", "NodeClaim")
_WITH_CONDITIONS: Final = ("NodeClaim", "NodePool", "Node", "CapacityBuffer")


class EventSpec(Struct, frozen=True):
    """An event: its reason, and the kinds of objects that it is about."""

    reason: str
    objects: tuple[str, ...]
    meaning: str
    is_warning: bool = False


EVENTS: Final = (
    EventSpec("Nominated", ("Pod",), "The pod is nominated to this NodeClaim or node."),
    EventSpec(
        "FailedScheduling",
        ("Pod",),
        "The pod has no place; the message names the decisive constraint.",
        is_warning=True,
    ),
    EventSpec(
        "LaunchedInVain",
        ("Pod",),
        "Nodes were launched for the pod, and it was not bound to them; the message says how "
        "often, what kube-scheduler says, and when the next launch may be.",
        is_warning=True,
    ),
    EventSpec(
        "NoCompatibleInstanceTypes",
        ("NodePool",),
        "No instance type meets the requirements of the NodePool itself.",
        is_warning=True,
    ),
    EventSpec(
        "FailedResolvingNodeClass",
        ("NodePool", "NodeClaim"),
        "The node class does not exist, or is being deleted; nothing is launched.",
        is_warning=True,
    ),
    EventSpec(
        "NodeClassNotServed",
        ("NodePool",),
        "The provider of this operator does not know the kind of node class; nothing is launched.",
        is_warning=True,
    ),
    EventSpec(
        "InsufficientCapacityError",
        ("NodeClaim", "Pod"),
        "Every launch option of the NodeClaim is sold out; the next decision plans again.",
        is_warning=True,
    ),
    EventSpec(
        "UnregisteredTaintMissing",
        ("NodeClaim",),
        "The node registered without the taint that keeps pods away until then.",
        is_warning=True,
    ),
    EventSpec(
        "FailedConsistencyCheck",
        ("NodeClaim",),
        "The node is not what its NodeClaim says.",
        is_warning=True,
    ),
    EventSpec(
        "DisruptionBlocked",
        ("Node", "NodeClaim", "NodePool"),
        "What keeps a node from being disrupted, or all nodes of a NodePool, such as a budget.",
    ),
    EventSpec("Unconsolidatable", _NODE_AND_CLAIM, "Why the node is not consolidated."),
    EventSpec(
        "DisruptionLaunching", ("NodeClaim",), "A replacement is launched, and why one is needed."
    ),
    EventSpec(
        "DisruptionWaitingReadiness",
        ("NodeClaim",),
        "The disruption waits until its replacement is ready.",
    ),
    EventSpec(
        "DisruptionTerminating",
        _NODE_AND_CLAIM,
        "The node is being terminated; the message says why.",
    ),
    EventSpec("ConsolidationCandidate", _NODE_AND_CLAIM, "A consolidation is considered."),
    EventSpec(
        "ConsolidationRejected",
        _NODE_AND_CLAIM,
        "A consolidation is rejected; the message says why.",
    ),
    EventSpec(
        "ConsolidationApproved",
        ("Node", "NodeClaim", "NodePool"),
        "A consolidation saves enough for the pods that it disrupts.",
    ),
    EventSpec(
        "NodeRepairBlocked",
        ("Node", "NodeClaim", "NodePool"),
        "Too many nodes are unhealthy at the same time to repair this one.",
        is_warning=True,
    ),
    EventSpec("RebootObserved", ("NodeClaim",), "The node has rebooted."),
    EventSpec(
        "RebootFailed", ("NodeClaim",), "The node did not come back from a reboot.", is_warning=True
    ),
    EventSpec("Evicted", ("Pod",), "The pod was evicted from its node; the message says why."),
    EventSpec(
        "Disrupted",
        ("Pod",),
        "The pod was deleted, because the termination grace period of its node ends.",
    ),
    EventSpec(
        "FailedDraining",
        ("Node",),
        "Pods cannot be evicted from the node; the message says which, and why.",
        is_warning=True,
    ),
    EventSpec(
        "AwaitingVolumeDetachment",
        ("Node",),
        "Volumes are still attached to the node; the message names them.",
    ),
    EventSpec(
        "TerminationGracePeriodExpiring",
        _NODE_AND_CLAIM,
        "The remaining pods of the node will be deleted; the message says when.",
        is_warning=True,
    ),
    EventSpec(
        "InvalidDoNotDisruptAnnotation",
        ("Pod",),
        "`karpenter.sh/do-not-disrupt` has a value that is not allowed; it is ignored.",
        is_warning=True,
    ),
    EventSpec(
        "DoNotDisruptUntil", ("Pod",), "Until when `karpenter.sh/do-not-disrupt` protects the pod."
    ),
    EventSpec(
        "DoNotDisruptGracePeriodElapsed",
        ("Pod",),
        "`karpenter.sh/do-not-disrupt` no longer protects the pod.",
    ),
    EventSpec(
        "SpotInterrupted",
        _NODE_AND_CLAIM,
        "The cloud interrupts the spot machine.",
        is_warning=True,
    ),
    EventSpec(
        "SpotRebalanceRecommendation",
        _NODE_AND_CLAIM,
        "The spot machine is more likely than others to be interrupted; nothing is done.",
    ),
    EventSpec("InstanceStopping", _NODE_AND_CLAIM, "The machine stops.", is_warning=True),
    EventSpec(
        "InstanceTerminating", _NODE_AND_CLAIM, "The machine is terminated.", is_warning=True
    ),
    EventSpec(
        "InstanceUnhealthy",
        _NODE_AND_CLAIM,
        "A status check of the machine failed, or the cloud has scheduled maintenance for it.",
        is_warning=True,
    ),
    EventSpec(
        "CapacityReservationInstanceInterrupted",
        _NODE_AND_CLAIM,
        "The capacity reservation of the machine ends.",
        is_warning=True,
    ),
    EventSpec(
        "TerminatingOnInterruption",
        _NODE_AND_CLAIM,
        "The NodeClaim is deleted, because its machine ends; an earlier event says why.",
        is_warning=True,
    ),
    EventSpec("Finalized", _WITH_CONDITIONS, "A finalizer was removed: the object is deleted."),
)

CONDITION_EVENT: Final = EventSpec(
    "<type of the condition>",
    _WITH_CONDITIONS,
    "A condition has a new status; the message has the old one, the new one and the reason.",
)
