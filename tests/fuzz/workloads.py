"""Random workloads: the rules of their pods on nodes and on each other."""

from collections.abc import Sequence
from dataclasses import dataclass

from karpy.model.constraints import (
    AffinityTerm,
    LabelSelector,
    NodeTerm,
    SpreadConstraint,
    Toleration,
)
from karpy.model.labels import HOSTNAME, ZONE
from karpy.model.pods import HostPort
from karpy.model.requirements import Operator, Requirement
from tests.builders import affinity, exists, not_in, selecting, spread, term
from tests.builders.constraints import SpreadFields, TermFields
from tests.builders.pods import PodFields
from tests.fuzz.dice import Dice, Feature
from tests.fuzz.words import (
    DONGLE,
    GPU,
    HARD_TAINTS,
    NAMESPACES,
    SOFT_TAINTS,
    TOPOLOGY_KEYS,
    random_requirement,
)

APPS = ("web", "db", "cache", "batch")
_CPU = ("50m", "100m", "250m", "500m", "1", "1500m", "3", "7")
_MEMORY = ("64Mi", "256Mi", "1Gi", "3Gi", "8Gi")


@dataclass(frozen=True)
class Workload:
    """A number of equal pods, with their fields."""

    name: str
    replicas: int
    fields: PodFields


def random_workload(dice: Dice, number: int) -> Workload:
    """Draw a workload of one to nine pods."""
    app = dice.one(APPS)
    labels = {"app": app, "track": dice.one(["stable", "canary"])}
    fields: PodFields = {
        "namespace": dice.one(list(NAMESPACES)) if dice.chance(0.3) else "default",
        "labels": labels,
        "cpu": "60" if dice.chance(0.02) else dice.one(_CPU),
        "memory": dice.one(_MEMORY),
        "more": _random_devices(dice),
        "tolerations": random_tolerations(dice),
        "ports": random_ports(dice),
    }
    _add_node_rules(dice, fields)
    _add_pod_rules(dice, fields, app)
    return Workload(f"{app}-{number}", dice.one([1, 1, 2, 3, 4, 6, 9]), fields)


def _random_devices(dice: Dice) -> dict[str, str]:
    if dice.has(Feature.OVERLAYS, 0.3) or dice.has(Feature.OVERRIDES, 0.3):
        return {DONGLE: "1"}
    return {GPU: "1"} if dice.chance(0.08) else {}


def random_tolerations(dice: Dice) -> list[Toleration]:
    """Draw tolerations of the taints in use, exact or with the operator Exists."""
    if not (dice.has(Feature.TAINTS, 0.7) or dice.has(Feature.SOFT_TAINTS, 0.4)):
        return []
    if dice.chance(0.15):
        return [Toleration(operator="Exists")]
    some = [*HARD_TAINTS, *SOFT_TAINTS]
    result = [
        Toleration(each.key, "Equal", each.value, dice.one(["", each.effect]))
        for each in dice.some(some, 1, 3)
    ]
    if dice.chance(0.2):
        result.append(Toleration("level", dice.one(["Gt", "Lt"]), str(dice.number(3, 7))))
    return result


def random_ports(dice: Dice) -> list[HostPort]:
    """Draw host ports from a narrow range."""
    if not dice.has(Feature.PORTS):
        return []
    addresses = ("0.0.0.0", "0.0.0.0", "10.0.0.1", "10.0.0.2", "::")  # noqa: S104 - what pods say
    return [
        HostPort(8080 + dice.number(0, 1), dice.one(["TCP", "TCP", "UDP"]), dice.one(addresses))
        for _ in range(dice.number(1, 2))
    ]


# --- what pods ask of nodes ------------------------------------------------------------------


def _add_node_rules(dice: Dice, fields: PodFields) -> None:
    if dice.has(Feature.SELECTORS):
        fields["selector"] = _expressions(dice, 1, 2)
    if dice.has(Feature.SELECTORS, 0.3) or dice.has(Feature.TERMS):
        most = 3 if Feature.TERMS in dice.features else 1
        fields["terms"] = [_node_term(dice) for _ in range(dice.number(1, most))]
    if dice.has(Feature.NODE_WISHES):
        fields["prefers"] = [
            (dice.number(1, 3), _wished_term(dice)) for _ in range(dice.number(1, 3))
        ]


def _node_term(dice: Dice) -> NodeTerm:
    return term(*_expressions(dice, 1, 2))


