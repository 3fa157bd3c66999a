"""What was read before, for as long as it is asked for now and then."""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(Generic[K, V]):
    """
    Values by what they were read from, in bounded room.

    There are two generations of `most` values each. A value that is asked for is kept in the young
    one; when that is full it becomes the old one, and what was left in the old one is forgotten.
    """

    __slots__ = ("_most", "_old", "_young")

    def __init__(self, most: int) -> None:
        self._most = most
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
        if len(self._young) >= self._most:
            self._old, self._young = self._young, {}
        self._young[key] = value
        return value

    def share(self, key: K, value: V) -> V:
        """Return the value that is known of a key, else this one, which is known from now on."""
        known = self._young.get(key)
        if known is not None:
            return known
        return self.put(key, self._old.get(key, value))
