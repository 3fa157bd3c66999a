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
    """An object, read and as it came."""

    record: T
    obj: JsonObject


class Watched(Protocol[T_co]):
    """All objects of a kind; one that cannot be read any more stays as it was last read."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Why objects cannot be read now, by key."""

    def get(self, key: str) -> T_co | None:
        """Return one object, or None."""

    def all(self) -> Collection[T_co]:
        """Return all of them."""

    def by_index(self, value: str) -> Collection[T_co]:
        """Return those with a mark: NodeClaims and Nodes by provider ID, pods by node."""

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
