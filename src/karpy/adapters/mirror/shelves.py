"""Values of one kind by key, with indexes, and who wants to hear of changes."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final, Generic, TypeVar

from karpy.barriers import Barrier, fail_at_once
from karpy.errors import KarpyError
from karpy.ports.objects import Change

T = TypeVar("T")

_NOTHING: Final[Mapping[str, Any]] = {}

Listener = Callable[[str, T | None, T | None], None]
"""Is told the key of an object, what it was, and what it is now."""
OnFailure = Callable[[str, KarpyError], None]


def raise_at_once(_: str, error: KarpyError) -> None:
    """Raise what is told: nothing is passed over where no part listens."""
    fail_at_once(error)


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
        """Is told which change a listener could not take; the others hear of it all the same."""
        self._listeners: list[Listener[T]] = []

    def get(self, key: str) -> T | None:
        """Return one value, or None."""
        return self.values.get(key)

    def all(self) -> Collection[T]:
        """Return every value."""
        return self.values.values()

    def under(self, mark: str) -> Collection[T]:
        """Return the values with this mark; without an index there are none."""
        del mark
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

    def under(self, mark: str) -> Collection[T]:
        """Return the values with this mark."""
        return self._index.get(mark, _NOTHING).values()

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
