"""NodeOverlay, karpenter.sh/v1alpha1."""

from typing import Annotated, Final

from msgspec import Meta

from karpy.codec.schemas.conditions import Conditions
from karpy.codec.schemas.requirements import OverlayRequirements
from karpy.codec.schemas.wire import Resources, SchemaRule, Wire, about, number_format, rules

_WEIGHT_MAX: Final = 10_000


class NodeOverlaySpec(Wire, frozen=True):
    """Which instance types look different, and how."""

    requirements: Annotated[
        OverlayRequirements,
        about("Which instance types and offerings are meant; all of them if the list is empty."),
    ]
    capacity: Annotated[
        Annotated[
            Resources,
            rules(
                SchemaRule(
                    "self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))",
                    "only extended resources can be added, "
                    "not cpu, memory, ephemeral-storage or pods",
                )
            ),
        ]
        | None,
        about("Extended resources that machines of these types have although the cloud is silent."),
    ] = None
    price: Annotated[
        Annotated[str, Meta(pattern=r"^\d+(\.\d+)?$")] | None,
        about("The price per hour to reckon with instead of the cloud's."),
    ] = None
    price_adjustment: Annotated[
        Annotated[
            str,
            Meta(
                pattern=r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)"
                r"|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$"
            ),
        ]
        | None,
        about("What to add to the price or take off it: +0.05, -0.1, +10%, -15.5%."),
    ] = None
    weight: Annotated[
        Annotated[int, number_format("int32"), Meta(ge=1, le=_WEIGHT_MAX)] | None,
        about("Where overlays contradict each other, the one with the greater weight counts."),
    ] = None


RuledNodeOverlaySpec = Annotated[
    NodeOverlaySpec,
    rules(
        SchemaRule(
            "!has(self.price) || !has(self.priceAdjustment)",
            "cannot set both 'price' and 'priceAdjustment'",
        )
    ),
]


class NodeOverlayStatus(Wire, frozen=True):
    """Whether the overlay is in force."""

    conditions: Conditions | None = None
