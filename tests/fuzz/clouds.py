"""Random catalogs, NodePools and overlays."""

from karpy.model.instances import Catalog, InstanceType, Offering
from karpy.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.records import NodeClassRef
from karpy.model.requirements import Requirement
from tests.builders import (
    CPUS,
    DRIVER,
    FAMILY,
    GPU_NAME,
    NODE_CLASS,
    ZONES,
    absent,
    catalog,
    exists,
    instance_type,
    is_in,
    min_values,
    not_in,
    offering,
    overlay,
    pool,
)
from tests.builders.clouds import OfferingFields, OverlayFields
from tests.builders.nodes import PoolFields
from tests.fuzz.dice import Dice, Feature
from tests.fuzz.words import (
    DONGLE,
    GPU,
    RACK,
    TEAM,
    TIER,
    VALUES,
    random_requirement,
    random_taints,
)

_GIB_PER_CPU = {"c": 2, "m": 4, "r": 8, "g": 4}
_RESERVATIONS = ("cr-1", "cr-2", "cr-3")


def random_catalog(dice: Dice, pools: list[NodePool], *, is_reserving: bool) -> Catalog:
    """Draw 5 to 25 types in two or three zones; sometimes a pool has types of its own."""
    zones = ZONES[: dice.number(2, 3)]
    left = {each: dice.number(0, 3) for each in _RESERVATIONS}
    types = [
        _random_type(dice, number, zones, left if is_reserving else {})
        for number in range(dice.number(5, dice.one([8, 25])))
    ]
    by_pool = {
        each.name: dice.some(types, 1, 5) for each in pools if dice.has(Feature.ODD_POOLS, 0.2)
    }
    return catalog(types, by_pool)


def _random_type(
    dice: Dice, number: int, zones: tuple[str, ...], left: dict[str, int]
) -> InstanceType:
    family = dice.one(["c", "m", "m", "r", "g"])
    cpus = dice.one([1, 2, 2, 4, 4, 8, 16])
    gpus = {GPU: str(dice.number(1, 2))} if family == "g" else {}
    volume_limits = {}
    if dice.has(Feature.VOLUMES, 0.5):
        volume_limits[DRIVER] = dice.number(1, 3)
    return instance_type(
        f"{family}.{cpus}-{number}",
        cpu=str(cpus),
        memory=f"{cpus * _GIB_PER_CPU[family]}Gi",
        pods=dice.one([4, 8, 110]),
        capacity={**gpus, **({"hugepages-2Mi": "1Gi"} if dice.chance(0.05) else {})},
        overhead={"cpu": "100m", "memory": "256Mi"} if dice.chance(0.7) else {},
        offerings=_random_offerings(dice, cpus, zones, left),
        arch=dice.one(["amd64", "amd64", "arm64"]),
        requirements=[is_in(GPU_NAME, "t4") if gpus else absent(GPU_NAME)],
        volume_limits=volume_limits,
    )


def _random_offerings(
    dice: Dice, cpus: int, zones: tuple[str, ...], left: dict[str, int]
) -> list[Offering]:
    sold: list[Offering] = []
    for zone in dice.some(zones, 1):
        for capacity_type in dice.some([ON_DEMAND, SPOT], 1):
            # Use few different prices, so that ties are common.
            dollars = cpus * dice.one([0.04, 0.05, 0.06])
            details = _random_details(dice)
            sold.append(offering(zone, capacity_type, dollars, **details))
        if left and dice.chance(0.3):
            reservation = dice.one(list(left))
            details = _random_details(dice)
            # Offerings of a reservation may report different capacities; the lowest counts.
            details["left"] = left[reservation] + (dice.chance(0.1) and dice.number(0, 1))
            details["reservation"] = reservation
            sold.append(offering(zone, dollars=cpus * 0.01, **details))
    return sold


def _random_details(dice: Dice) -> OfferingFields:
    details: OfferingFields = {"available": dice.chance(0.9)}
    if dice.has(Feature.OVERRIDES, 0.3):
        more = {"cpu": str(dice.one([1, 3, 6]))}
        details["capacity"] = dice.one([more, {DONGLE: "1"}, {GPU: "3"}])
    if dice.has(Feature.OVERRIDES, 0.3):
        details["overhead"] = dice.one([{"cpu": "500m"}, {"memory": "1Gi"}])
    return details


