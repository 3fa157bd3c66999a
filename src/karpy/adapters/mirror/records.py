"""How the mirror reads each kind, and where it keeps what it has read."""

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
"""Called with the key of an object, what it was, and what it is now."""
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
    """An object as decisions see it, and as its controllers see it."""

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


class Shelf(Generic[T]):
    """What is known of one kind; writes that change nothing we read are no changes."""

    def __init__(self) -> None:
        self.values: dict[str, T] = {}
        self.unreadable: dict[str, str] = {}
        """Why objects cannot be read, by key; what was last read of them stays."""
        self.is_synced = False
        self.version = 0
        """Moves with every change."""
        self.on_failure: OnFailure = raise_at_once
        """Called with a change that a listener failed on; the others get it all the same."""
        self._listeners: list[Listener[T]] = []

    def get(self, key: str) -> T | None:
        """Return one value, or None."""
        return self.values.get(key)

    def all(self) -> Collection[T]:
        """Return every value."""
        return self.values.values()

    def by_index(self, value: str) -> Collection[T]:
        """Return the values that are indexed by this value; without an index there are none."""
        del value
        return ()

    def listen(self, listener: Listener[T]) -> None:
        """Call a function with every change from now on."""
        self._listeners.append(listener)

    def take(self, change: Change[T]) -> bool:
        """Take a change in; say whether it was one."""
        if change.unreadable is None:
            self.unreadable.pop(change.key, None)
        else:
            self.unreadable[change.key] = change.unreadable.problem
            if change.value is None:
                return False
        return self.put(change.key, change.value)

    def put(self, key: str, value: T | None) -> bool:
        """Note what an object is now, or that it is gone; say whether that is news."""
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
        """Keep indexes in step."""


class IndexedShelf(Shelf[T]):
    """A shelf whose values can be found by something else than their key."""

    def __init__(self, index_by: Callable[[T], str]) -> None:
        super().__init__()
        self._index_by = index_by
        self._index: dict[str, dict[str, T]] = {}

    def by_index(self, value: str) -> Collection[T]:
        """Return the values that are indexed by this value."""
        return self._index.get(value, _NOTHING).values()

    def marks(self) -> Iterator[str]:
        """List every mark that some value has."""
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
    """Raise the error: nothing is passed over where no part listens."""
    fail_at_once(error)
