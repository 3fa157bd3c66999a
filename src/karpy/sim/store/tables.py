"""The objects of one kind, their history, and the callbacks of their commits."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind
from karpy.ports.objects import WatchEvent
from karpy.sim.store.answers import too_old

T = TypeVar("T")

Callback = Callable[[WatchEvent, JsonObject | None], None]
"""Called with an event and the object before it, None if it was created."""

Record: TypeAlias = tuple[int, WatchEvent, JsonObject | None]
"""An entry of the history: the version, the event, and the object before it."""

_NOTHING: Final[dict[str, JsonObject]] = {}


class CommitCallbacks(Struct, frozen=True):
    """The callbacks of a listener, any may be None; `status`: only the status changed."""

    added: Callback | None = None
    changed: Callback | None = None
    status: Callback | None = None
    removed: Callback | None = None


class Table:
    """The objects of one kind, by namespace and name, and their recent history."""

    def __init__(self, kind: Kind, history: int) -> None:
        self.kind = kind
        self.spaces: dict[str, dict[str, JsonObject]] = {}
        self.on_added: tuple[Callback, ...] = ()
        self.on_changed: tuple[Callback, ...] = ()
        self.on_status: tuple[Callback, ...] = ()
        self.on_removed: tuple[Callback, ...] = ()
        self.records: deque[Record] = deque(maxlen=history + 1)
        """The latest events; if full, history is complete only after the oldest entry."""
        self._order: dict[str, list[str]] = {}

    def listen(self, callbacks: CommitCallbacks) -> Callable[[], None]:
        """Call callbacks after each commit; return the function that unsubscribes."""
        self.on_added = _with(self.on_added, callbacks.added)
        self.on_changed = _with(self.on_changed, callbacks.changed)
        self.on_status = _with(self.on_status, callbacks.status)
        self.on_removed = _with(self.on_removed, callbacks.removed)

        def end() -> None:
            self.on_added = without(self.on_added, callbacks.added)
            self.on_changed = without(self.on_changed, callbacks.changed)
            self.on_status = without(self.on_status, callbacks.status)
            self.on_removed = without(self.on_removed, callbacks.removed)

        return end

    def get(self, namespace: str, name: str) -> JsonObject | None:
        return self.spaces.get(namespace, _NOTHING).get(name)

    def put(self, namespace: str, name: str, obj: JsonObject) -> None:
        space = self.spaces.get(namespace)
        if space is None:
            space = self.spaces[namespace] = {}
        if name not in space:
            self._order.pop(namespace, None)
        space[name] = obj

    def drop(self, namespace: str, name: str) -> None:
        space = self.spaces[namespace]
        del space[name]
        self._order.pop(namespace, None)
        if not space:
            del self.spaces[namespace]

    def since(self, version: int) -> list[Record]:
        """Return the entries after a version; raise Expired if some are dropped already."""
        records = self.records
        floor = records[0][0] if len(records) == records.maxlen else 0
        if version < floor:
            raise too_old(version, floor)
        later = [*takewhile(lambda record: record[0] > version, reversed(records))]
        return later[::-1]

    def walk(self, namespace: str = "") -> Iterator[JsonObject]:
        """Yield objects in the order of their keys in etcd."""
        if namespace:
            yield from self._in(namespace)
            return
        # In a key a slash follows the namespace, and it sorts after `-` and `.`.
        for each in sorted(self.spaces, key=lambda space: f"{space}/"):
            yield from self._in(each)

    def _in(self, namespace: str) -> Iterator[JsonObject]:
        space = self.spaces.get(namespace, _NOTHING)
        order = self._order.get(namespace)
        if order is None:
            order = self._order[namespace] = sorted(space)
        for name in order:
            yield space[name]


def without(callbacks: tuple[T, ...], callback: T | None) -> tuple[T, ...]:
    """Return callbacks without one of them."""
    return tuple(each for each in callbacks if each is not callback)


def _with(callbacks: tuple[Callback, ...], callback: Callback | None) -> tuple[Callback, ...]:
    return callbacks if callback is None else (*callbacks, callback)
