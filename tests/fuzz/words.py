"""The labels, taints and namespaces of random clusters."""

from typing import Final

from karpy.model.constraints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE
from karpy.model.requirements import Operator, Requirement, require
from tests.builders import CPUS, FAMILY, GPU_NAME, ZONES
from tests.fuzz.dice import Dice, Feature

TEAM: Final = "team"
"""A label that some pools define."""
TIER: Final = "tier"
"""A label with numbers that some pools define."""
GHOST: Final = "ghost"
"""A label that no NodePool defines."""
RACK: Final = "example.com/rack"
"""A label of some pools and nodes, used as a topology key."""

GPU: Final = "example.com/gpu"
"""An extended resource."""
DONGLE: Final = "example.com/dongle"
"""An extended resource that only overlays and overrides bring."""

VALUES: Final = {
    ZONE: (*ZONES, "zone-nowhere"),
    CAPACITY_TYPE: (SPOT, ON_DEMAND),
    FAMILY: ("c", "m", "r", "g"),
    CPUS: ("2", "4", "8", "16"),
    GPU_NAME: ("t4", "a100"),
    TEAM: ("red", "blue", "green"),
    TIER: ("1", "2", "3", "x"),
    GHOST: ("boo",),
    RACK: ("r1", "r2", "r3"),
}
WEIGHTED_KEYS: Final = (ZONE, ZONE, CAPACITY_TYPE, FAMILY, CPUS, TEAM, TEAM, TIER, RACK, GPU_NAME)
NUMERIC: Final = (CPUS, TIER)
TOPOLOGY_KEYS: Final = (ZONE, ZONE, ZONE, HOSTNAME, HOSTNAME, CAPACITY_TYPE, RACK, TEAM, FAMILY)
NAMESPACES: Final = {
    "default": {"kind": "plain"},
    "shop": {"kind": "prod", "owner": "red"},
    "lab": {"kind": "test", "owner": "red"},
}
HARD_TAINTS: Final = (
    Taint("dedicated", NO_SCHEDULE, "red"),
    Taint("dedicated", NO_SCHEDULE, "blue"),
    Taint("gpu", NO_SCHEDULE),
    Taint("level", NO_EXECUTE, "5"),
)
SOFT_TAINTS: Final = (
    Taint("please-not", PREFER_NO_SCHEDULE),
    Taint("dedicated", PREFER_NO_SCHEDULE, "red"),
)


def random_requirement(dice: Dice, keys: tuple[str, ...] = WEIGHTED_KEYS) -> Requirement:
    """Draw one requirement of any operator."""
    key = GHOST if dice.chance(0.04) else dice.one(keys)
    if key in NUMERIC and dice.has(Feature.BOUNDS, 0.8):
        operator = dice.one([Operator.GT, Operator.LT, Operator.GTE, Operator.LTE])
        return require(key, operator, (str(dice.number(0, 9)),))
    operator = dice.one([Operator.IN] * 5 + [Operator.NOT_IN] * 3 + [Operator.EXISTS])
    if dice.chance(0.06):
        operator = Operator.DOES_NOT_EXIST
    values = dice.some(VALUES[key], 1, 3) if operator in {Operator.IN, Operator.NOT_IN} else ()
    return require(key, operator, values)


def random_taints(dice: Dice, probability: float) -> list[Taint]:
    """Draw up to two taints, soft or hard."""
    taints = dice.some(HARD_TAINTS, 1, 2) if dice.has(Feature.TAINTS, probability) else []
    if dice.has(Feature.SOFT_TAINTS, probability):
        taints.append(dice.one(SOFT_TAINTS))
    return taints
