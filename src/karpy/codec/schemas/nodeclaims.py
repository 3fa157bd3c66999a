"""NodeClaim, karpenter.sh/v1."""

from typing import Annotated

from karpy.codec.schemas.conditions import ClaimConditions
from karpy.codec.schemas.nodepools import (
    ABOUT_EXPIRY,
    ABOUT_GRACE,
    ABOUT_STARTUP_TAINTS,
    ABOUT_TAINTS,
    NodeClassRef,
)
from karpy.codec.schemas.requirements import ClaimRequirements
from karpy.codec.schemas.taints import Taints
from karpy.codec.schemas.wire import (
    Duration,
    DurationOrNever,
    Resources,
    SchemaRule,
    Time,
    Wire,
    about,
    rules,
)


class ClaimResources(Wire, frozen=True):
    """What the node must have room for."""

    requests: Annotated[
        Resources | None, about("The sum of what the pods meant for the node ask for.")
    ] = None


class NodeClaimSpec(Wire, frozen=True):
    """What the machine must be like. It cannot be changed: delete the claim and make another."""

    node_class_ref: NodeClassRef
    requirements: Annotated[
        ClaimRequirements,
        about("What the machine must be like; the cloud chooses among all that meet this."),
    ]
    expire_after: Annotated[DurationOrNever, ABOUT_EXPIRY] = "720h"
    resources: ClaimResources | None = None
    startup_taints: Annotated[Taints | None, ABOUT_STARTUP_TAINTS] = None
    taints: Annotated[Taints | None, ABOUT_TAINTS] = None
    termination_grace_period: Annotated[Duration | None, ABOUT_GRACE] = None


RuledNodeClaimSpec = Annotated[
    NodeClaimSpec, rules(SchemaRule("self == oldSelf", "spec is immutable"))
]


class NodeClaimStatus(Wire, frozen=True):
    """What has come of the claim."""

    allocatable: Annotated[
        Resources | None, about("What pods can have of the machine, by resource.")
    ] = None
    capacity: Annotated[Resources | None, about("What the machine has, by resource.")] = None
    conditions: ClaimConditions | None = None
    image_id: Annotated[str | None, about("The image that the machine was started from.")] = None
    last_pod_event_time: Annotated[
        Time | None, about("When a pod last came to the node or left it.")
    ] = None
    node_name: Annotated[str | None, about("The Node that the machine became.")] = None
    provider_id: Annotated[str | None, about("What the cloud calls the machine.")] = None
