"""KWOKNodeClass, karpenter.kwok.sh/v1alpha1."""

from typing import Annotated, Final

from karpy.codec.schemas.conditions import PlainConditions
from karpy.codec.schemas.wire import Duration, Wire, about, default


class KWOKNodeClassSpec(Wire, frozen=True):
    """How machines that exist only on paper behave."""

    node_registration_delay: Annotated[
        Duration | None, about("How long a machine takes until its Node appears; at once if unset.")
    ] = None


class KWOKNodeClassStatus(Wire, frozen=True):
    """Whether the class can be launched with; nothing on paper can be wrong."""

    conditions: PlainConditions | None = None


_READY: Final = {
    "lastTransitionTime": "2024-01-01T01:01:01Z",
    "message": "",
    "reason": "Ready",
    "status": "True",
    "type": "Ready",
}

ReadyKWOKNodeClassStatus = Annotated[KWOKNodeClassStatus, default({"conditions": [_READY]})]
