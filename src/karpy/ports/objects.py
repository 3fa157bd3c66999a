"""The API server as Karpy sees it: plain objects in and out, with Kubernetes' own semantics."""

from collections.abc import AsyncIterator, Callable, Coroutine
from enum import Enum
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind

_PROBLEM_MAX: Final = 300

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Query(Struct, frozen=True):
    """Which objects of a kind."""

    namespace: str = ""
    """Empty means all namespaces, or a kind that has none."""
    labels: str = ""
    """A label selector as kubectl takes it: `app=web,tier in (a,b),!old`."""
    fields: str = ""
    """A field selector: `spec.nodeName=n1,status.phase!=Failed`."""


EVERYTHING: Final = Query()


class Page(Struct, frozen=True):
    """A part of a list."""

    items: tuple[JsonObject, ...]
    version: str
    """Where to start watching once the last page is read."""
    token: str = ""
    """What to ask the next page with; empty on the last one."""
    remaining: int | None = None


class EventType(Enum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """Nothing; everything up to this version has been told."""


class WatchEvent(Struct, frozen=True, gc=False):
    """Something that happened; of a bookmark only the version counts."""

    type: EventType
    object: JsonObject
    version: str


class PatchType(Enum):
    """How a patch is to be read; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Patch(Struct, frozen=True):
    """A change to an object; a merge patch may carry `metadata.resourceVersion` as a guard."""

    type: PatchType
    body: JsonObject | list[JsonObject]
    manager: str = "karpy"
    """Who owns the fields; APPLY and managedFields need it."""
    is_forced: bool = False
    """APPLY only: take over fields of other managers."""


class Removal(Struct, frozen=True):
    """How to delete."""

    grace_seconds: int | None = None
    """None leaves it to the object; 0 is at once."""
    uid: str = ""
    """Delete only this incarnation."""
    version: str = ""
    """Delete only if the object has not changed since."""
    propagation: str = ""
    """Background, Foreground or Orphan; empty leaves it to the kind."""


GRACEFULLY: Final = Removal()


class Objects(Protocol):
    """
    What an API server does for its clients.

    Objects are plain JSON. What is given or returned is never changed afterwards by either side:
    change a copy and write that. Errors are those of `karpy.errors.ClusterError`: NotFound,
    AlreadyExists, Conflict (stale version, failed precondition), Invalid (schema, CEL,
    immutable field), Expired (410), Throttled (429: an eviction against a budget, or too many
    requests), Forbidden, Unauthorized, Unreachable, ServerFault.

    tests/contract holds the embedded store, its HTTP face and a real API server to this text.
    """

    async def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject:
        """Return one object as it is now."""

    async def list(
        self, kind: Kind, query: Query = EVERYTHING, *, limit: int = 0, token: str = ""
    ) -> Page:
        """Return objects in the order of namespace and name, all of them or page by page."""

    def watch(
        self,
        kind: Kind,
        query: Query = EVERYTHING,
        *,
        since: str,
        seconds: float | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """
        Tell what happens after a version, with bookmarks, until `seconds` are over.

        An object that begins to match a selector is ADDED, one that ceases to is DELETED. Raises
        Expired if history does not reach back so far.
        """

    async def create(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        """
        Add an object; `generateName` is completed.

        With a subresource the object is what that takes: an Eviction (`eviction`) or a Binding
        (`binding`) for the pod its metadata names.
        """

    async def replace(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        """Write an object anew; with a `resourceVersion` only if that is still the current one."""

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        """Change an object; APPLY adds it if it is not there."""

    async def delete(
        self, kind: Kind, name: str, *, namespace: str = "", removal: Removal = GRACEFULLY
    ) -> None:
        """Delete an object, or mark it so while finalizers or its grace period hold it."""


class Reader(Protocol[T_co]):
    """Turns an object into what its follower wants of it."""

    def from_object(self, obj: JsonObject) -> T_co:
        """Read a plain object; raise FieldInvalid, or anything else, if it cannot be read."""

    def from_bytes(self, data: bytes) -> T_co:
        """Read the JSON of an object; raise as `from_object`, or DecodeError, if it is none."""


class Unreadable(Struct, frozen=True, gc=False):
    """An object that is there and cannot be read."""

    problem: str
    object: JsonObject
    """What could be decoded of it: its metadata at least."""


class Change(Struct, Generic[T], frozen=True, gc=False):
    """An object is now this, is there and cannot be read, or is gone."""

    key: str
    """Namespace and name, `shop/web-1`; only the name if the kind has no namespaces."""
    value: T | None
    version: str
    unreadable: Unreadable | None = None
    """Without this, an object that has no value is gone."""


def as_unreadable(error: Exception, obj: JsonObject) -> Unreadable:
    """Say why an object cannot be read, in a few words."""
    return Unreadable((str(error) or type(error).__name__)[:_PROBLEM_MAX], obj)


class Synced(Struct, frozen=True):
    """Everything there was when following began has been told."""


Follow: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Follows one kind, and takes in its changes, until cancelled."""


class Feed(Protocol):
    """Watches all objects of a kind until the iterator is closed."""

    def follow(
        self, kind: Kind, reader: Reader[T], query: Query = EVERYTHING
    ) -> AsyncIterator[Change[T] | Synced]:
        """
        Tell every object, then Synced, then every change, and heal by itself.

        Lost connections, expired versions and restarts of the server cost a new list at worst:
        what vanished meanwhile is told as gone, what did not change is not told again. An object
        that cannot be read, whatever its reader raises, is told as unreadable and reported once
        for each version.
        """
