"""Random rules of pods about nodes: selectors, affinity, tolerations."""

from karpy.codec.fields import JsonObject
from tests.fidelity.words import GHOST, HARD_TAINTS, NODE_KEYS, SOFT_TAINTS, TIER, VALUES
from tests.fuzz.dice import Dice, Feature

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_OPERATORS = ("In", "In", "In", "NotIn", "NotIn", "NotIn", "Exists", "DoesNotExist")


def random_selector(dice: Dice) -> dict[str, str]:
    """Throw a node selector, often an empty one."""
    if not dice.has(Feature.SELECTORS, 0.3):
        return {}
    keys = dice.some(NODE_KEYS, 1, 1)
    return {key: dice.one(VALUES[key]) for key in keys}


def random_node_affinity(dice: Dice, names: list[str]) -> JsonObject:
    """Throw required and preferred node affinity, or none."""
    affinity: JsonObject = {}
    if dice.has(Feature.SELECTORS, 0.4) or dice.has(Feature.TERMS):
        most = 3 if Feature.TERMS in dice.features else 1
        terms = [_random_term(dice, names) for _ in range(dice.number(1, most))]
        affinity[REQUIRED] = {"nodeSelectorTerms": terms}
    if dice.has(Feature.NODE_WISHES):
        affinity[PREFERRED] = [
            {"weight": dice.number(1, 100), "preference": _random_term(dice, names)}
            for _ in range(dice.number(1, 2))
        ]
    return affinity


def random_tolerations(dice: Dice) -> list[JsonObject]:
    """Throw tolerations of the taints in use, exact or sweeping."""
    if not (dice.has(Feature.TAINTS, 0.7) or dice.has(Feature.SOFT_TAINTS, 0.4)):
        return []
    if dice.chance(0.15):
        return [{"operator": "Exists"}]
    return [_toleration(dice, each) for each in dice.some([*HARD_TAINTS, *SOFT_TAINTS], 1, 3)]


def _toleration(dice: Dice, taint: JsonObject) -> JsonObject:
    toleration = {"key": taint["key"]}
    if dice.chance(0.3):
        toleration["operator"] = "Exists"
    elif "value" in taint:
        toleration["value"] = taint["value"]
    if dice.chance(0.5):
        toleration["effect"] = taint["effect"]
    return toleration


def _random_term(dice: Dice, names: list[str]) -> JsonObject:
    if dice.chance(0.04):
        return {}
    if dice.chance(0.06):
        by_name = {
            "key": "metadata.name",
            "operator": dice.one(["In", "NotIn"]),
            "values": [dice.one(names)],
        }
        return {"matchFields": [by_name]}
    return {"matchExpressions": [_random_expression(dice) for _ in range(dice.one([1, 1, 2]))]}


def _random_expression(dice: Dice) -> JsonObject:
    if dice.has(Feature.BOUNDS, 0.7):
        bound = str(dice.one([0, 1, 2, 9]))
        return {"key": TIER, "operator": dice.one(["Gt", "Lt"]), "values": [bound]}
    key = GHOST if dice.chance(0.04) else dice.one(NODE_KEYS)
    operator = dice.one(_OPERATORS)
    if operator in {"In", "NotIn"}:
        return {"key": key, "operator": operator, "values": dice.some(VALUES[key], 1, 2)}
    return {"key": key, "operator": operator}
