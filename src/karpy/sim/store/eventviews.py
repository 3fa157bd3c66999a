"""Events under their two APIs: the same objects, with other names for their fields."""

from typing import Final

from karpy.codec.fields import JsonObject

_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_BACK: Final = {new: old for old, new in _NAMES.items()}


def to_events_api(event: JsonObject) -> JsonObject:
    """Return a core Event as events.k8s.io shows it."""
    return _renamed(event, _NAMES, "events.k8s.io/v1")


def from_events_api(event: JsonObject) -> JsonObject:
    """Return an Event of events.k8s.io the way it is kept."""
    return _renamed(event, _BACK, "v1")


def _renamed(event: JsonObject, names: dict[str, str], api_version: str) -> JsonObject:
    renamed = {names.get(key, key): value for key, value in event.items()}
    return {**renamed, "apiVersion": api_version}
