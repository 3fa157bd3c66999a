"""Requirements on labels: the values that a key may take, intersection and compatibility."""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final, TypeAlias

from msgspec import Struct

from karpy.model.labels import normalise

INT64_MAX: Final = 2**63 - 1
# Possessive quantifier: without backtracking, a text of any length is read in one pass.
_INTEGER: Final = re.compile(r"([+-]?)(?=[0-9])0*+([0-9]{0,19})", re.ASCII)
_VALUES_SHOWN: Final = 5


class Operator(Enum):
    """How a node selector requirement relates a label to its values."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"
    GTE = "Gte"
    LTE = "Lte"


class Requirement(Struct, frozen=True, gc=False):
    """
    The values one label key may take: a finite set, or everything but a finite set.

    In [a] is {a}; NotIn [a] is all but {a}; Exists is all but {}; DoesNotExist is {}. An open set
    may also be bounded: then only integers within the (inclusive) bounds belong to it.
    """

    key: str
    values: frozenset[str] = frozenset()
    complement: bool = False
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None
    is_needed: bool = False
    """Whether the label must exist although values are excluded: Exists together with NotIn."""

    def __contains__(self, value: str) -> bool:
        return (value in self.values) != self.complement and _within(value, self.gte, self.lte)

    def __and__(self, other: "Requirement") -> "Requirement":
        """Keep the values that both sides allow."""
        assert self.key == other.key
        gte = _tighter(max, self.gte, other.gte)
        lte = _tighter(min, self.lte, other.lte)
        min_values = _tighter(max, self.min_values, other.min_values)
        if gte is not None and lte is not None and gte > lte:
            return Requirement(self.key, min_values=min_values)
        match self.complement, other.complement:
            case False, False:
                values = self.values & other.values
            case False, True:
                values = self.values - other.values
            case True, False:
                values = other.values - self.values
            case _:
                values = self.values | other.values
        if gte is not None or lte is not None:
            values = frozenset(value for value in values if _within(value, gte, lte))
        if self.complement and other.complement:
            # Differs: `Exists` together with `NotIn` on one label: Karpenter keeps NotIn alone and
            # accepts a node without the label; Karpy asks for the label.
            is_open = bool(values) and gte is None and lte is None
            is_needed = is_open and not (self.is_negative and other.is_negative)
            return Requirement(self.key, values, True, gte, lte, min_values, is_needed)
        return Requirement(self.key, values, min_values=min_values)

    def intersects(self, other: "Requirement") -> bool:
        """Say whether both allow some value; two open sets do unless their bounds cross."""
        return not (self & other).is_empty

    @property
    def is_empty(self) -> bool:
        """Whether no value is allowed, which is what DoesNotExist says."""
        return not self.complement and not self.values

    @property
    def is_negative(self) -> bool:
        """Whether a node without the label satisfies it: NotIn and DoesNotExist, without bounds."""
        if not self.complement:
            return not self.values
        # Differs: `NotIn [5]` together with `Gt 1` on one label: Karpenter accepts a node without
        # the label; Karpy does not, because `Gt` asks for a value.
        return bool(self.values) and self.gte is None and self.lte is None and not self.is_needed

    @property
    def operator(self) -> Operator:
        """The operator users would write for this set; bounded sets count as open ones."""
        if self.complement:
            return Operator.NOT_IN if self.values else Operator.EXISTS
        return Operator.IN if self.values else Operator.DOES_NOT_EXIST

    def __str__(self) -> str:
        """Write `key In [a b c]`, at most five values, then bounds and minValues."""
        text = f"{self.key} {self.operator.value}"
        if self.values:
            shown = sorted(self.values)[:_VALUES_SHOWN]
            hidden = len(self.values) - len(shown)
            text += f" [{' '.join(shown)}{f' and {hidden} others' if hidden else ''}]"
        if self.gte is not None:
            text += f" >={self.gte}"
        if self.lte is not None:
            text += f" <={self.lte}"
        if self.min_values is not None:
            text += f" minValues {self.min_values}"
        return text


def require(
    key: str, operator: Operator, values: Iterable[str] = (), min_values: int | None = None
) -> Requirement:
    """Build the set an operator and its values describe; label aliases get their current name."""
    key = normalise(key)
    values = tuple(values)
    match operator:
        case Operator.IN:
            return Requirement(key, frozenset(values), min_values=min_values)
        case Operator.NOT_IN:
            return Requirement(key, frozenset(values), True, min_values=min_values)
        case Operator.EXISTS:
            return Requirement(key, complement=True, min_values=min_values)
        case Operator.DOES_NOT_EXIST:
            return Requirement(key, min_values=min_values)
    bound = as_integer(values[0]) or 0 if values else 0
    match operator:
        case Operator.GT if bound == INT64_MAX:
            return Requirement(key)
        case Operator.GT:
            return Requirement(key, complement=True, gte=bound + 1, min_values=min_values)
        case Operator.GTE:
            return Requirement(key, complement=True, gte=bound, min_values=min_values)
        case Operator.LT:
            return Requirement(key, complement=True, lte=bound - 1, min_values=min_values)
        case _:
            return Requirement(key, complement=True, lte=bound, min_values=min_values)


def one_of(key: str, *values: str) -> Requirement:
    """Build `key In [values]`."""
    return Requirement(normalise(key), frozenset(values))


def anything(key: str) -> Requirement:
    """Build `key Exists`, which an undefined key stands for."""
    return Requirement(key, complement=True)


def as_integer(text: str) -> int | None:
    """Read a whole number of 64 bits as Go's parser does, or None; `+5` and `007` are fine."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    number = int(f"{match[1]}0{match[2]}")
    return number if -INT64_MAX - 1 <= number <= INT64_MAX else None


