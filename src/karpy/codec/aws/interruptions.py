"""Messages of EventBridge and AWS Health about machines, from the interruption queue."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import DecodeError, Struct
from msgspec.json import decode

from karpy.model.times import parse_moment

SPOT_INTERRUPTED: Final = "spot_interrupted"
REBALANCE: Final = "rebalance_recommendation"
STOPPED: Final = "instance_stopped"
TERMINATED: Final = "instance_terminated"
SCHEDULED_CHANGE: Final = "scheduled_change"
RESERVATION: Final = "capacity_reservation_interrupted"
NO_OP: Final = "no_op"
_VERSION: Final = "0"
_STATES: Final = {
    "stopping": STOPPED,
    "stopped": STOPPED,
    "shutting-down": TERMINATED,
    "terminated": TERMINATED,
}
_OF_EC2: Final = {
    "EC2 Spot Instance Interruption Warning": SPOT_INTERRUPTED,
    "EC2 Instance Rebalance Recommendation": REBALANCE,
    "EC2 Capacity Reservation Instance Interruption Warning": RESERVATION,
}
_STATE_CHANGE: Final = "EC2 Instance State-change Notification"
_HEALTH: Final = "AWS Health Event"
_CLOSED: Final = "closed"
_RESOLVED: Final = "RESOLVED"
_OVER: Final = ("[completed]", "[canceled]", "[cancelled]")
"""How EC2 begins the description of a scheduled event that is over."""
_LENGTH_MAX: Final = 256 * 1024
"""The longest message that SQS allows."""


class MessageInvalid(ValueError):
    """A message is no event of EventBridge; the text says why."""


class Interruption(Struct, frozen=True, gc=False):
    """The kind of an event, and the machines it is about."""

    kind: str
    machines: tuple[str, ...] = ()
    """IDs of EC2."""
    sent: datetime | None = None


def read_interruption(text: str) -> Interruption:
    """Read a message; one that needs no reaction is a `no_op`. Raise MessageInvalid."""
    if not text:
        return Interruption(NO_OP)
    if len(text) > _LENGTH_MAX:
        raise MessageInvalid("it is longer than SQS allows")
    try:
        message = decode(text.encode())
    except (DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise MessageInvalid(f"it is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise MessageInvalid("it is no JSON object")
    if message.get("version") != _VERSION:
        return Interruption(NO_OP)
    when = message.get("time")
    sent = parse_moment(when) if isinstance(when, str) else None
    kind, machines = _read(message)
    return Interruption(kind, machines, sent)


def is_over(event: Mapping[str, Any]) -> bool:
    """Say whether a scheduled event of EC2 is completed or canceled; it is described for a week."""
    description = event.get("Description")
    return isinstance(description, str) and description.lstrip().lower().startswith(_OVER)


def _read(message: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    source, type_ = message.get("source"), message.get("detail-type")
    detail = message.get("detail")
    if not isinstance(detail, dict):
        return NO_OP, ()
    if source == "aws.ec2" and type_ in _OF_EC2:
        return _OF_EC2[type_], _machine_of(detail)
    if source == "aws.ec2" and type_ == _STATE_CHANGE:
        kind = _STATES.get(str(detail.get("state", "")).lower())
        return (NO_OP, ()) if kind is None else (kind, _machine_of(detail))
    if source == "aws.health" and type_ == _HEALTH:
        is_change = detail.get("eventTypeCategory") == "scheduledChange"
        # Differs: a scheduled change of AWS Health that is closed, or resolved for an instance:
        # Karpenter deletes the NodeClaim; Karpy does not, as the instance will not be stopped.
        is_ahead = detail.get("statusCode") != _CLOSED
        if detail.get("service") == "EC2" and is_change and is_ahead:
            return SCHEDULED_CHANGE, _affected(detail)
    return NO_OP, ()


def _machine_of(detail: dict[str, Any]) -> tuple[str, ...]:
    id_ = detail.get("instance-id")
    return (id_,) if isinstance(id_, str) and id_ else ()


def _affected(detail: dict[str, Any]) -> tuple[str, ...]:
    entities = detail.get("affectedEntities")
    found = entities if isinstance(entities, list) else ()
    affected = [each for each in found if isinstance(each, dict)]
    values = (each.get("entityValue") for each in affected if each.get("status") != _RESOLVED)
    return tuple(each for each in values if isinstance(each, str) and each)
