"""Taints as NodePools and NodeClaims have them."""

from typing import Annotated, Literal

from msgspec import Meta

from karpy.codec.schemas.wire import LABEL_KEY_PATTERN, Time, Wire, about, list_type


class Taint(Wire, frozen=True):
    """What keeps pods off a node unless they tolerate it."""

    effect: Annotated[
        Literal["NoSchedule", "PreferNoSchedule", "NoExecute"],
        about("What happens to pods that do not tolerate the taint."),
    ]
    key: Annotated[
        str, Meta(min_length=1, pattern=LABEL_KEY_PATTERN), about("The name of the taint.")
    ]
    time_added: Annotated[
        Time | None, about("When the taint was added; the node controller sets it for NoExecute.")
    ] = None
    value: Annotated[
        Annotated[str, Meta(pattern=LABEL_KEY_PATTERN)] | None,
        about("What tolerations may compare with."),
    ] = None


Taints = Annotated[list[Taint], list_type("atomic")]
