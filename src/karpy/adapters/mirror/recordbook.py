"""NodeClaims, Nodes, NodePools and NodeOverlays in full, for those who keep them up."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.json import Decoder

from karpy.adapters.mirror.shelves import IndexedShelf, Shelf
from karpy.codec.crds import read_pool
from karpy.codec.fields import Fields, JsonObject
from karpy.codec.overlays import read_overlay_record
from karpy.codec.records import read_claim_record, read_node_record, read_pool_record
from karpy.model.overlays import OverlayRecord
from karpy.model.pods import Pod
from karpy.model.records import ClaimRecord, NodeRecord, PoolRecord
from karpy.ports.records import Kept

T = TypeVar("T")

_decoder = Decoder()


class Entry(Struct, frozen=True):
    """An object as decisions see it, and as those see it who keep it up."""

    value: Any
    kept: Kept[Any]


class EntryReader(Generic[T]):
    """Reads an object both ways."""

    def __init__(
        self, read_record: Callable[[Fields], T], read: Callable[[Fields], Any] | None = None
    ) -> None:
        """Take how to read the object in full, and how decisions see it if otherwise."""
        self._read_record = read_record
        self._read = read

    def from_object(self, obj: JsonObject) -> Entry:
        fields = Fields(obj)
        record = self._read_record(fields)
        return Entry(record if self._read is None else self._read(fields), Kept(record, obj))

    def from_bytes(self, data: bytes) -> Entry:
        return self.from_object(_decoder.decode(data))


class OverlayReader:
    """Reads NodeOverlays; one that makes no sense is none for decisions."""

    def from_object(self, obj: JsonObject) -> Entry:
        record = read_overlay_record(Fields(obj))
        return Entry(record.overlay, Kept(record, obj))

    def from_bytes(self, data: bytes) -> Entry:
        return self.from_object(_decoder.decode(data))


CLAIMS = EntryReader(read_claim_record)
NODES = EntryReader(read_node_record)
POOLS = EntryReader(read_pool_record, read_pool)
OVERLAYS = OverlayReader()


class RecordBook:
    """The port Records."""

    def __init__(self, pods: IndexedShelf[Pod]) -> None:
        self.claims: IndexedShelf[Kept[ClaimRecord]] = IndexedShelf(
            lambda kept: kept.record.provider_id
        )
        self.nodes: IndexedShelf[Kept[NodeRecord]] = IndexedShelf(
            lambda kept: kept.record.provider_id
        )
        self.pools: Shelf[Kept[PoolRecord]] = Shelf()
        self.overlays: Shelf[Kept[OverlayRecord]] = Shelf()
        self.pods = pods
