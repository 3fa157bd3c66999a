"""Readers of each watched kind, and the shelves that hold what was read."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct
from msgspec.json import Decoder

from karpy.barriers import Barrier, fail_at_once
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
from karpy.errors import KarpyError
from karpy.model.labels import NAMESPACE_NAME
from karpy.model.pods import Pod, PodController
from karpy.model.pools import OverlayRecord
from karpy.model.records import ClaimRecord, NodeRecord, PoolRecord
from karpy.ports.objects import Change
from karpy.ports.records import Kept

T = TypeVar("T")

_decoder: Final = Decoder()
_NOTHING: Final[Mapping[str, Any]] = {}

Listener = Callable[[str, T | None, T | None], None]
"""Called with the key of an object, its former and its present value; None if it has none."""
OnFailure = Callable[[str, KarpyError], None]


class FieldReader(Generic[T]):
    """Reads objects of a kind field by field."""

    def __init__(self, read: Callable[[Fields], T]) -> None:
        self._read = read

    def from_object(self, obj: JsonObject) -> T:
        return self._read(Fields(obj))

    def from_bytes(self, data: bytes) -> T:
        return self._read(Fields(_decoder.decode(data)))


def named_namespace(fields: Fields) -> Mapping[str, str]:
    """Read the labels of a Namespace, including its name."""
    name, labels = read_namespace(fields)
    return {NAMESPACE_NAME: name, **labels}


def daemon_reader(pods: PodReader) -> FieldReader[DaemonTemplate]:
    """Return a reader of DaemonSets; one whose pods are unreadable is unreadable, too."""
    return FieldReader(lambda fields: read_daemon_template(fields, pods))


def controller_reader(kind: str) -> FieldReader[PodController]:
    """Return a reader of objects that select pods, such as ReplicaSets."""
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
    """An object as decisions see it, and as controllers see it."""

    value: Any
    kept: Kept[Any]


class EntryReader(Generic[T]):
    """Reads an object for decisions and for controllers."""

    def __init__(
        self,
        read_record: Callable[[Fields], T],
        read: Callable[[Fields], Any] | None = None,
    ) -> None:
        """Take how controllers see the object, and how decisions do if differently."""
        self._read_record = read_record
        self._read = read

    def from_object(self, obj: JsonObject) -> Entry:
        fields = Fields(obj)
        record = self._read_record(fields)
        return Entry(record if self._read is None else self._read(fields), Kept(record, obj))

    def from_bytes(self, data: bytes) -> Entry:
        return self.from_object(_decoder.decode(data))


class OverlayReader:
    """Reads NodeOverlays; decisions see an invalid one as None."""

    def from_object(self, obj: JsonObject) -> Entry:
        record = read_overlay_record(Fields(obj))
        return Entry(record.overlay, Kept(record, obj))

    def from_bytes(self, data: bytes) -> Entry:
        return self.from_object(_decoder.decode(data))


CLAIMS = EntryReader(read_claim_record)
NODES = EntryReader(read_node_record)
POOLS = EntryReader(read_pool_record, read_pool)
OVERLAYS = OverlayReader()


class Shelf(Generic[T]):
    """The objects of one kind; a write that changes no field that we read is no change."""

    def __init__(self) -> None:
        self.values: dict[str, T] = {}
        self.unreadable: dict[str, str] = {}
        """Why objects are unreadable, by key; their last readable value stays."""
        self.is_synced = False
        self.version = 0
        """Increases with every change."""
        self.on_failure: OnFailure = raise_at_once
        """Called with the key of a change that a listener failed on; the others still get it."""
        self._listeners: list[Listener[T]] = []

    def get(self, key: str) -> T | None:
        """Return one value, or None."""
        return self.values.get(key)

    def all(self) -> Collection[T]:
        """Return every value."""
        return self.values.values()

    def by_index(self, mark: str) -> Collection[T]:
        """Return the values with an index key: none, since this shelf has no index."""
        del mark
        return ()

    def listen(self, listener: Listener[T]) -> None:
        """Call a function with every change from now on."""
        self._listeners.append(listener)

    def take(self, change: Change[T]) -> bool:
        """Take in a change of the feed; say whether it changed a value."""
        if change.unreadable is None:
            self.unreadable.pop(change.key, None)
        else:
            self.unreadable[change.key] = change.unreadable.problem
            if change.value is None:
                return False
        return self.put(change.key, change.value)

    def put(self, key: str, value: T | None) -> bool:
        """Set the value of an object, or None if it is gone; say whether that changed it."""
        before = self.values.get(key)
        if before == value:
            return False
        if value is None:
            del self.values[key]
        else:
            self.values[key] = value
        self.version += 1
        self._shelve(key, before, value)
        barrier = Barrier(partial(self.on_failure, key))
        for listener in self._listeners:
            with barrier:
                listener(key, before, value)
        return True

    def _shelve(self, key: str, before: T | None, after: T | None) -> None:
        """Update the index for a change."""


class IndexedShelf(Shelf[T]):
    """A shelf whose values can also be found by an index key."""

    def __init__(self, index_by: Callable[[T], str]) -> None:
        super().__init__()
        self._index_by = index_by
        self._index: dict[str, dict[str, T]] = {}

    def by_index(self, mark: str) -> Collection[T]:
        """Return the values with an index key."""
        return self._index.get(mark, _NOTHING).values()

    def marks(self) -> Iterator[str]:
        """Return every index key that a value has."""
        return iter(self._index)

    def _shelve(self, key: str, before: T | None, after: T | None) -> None:
        old = "" if before is None else self._index_by(before)
        new = "" if after is None else self._index_by(after)
        if old and old != new:
            there = self._index[old]
            del there[key]
            if not there:
                del self._index[old]
        if new and after is not None:
            self._index.setdefault(new, {})[key] = after


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


def raise_at_once(_: str, error: KarpyError) -> None:
    """Raise the error: the default where no handler is set."""
    fail_at_once(error)
