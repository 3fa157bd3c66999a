"""The port of API discovery."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind


class Resource(Struct, frozen=True):
    """A kind that the API server serves."""

    kind: Kind
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    definition: JsonObject | None = None
    """The CustomResourceDefinition that defines it, with columns and schema; None if built in."""


class Discovery(Protocol):
    """Lists the kinds that the API server serves; CustomResourceDefinitions change them."""

    def resources(self) -> Sequence[Resource]:
        """List every kind that is served."""
