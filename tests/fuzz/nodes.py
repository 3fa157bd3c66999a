"""Random nodes: registered, booting, in flight, deleting, or not managed by Karpy."""

from karpy.model.instances import Catalog, InstanceType
from karpy.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, NODE_POOL, OS, ZONE
from karpy.model.nodes import Node
from karpy.model.pools import NodePool
from karpy.model.resources import NODES
from tests.builders import CPUS, DRIVER, FAMILY
from tests.fuzz.dice import Dice, Feature
from tests.fuzz.words import RACK, TEAM, TIER, VALUES, random_taints

_MAX = 8


def random_nodes(dice: Dice, pools: list[NodePool], catalog: Catalog) -> list[Node]:
    """Draw nodes, mostly of the existing pools."""
    if Feature.NODES not in dice.features and dice.chance(0.7):
        return []
    return [_random_node(dice, number, pools, catalog) for number in range(dice.number(1, _MAX))]


def _random_node(dice: Dice, number: int, pools: list[NodePool], catalog: Catalog) -> Node:
    name = f"node-{number}"
    kind = dice.one(catalog.types)
    pool = dice.one(pools) if dice.chance(0.8) else None
    is_initialized = dice.chance(0.7)
    taints = [*(pool.taints if pool else ()), *random_taints(dice, 0.2)]
    return Node(
        name=name,
        labels=_labels(dice, name, kind, pool, is_initialized=is_initialized),
        taints=tuple(dict.fromkeys(taints)),
        capacity={**kind.capacity, NODES: 1},
        allocatable=_allocatable(dice, kind),
        is_initialized=is_initialized,
        is_deleting=dice.chance(0.2),
        claim=f"claim-{name}" if pool else "",
        volume_limits=_volume_limits(dice),
    )


def _labels(
    dice: Dice, name: str, kind: InstanceType, pool: NodePool | None, *, is_initialized: bool
) -> dict[str, str]:
    offering = dice.one(kind.offerings)
    labels = {
        HOSTNAME: name if dice.chance(0.9) else f"host-{name}",
        ZONE: offering.zone,
        CAPACITY_TYPE: offering.capacity_type,
        INSTANCE_TYPE: kind.name,
        ARCH: min(kind.requirements[ARCH].values),
        OS: "linux",
        FAMILY: min(kind.requirements[FAMILY].values),
        CPUS: min(kind.requirements[CPUS].values),
        NODE_POOL: pool.name if pool else "gone" if dice.chance(0.3) else "",
        **(pool.labels if pool else {}),
    }
    for key in (TEAM, TIER, RACK):
        if dice.chance(0.25):
            labels[key] = dice.one(VALUES[key])
    # A node in flight has the labels of its claim; zone and type may still be open.
    if not is_initialized and dice.chance(0.5):
        for key in dice.some([HOSTNAME, ZONE, CAPACITY_TYPE, INSTANCE_TYPE], 1, 3):
            del labels[key]
    return {key: value for key, value in labels.items() if value}


def _allocatable(dice: Dice, kind: InstanceType) -> dict[str, int]:
    amounts = kind.allocatable
    if dice.chance(0.1):
        del amounts[dice.one(list(amounts))]
    return amounts


def _volume_limits(dice: Dice) -> dict[str, int | None]:
    if not dice.has(Feature.VOLUMES, 0.5):
        return {}
    return {DRIVER: dice.one([None, 0, 1, 2, 4])}
