"""Status conditions, and how a set of them is kept the way Karpenter keeps it."""

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
    """One thing that is so, is not so, or is not known of an object."""

    type: str
    status: str
    changed: datetime
    """When the status last became what it is."""
    reason: str = ""
    message: str = ""
    generation: int = 0
    """Of which generation of the object this was said."""

    @property
    def is_true(self) -> bool:
        return self.status == TRUE


class Conditions(Struct, frozen=True, gc=False):
    """
    The conditions of an object: what its readiness depends on, and others.

    `Ready` is True if everything it depends on is, as of the current generation. Methods return
    changed copies.
    """

    items: tuple[Condition, ...] = ()
    dependents: tuple[str, ...] = ()
    """What `Ready` depends on; without any there is no `Ready`."""

    def get(self, type_: str) -> Condition | None:
        """Return a condition, or None if it was never set."""
        return next((each for each in self.items if each.type == type_), None)

    def status(self, type_: str) -> str:
        """Return what is known of a condition; one that was never set is unknown."""
        found = self.get(type_)
        return UNKNOWN if found is None else found.status

    def is_true(self, type_: str) -> bool:
        return self.status(type_) == TRUE

    def with_unknown(self, created: datetime, now: datetime, generation: int) -> "Conditions":
        """Say of everything that `Ready` depends on that it is not known yet."""
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
        """Say something of the object as of now; a status that stays keeps its time."""
        before = self.get(condition.type)
        changed = now if before is None or before.status != condition.status else before.changed
        condition = replace(condition, changed=changed)
        if before == condition:
            return self
        others = [each for each in self.items if each.type != condition.type]
        if is_deleting:
            others = [replace(each, generation=condition.generation) for each in others]
        said = replace(self, items=_ordered((*others, condition)))
        return _rooted(said, now, condition.generation) if self.dependents else said

    def without(self, type_: str) -> "Conditions":
        """Take back what was said; only of what `Ready` does not depend on."""
        assert type_ not in self.dependents
        assert type_ != READY
        return replace(self, items=tuple(each for each in self.items if each.type != type_))


_WAITS: Final = "object is awaiting reconciliation"


def _ordered(items: Sequence[Condition]) -> tuple[Condition, ...]:
    """Put conditions in the order of their last change, `Ready` last."""
    return tuple(sorted(items, key=lambda each: (each.type == READY, each.changed)))


def _rooted(said: Conditions, now: datetime, generation: int) -> Conditions:
    """Say whether the object is ready, given what that depends on."""
    told = [found for each in said.dependents if (found := said.get(each)) is not None]
    unhealthy = [each for each in told if not each.is_true or each.generation != generation]
    if len(told) == len(said.dependents) and not unhealthy:
        status, reason, message = TRUE, READY, ""
    else:
        is_false = any(each.status == FALSE and each.generation == generation for each in told)
        status = FALSE if is_false else UNKNOWN
        reason = "UnhealthyDependents" if is_false else "ReconcilingDependents"
        newest = sorted(unhealthy, key=lambda each: each.changed, reverse=True)
        message = ", ".join(f"{each.type}={each.status}" for each in newest)
    before = said.get(READY)
    changed = now if before is None or before.status != status else before.changed
    root = Condition(READY, status, changed, reason, message, generation)
    others = tuple(each for each in said.items if each.type != READY)
    return replace(said, items=_ordered((*others, root)))
