"""How the conditions of objects change, and how long that takes."""

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


class Standing(Struct, frozen=True, gc=False):
    """An object as far as its conditions go."""

    meta: Identity
    conditions: tuple[Condition, ...] = ()
    namespace: str = ""


class Family(Struct, frozen=True):
    """All objects of a kind, and what their metrics are labelled by."""

    kind: Kind
    labels: Mapping[str, str] = {}
    """Labels of metrics, and the keys of the objects' labels that they are taken from."""
    is_told_by_kind: bool = True
    """Whether there are also the older metrics that all kinds share."""

    @property
    def prefix(self) -> str:
        return f"operator_{self.kind.name.lower()}_"

    def more(self, meta: Identity) -> dict[str, str]:
        """Return what an object's metrics are labelled by."""
        return {label: meta.labels.get(key, "") for label, key in self.labels.items()}

    def shared(self) -> dict[str, str]:
        """Return what the older metrics are labelled by."""
        return {"group": self.kind.group, "kind": self.kind.name}


class Told(Struct, frozen=True):
    """What is counted and said of a change."""

    counts: tuple[Count, ...] = ()
    notices: tuple[Notice, ...] = ()


def compare(family: Family, before: Standing | None, after: Standing | None, now: datetime) -> Told:
    """Tell what has happened to an object; None is one that is not there."""
    if after is None:
        return Told() if before is None else _gone(family, before, now)
    known = {} if before is None else {each.type: each for each in before.conditions}
    subject = _subject(family, after)
    counts: list[Count] = []
    notices = [_finalized(subject, each) for each in _taken_off(before, after.meta)]
    for condition in after.conditions:
        old = known.get(condition.type)
        # What nobody has spoken of before is as good as unknown.
        if condition.status == (UNKNOWN if old is None else old.status):
            continue
        counts += _transition(family, after.meta, old, condition)
        if old is not None:
            notices.append(_transitioned(subject, old, condition))
    return Told(tuple(counts), tuple(notices))


def _gone(family: Family, before: Standing, now: datetime) -> Told:
    meta = before.meta
    counts: tuple[Count, ...] = ()
    if meta.deleted is not None:
        took = max(0.0, (now - meta.deleted).total_seconds())
        counts = _counts(family, meta, "termination_duration_seconds", {}, took)
    subject = _subject(family, before)
    return Told(counts, tuple(_finalized(subject, each) for each in meta.finalizers))


def _transition(
    family: Family, meta: Identity, old: Condition | None, new: Condition
) -> tuple[Count, ...]:
    labels = {"type": new.type, "status": new.status, "reason": new.reason}
    counts = _counts(family, meta, f"{_EACH}transitions_total", labels)
    if old is None:
        return counts
    labels = {"type": old.type, "status": old.status, "to_status": new.status}
    lasted = max(0.0, (new.changed - old.changed).total_seconds())
    return counts + _counts(family, meta, f"{_EACH}transition_seconds", labels, lasted)


def _counts(
    family: Family, meta: Identity, metric: str, labels: Mapping[str, str], value: float = 1.0
) -> tuple[Count, ...]:
    own = Count(family.prefix + metric, {**labels, **family.more(meta)}, value)
    if not family.is_told_by_kind:
        return (own,)
    return own, Count(f"operator_{metric}", {**labels, **family.shared()}, value)


def _taken_off(before: Standing | None, meta: Identity) -> Sequence[str]:
    held = () if before is None else before.meta.finalizers
    return [each for each in held if each not in meta.finalizers]


def _subject(family: Family, standing: Standing) -> Subject:
    meta = standing.meta
    return Subject(family.kind, meta.name, standing.namespace, meta.uid)


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
