"""Random ready nodes and their CSINodes."""

from karpy.codec.fields import JsonObject
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from tests.fidelity.words import (
    CORDON,
    DRIVER,
    GPU,
    HARD_TAINTS,
    RACK,
    SEED,
    SOFT_TAINTS,
    SSD,
    TEAM,
    TIER,
    VALUES,
    ZONES,
)
from tests.fuzz.dice import Dice, Feature

_MAX = 6


def random_nodes(dice: Dice, seed: int) -> list[JsonObject]:
    """Draw two to six nodes."""
    return [_random_node(dice, seed, number) for number in range(dice.number(2, _MAX))]


def random_limits(dice: Dice, nodes: list[JsonObject]) -> list[JsonObject]:
    """Draw the volume limits of some nodes."""
    limited = [each for each in nodes if dice.has(Feature.VOLUMES, 0.5)]
    return [_csi_node(dice, each["metadata"]["name"]) for each in limited]


def _random_node(dice: Dice, seed: int, number: int) -> JsonObject:
    name = f"s{seed}-n{number}"
    room = {
        "cpu": dice.one(["500m", "2", "4", "4"]),
        "memory": dice.one(["2Gi", "4Gi", "8Gi"]),
        "pods": dice.one(["3", "10", "10", "20"]),
    }
    if dice.chance(0.2):
        room[GPU] = dice.one(["1", "2"])
    spec: JsonObject = {}
    taints = _random_taints(dice)
    if dice.chance(0.04):
        spec["unschedulable"] = True
        # The node lifecycle controller would add the taint later.
        taints.append(CORDON)
    if taints:
        spec["taints"] = taints
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _random_labels(dice, seed, name)},
        "spec": spec,
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def _random_labels(dice: Dice, seed: int, name: str) -> dict[str, str]:
    labels = {SEED: str(seed), HOSTNAME: name if dice.chance(0.9) else f"host-{name}"}
    if dice.chance(0.92):
        labels[ZONE] = dice.one(ZONES)
    for key, probability in ((CAPACITY_TYPE, 0.9), (TEAM, 0.7), (TIER, 0.6), (RACK, 0.8)):
        if dice.chance(probability):
            labels[key] = dice.one(VALUES[key])
    if dice.chance(0.3):
        labels[SSD] = ""
    return labels


def _random_taints(dice: Dice) -> list[JsonObject]:
    taints = dice.some(HARD_TAINTS, 1, 2) if dice.has(Feature.TAINTS, 0.35) else []
    if dice.has(Feature.SOFT_TAINTS, 0.5):
        taints.append(dice.one(SOFT_TAINTS))
    return list({(each["key"], each["effect"]): each for each in taints}.values())


def _csi_node(dice: Dice, name: str) -> JsonObject:
    driver: JsonObject = {"name": DRIVER, "nodeID": name, "topologyKeys": None}
    if dice.chance(0.8):
        driver["allocatable"] = {"count": dice.number(0, 2)}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }
