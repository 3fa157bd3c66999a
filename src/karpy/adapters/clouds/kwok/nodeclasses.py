"""KWOKNodeClasses, as far as launches read them."""

from datetime import timedelta

from msgspec import Struct

from karpy.codec.fields import Fields, JsonObject
from karpy.model.times import parse_duration


class KwokNodeClass(Struct, frozen=True):
    """A KWOKNodeClass."""

    delay: timedelta = timedelta()
    """The registration delay: how long after a launch its Node is created."""
    problem: str = ""
    """Why nothing can be launched with it; empty if launches are possible."""


def read_node_class(obj: JsonObject) -> KwokNodeClass:
    """Read a KWOKNodeClass; without a condition Ready it counts as ready."""
    fields = Fields(obj)
    delay = parse_duration(fields.child("spec").text("nodeRegistrationDelay"))
    problem = ""
    for condition in fields.child("status").children("conditions"):
        if condition.text("type") == "Ready" and condition.text("status") == "False":
            problem = condition.text("message") or condition.text("reason") or "it does not say why"
    return KwokNodeClass(delay or timedelta(), problem)
