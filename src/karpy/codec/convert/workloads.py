"""Labels and annotations that have another name today, wherever an object names them."""

from collections.abc import Mapping
from typing import Final

from karpy.codec.convert.conversion import FieldChange
from karpy.codec.convert.oldfields import Notes, path_of
from karpy.codec.fields import JsonObject
from karpy.model.labels import NODE_POOL

OLD_POOL_LABEL: Final = "karpenter.sh/provisioner-name"
_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
NEW_NAMES: Final[Mapping[str, str]] = {
    OLD_POOL_LABEL: NODE_POOL,
    "karpenter.sh/do-not-evict": _DO_NOT_DISRUPT,
    "karpenter.sh/do-not-consolidate": _DO_NOT_DISRUPT,
}
OLD_NAMES: Final = tuple(NEW_NAMES)
"""A text without any of these needs no change."""
_NAMING: Final = frozenset({"key", "topologyKey"})
"""Fields whose value is the name of a label: in affinity, tolerations and spread constraints."""
_ABOUT: Final = frozenset(
    {"description", "kubectl.kubernetes.io/last-applied-configuration", "managedFields"}
)
"""Fields that describe objects or fields, and have no effect themselves."""


def renamed(value: JsonObject, path: str, notes: Notes) -> JsonObject:
    """Return an object with the names of today: selectors, affinity, annotations, spread keys."""
    made: JsonObject = {}
    for key, each in value.items():
        at = path_of(path, str(key))
        name = NEW_NAMES.get(key, key)
        if name != key and (name in value or name in made):
            notes.add(FieldChange.DROPPED, at, f"`{name}` is beside it, which means the same")
            continue
        if name != key:
            notes.add(FieldChange.RENAMED, at, f"it is `{name}` today")
        elif key not in _ABOUT:
            _mention(str(key), at, notes)
        if key in _ABOUT:
            made[name] = each
        else:
            made[name] = _named(each, at, notes) if key in _NAMING else _within(each, at, notes)
    return made


def _within(value: object, path: str, notes: Notes) -> object:
    match value:
        case dict():
            return renamed(value, path, notes)
        case list():
            return [_within(each, f"{path}[{index}]", notes) for index, each in enumerate(value)]
        case str():
            _mention(value, path, notes)
    return value


def _named(value: object, path: str, notes: Notes) -> object:
    name = NEW_NAMES.get(value) if isinstance(value, str) else None
    if name is None:
        return _within(value, path, notes)
    notes.add(FieldChange.RENAMED, path, f"`{value}` is `{name}` today")
    return name


def _mention(text: str, path: str, notes: Notes) -> None:
    """Note an old name within a text, such as a script or a selector of another tool."""
    for old, new in NEW_NAMES.items():
        if old in text:
            remark = f"this text names `{old}` and is left as it is; it is `{new}` today"
            notes.add(FieldChange.LOST, path, remark)
