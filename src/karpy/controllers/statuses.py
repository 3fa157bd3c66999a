"""Writes of the status subresource."""

from karpy.codec.fields import JsonObject
from karpy.errors import Conflict, NotFound
from karpy.model.kinds import Kind
from karpy.model.records import Identity
from karpy.ports.objects import Objects, Patch, PatchType


async def write_status(
    objects: Objects, kind: Kind, meta: Identity, status: JsonObject | None, *, namespace: str = ""
) -> bool:
    """
    Write a patch of a status; None writes nothing.

    Return False after a conflict: the object must be reconciled again. An object that is gone needs
    no status.
    """
    if status is None:
        return True
    patch = Patch(PatchType.MERGE, status)
    try:
        await objects.patch(kind, meta.name, patch, namespace=namespace, subresource="status")
    except Conflict:
        return False
    except NotFound:
        return True
    return True
