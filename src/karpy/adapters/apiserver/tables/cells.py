"""Texts in the cells of tables."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from karpy.codec.fields import JsonObject

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
UNSET: Final = "<unset>"
INVALID: Final = "<invalid>"

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY


def human_duration(seconds: float) -> str:
    """Write a duration as kubectl does, more coarsely the longer it is: `5m12s`, `3h`, `2y17d`."""
    whole = int(seconds)
    if whole < 0:
        return INVALID if whole < -1 else "0s"
    for below, unit, name, part, part_name in _STEPS:
        if whole < below:
            rest = whole % unit // part if part else 0
            return f"{whole // unit}{name}{rest}{part_name}" if rest else f"{whole // unit}{name}"
    return f"{whole // _YEAR}y"


_STEPS: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""An upper bound in seconds, the unit below it, and the smaller unit to add."""


def since(text: object, now: datetime) -> str:
    """Write the time since a timestamp."""
    if not text:
        return UNKNOWN
    try:
        moment = datetime.fromisoformat(str(text))
        return human_duration((now - moment).total_seconds())
    except (ValueError, TypeError):
        return INVALID


def age(obj: JsonObject, now: datetime) -> str:
    """Write the age of an object."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def name_of(obj: JsonObject) -> str:
    """Return the name of an object; a bookmark has none."""
    return str(obj["metadata"].get("name") or "")


def part(obj: JsonObject, *keys: str) -> JsonObject:
    """Return an object within an object; an empty one if it is missing."""
    for key in keys:
        obj = obj.get(key) or {}
    return obj


def joined(words: Iterable[object], otherwise: str = NONE) -> str:
    """Join words with commas; `otherwise` if there are none."""
    return ",".join(str(word) for word in words) or otherwise


def labels_text(labels: JsonObject | None) -> str:
    """Write labels, sorted by key."""
    return joined(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def selector_text(selector: JsonObject | None) -> str:
    """Write a label selector in the syntax of kubectl."""
    if selector is None:
        return NONE
    rules: list[tuple[str, str]] = [
        (key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()
    ]
    rules += [
        (str(each.get("key")), _rule_text(each)) for each in selector.get("matchExpressions") or ()
    ]
    return joined(text for _, text in sorted(rules))


def _rule_text(rule: JsonObject) -> str:
    key, values = rule.get("key"), ",".join(sorted(rule.get("values") or ()))
    match rule.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return str(key)


def containers(template: JsonObject) -> tuple[str, str]:
    """Write the names and the images of a pod template's containers."""
    found: list[Any] = part(template, "spec").get("containers") or []
    return (
        joined((each.get("name") for each in found), ""),
        joined((each.get("image") for each in found), ""),
    )


def condition(obj: JsonObject, type_: str) -> JsonObject:
    """Return a condition of an object; an empty one if it has none of that type."""
    found = part(obj, "status").get("conditions") or ()
    return next((each for each in found if each.get("type") == type_), {})
