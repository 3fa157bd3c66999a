"""Status conditions, and the rules by which Karpenter updates a set of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"
READY: Final = "Ready"
REBOOTING: Final = "Rebooting"
INSTANCE_TERMINATING: Final = "InstanceTerminating"
AWAITING: Final = "AwaitingReconciliation"


class Condition(Struct, frozen=True, gc=False):
    """A condition of an object: True, False or Unknown."""

    type: str
    status: str
    changed: datetime
    """The lastTransitionTime: when the status changed last."""
    reason: str = ""
    message: str = ""
    generation: int = 0
    """The observedGeneration."""

    @property
    def is_true(self) -> bool:
        return self.status == TRUE


class Conditions(Struct, frozen=True, gc=False):
    """
    The conditions of an object, and which of them `Ready` depends on.

    `Ready` is True if all `dependents` are True for the current generation. Methods return changed
    copies.
    """

    items: tuple[Condition, ...] = ()
    dependents: tuple[str, ...] = ()
    """Types of the conditions that `Ready` depends on; without any there is no `Ready`."""

    def get(self, type_: str) -> Condition | None:
        """Return a condition, or None if it was never set."""
        return next((each for each in self.items if each.type == type_), None)

    def status(self, type_: str) -> str:
        """Return the status of a condition; Unknown if it was never set."""
        found = self.get(type_)
        return UNKNOWN if found is None else found.status

    def is_true(self, type_: str) -> bool:
        return self.status(type_) == TRUE

    def with_unknown(self, created: datetime, now: datetime, generation: int) -> "Conditions":
        """Add `Ready` and the conditions that it depends on as Unknown where they are missing."""
        if not self.dependents:
            return self
        missing = [
            Condition(each, UNKNOWN, created, AWAITING, _WAITS, generation)
            for each in self.dependents
            if self.get(each) is None
        ]
        if self.get(READY) is None:
            missing.append(Condition(READY, UNKNOWN, now, AWAITING, _WAITS, generation))
        if not missing:
            return self
        return replace(self, items=_ordered((*self.items, *missing)))

    def with_condition(
        self, condition: Condition, now: datetime, *, is_deleting: bool = False
    ) -> "Conditions":
        """Set a condition; its transition time changes only with its status."""
        before = self.get(condition.type)
        changed = now if before is None or before.status != condition.status else before.changed
        condition = replace(condition, changed=changed)
        if before == condition:
            return self
        others = [each for each in self.items if each.type != condition.type]
        if is_deleting:
            others = [replace(each, generation=condition.generation) for each in others]
        updated = replace(self, items=_ordered((*others, condition)))
        return _with_ready(updated, now, condition.generation) if self.dependents else updated

    def without(self, type_: str) -> "Conditions":
        """Remove a condition; it must be one that `Ready` does not depend on."""
        assert type_ not in self.dependents
        assert type_ != READY
        return replace(self, items=tuple(each for each in self.items if each.type != type_))


_WAITS: Final = "object is awaiting reconciliation"


def _ordered(items: Sequence[Condition]) -> tuple[Condition, ...]:
    """Put conditions in the order of their last change, `Ready` last."""
    return tuple(sorted(items, key=lambda each: (each.type == READY, each.changed)))


def _with_ready(conditions: Conditions, now: datetime, generation: int) -> Conditions:
    """Set `Ready` by the conditions that it depends on."""
    dependents = [
        found for each in conditions.dependents if (found := conditions.get(each)) is not None
    ]
    unhealthy = [each for each in dependents if not each.is_true or each.generation != generation]
    if len(dependents) == len(conditions.dependents) and not unhealthy:
        status, reason, message = TRUE, READY, ""
    else:
        is_false = any(
            each.status == FALSE and each.generation == generation for each in dependents
        )
        status = FALSE if is_false else UNKNOWN
        reason = "UnhealthyDependents" if is_false else "ReconcilingDependents"
        newest = sorted(unhealthy, key=lambda each: each.changed, reverse=True)
        message = ", ".join(f"{each.type}={each.status}" for each in newest)
    before = conditions.get(READY)
    changed = now if before is None or before.status != status else before.changed
    ready = Condition(READY, status, changed, reason, message, generation)
    others = tuple(each for each in conditions.items if each.type != READY)
    return replace(conditions, items=_ordered((*others, ready)))
