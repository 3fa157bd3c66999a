"""What was read before, for as long as it is asked for now and then."""

from typing import Final, Generic, TypeAlias, TypeVar

_KEY_BYTES: Final = 2048
"""So large a key may be on average; where they are larger, fewer are kept."""

K = TypeVar("K")
V = TypeVar("V")


class Memo(Generic[K, V]):
    """
    Values by what they were read from, in bounded room.

    There are two generations of `most` values each. A value that is asked for is kept in the young
    one; when that is full it becomes the old one, and what was left in the old one is forgotten.
    What large keys stand for is large, too, so that they fill a generation sooner.
    """

    __slots__ = ("_most", "_old", "_room", "_young")

    def __init__(self, most: int) -> None:
        self._most = most
        self._room = most * _KEY_BYTES
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None if there is none any more."""
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
        """Return the value that is known of a key, else this one, which is known from now on."""
        known = self._young.get(key)
        if known is not None:
            return known
        return self.put(key, self._old.get(key, value))


class Whole(dict[K, V]):
    """The same without a bound, for a reader that ends with its input."""

    __slots__ = ()

    def put(self, key: K, value: V) -> V:
        """Keep a value, and return it."""
        self[key] = value
        return value

    share = dict.setdefault


AnyMemo: TypeAlias = Memo[K, V] | Whole[K, V]


def memo(most: int | None) -> AnyMemo[K, V]:
    """Return what remembers so many values at least; None is all."""
    return Whole() if most is None else Memo(most)


def _size(key: object) -> int:
    if isinstance(key, bytes | str):
        return len(key)
    return sum(map(_size, key)) if isinstance(key, tuple) else 0
