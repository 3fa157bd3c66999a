"""Counts and events of condition transitions and removed finalizers."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from karpy.core.lifecycle.changes import Count
from karpy.model.conditions import UNKNOWN, Condition
from karpy.model.kinds import Kind
from karpy.model.notices import Notice, Subject
from karpy.model.records import Identity

_CONDITION: Final = "status_condition_"


class ObservedObject(Struct, frozen=True, gc=False):
    """The metadata and the conditions of an object."""

    meta: Identity
    conditions: tuple[Condition, ...] = ()
    namespace: str = ""


class ObservedKind(Struct, frozen=True):
    """A kind whose conditions are reported, and the labels of its metrics."""

    kind: Kind
    labels: Mapping[str, str] = {}
    """Label of the metrics -> key of the object label with its value."""
    has_shared_metrics: bool = True
    """Whether to also report the deprecated metrics without the kind in their name."""

    @property
    def prefix(self) -> str:
        return f"operator_{self.kind.name.lower()}_"

    def object_labels(self, meta: Identity) -> dict[str, str]:
        """Return the metric labels whose values are labels of an object."""
        return {label: meta.labels.get(key, "") for label, key in self.labels.items()}

    def shared_labels(self) -> dict[str, str]:
        """Return the labels of the deprecated metrics that all kinds share."""
        return {"group": self.kind.group, "kind": self.kind.name}


class Transitions(Struct, frozen=True):
    """The counts and events of a change of an object."""

    counts: tuple[Count, ...] = ()
    notices: tuple[Notice, ...] = ()


def compare(
    kind: ObservedKind, before: ObservedObject | None, after: ObservedObject | None, now: datetime
) -> Transitions:
    """Compare two states of an object; None is an object that does not exist."""
    if after is None:
        return Transitions() if before is None else _deleted(kind, before, now)
    known = {} if before is None else {each.type: each for each in before.conditions}
    subject = _subject(kind, after)
    counts: list[Count] = []
    notices = [_finalized(subject, each) for each in _removed_finalizers(before, after.meta)]
    for condition in after.conditions:
        old = known.get(condition.type)
        # A condition that was not set before counts as Unknown.
        if condition.status == (UNKNOWN if old is None else old.status):
            continue
        counts += _transition(kind, after.meta, old, condition)
        if old is not None:
            notices.append(_transitioned(subject, old, condition))
    return Transitions(tuple(counts), tuple(notices))


def _deleted(kind: ObservedKind, before: ObservedObject, now: datetime) -> Transitions:
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
    counts = _counts(kind, meta, f"{_CONDITION}transitions_total", labels)
    if old is None:
        return counts
    labels = {"type": old.type, "status": old.status, "to_status": new.status}
    lasted = max(0.0, (new.changed - old.changed).total_seconds())
    return counts + _counts(kind, meta, f"{_CONDITION}transition_seconds", labels, lasted)


def _counts(
    kind: ObservedKind, meta: Identity, metric: str, labels: Mapping[str, str], value: float = 1.0
) -> tuple[Count, ...]:
    own = Count(kind.prefix + metric, {**labels, **kind.object_labels(meta)}, value)
    if not kind.has_shared_metrics:
        return (own,)
    return own, Count(f"operator_{metric}", {**labels, **kind.shared_labels()}, value)


def _removed_finalizers(before: ObservedObject | None, meta: Identity) -> Sequence[str]:
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
