"""The port for the objects that an API server serves."""

from typing import Protocol

from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind
from karpy.ports.discovery import Discovery
from karpy.ports.objects import Objects, Removal


class Backend(Discovery, Protocol):
    """
    Objects and Discovery, and the calls that HTTP needs besides.

    Errors are the errors of the port Objects. The `details` of an error go into the Status.
    """

    def acting_as(self, manager: str) -> Objects:
        """Return the objects for a field manager, which owns the fields that it writes."""

    async def read(self, kind: Kind, name: str, namespace: str, *, subresource: str) -> JsonObject:
        """Return a subresource of an object: its Scale, or the object itself."""

    async def delete(
        self, kind: Kind, name: str, namespace: str, removal: Removal, *, is_dry_run: bool
    ) -> JsonObject | None:
        """Delete an object; return it if finalizers or a grace period keep it, else None."""
