"""Which old value belongs to a new one, so that a value that did not change is not a fault."""

from typing import Any, Final

from karpy.codec.validation.shaping import Schema


class Uncorrelated:
    """Stands for the old value where there is none, or where it cannot be told which it is."""


NOTHING: Final = Uncorrelated()


def old_field(old: object, key: str) -> object:
    """Return what a field was."""
    if not isinstance(old, dict):
        return NOTHING
    value = old.get(key)
    return NOTHING if value is None else value


class OldItems:
    """The items of a list as they were; only those of a map-type list can be told apart."""

    def __init__(self, schema: Schema, old: object) -> None:
        self._keys: tuple[str, ...] = ()
        self._items: dict[tuple[Any, ...], object] = {}
        if schema.get("x-kubernetes-list-type") == "map" and isinstance(old, list):
            self._keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
            for each in old:
                self._items.setdefault(self._key(each), each)

    def of(self, item: object) -> object:
        """Return what an item was."""
        return self._items.get(self._key(item), NOTHING) if self._items else NOTHING

    def _key(self, item: object) -> tuple[Any, ...]:
        if not isinstance(item, dict):
            return ()
        return tuple(repr(item.get(key)) for key in self._keys)
