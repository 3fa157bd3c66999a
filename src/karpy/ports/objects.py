"""The port of the API server: objects as plain JSON, with the semantics of Kubernetes."""

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
    """Selects objects of a kind."""

    namespace: str = ""
    """Empty means all namespaces, or a cluster-scoped kind."""
    labels: str = ""
    """A label selector in the syntax of kubectl: `app=web,tier in (a,b),!old`."""
    fields: str = ""
    """A field selector: `spec.nodeName=n1,status.phase!=Failed`."""


EVERYTHING: Final = Query()


class Page(Struct, frozen=True):
    """A page of a list."""

    items: tuple[JsonObject, ...]
    version: str
    """The resourceVersion at which a watch starts after the last page."""
    token: str = ""
    """The `continue` token of the next page; empty on the last page."""
    remaining: int | None = None


class EventType(Enum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """No change: all events up to this resourceVersion have been delivered."""


class WatchEvent(Struct, frozen=True, gc=False):
    """A watch event; of a BOOKMARK only the version is meaningful."""

    type: EventType
    object: JsonObject
    version: str


class PatchType(Enum):
    """The type of a patch; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Patch(Struct, frozen=True):
    """A patch; a merge patch may carry `metadata.resourceVersion` as a guard."""

    type: PatchType
    body: JsonObject | list[JsonObject]
    manager: str = "karpy"
    """The field manager; required by APPLY, recorded in managedFields."""
    is_forced: bool = False
    """APPLY only: take over fields of other managers."""


class Removal(Struct, frozen=True):
    """DeleteOptions."""

    grace_seconds: int | None = None
    """None takes the default of the object; 0 deletes at once."""
    uid: str = ""
    """Delete only the object with this UID; empty deletes any."""
    version: str = ""
    """Delete only at this resourceVersion; empty deletes at any."""
    propagation: str = ""
    """Background, Foreground or Orphan; empty takes the default of the kind."""


GRACEFULLY: Final = Removal()


class Objects(Protocol):
    """
    The calls of an API server.

    Objects are plain JSON. Neither side changes an object after it was passed or returned: change a
    copy, and write the copy. Errors are those of `karpy.errors.ClusterError`: NotFound,
    AlreadyExists, Conflict (stale version, failed precondition), Invalid (schema, CEL,
    immutable field), Expired (410), Throttled (429: an eviction against a budget, or too many
    requests), Forbidden, Unauthorized, Unreachable, ServerFault.

    tests/contract holds the embedded store, its HTTP face and a real API server to this text.
    """

    async def get(self, kind: Kind, name: str, namespace: str = "") -> JsonObject:
        """Return one object."""

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
        Yield the events after a resourceVersion, with bookmarks, until `seconds` are over.

        An object that starts to match the selectors is ADDED, an object that no longer matches is
        DELETED. Raises Expired if the version is too old.
        """

    async def create(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        """
        Create an object; `generateName` is completed.

        With a subresource, `obj` is an Eviction (`eviction`) or a Binding (`binding`) of the pod
        that its metadata names.
        """

    async def replace(
        self, kind: Kind, obj: JsonObject, *, subresource: str = "", dry_run: bool = False
    ) -> JsonObject:
        """Replace an object; with a `resourceVersion`, only if that is the current one."""

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
        """Patch an object; APPLY creates it if it does not exist."""

    async def delete(
        self, kind: Kind, name: str, *, namespace: str = "", removal: Removal = GRACEFULLY
    ) -> None:
        """Delete an object, or set its deletionTimestamp while finalizers or the grace hold it."""


class Reader(Protocol[T_co]):
    """Decodes an object into the value that a follower of its kind keeps."""

    def from_object(self, obj: JsonObject) -> T_co:
        """Read a plain object; raise FieldInvalid, or anything else, if it cannot be read."""

    def from_bytes(self, data: bytes) -> T_co:
        """Read an object from JSON; raise as `from_object`, or DecodeError if it is not JSON."""


class Unreadable(Struct, frozen=True, gc=False):
    """An object that exists and cannot be read."""

    problem: str
    object: JsonObject
    """The part of the object that could be decoded; at least its metadata."""


class Change(Struct, Generic[T], frozen=True, gc=False):
    """The new state of an object: a value, unreadable, or gone."""

    key: str
    """Namespace and name, `shop/web-1`; only the name if the kind has no namespaces."""
    value: T | None
    version: str
    unreadable: Unreadable | None = None
    """None together with a `value` of None: the object is gone."""


def as_unreadable(error: Exception, obj: JsonObject) -> Unreadable:
    """Return an unreadable object with a short text of the error."""
    return Unreadable((str(error) or type(error).__name__)[:_PROBLEM_MAX], obj)


class Synced(Struct, frozen=True):
    """Marks that all objects which existed at the start of the watch have been delivered."""


Follow: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""Follows one kind, and applies its changes, until cancelled."""


class Feed(Protocol):
    """Watches all objects of a kind until the iterator is closed."""

    def follow(
        self, kind: Kind, reader: Reader[T], query: Query = EVERYTHING
    ) -> AsyncIterator[Change[T] | Synced]:
        """
        Yield every object, then Synced, then every change; reconnect after failures.

        Lost connections, expired versions and restarts of the server lead at worst to a new list:
        objects that were deleted meanwhile are yielded as gone, unchanged objects are not yielded
        again. An object whose reader raises any exception is yielded as unreadable, and reported
        once for each version.
        """
