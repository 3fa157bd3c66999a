"""What to write on a NodeClaim before its launch and after the response of the cloud."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from karpy.core.lifecycle.changes import (
    FINALIZER,
    Changes,
    Remark,
    about_claim,
    about_pod,
    disruption_counts,
    with_finalizer,
)
from karpy.core.lifecycle.conditions import (
    LAUNCHED,
    is_decided,
    with_true,
    with_unknown,
)
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from karpy.model.notices import Notice
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord
from karpy.model.resources import Resources, format_quantity

MESSAGE_MAX: Final = 1024
_CUT: Final = "..."
_NO_CAPACITY: Final = "InsufficientCapacityError"


class LaunchedMachine(Struct, frozen=True, gc=False):
    """What a cloud returns about the machine it launched for a claim."""

    provider_id: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    capacity: Resources = {}
    allocatable: Resources = {}
    image: str = ""


def add_finalizer(claim: ClaimRecord) -> Changes:
    """Add the finalizer to a claim; it must be written before the machine is launched."""
    return Changes(replace(claim, meta=with_finalizer(claim.meta)))


def is_to_launch(claim: ClaimRecord) -> bool:
    """Say whether to launch the machine of a claim now: only after the finalizer is written."""
    if claim.meta.is_deleting or is_decided(claim, LAUNCHED):
        return False
    return FINALIZER in claim.meta.finalizers


def launch_succeeded(claim: ClaimRecord, machine: LaunchedMachine, now: datetime) -> Changes:
    """Set Launched, provider ID, capacity and labels; labels the claim already has are kept."""
    meta = replace(
        claim.meta,
        labels={**machine.labels, **claim.meta.labels},
        annotations={**claim.meta.annotations, **machine.annotations},
    )
    launched = replace(
        claim,
        meta=meta,
        provider_id=machine.provider_id,
        image_id=machine.image,
        capacity=machine.capacity,
        allocatable=machine.allocatable,
    )
    remark = Remark(
        "launched nodeclaim",
        {
            "NodeClaim": meta.name,
            "provider-id": machine.provider_id,
            "instance-type": meta.labels.get(INSTANCE_TYPE, ""),
            "zone": meta.labels.get(ZONE, ""),
            "capacity-type": meta.labels.get(CAPACITY_TYPE, ""),
            "allocatable": resource_text(machine.allocatable),
        },
    )
    return Changes(with_true(launched, LAUNCHED, now), remarks=(remark,))


def launch_without_capacity(claim: ClaimRecord, problem: str, pods: Iterable[Pod] = ()) -> Changes:
    """Delete a claim for which there is no capacity; emit an event on its pending pods."""
    notice = Notice(
        about_claim(claim),
        _NO_CAPACITY,
        shortened(f"NodeClaim {claim.name} event: {problem}"),
        is_warning=True,
        same_as=(claim.meta.uid,),
    )
    text = shortened(f"NodeClaim {claim.name} nominated for this pod failed to launch: {problem}")
    others = tuple(
        Notice(about_pod(pod), _NO_CAPACITY, text, is_warning=True, same_as=(pod.uid,))
        for pod in pods
        if pod.is_active and not pod.node_name
    )
    return Changes(
        deletes_claim=True,
        notices=(notice, *others),
        counts=disruption_counts(claim, "insufficient_capacity"),
        remarks=(_failure(problem),),
    )


def launch_without_class(claim: ClaimRecord, problem: str) -> Changes:
    """Delete a claim whose node class is not ready."""
    return Changes(
        deletes_claim=True,
        counts=disruption_counts(claim, "nodeclass_not_ready"),
        remarks=(_failure(problem),),
    )


def launch_failed(
    claim: ClaimRecord, problem: str, now: datetime, reason: str = "LaunchFailed"
) -> Changes:
    """Set Launched to Unknown with the error; the launch is retried."""
    updated = with_unknown(claim, LAUNCHED, reason, shortened(problem), now)
    return Changes(updated, remarks=(_failure(problem),))


def shortened(text: str) -> str:
    """Cut a text to the greatest length of an event or condition message."""
    return text if len(text) <= MESSAGE_MAX else text[: MESSAGE_MAX - len(_CUT)] + _CUT


def resource_text(resources: Resources) -> str:
    """Format resources for a line of the log: `cpu: 4, memory: 16Gi`."""
    return ", ".join(
        f"{name}: {format_quantity(resources[name], name)}" for name in sorted(resources)
    )


def _failure(problem: str) -> Remark:
    return Remark("failed launching nodeclaim", {"error": problem}, is_error=True)
