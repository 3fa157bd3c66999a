"""Events of controllers: repeated ones are counted, and all expire after an hour."""

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.errors import ClusterError
from karpy.model.kinds import EVENT
from karpy.ports.clock import Clock
from karpy.sim.store.names import time_text
from karpy.sim.store.store import Store

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
_KEPT: Final = timedelta(hours=1)
_BURST: Final = 25.0
_SECONDS_PER_TOKEN: Final = 300.0
_SIMILAR_MAX: Final = 10
"""Events that differ only in their message beyond this number are combined."""
_SIMILAR_FOR: Final = timedelta(minutes=10)
_COMBINED: Final = "(combined from similar events): "
_USUAL_NAMESPACE: Final = "default"

_Text = tuple[str, str, str]
"""Type, reason and message; the message of combined events is empty."""


class _Similar(Struct):
    """The messages of events that differ in nothing else."""

    last: datetime
    messages: set[str]


class _Subject(Struct):
    """The recent events of one object."""

    last: datetime
    tokens: float = _BURST
    similar: dict[tuple[str, str], _Similar] = {}
    events: dict[_Text, str] = {}


class WorkloadEvents:
    """
    Writes Events as client-go does.

    A repeated Event is counted, many similar Events are combined, and Events of one object are
    rate-limited.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._subjects: OrderedDict[tuple[str, str], _Subject] = OrderedDict()
        self._expiries: OrderedDict[tuple[str, str], datetime] = OrderedDict()
        self._serial = 0

    def record(self, obj: JsonObject, component: str, text: _Text) -> None:
        """Record an Event of an object; drop it if the store refuses."""
        now = self._clock.now()
        self._forget(now)
        subject = self._subject((component, obj["metadata"]["uid"]), now)
        if not _may_speak(subject, now):
            return
        key, message = _combined(subject, text, now)
        try:
            if not self._count(subject, key, message, obj, now):
                subject.events[key] = self._write(obj, component, (*text[:2], message), now)
        except ClusterError:
            # The namespace may be deleting: drop the Event.
            return

    def _subject(self, key: tuple[str, str], now: datetime) -> _Subject:
        subject = self._subjects.get(key)
        if subject is None:
            subject = self._subjects[key] = _Subject(now)
        self._subjects.move_to_end(key)
        return subject

    def _forget(self, now: datetime) -> None:
        while self._subjects:
            key = next(iter(self._subjects))
            if self._subjects[key].last > now - _KEPT:
                break
            del self._subjects[key]
        while self._expiries:
            namespace, name = next(iter(self._expiries))
            if self._expiries[namespace, name] > now:
                break
            del self._expiries[namespace, name]
            if self._store.find(EVENT, name, namespace) is not None:
                self._store.delete(EVENT, name, namespace=namespace)

    def _count(
        self, subject: _Subject, key: _Text, message: str, obj: JsonObject, now: datetime
    ) -> bool:
        """Count a repeated Event; return False if it does not exist yet."""
        name = subject.events.get(key)
        namespace = obj["metadata"].get("namespace") or _USUAL_NAMESPACE
        event = self._store.find(EVENT, name, namespace) if name else None
        if event is None:
            return False
        changed = {
            **event,
            "message": message,
            "count": event.get("count", 1) + 1,
            "lastTimestamp": time_text(now),
        }
        self._store.replace(EVENT, changed)
        self._keep(namespace, event["metadata"]["name"], now)
        return True

    def _write(self, obj: JsonObject, component: str, text: _Text, now: datetime) -> str:
        meta = obj["metadata"]
        namespace = meta.get("namespace") or _USUAL_NAMESPACE
        self._serial += 1
        moment = int(now.timestamp()) * 1_000_000_000 + self._serial
        name = f"{meta['name']}.{moment:x}"
        type_, reason, message = text
        event = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.name,
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": _reference(obj),
            "reason": reason,
            "message": message,
            "source": {"component": component},
            "firstTimestamp": time_text(now),
            "lastTimestamp": time_text(now),
            "count": 1,
            "type": type_,
            "eventTime": None,
            "reportingComponent": component,
            "reportingInstance": "",
        }
        self._store.create(EVENT, event)
        self._keep(namespace, name, now)
        return name

    def _keep(self, namespace: str, name: str, now: datetime) -> None:
        self._expiries[namespace, name] = now + _KEPT
        self._expiries.move_to_end((namespace, name))


def _may_speak(subject: _Subject, now: datetime) -> bool:
    earned = (now - subject.last).total_seconds() / _SECONDS_PER_TOKEN
    subject.tokens = min(_BURST, subject.tokens + earned)
    subject.last = now
    if subject.tokens < 1:
        return False
    subject.tokens -= 1
    return True


def _combined(subject: _Subject, text: _Text, now: datetime) -> tuple[_Text, str]:
    """Return the text under which to count an Event, and its message."""
    type_, reason, message = text
    similar = subject.similar.get((type_, reason))
    if similar is None or now - similar.last > _SIMILAR_FOR:
        similar = subject.similar[type_, reason] = _Similar(now, set())
    similar.last = now
    similar.messages.add(message)
    if len(similar.messages) < _SIMILAR_MAX:
        return text, message
    return (type_, reason, ""), _COMBINED + message


def _reference(obj: JsonObject) -> JsonObject:
    meta = obj["metadata"]
    reference = {
        "kind": obj["kind"],
        "namespace": meta.get("namespace"),
        "name": meta["name"],
        "uid": meta["uid"],
        "apiVersion": obj["apiVersion"],
        "resourceVersion": meta["resourceVersion"],
    }
    return {key: value for key, value in reference.items() if value is not None}