# --- NodePools -------------------------------------------------------------------------------


def random_pools(dice: Dice) -> list[NodePool]:
    """Draw one to four pools."""
    return [random_pool(dice, name) for name in dice.some(["a", "b", "c", "d"], 1, 4)]


def random_pool(dice: Dice, name: str) -> NodePool:
    """Draw a pool with requirements, labels, taints and limits."""
    fields: PoolFields = {
        "labels": _random_labels(dice),
        "requirements": _pool_requirements(dice),
        "taints": random_taints(dice, 0.4),
        "startup_taints": random_taints(dice, 0.2),
        "limits": _random_limits(dice),
        "weight": dice.number(0, 3) if dice.has(Feature.WEIGHTS) else 0,
        "node_class": NODE_CLASS if dice.chance(0.9) else NodeClassRef("example.com", "", "x"),
        "static": dice.has(Feature.ODD_POOLS, 0.1),
        "ready": not dice.has(Feature.ODD_POOLS, 0.1),
        "deleting": dice.has(Feature.ODD_POOLS, 0.1),
    }
    return pool(name, **fields)


def _random_labels(dice: Dice) -> dict[str, str]:
    labels = {}
    for key, probability in ((TEAM, 0.3), (TIER, 0.15), (RACK, 0.15)):
        if dice.chance(probability):
            labels[key] = dice.one(VALUES[key])
    return labels


def _pool_requirements(dice: Dice) -> list[Requirement]:
    requirements: list[Requirement] = []
    for key, probability in ((CAPACITY_TYPE, 0.3), (ZONE, 0.3), (FAMILY, 0.2), (CPUS, 0.1)):
        if dice.chance(probability):
            some = is_in(key, *dice.some(VALUES[key], 1))
            requirements.append(not_in(key, dice.one(VALUES[key])) if dice.chance(0.2) else some)
    for key in (TEAM, TIER, RACK):
        if dice.chance(0.25):
            requirements.append(is_in(key, *dice.some(VALUES[key], 1)))
        elif dice.chance(0.1):
            requirements.append(dice.one([exists(key), not_in(key, dice.one(VALUES[key]))]))
    if dice.chance(0.1):
        requirements.append(random_requirement(dice))
    if dice.has(Feature.MIN_VALUES, 0.7):
        key = dice.one([INSTANCE_TYPE, INSTANCE_TYPE, FAMILY, ZONE, CAPACITY_TYPE, CPUS])
        requirements.append(min_values(exists(key), dice.number(1, 4)))
    return requirements


def _random_limits(dice: Dice) -> dict[str, str]:
    if not dice.has(Feature.LIMITS, 0.7):
        return {}
    limits = {
        "cpu": str(dice.number(0, 40)),
        "memory": f"{dice.number(0, 160)}Gi",
        "nodes": str(dice.number(0, 5)),
        GPU: str(dice.number(0, 3)),
    }
    return {name: limits[name] for name in dice.some(list(limits), 1, 2)}


# --- overlays --------------------------------------------------------------------------------


def random_overlays(dice: Dice) -> list[NodeOverlay]:
    """Draw a few overlays that often change the same offerings."""
    if Feature.OVERLAYS not in dice.features:
        return []
    return [_random_overlay(dice, f"overlay-{number}") for number in range(dice.number(1, 4))]


def _random_overlay(dice: Dice, name: str) -> NodeOverlay:
    keys = (ZONE, CAPACITY_TYPE, FAMILY, CPUS, TEAM)
    requirements = [random_requirement(dice, keys) for _ in range(dice.number(0, 2))]
    fields: OverlayFields = {"weight": dice.number(0, 2)}
    capacity: dict[str, str] = {}
    change = dice.one(["price", "price_adjustment", "capacity", "both"])
    if change in {"price", "both"}:
        fields["price"] = dice.one(["0.05", "0.2", "0"])
    if change == "price_adjustment":
        fields["price_adjustment"] = dice.one(["-50%", "+25%", "-0.03", "+0.1", "-100%", "-9"])
    if change in {"capacity", "both"}:
        capacity = dice.one([{DONGLE: "1"}, {DONGLE: "2", GPU: "1"}])
    return overlay(name, *requirements, capacity=capacity, **fields)
