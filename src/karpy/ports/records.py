"""The cache of the objects that controllers reconcile."""

from collections.abc import Callable, Collection, Mapping
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.pods import Pod
from karpy.model.pools import OverlayRecord
from karpy.model.records import ClaimRecord, NodeRecord, PoolRecord

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Kept(Struct, Generic[T], frozen=True):
    """A cached object: the record that was read from it, and its JSON."""

    record: T
    obj: JsonObject


class Watched(Protocol[T_co]):
    """All objects of a kind; an object that becomes unreadable keeps its last readable value."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Why objects cannot be read, by key."""

    def get(self, key: str) -> T_co | None:
        """Return one object, or None."""

    def all(self) -> Collection[T_co]:
        """Return all objects."""

    def by_index(self, value: str) -> Collection[T_co]:
        """Return the objects with a value of their index: a provider ID; for pods, a node name."""

    def listen(self, listener: Callable[[str, T_co | None, T_co | None], None]) -> None:
        """Call a listener with the key, the old and the new value of each change."""


class Records(Protocol):
    """The cached NodeClaims, Nodes, NodePools, NodeOverlays and pods."""

    @property
    def claims(self) -> Watched[Kept[ClaimRecord]]:
        """NodeClaims, by name and provider ID."""

    @property
    def nodes(self) -> Watched[Kept[NodeRecord]]:
        """Nodes, by name and provider ID."""

    @property
    def pools(self) -> Watched[Kept[PoolRecord]]:
        """NodePools, by name."""

    @property
    def overlays(self) -> Watched[Kept[OverlayRecord]]:
        """NodeOverlays, by name; none where the kind is not installed."""

    @property
    def pods(self) -> Watched[Pod]:
        """Pods, by namespace and name, and by node."""
