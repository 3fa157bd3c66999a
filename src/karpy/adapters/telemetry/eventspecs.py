"""Every event that objects get, as data: reasons and objects are Karpenter's."""

from typing import Final

from msgspec import Struct

_NODE_AND_CLAIM: Final = ("Node", "NodeClaim")
_WITH_CONDITIONS: Final = ("NodeClaim", "NodePool", "Node", "CapacityBuffer")


class EventSpec(Struct, frozen=True):
    """An event; its reason is the word that tools look for."""

    reason: str
    objects: tuple[str, ...]
    meaning: str
    is_warning: bool = False


EVENTS: Final = (
    EventSpec("Nominated", ("Pod",), "The pod has a place: this NodeClaim or node is for it."),
    EventSpec(
        "FailedScheduling",
        ("Pod",),
        "The pod has no place, and which constraint decides that.",
        is_warning=True,
    ),
    EventSpec(
        "LaunchedInVain",
        ("Pod",),
        "Nodes were launched for the pod that it did not get to; how often, what kube-scheduler"
        " says, and when the next one may be launched.",
        is_warning=True,
    ),
    EventSpec(
        "NoCompatibleInstanceTypes",
        ("NodePool",),
        "No instance type meets the requirements of the NodePool itself.",
        is_warning=True,
    ),
    EventSpec(
        "NodeClassNotServed",
        ("NodePool",),
        "The provider that runs does not know the kind of node class; nothing is launched.",
        is_warning=True,
    ),
    EventSpec(
        "InsufficientCapacityError",
        ("NodeClaim", "Pod"),
        "Everything that the NodeClaim could become is sold out; another plan follows.",
        is_warning=True,
    ),
    EventSpec(
        "UnregisteredTaintMissing",
        ("NodeClaim",),
        "The node came without the taint that keeps pods away until it is registered.",
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
        "What keeps a node from being disrupted, or a NodePool's nodes: a budget.",
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
    EventSpec("DisruptionTerminating", _NODE_AND_CLAIM, "The node goes, and why."),
    EventSpec("ConsolidationCandidate", _NODE_AND_CLAIM, "A consolidation that is considered."),
    EventSpec(
        "ConsolidationRejected", _NODE_AND_CLAIM, "A consolidation that will not be, and why."
    ),
    EventSpec(
        "ConsolidationApproved",
        ("Node", "NodeClaim", "NodePool"),
        "A consolidation that saves enough for what it disturbs.",
    ),
    EventSpec(
        "NodeRepairBlocked",
        ("Node", "NodeClaim", "NodePool"),
        "Too many nodes are unhealthy at once to repair this one.",
        is_warning=True,
    ),
    EventSpec("RebootObserved", ("NodeClaim",), "The node has started anew."),
    EventSpec(
        "RebootFailed", ("NodeClaim",), "The node did not come back from a reboot.", is_warning=True
    ),
    EventSpec("Evicted", ("Pod",), "The pod was asked to leave its node, and why."),
    EventSpec("Disrupted", ("Pod",), "The pod was deleted, since its node must be gone in time."),
    EventSpec(
        "FailedDraining", ("Node",), "Pods do not leave the node: which, and why.", is_warning=True
    ),
    EventSpec(
        "AwaitingVolumeDetachment", ("Node",), "Volumes are still attached to the node: which."
    ),
    EventSpec(
        "TerminationGracePeriodExpiring",
        _NODE_AND_CLAIM,
        "When the pods that are left on the node will be deleted.",
        is_warning=True,
    ),
    EventSpec(
        "InvalidDoNotDisruptAnnotation",
        ("Pod",),
        "`karpenter.sh/do-not-disrupt` has a value that cannot be; it is ignored.",
        is_warning=True,
    ),
    EventSpec(
        "DoNotDisruptUntil", ("Pod",), "Until when `karpenter.sh/do-not-disrupt` protects the pod."
    ),
    EventSpec(
        "DoNotDisruptGracePeriodElapsed",
        ("Pod",),
        "`karpenter.sh/do-not-disrupt` does not protect the pod any more.",
    ),
    EventSpec(
        "SpotInterrupted",
        _NODE_AND_CLAIM,
        "Its cloud takes the spot machine back.",
        is_warning=True,
    ),
    EventSpec(
        "SpotRebalanceRecommendation",
        _NODE_AND_CLAIM,
        "The spot machine is likelier than others to be taken back; nothing is done.",
    ),
    EventSpec("InstanceStopping", _NODE_AND_CLAIM, "The machine stops.", is_warning=True),
    EventSpec(
        "InstanceTerminating", _NODE_AND_CLAIM, "The machine is terminated.", is_warning=True
    ),
    EventSpec(
        "InstanceUnhealthy",
        _NODE_AND_CLAIM,
        "A status check of the machine failed, or its cloud will work on it.",
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
        "The NodeClaim is deleted, since its machine ends; an event before says why.",
        is_warning=True,
    ),
    EventSpec("Finalized", _WITH_CONDITIONS, "A finalizer was taken off: the object is gone."),
)

CONDITION_EVENT: Final = EventSpec(
    "<type of the condition>",
    _WITH_CONDITIONS,
    "A condition has another status: from which to which, with reason and message.",
)
