"""Access to the API server, which is the cloud of the KWOK provider."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final

from karpy.adapters.clouds.kwok.nodeclasses import KwokNodeClass, read_node_class
from karpy.codec.fields import JsonObject
from karpy.errors import CloudUnavailable, ClusterError, CredentialsRefused, NotFound
from karpy.model.kinds import KWOK_NODE_CLASS, Kind
from karpy.ports.objects import Objects

_PAGE: Final = 500


@contextmanager
def asking(call: str) -> Iterator[None]:
    """Turn errors of the API server into CloudUnavailable."""
    try:
        yield
    except (ClusterError, CredentialsRefused) as error:
        raise CloudUnavailable(call=call, problem=error.message) from error


async def find(objects: Objects, kind: Kind, name: str) -> JsonObject | None:
    """Return an object, or None if there is none."""
    with asking(f"get {kind} `{name}`"):
        try:
            return await objects.get(kind, name)
        except NotFound:
            return None


async def every(objects: Objects, kind: Kind) -> AsyncIterator[JsonObject]:
    """Yield all objects of a kind, page by page."""
    token = ""
    while True:
        with asking(f"list {kind}"):
            page = await objects.list(kind, limit=_PAGE, token=token)
        for obj in page.items:
            yield obj
        token = page.token
        if not token:
            return


async def find_class(objects: Objects, name: str) -> KwokNodeClass:
    """Return a node class; one that does not exist has a problem that forbids launches."""
    obj = await find(objects, KWOK_NODE_CLASS, name)
    if obj is None:
        return KwokNodeClass(problem=f"there is no {KWOK_NODE_CLASS.name} of that name")
    return read_node_class(obj)
