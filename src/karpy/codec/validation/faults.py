"""The faults of an object, in the words of an API server."""

import json
from collections.abc import Iterable
from enum import Enum
from typing import Final

from msgspec import Struct

from karpy.errors import Invalid

_STATUS: Final = 422


class FaultKind(Enum):
    """The kind of a fault; its value is the beginning of the message."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    TYPE_INVALID = "Invalid value "
    """Has the text of INVALID, but no rule can be evaluated on such a value."""
    NOT_SUPPORTED = "Unsupported value"
    DUPLICATE = "Duplicate value"
    FORBIDDEN = "Forbidden"
    TOO_LONG = "Too long"
    TOO_MANY = "Too many"


_VALUELESS: Final = frozenset({FaultKind.REQUIRED, FaultKind.FORBIDDEN, FaultKind.TOO_LONG})
_BLOCKING: Final = frozenset(
    {
        FaultKind.NOT_SUPPORTED,
        FaultKind.REQUIRED,
        FaultKind.TOO_LONG,
        FaultKind.TOO_MANY,
        FaultKind.TYPE_INVALID,
    }
)


class Omitted(Enum):
    """Stands for a value that a message does not show."""

    VALUE = ""


class Fault(Struct, frozen=True):
    """One fault of an object."""

    kind: FaultKind
    path: str
    """The field, as `spec.weight`; empty for the object itself."""
    value: object = Omitted.VALUE
    detail: str = ""
    is_broken: bool = False
    """Whether the evaluation of a rule failed, rather than that the rule does not hold."""

    @property
    def blocks_rules(self) -> bool:
        """Say whether rules cannot be evaluated before this fault is corrected."""
        return self.kind in _BLOCKING

    def __str__(self) -> str:
        """Write the fault as an API server does."""
        words = self.kind.value.strip()
        if self.kind not in _VALUELESS and self.value is not Omitted.VALUE:
            words = f"{words}: {_shown(self.value)}"
        if self.detail:
            words = f"{words}: {self.detail}"
        return f"{self.path or '<nil>'}: {words}"


RULES_NOT_CHECKED: Final = Fault(
    FaultKind.INVALID,
    "",
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


def refuse(kind: str, name: str, faults: Iterable[Fault]) -> Invalid:
    """Make the error with all faults of an object; `kind` as `NodePool.karpenter.sh`."""
    texts = list(dict.fromkeys(str(fault) for fault in faults))
    shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return Invalid(f"{kind} {json.dumps(name)} is invalid: {shown}", status=_STATUS)


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
