"""Events in the core API and in events.k8s.io: the same objects with different field names."""

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
    """Convert a core Event to events.k8s.io."""
    return _renamed(event, _NAMES, "events.k8s.io/v1")


def from_events_api(event: JsonObject) -> JsonObject:
    """Convert an Event of events.k8s.io to the core API, in which Events are stored."""
    return _renamed(event, _BACK, "v1")


def _renamed(event: JsonObject, names: dict[str, str], api_version: str) -> JsonObject:
    renamed = {names.get(key, key): value for key, value in event.items()}
    return {**renamed, "apiVersion": api_version}
