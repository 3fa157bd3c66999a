"""Counts and events of the transitions of conditions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from karpy.core.lifecycle.changes import Count
from karpy.model.conditions import UNKNOWN, Condition
from karpy.model.kinds import Kind
from karpy.model.notices import Notice, Subject
from karpy.model.records import Identity

_EACH: Final = "status_condition_"


class ObservedObject(Struct, frozen=True, gc=False):
    """The metadata and the conditions of an object."""

    meta: Identity
    conditions: tuple[Condition, ...] = ()
    namespace: str = ""


class ObservedKind(Struct, frozen=True):
    """A kind whose conditions are reported, and the labels of its metrics."""

    kind: Kind
    labels: Mapping[str, str] = {}
    """Labels of metrics, and the keys of the object labels that they are read from."""
    has_shared_metrics: bool = True
    """Whether the older metrics that all kinds share are reported, too."""

    @property
    def prefix(self) -> str:
        return f"operator_{self.kind.name.lower()}_"

    def more(self, meta: Identity) -> dict[str, str]:
        """Return the labels of an object's metrics."""
        return {label: meta.labels.get(key, "") for label, key in self.labels.items()}

    def shared(self) -> dict[str, str]:
        """Return the labels of the older metrics."""
        return {"group": self.kind.group, "kind": self.kind.name}


class Transitions(Struct, frozen=True):
    """The counts and events of a change."""

    counts: tuple[Count, ...] = ()
    notices: tuple[Notice, ...] = ()


def compare(
    kind: ObservedKind, before: ObservedObject | None, after: ObservedObject | None, now: datetime
) -> Transitions:
    """Compare two states of an object; None is an object that does not exist."""
    if after is None:
        return Transitions() if before is None else _gone(kind, before, now)
    known = {} if before is None else {each.type: each for each in before.conditions}
    subject = _subject(kind, after)
    counts: list[Count] = []
    notices = [_finalized(subject, each) for each in _taken_off(before, after.meta)]
    for condition in after.conditions:
        old = known.get(condition.type)
        # A condition that was not set before counts as Unknown.
        if condition.status == (UNKNOWN if old is None else old.status):
            continue
        counts += _transition(kind, after.meta, old, condition)
        if old is not None:
            notices.append(_transitioned(subject, old, condition))
    return Transitions(tuple(counts), tuple(notices))


def _gone(kind: ObservedKind, before: ObservedObject, now: datetime) -> Transitions:
    meta = before.meta
    counts: tuple[Count, ...] = ()
    if meta.deleted is not None:
        took = max(0.0, (now - meta.deleted).total_seconds())
        counts = _counts(kind, meta, "termination_duration_seconds", {}, took)
    subject = _subject(kind, before)
    return Transitions(counts, tuple(_finalized(subject, each) for each in meta.finalizers))


def _transition(
    kind: ObservedKind, meta: Identity, old: Condition | None, new: Condition
) -> tuple[Count, ...]:
    labels = {"type": new.type, "status": new.status, "reason": new.reason}
    counts = _counts(kind, meta, f"{_EACH}transitions_total", labels)
    if old is None:
        return counts
    labels = {"type": old.type, "status": old.status, "to_status": new.status}
    lasted = max(0.0, (new.changed - old.changed).total_seconds())
    return counts + _counts(kind, meta, f"{_EACH}transition_seconds", labels, lasted)


def _counts(
    kind: ObservedKind, meta: Identity, metric: str, labels: Mapping[str, str], value: float = 1.0
) -> tuple[Count, ...]:
    own = Count(kind.prefix + metric, {**labels, **kind.more(meta)}, value)
    if not kind.has_shared_metrics:
        return (own,)
    return own, Count(f"operator_{metric}", {**labels, **kind.shared()}, value)


def _taken_off(before: ObservedObject | None, meta: Identity) -> Sequence[str]:
    held = () if before is None else before.meta.finalizers
    return [each for each in held if each not in meta.finalizers]


def _subject(kind: ObservedKind, observed: ObservedObject) -> Subject:
    meta = observed.meta
    return Subject(kind.kind, meta.name, observed.namespace, meta.uid)


def _finalized(subject: Subject, finalizer: str) -> Notice:
    return Notice(subject, "Finalized", f"Finalized {finalizer}")


def _transitioned(subject: Subject, old: Condition, new: Condition) -> Notice:
    note = (
        f"Status condition transitioned, Type: {new.type}, "
        f"Status: {old.status} -> {new.status}, Reason: {new.reason}"
    )
    if new.message:
        note += f", Message: {new.message}"
    return Notice(subject, new.type, note, can_wait=True)
