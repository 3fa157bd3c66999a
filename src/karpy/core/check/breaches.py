"""The rules that a plan can break: a stable name, and a sentence about the breach."""

from enum import Enum

from msgspec import Struct


class Rule(Enum):
    """A rule that a plan can break; the value describes the breach."""

    UNKNOWN_POD = "it names a pod that does not exist"
    NOT_WAITING = "it decides on a pod that does not wait for a node"
    DECIDED_TWICE = "it places or refuses a pod more than once"
    PLACED_AND_REFUSED = "it both places and refuses a pod"
    FORGOTTEN = "it neither places nor refuses a pod that waits for a node"

    UNKNOWN_NODE = "it nominates pods to a node that does not exist or is being deleted"
    UNKNOWN_POOL = "it launches from a NodePool that is missing, not ready, static or deleting"
    SHARED_NAME = "two of its launches have the same name"
    EMPTY_LAUNCH = "it launches a node without pods"

    NO_OPTION = "a launch has no instance type to choose from"
    TOO_MANY_OPTIONS = "a launch has more options than a cloud accepts"
    OPTION_ORDER = "the options of a launch are not in order of price, then name"
    OPTION_TYPE = (
        "an option is no type of its NodePool, is excluded by requirements, or is sold out"
    )
    OPTION_PRICE = "an option is not the cheapest launchable offering of its type"
    OUTSIDE_POOL = "the requirements of a launch go beyond those of its NodePool"
    MIN_VALUES = "the options of a launch have fewer values than minValues requires"
    STATED_RESOURCES = "a launch states fewer resources than its pods request"

    RESOURCES = "the pods and daemons of a node do not fit every machine it may become"
    TAINT = "a pod does not tolerate a taint of its node"
    NODE_AFFINITY = "the labels of a node may not match the node affinity of a pod"
    HOST_PORT = "two pods of a node use the same host port"
    DEVICES = "a pod with ResourceClaims is placed although ResourceClaims are ignored"

    VOLUME_READY = "a pod is placed although one of its volumes cannot be used yet"
    VOLUME_TOPOLOGY = "a volume may not be attachable in the topology of the node"
    VOLUME_LIMIT = "a node gets more volumes than it can attach"

    SPREAD = "a topology spread constraint holds in no order of binding"
    AFFINITY = "a pod may find no pod in its domain that its affinity requires"
    AFFINITY_START = "a pod must be the first of its group, and another may be bound before it"
    AFFINITY_TERMS = "each affinity term of a pod is met, but not by pods that match all terms"
    ANTI_AFFINITY = "a pod may share a domain with a pod that anti-affinity excludes"

    LIMIT = "a NodePool may grow beyond a limit"
    RESERVATION = "launches exceed a capacity reservation, or do not require it"


class Breach(Struct, frozen=True, gc=False):
    """A broken rule, and where it is broken."""

    rule: Rule
    subject: str = ""
    """The launch, node or NodePool concerned, if any."""
    pod: str = ""
    detail: str = ""

    def __str__(self) -> str:
        """Write the rule by its name, then the objects concerned, then the numbers."""
        parts = (self.rule.name, self.subject, self.pod, self.detail)
        return " ".join(part for part in parts if part)


def shortened(names: list[str]) -> str:
    """Return the first name and the number of the others."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} others"
