"""Filters of lists and watches by namespace, labels and fields."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.codec.fieldselectors import FieldSelector, read_field_selector
from karpy.codec.labelselectors import ANY_LABELS, Selector, read_label_selector
from karpy.ports.objects import EVERYTHING, EventType, Query, WatchEvent
from karpy.sim.store.registry import Served

_NO_FIELDS = FieldSelector()
# Looking up a member of an enumeration takes longer than comparing it.
_ADDED: Final = EventType.ADDED
_MODIFIED: Final = EventType.MODIFIED
_DELETED: Final = EventType.DELETED


class Filter(Struct, frozen=True):
    """A compiled query."""

    namespace: str = ""
    labels: Selector = ANY_LABELS
    fields: FieldSelector = _NO_FIELDS

    takes_all: bool = False

    def matches(self, obj: JsonObject) -> bool:
        """Say whether an object matches."""
        meta = obj["metadata"]
        if self.namespace and meta.get("namespace") != self.namespace:
            return False
        if self.labels.rules and not self.labels.matches(meta.get("labels")):
            return False
        return not self.fields.rules or self.fields.matches(obj)

    def seen(self, event: WatchEvent, before: JsonObject | None) -> WatchEvent | None:
        """
        Return the event that a watcher with this query receives, None if there is none.

        An object that begins to match is ADDED; one that ceases to match is DELETED.
        """
        if self.takes_all:
            return event
        if before is None:
            return event if self.matches(event.object) else None
        was, type_ = self.matches(before), event.type
        if type_ is _DELETED:
            return event if was else None
        is_now = self.matches(event.object)
        if was == is_now or type_ is not _MODIFIED:
            return event if is_now else None
        if is_now:
            return WatchEvent(_ADDED, event.object, event.version)
        # The last state that matched, at the version of the change.
        meta = {**before["metadata"], "resourceVersion": event.version}
        return WatchEvent(_DELETED, {**before, "metadata": meta}, event.version)


def read_query(served: Served, query: Query) -> Filter:
    """Compile a query; raise BadRequest if a selector cannot be read."""
    return Filter(
        query.namespace,
        read_label_selector(query.labels) if query.labels else ANY_LABELS,
        read_field_selector(served.kind, query.fields, served.selectable)
        if query.fields
        else _NO_FIELDS,
        takes_all=query == EVERYTHING,
    )


def select(objects: Iterable[JsonObject], wanted: Filter) -> list[JsonObject]:
    """Return the objects that match a query."""
    if wanted.takes_all:
        return list(objects)
    return [each for each in objects if wanted.matches(each)]