def _within(value: str, gte: int | None, lte: int | None) -> bool:
    if gte is None and lte is None:
        return True
    number = as_integer(value)
    if number is None:
        return False
    return (gte is None or number >= gte) and (lte is None or number <= lte)


def _tighter(choose: Callable[[int, int], int], left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return choose(left, right)


Requirements: TypeAlias = Mapping[str, Requirement]
"""Requirements by key; treat as immutable. An absent key allows everything."""


def collect(parts: Iterable[Requirement]) -> dict[str, Requirement]:
    """Intersect requirements key by key."""
    result: dict[str, Requirement] = {}
    for part in parts:
        have = result.get(part.key)
        result[part.key] = part if have is None else have & part
    return result


def from_labels(labels: Mapping[str, str]) -> dict[str, Requirement]:
    """Turn each label into the one value its key may take."""
    return collect(one_of(key, value) for key, value in labels.items())


def merge(*sets: Requirements) -> dict[str, Requirement]:
    """Intersect whole sets of requirements."""
    return collect(requirement for each in sets for requirement in each.values())


def why_disjoint(have: Requirements, want: Requirements) -> Requirement | None:
    """
    Return the first wanted requirement that has no value in common with `have`, or None.

    Keys that only one side defines are skipped. Two negative requirements are always compatible.
    """
    for key, wanted in want.items():
        present = have.get(key)
        if present is None or present.intersects(wanted):
            continue
        if present.is_negative and wanted.is_negative:
            continue
        return wanted
    return None


def why_incompatible(
    have: Requirements, want: Requirements, may_be_undefined: frozenset[str] = frozenset()
) -> Requirement | None:
    """
    Return the first wanted requirement that the node side cannot satisfy, or None.

    A key that the node side does not define is compatible if it may be undefined (well-known labels
    of a new node) or if the wanted requirement is negative.
    """
    for key, wanted in want.items():
        if key not in have and key not in may_be_undefined and not wanted.is_negative:
            return wanted
    return why_disjoint(have, want)
