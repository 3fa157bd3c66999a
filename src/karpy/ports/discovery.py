"""The port of API discovery."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind


class Resource(Struct, frozen=True):
    """A kind that is served."""

    kind: Kind
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    definition: JsonObject | None = None
    """The CustomResourceDefinition it comes from: its columns and its schema."""


class Discovery(Protocol):
    """Lists the kinds that are served now; CustomResourceDefinitions change them."""

    def resources(self) -> Sequence[Resource]:
        """List every kind that is served."""
