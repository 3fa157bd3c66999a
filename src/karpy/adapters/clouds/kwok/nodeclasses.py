"""KWOKNodeClasses, as far as a launch asks."""

from datetime import timedelta

from msgspec import Struct

from karpy.codec.fields import Fields, JsonObject
from karpy.model.times import parse_duration


class NodeClass(Struct, frozen=True):
    """How machines of a class behave."""

    delay: timedelta = timedelta()
    """How long a machine takes until its Node appears."""
    problem: str = ""
    """Why nothing can be launched with it; empty if it can."""


def read_node_class(obj: JsonObject) -> NodeClass:
    """Read a KWOKNodeClass; one that does not say whether it is ready is."""
    fields = Fields(obj)
    delay = parse_duration(fields.child("spec").text("nodeRegistrationDelay"))
    problem = ""
    for condition in fields.child("status").children("conditions"):
        if condition.text("type") == "Ready" and condition.text("status") == "False":
            problem = condition.text("message") or condition.text("reason") or "it does not say why"
    return NodeClass(delay or timedelta(), problem)
