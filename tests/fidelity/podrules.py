"""Random topology spread, affinity and anti-affinity of pods."""

from karpy.codec.fields import JsonObject
from tests.fidelity.noderules import PREFERRED, REQUIRED
from tests.fidelity.words import APPS, NAMESPACES, TOPOLOGY_KEYS
from tests.fuzz.dice import Dice, Feature

_LABEL_KEYS = ("track", "version", "absent")
_NAMESPACE_SELECTORS: tuple[JsonObject, ...] = (
    {},
    {"matchLabels": {"owner": "red"}},
    {"matchLabels": {"kind": "none"}},
    {"matchExpressions": [{"key": "owner", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "kind", "operator": "NotIn", "values": ["test"]}]},
)


def random_spreads(dice: Dice, app: str) -> list[JsonObject]:
    """Draw topology spread constraints, at most one of each kind per key."""
    spreads: list[JsonObject] = []
    if dice.has(Feature.SPREADS, 0.85):
        spreads += [_random_spread(dice, app) for _ in range(dice.one([1, 1, 2]))]
    if dice.has(Feature.SPREAD_WISHES):
        soft = _random_spread(dice, app)
        soft.pop("minDomains", None)
        spreads.append({**soft, "whenUnsatisfiable": "ScheduleAnyway"})
    return list(
        {(each["topologyKey"], each["whenUnsatisfiable"]): each for each in spreads}.values()
    )


def random_pod_affinity(dice: Dice, app: str) -> JsonObject:
    """Draw required and preferred affinity to other pods, or none."""
    return _random_side(dice, app, Feature.AFFINITY)


def random_pod_anti_affinity(dice: Dice, app: str) -> JsonObject:
    """Draw required and preferred anti-affinity to other pods, or none."""
    return _random_side(dice, app, Feature.ANTI_AFFINITY)


def _random_side(dice: Dice, app: str, feature: Feature) -> JsonObject:
    side: JsonObject = {}
    if dice.has(feature, 0.5):
        side[REQUIRED] = [_random_term(dice, app) for _ in range(dice.one([1, 1, 1, 2]))]
    if dice.has(Feature.POD_WISHES, 0.4):
        side[PREFERRED] = [
            {"weight": dice.number(1, 100), "podAffinityTerm": _random_term(dice, app)}
        ]
    return side


def _random_spread(dice: Dice, app: str) -> JsonObject:
    spread: JsonObject = {
        "topologyKey": dice.one(TOPOLOGY_KEYS),
        "maxSkew": dice.one([1, 1, 1, 2]),
        "whenUnsatisfiable": "DoNotSchedule",
    }
    selector = _random_selector(dice, app)
    if selector is not None:
        spread["labelSelector"] = selector
        if dice.has(Feature.LABEL_KEYS):
            spread["matchLabelKeys"] = dice.some(_LABEL_KEYS, 1, 2)
    if dice.has(Feature.SPREAD_DETAILS):
        spread["minDomains"] = dice.number(1, 5)
    if dice.has(Feature.SPREAD_DETAILS):
        spread["nodeAffinityPolicy"] = dice.one(["Honor", "Ignore", "Ignore"])
    if dice.has(Feature.SPREAD_DETAILS):
        spread["nodeTaintsPolicy"] = dice.one(["Honor", "Honor", "Ignore"])
    return spread


def _random_term(dice: Dice, app: str) -> JsonObject:
    term: JsonObject = {"topologyKey": dice.one(TOPOLOGY_KEYS)}
    selector = _random_selector(dice, app)
    if selector is not None:
        term["labelSelector"] = selector
        if dice.has(Feature.LABEL_KEYS, 0.4):
            term["matchLabelKeys"] = dice.some(_LABEL_KEYS, 1, 2)
        elif dice.has(Feature.LABEL_KEYS, 0.3):
            term["mismatchLabelKeys"] = dice.some(_LABEL_KEYS, 1, 2)
    if dice.has(Feature.NAMESPACES):
        term["namespaces"] = dice.some(list(NAMESPACES), 1, 2)
    if dice.has(Feature.NAMESPACES):
        term["namespaceSelector"] = dice.one(_NAMESPACE_SELECTORS)
    return term


def _random_selector(dice: Dice, app: str) -> JsonObject | None:
    """Draw a selector that often matches the pod itself; None selects no pod."""
    if dice.chance(0.03):
        return None
    if dice.chance(0.05):
        return {}
    if dice.chance(0.2):
        return {"matchExpressions": [_random_expression(dice, app)]}
    return {"matchLabels": {"app": app if dice.chance(0.8) else dice.one(APPS)}}


def _random_expression(dice: Dice, app: str) -> JsonObject:
    operator = dice.one(["In", "NotIn", "Exists", "DoesNotExist"])
    if operator in {"Exists", "DoesNotExist"}:
        return {"key": dice.one(["app", "shade"]), "operator": operator}
    return {"key": "app", "operator": operator, "values": [app, *dice.some(APPS, 0, 1)]}
