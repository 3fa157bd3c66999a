"""A set of requirements, one per label key, and what it means for two sets to go together."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from karpy.model.requirement import Requirement, one_of

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
    Return the first wanted requirement that shares no value with what is there, or None.

    Keys that only one side defines do not matter. Two negative requirements always go together.
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
    Return the first wanted requirement the node side cannot meet, or None.

    A key the node side does not define is fine if it may be undefined (well-known labels of a node
    yet to be made) or if the wanted requirement is negative.
    """
    for key, wanted in want.items():
        if key not in have and key not in may_be_undefined and not wanted.is_negative:
            return wanted
    return why_disjoint(have, want)
