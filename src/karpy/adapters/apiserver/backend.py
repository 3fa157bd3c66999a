"""What an API server serves: the objects of a backend."""

from typing import Protocol

from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind
from karpy.ports.discovery import Discovery
from karpy.ports.objects import Objects, Removal


class Backend(Discovery, Protocol):
    """
    Objects and Discovery, with what the ports leave out and HTTP needs.

    Errors are those of the port Objects. An error may have `details`, which go into the Status.
    """

    def acting_as(self, manager: str) -> Objects:
        """Return the objects as a manager sees them; it owns the fields that it writes."""

    async def read(self, kind: Kind, name: str, namespace: str, *, subresource: str) -> JsonObject:
        """Return what a subresource shows of an object: its Scale, or itself."""

    async def delete(
        self, kind: Kind, name: str, namespace: str, removal: Removal, *, is_dry_run: bool
    ) -> JsonObject | None:
        """Delete an object; return it as long as something holds it, None once it is gone."""