def _wished_term(dice: Dice) -> NodeTerm:
    if dice.chance(0.05):
        return term()
    if dice.chance(0.05):
        return term(not_in(HOSTNAME, "node-1") if dice.chance(0.5) else exists(HOSTNAME))
    return _node_term(dice)


def _expressions(dice: Dice, least: int, most: int) -> list[Requirement]:
    return [random_requirement(dice) for _ in range(dice.number(least, most))]


# --- what pods ask of each other -------------------------------------------------------------


def _add_pod_rules(dice: Dice, fields: PodFields, app: str) -> None:
    if dice.has(Feature.SPREADS, 0.7):
        fields["spreads"] = [_random_spread(dice, app) for _ in range(dice.number(1, 2))]
    if dice.has(Feature.SPREAD_WISHES):
        soft = [_random_spread(dice, app, soft=True) for _ in range(dice.number(1, 3))]
        fields["spreads"] = [*soft, *fields.get("spreads", ())]
    # The API server accepts one hard and one soft spread per key.
    spreads = {(each.topology_key, each.is_soft): each for each in fields.get("spreads", ())}
    fields["spreads"] = list(spreads.values())
    if dice.has(Feature.AFFINITY, 0.4):
        fields["affinity"] = _random_terms(dice, app, 1)
    if dice.has(Feature.ANTI_AFFINITY, 0.4):
        fields["anti_affinity"] = _random_terms(dice, app, 2)
    if dice.has(Feature.POD_WISHES, 0.4):
        fields["prefers_near"] = _weighted(dice, _random_terms(dice, app, 2))
    if dice.has(Feature.POD_WISHES, 0.4):
        fields["prefers_away"] = _weighted(dice, _random_terms(dice, app, 2))


def _weighted(dice: Dice, terms: Sequence[AffinityTerm]) -> list[tuple[int, AffinityTerm]]:
    return [(dice.number(1, 3), each) for each in terms]


def _random_selector(dice: Dice, app: str) -> LabelSelector | None:
    if dice.chance(0.03):
        return None
    if dice.chance(0.05):
        return selecting()
    if dice.chance(0.15):
        operator = dice.one([Operator.NOT_IN, Operator.EXISTS])
        expression = not_in("app", app) if operator is Operator.NOT_IN else exists("app")
        return selecting({}, expression)
    other = app if dice.chance(0.7) else dice.one(APPS)
    return selecting({"app": other, **({"track": "stable"} if dice.chance(0.15) else {})})


def _random_spread(dice: Dice, app: str, *, soft: bool = False) -> SpreadConstraint:
    fields: SpreadFields = {"soft": soft}
    if dice.has(Feature.SPREAD_DETAILS):
        fields["max_skew"] = dice.one([1, 1, 2, 3])
        fields["min_domains"] = dice.one([None, None, 1, 2, 3, 5])
        fields["honors_affinity"] = dice.chance(0.7)
        fields["honors_taints"] = dice.chance(0.4)
    if dice.has(Feature.LABEL_KEYS):
        fields["match_label_keys"] = dice.some(["track", "absent"], 1)
    return spread(dice.one(TOPOLOGY_KEYS), _random_selector(dice, app), **fields)


def _random_terms(dice: Dice, app: str, most: int) -> list[AffinityTerm]:
    return [_random_term(dice, app) for _ in range(dice.number(1, most))]


def _random_term(dice: Dice, app: str) -> AffinityTerm:
    fields: TermFields = {}
    if dice.has(Feature.NAMESPACES):
        fields["namespaces"] = dice.some(list(NAMESPACES), 0, 2)
        if dice.chance(0.5):
            selectors = [selecting(), selecting({"owner": "red"}), selecting({"kind": "none"})]
            fields["namespace_selector"] = dice.one(selectors)
    if dice.has(Feature.LABEL_KEYS, 0.4):
        fields["match_label_keys"] = ["track"]
    elif dice.has(Feature.LABEL_KEYS, 0.2):
        fields["mismatch_label_keys"] = ["track"]
    return affinity(dice.one(TOPOLOGY_KEYS), _random_selector(dice, app), **fields)


def random_default_spreads(dice: Dice) -> list[SpreadConstraint]:
    """Draw default spread constraints: hard or soft, without selectors."""
    if not dice.has(Feature.DEFAULT_SPREADS, 0.9):
        return []
    keys = dice.some([ZONE, HOSTNAME], 1)
    return [spread(key, None, soft=dice.chance(0.5), max_skew=dice.number(1, 2)) for key in keys]
