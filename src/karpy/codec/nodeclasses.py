"""Node classes of any provider from plain objects."""

from typing import Final

from msgspec.json import Decoder

from karpy.codec.fields import Fields, JsonObject
from karpy.codec.records import read_conditions
from karpy.model.conditions import READY
from karpy.model.records import ClassState

_decoder: Final = Decoder()


def read_class_state(fields: Fields) -> ClassState:
    """Read the condition Ready, generation and version of a node class."""
    meta = fields.child("metadata")
    conditions = read_conditions(fields.child("status"))
    return ClassState(
        ready=next((each for each in conditions if each.type == READY), None),
        is_deleting="deletionTimestamp" in meta,
        generation=meta.number("generation") or 0,
        version=meta.text("resourceVersion"),
    )


class ClassReader:
    """Reads node classes for a mirror."""

    def from_object(self, obj: JsonObject) -> ClassState:
        return read_class_state(Fields(obj))

    def from_bytes(self, data: bytes) -> ClassState:
        return self.from_object(_decoder.decode(data))
