"""How the mirror reads each kind, and what it keeps in full for controllers."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct
from msgspec.json import Decoder

from karpy.adapters.mirror.shelves import IndexedShelf, Shelf
from karpy.codec.admission import read_limit_range, read_runtime_class
from karpy.codec.crds import read_pool
from karpy.codec.fields import Fields, JsonObject
from karpy.codec.objects import (
    read_budget,
    read_controller,
    read_namespace,
    read_service,
)
from karpy.codec.overlays import read_overlay_record
from karpy.codec.pods import PodReader
from karpy.codec.records import read_claim_record, read_node_record, read_pool_record
from karpy.codec.storage import read_attach_limits, read_claim, read_class, read_volume
from karpy.codec.workloads import DaemonTemplate, read_daemon_template
from karpy.model.labels import NAMESPACE_NAME
from karpy.model.pods import Pod, PodController
from karpy.model.pools import OverlayRecord
from karpy.model.records import ClaimRecord, NodeRecord, PoolRecord
from karpy.ports.records import Kept

T = TypeVar("T")

_decoder: Final = Decoder()


class FieldReader(Generic[T]):
    """Reads objects of a kind field by field."""

    def __init__(self, read: Callable[[Fields], T]) -> None:
        self._read = read

    def from_object(self, obj: JsonObject) -> T:
        return self._read(Fields(obj))

    def from_bytes(self, data: bytes) -> T:
        return self._read(Fields(_decoder.decode(data)))


def named_namespace(fields: Fields) -> Mapping[str, str]:
    """Read the labels of a Namespace, its name among them."""
    name, labels = read_namespace(fields)
    return {NAMESPACE_NAME: name, **labels}


def daemon_reader(pods: PodReader) -> FieldReader[DaemonTemplate]:
    """Read DaemonSets whose pods can be read."""
    return FieldReader(lambda fields: read_daemon_template(fields, pods))


def controller_reader(kind: str) -> FieldReader[PodController]:
    """Read what selects pods: ReplicaSets and the like."""
    return FieldReader(lambda fields: read_controller(fields, kind))


BUDGETS: Final = FieldReader(read_budget)
SERVICES: Final = FieldReader(read_service)
NAMESPACES: Final = FieldReader(named_namespace)
VOLUMES: Final = FieldReader(read_volume)
VOLUME_CLAIMS: Final = FieldReader(read_claim)
LIMIT_RANGES: Final = FieldReader(read_limit_range)
RUNTIME_CLASSES: Final = FieldReader(read_runtime_class)
STORAGE_CLASSES: Final = FieldReader(read_class)
ATTACH_LIMITS: Final[FieldReader[Mapping[str, int | None]]] = FieldReader(read_attach_limits)

AnyReader = FieldReader[Any]


class Entry(Struct, frozen=True):
    """An object as decisions see it, and as those see it who keep it up."""

    value: Any
    kept: Kept[Any]


class EntryReader(Generic[T]):
    """Reads an object both ways."""

    def __init__(
        self,
        read_record: Callable[[Fields], T],
        read: Callable[[Fields], Any] | None = None,
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
