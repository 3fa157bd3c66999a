"""NodePool, karpenter.sh/v1."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from karpy.codec.schemas.conditions import Conditions
from karpy.codec.schemas.labelrules import POOL_LABELS
from karpy.codec.schemas.requirements import PoolRequirements
from karpy.codec.schemas.taints import Taints
from karpy.codec.schemas.wire import (
    LABEL_VALUE_PATTERN,
    Duration,
    DurationOrNever,
    Int64,
    Resources,
    SchemaRule,
    Wire,
    about,
    default,
    list_type,
    map_type,
    number_format,
    rules,
)

_LABELS_MAX: Final = 100
_LABEL_VALUE_LENGTH: Final = 63
_BUDGETS_MAX: Final = 50
_WEIGHT_MAX: Final = 100

ABOUT_EXPIRY: Final = about(
    "How long a node may live before it is replaced, counted from the creation of its NodeClaim, "
    "or Never."
)
ABOUT_GRACE: Final = about(
    "How long a node may take to drain. After that its pods are deleted without regard to "
    "disruption budgets and annotations. Without it there is no limit."
)
ABOUT_STARTUP_TAINTS: Final = about(
    "Taints that nodes begin with and that something else removes. Pods need not tolerate them to "
    "be given such a node; the node counts as initialized only once they are gone."
)
ABOUT_TAINTS: Final = about("Taints that nodes have for good.")


def not_empty(name: str) -> Meta:
    """Refuse an empty text."""
    return rules(SchemaRule("self != ''", f"{name} may not be empty"))


class NodeClassRef(Wire, frozen=True):
    """The node class to launch machines with; its kind decides which cloud does it."""

    group: Annotated[
        str,
        Meta(pattern="^[^/]*$"),
        about("The API group of the node class, without a version."),
        not_empty("group"),
    ]
    kind: Annotated[str, about("The kind of the node class."), not_empty("kind")]
    name: Annotated[str, about("The name of the node class."), not_empty("name")]


class TemplateMetadata(Wire, frozen=True):
    """Labels and annotations that every node gets."""

    annotations: Annotated[
        Annotated[dict[str, str], map_type("granular")] | None,
        about("Annotations for nodes and their NodeClaims."),
    ] = None
    labels: Annotated[
        Annotated[
            dict[
                str,
                Annotated[str, Meta(max_length=_LABEL_VALUE_LENGTH, pattern=LABEL_VALUE_PATTERN)],
            ],
            Meta(max_length=_LABELS_MAX),
            map_type("atomic"),
            rules(*POOL_LABELS),
        ]
        | None,
        about("Labels for nodes and their NodeClaims; pods may select by them."),
    ] = None


class TemplateSpec(Wire, frozen=True):
    """What nodes of the pool are made of."""

    node_class_ref: Annotated[
        NodeClassRef,
        rules(
            SchemaRule("self.group == oldSelf.group", "nodeClassRef.group is immutable"),
            SchemaRule("self.kind == oldSelf.kind", "nodeClassRef.kind is immutable"),
        ),
    ]
    requirements: Annotated[
        PoolRequirements,
        about("What nodes must be like: instance types, zones, architectures, capacity types."),
    ]
    expire_after: Annotated[DurationOrNever, ABOUT_EXPIRY] = "720h"
    startup_taints: Annotated[Taints | None, ABOUT_STARTUP_TAINTS] = None
    taints: Annotated[Taints | None, ABOUT_TAINTS] = None
    termination_grace_period: Annotated[Duration | None, ABOUT_GRACE] = None


class Template(Wire, frozen=True):
    """How nodes of the pool are made. A change drifts the nodes that are there already."""

    spec: TemplateSpec
    metadata: TemplateMetadata | None = None


class Budget(Wire, frozen=True):
    """How many nodes of the pool may be disrupted at once, always or at certain times."""

    nodes: Annotated[
        str,
        Meta(pattern="^((100|[0-9]{1,2})%|[0-9]+)$"),
        about("So many nodes, or so many percent of the pool, rounded up."),
    ] = "10%"
    duration: Annotated[
        Annotated[str, Meta(pattern="^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$")] | None,
        about("How long the budget holds from each time in the schedule on; hours and minutes."),
    ] = None
    reasons: Annotated[
        Annotated[
            list[Literal["Underutilized", "Empty", "Drifted", "Unhealthy"]],
            Meta(max_length=_BUDGETS_MAX),
            list_type("set"),
        ]
        | None,
        about(
            "The reasons for disruption that the budget is about; all of them if there are none."
        ),
    ] = None
    schedule: Annotated[
        Annotated[
            str,
            Meta(
                pattern=r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))"
                r"|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
            ),
        ]
        | None,
        about("When the budget begins to hold: five fields as in crontab, or @daily; in UTC."),
    ] = None


class Disruption(Wire, frozen=True):
    """When and how fast nodes may be replaced or removed."""

    budgets: Annotated[
        Annotated[
            list[Budget],
            Meta(max_length=_BUDGETS_MAX),
            list_type("atomic"),
            default([{"nodes": "10%"}]),
            rules(
                SchemaRule(
                    "self.all(x, has(x.schedule) == has(x.duration))",
                    "'schedule' must be set with 'duration'",
                )
            ),
        ]
        | None,
        about("Limits on simultaneous disruption. The smallest one that applies counts."),
    ] = None
    consolidate_after: Annotated[
        DurationOrNever,
        about(
            "How long no pod may have come or gone before a node is considered for consolidation; "
            "Never switches consolidation off."
        ),
    ] = "0s"
    consolidation_policy: Annotated[
        Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"],
        about(
            "Which nodes may be consolidated: only empty ones, all whose pods fit elsewhere or on "
            "something cheaper, or those where the saving is worth the disturbance."
        ),
    ] = "WhenEmptyOrUnderutilized"


class NodePoolSpec(Wire, frozen=True):
    """What the pool is made of and how it behaves."""

    template: Template
    disruption: Annotated[Disruption | None, default({"consolidateAfter": "0s"})] = None
    limits: Annotated[
        Resources | None,
        about(
            "How much the pool may grow to, by resource; `nodes` limits their number. "
            "Only `nodes` counts if `replicas` is set."
        ),
    ] = None
    replicas: Annotated[
        Annotated[int, number_format("int64"), Meta(ge=0)] | None,
        about(
            "Keep exactly so many nodes, whether pods need them or not. A pool cannot begin or "
            "cease to have this."
        ),
    ] = None
    weight: Annotated[
        Annotated[int, number_format("int32"), Meta(ge=1, le=_WEIGHT_MAX)] | None,
        about("Pools with a greater weight are tried first; none is as good as 0."),
    ] = None


RuledNodePoolSpec = Annotated[
    NodePoolSpec,
    rules(
        SchemaRule(
            "has(self.replicas) == has(oldSelf.replicas)",
            "a NodePool with replicas cannot become one without, nor the other way round",
        ),
        SchemaRule(
            "!has(self.replicas) || !has(self.limits) || size(self.limits) == 0 || "
            "(size(self.limits) == 1 && 'nodes' in self.limits)",
            "only 'limits.nodes' is supported on static NodePools",
        ),
        SchemaRule(
            "!has(self.replicas) || !has(self.weight)",
            "'weight' is not supported on static NodePools",
        ),
    ),
]


class NodePoolStatus(Wire, frozen=True):
    """What the pool has come to."""

    conditions: Conditions | None = None
    node_class_observed_generation: Annotated[
        Int64 | None, about("The generation of the node class that was last looked at.")
    ] = None
    nodes: Annotated[Int64, about("How many nodes the pool has.")] = 0
    resources: Annotated[
        Resources | None, about("What the nodes of the pool have together, by resource.")
    ] = None
