"""The names, labels and taints of random clusters."""

from typing import Final

from karpy.codec.fields import JsonObject
from karpy.model.constraints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE

SEED: Final = "fidelity/seed"
"""A label of every node with the seed of its cluster."""
TEAM: Final = "team"
TIER: Final = "tier"
"""A label whose values are mostly numbers."""
RACK: Final = "example.com/rack"
SSD: Final = "example.com/ssd"
"""A label without a value."""
GHOST: Final = "ghost"
"""A label that no node has."""
GPU: Final = "example.com/gpu"
DRIVER: Final = "csi.example.com"

ZONES: Final = ("za", "zb", "zc")
VALUES: Final = {
    ZONE: (*ZONES, "z-nowhere"),
    CAPACITY_TYPE: (SPOT, ON_DEMAND),
    TEAM: ("red", "blue", "green"),
    TIER: ("1", "2", "10", "007", "x"),
    RACK: ("r1", "r2", "r3"),
    SSD: ("",),
    GHOST: ("boo",),
}
NODE_KEYS: Final = (ZONE, ZONE, CAPACITY_TYPE, TEAM, TEAM, TIER, RACK, SSD)
TOPOLOGY_KEYS: Final = (ZONE, ZONE, ZONE, HOSTNAME, HOSTNAME, CAPACITY_TYPE, RACK, TEAM)

NAMESPACES: Final = {
    "fidelity-a": {"kind": "plain"},
    "fidelity-b": {"kind": "prod", "owner": "red"},
    "fidelity-c": {"kind": "test", "owner": "red"},
}
APPS: Final = ("web", "db", "cache")
TRACKS: Final = ("stable", "canary")

HARD_TAINTS: Final[tuple[JsonObject, ...]] = (
    {"key": "dedicated", "value": "red", "effect": NO_SCHEDULE},
    {"key": "dedicated", "value": "blue", "effect": NO_SCHEDULE},
    {"key": "gpu", "effect": NO_SCHEDULE},
    {"key": "level", "value": "5", "effect": NO_EXECUTE},
)
SOFT_TAINTS: Final[tuple[JsonObject, ...]] = (
    {"key": "please-not", "effect": PREFER_NO_SCHEDULE},
    {"key": "dedicated", "value": "red", "effect": PREFER_NO_SCHEDULE},
)
CORDON: Final[JsonObject] = {"key": "node.kubernetes.io/unschedulable", "effect": NO_SCHEDULE}

HIGH: Final = "fidelity-high"
HIGHER: Final = "fidelity-higher"
PRIORITIES: Final[tuple[JsonObject, ...]] = tuple(
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "Never",
    }
    for name, value in ((HIGH, 500), (HIGHER, 1000))
)
"""The priority classes never preempt, and no priority is below the default: no preemption."""
