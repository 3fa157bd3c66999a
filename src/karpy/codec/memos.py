"""Caches of values that are kept as long as they are looked up from time to time."""

from typing import Final, Generic, TypeAlias, TypeVar

_KEY_BYTES: Final = 2048
"""Largest average size of a key; of larger keys fewer are kept."""

K = TypeVar("K")
V = TypeVar("V")


class Memo(Generic[K, V]):
    """
    A cache of values by what they were read from, with a bounded size.

    There are two generations of `most` values each. A value that is looked up is kept in the young
    generation. When it is full, it becomes the old generation, and the former old one is dropped.
    Values of large keys are large, too, so that they fill a generation sooner.
    """

    __slots__ = ("_most", "_old", "_room", "_young")

    def __init__(self, most: int) -> None:
        self._most = most
        self._room = most * _KEY_BYTES
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None if there is none or it was dropped."""
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: K, value: V) -> V:
        """Keep a value, and return it."""
        size = _size(key)
        if len(self._young) >= self._most or size > self._room:
            self._old, self._young = self._young, {}
            self._room = self._most * _KEY_BYTES
        self._room -= size
        self._young[key] = value
        return value

    def share(self, key: K, value: V) -> V:
        """Return the cached value of a key; if there is none, cache and return this one."""
        known = self._young.get(key)
        if known is not None:
            return known
        return self.put(key, self._old.get(key, value))


class Whole(dict[K, V]):
    """A memo without a bound, for a reader that ends with its input."""

    __slots__ = ()

    def put(self, key: K, value: V) -> V:
        """Keep a value, and return it."""
        self[key] = value
        return value

    share = dict.setdefault


AnyMemo: TypeAlias = Memo[K, V] | Whole[K, V]


def memo(most: int | None) -> AnyMemo[K, V]:
    """Return a memo that keeps at least this many values; all of them for None."""
    return Whole() if most is None else Memo(most)


def _size(key: object) -> int:
    if isinstance(key, bytes | str):
        return len(key)
    return sum(map(_size, key)) if isinstance(key, tuple) else 0
