"""Zones that traffic is shifted away from, and which NodePools that concerns."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from karpy.model.ec2labels import ZONE_ID
from karpy.model.labels import ZONE
from karpy.model.requirements import Requirements
from karpy.model.times import parse_moment

_APPLIED: Final = "APPLIED"


def read_shifts(answer: Mapping[str, Any], now: datetime) -> frozenset[str]:
    """Return the IDs of the zones that a managed resource is shifted away from now."""
    found = set()
    for each in (*(answer.get("zonalShifts") or ()), *(answer.get("autoshifts") or ())):
        ends = each.get("expiryTime")
        moment = ends if isinstance(ends, datetime) else parse_moment(str(ends or ""))
        is_over = moment is not None and moment <= now
        if each.get("appliedStatus") == _APPLIED and not is_over and each.get("awayFrom"):
            found.add(str(each["awayFrom"]))
    return frozenset(found)


def is_concerned(asked: Requirements, zones: Iterable[tuple[str, str]]) -> bool:
    """Say whether a NodePool may use one of some zones, given by name and ID."""
    by_name, by_id = asked.get(ZONE), asked.get(ZONE_ID)
    return any(
        (by_name is None or name in by_name) and (by_id is None or id_ in by_id)
        for name, id_ in zones
    )
