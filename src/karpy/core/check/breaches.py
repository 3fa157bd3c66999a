"""Every way in which a plan can be wrong: a stable name, and the sentence people read."""

from enum import Enum

from msgspec import Struct


class Rule(Enum):
    """What a plan must not do."""

    UNKNOWN_POD = "it names a pod that does not exist"
    NOT_WAITING = "it decides on a pod that does not wait for a node"
    DECIDED_TWICE = "it places or refuses a pod more than once"
    PLACED_AND_REFUSED = "it both places and refuses a pod"
    FORGOTTEN = "it says nothing about a pod that waits for a node"

    UNKNOWN_NODE = "it counts on a node that does not exist or is going away"
    UNKNOWN_POOL = "it launches from a NodePool that may not make nodes"
    SHARED_NAME = "two of its launches have the same name"
    EMPTY_LAUNCH = "it launches a node without pods"

    NO_OPTION = "a launch has no instance type to choose from"
    TOO_MANY_OPTIONS = "a launch has more options than a cloud takes"
    OPTION_ORDER = "the options of a launch are not in order of price, then name"
    OPTION_TYPE = "an option is no type of its NodePool, is excluded by requirements, or sold out"
    OPTION_PRICE = "an option is not the cheapest offering of its type that can be had"
    OUTSIDE_POOL = "the requirements of a launch go beyond those of its NodePool"
    MIN_VALUES = "the options of a launch lack the variety that minValues asks for"
    STATED_RESOURCES = "a launch asks for less than its pods do"

    RESOURCES = "the pods and daemons of a node do not fit what it may turn out to be"
    TAINT = "a pod does not tolerate a taint of its node"
    NODE_AFFINITY = "the labels of a node may not be what a pod selects"
    HOST_PORT = "two pods of a node want the same host port"
    DEVICES = "a pod that asks for devices is placed although devices are ignored"

    VOLUME_READY = "a pod is placed although one of its volumes cannot be used yet"
    VOLUME_TOPOLOGY = "a volume may be out of reach of the node"
    VOLUME_LIMIT = "a node gets more volumes than it can attach"

    SPREAD = "in no order of arrival does a topology spread constraint hold"
    AFFINITY = "a pod is not sure to have those near that it must be near to"
    AFFINITY_START = "a pod must be the first of its group, and others may come before it"
    AFFINITY_TERMS = "a pod has each affinity term met, but not by pods that match all of them"
    ANTI_AFFINITY = "a pod may share a domain with pods that must be kept apart"

    LIMIT = "a NodePool may grow beyond a limit"
    RESERVATION = "more of a capacity reservation is used than there is, or it is not asked for"


class Breach(Struct, frozen=True, gc=False):
    """One rule broken, and where."""

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
    """Name the first and count the rest."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} others"
