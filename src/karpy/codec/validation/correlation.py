"""The old value of each new one, so that an unchanged value is not a fault."""

from typing import Any, Final

from karpy.codec.validation.shaping import Schema


class Uncorrelated:
    """Stands for an old value that does not exist or cannot be identified."""


NOTHING: Final = Uncorrelated()


def old_field(old: object, key: str) -> object:
    """Return the old value of a field."""
    if not isinstance(old, dict):
        return NOTHING
    value = old.get(key)
    return NOTHING if value is None else value


class OldItems:
    """The old items of a list; only those of a map-type list can be identified."""

    def __init__(self, schema: Schema, old: object) -> None:
        self._keys: tuple[str, ...] = ()
        self._items: dict[tuple[Any, ...], object] = {}
        if schema.get("x-kubernetes-list-type") == "map" and isinstance(old, list):
            self._keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
            for each in old:
                self._items.setdefault(self._key(each), each)

    def of(self, item: object) -> object:
        """Return the old value of an item."""
        return self._items.get(self._key(item), NOTHING) if self._items else NOTHING

    def _key(self, item: object) -> tuple[Any, ...]:
        if not isinstance(item, dict):
            return ()
        return tuple(repr(item.get(key)) for key in self._keys)
