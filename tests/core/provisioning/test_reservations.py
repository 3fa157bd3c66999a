"""Section 7: reserved capacity."""

import pytest

from karpy.model.instances import InstanceType
from karpy.model.labels import CAPACITY_TYPE, ON_DEMAND, RESERVED, ZONE
from karpy.model.refusals import Reason, Refusal
from karpy.model.settings import ReservedMode, Settings
from karpy.model.verdicts import LaunchOption
from tests.builders import (
    RESERVATION,
    ZONE_A,
    ZONE_B,
    catalog,
    exists,
    instance_type,
    is_in,
    min_values,
    offering,
    pod,
    pods,
    pool,
    snapshot,
    term,
)
from tests.core.provisioning.answers import (
    decide_checked,
    hosts,
    launches,
    only_launch,
    only_refusal,
)

STRICT = Settings(reserved_mode=ReservedMode.STRICT)
FALLBACK = Settings(reserved_mode=ReservedMode.FALLBACK)
ON_DEMAND_TOO = offering(ZONE_A, ON_DEMAND, 1)


def _reserved(left: int, name: str = "cr", zone: str = ZONE_A, dollars: float = 0.1):  # noqa: ANN202
    return offering(zone, dollars=dollars, reservation=name, left=left)


def _type(*offerings: object) -> InstanceType:
    return instance_type("t", offerings=offerings)  # type: ignore[arg-type]
