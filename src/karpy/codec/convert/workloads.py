"""Labels and annotations that have another name today, wherever an object names them."""

from typing import Final

from karpy.codec.convert.conversion import Change
from karpy.codec.convert.oldfields import Notes
from karpy.codec.fields import JsonObject
from karpy.model.labels import NODE_POOL

OLD_POOL_LABEL: Final = "karpenter.sh/provisioner-name"
_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
_RENAMED: Final = {
    OLD_POOL_LABEL: NODE_POOL,
    "karpenter.sh/do-not-evict": _DO_NOT_DISRUPT,
    "karpenter.sh/do-not-consolidate": _DO_NOT_DISRUPT,
}
OLD_NAMES: Final = tuple(_RENAMED)
"""A text without any of these needs no change."""
_NAMING: Final = frozenset({"key", "topologyKey"})
"""Fields whose value is the name of a label: in affinity, tolerations and spread constraints."""


def renamed(value: JsonObject, path: str, notes: Notes) -> JsonObject:
    """Return an object with the names of today: selectors, affinity, annotations, spread keys."""
    made: JsonObject = {}
    for key, each in value.items():
        at = f"{path}.{key}" if path else str(key)
        name = _RENAMED.get(key, key)
        if name != key and (name in value or name in made):
            notes.add(Change.DROPPED, at, f"`{name}` stands beside it, which means the same")
            continue
        if name != key:
            notes.add(Change.RENAMED, at, f"it is `{name}` today")
        made[name] = _named(each, at, notes) if key in _NAMING else _within(each, at, notes)
    return made


def _within(value: object, path: str, notes: Notes) -> object:
    match value:
        case dict():
            return renamed(value, path, notes)
        case list():
            return [_within(each, f"{path}[{index}]", notes) for index, each in enumerate(value)]
    return value


def _named(value: object, path: str, notes: Notes) -> object:
    name = _RENAMED.get(value) if isinstance(value, str) else None
    if name is None:
        return _within(value, path, notes)
    notes.add(Change.RENAMED, path, f"`{value}` is `{name}` today")
    return name
