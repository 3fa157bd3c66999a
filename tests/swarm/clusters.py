"""Random small clusters: NodePools, workloads, budgets, storage."""

from dataclasses import dataclass, field

from karpy.codec.fields import JsonObject
from karpy.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ZONE
from tests.fuzz.dice import Dice, Feature
from tests.scenarios.manifests import (
    budget,
    daemon_set,
    deployment,
    one_of,
    pod_spec,
    pool,
    stateful_set,
    storage_class,
)

ZONES = ("test-zone-a", "test-zone-b", "test-zone-c")
TEAM = "example.com/team"
DEDICATED: JsonObject = {"key": "example.com/dedicated", "value": "yes", "effect": "NoSchedule"}
STORAGE = "zonal"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_CPU = ("250m", "500m", "1", "1500m", "3")
_MEMORY = ("", "256Mi", "1Gi", "4Gi")
_LIMITS = ("4", "8", "16", "32")


@dataclass
class Cluster:
    """The objects at the beginning of a story."""

    pools: list[JsonObject] = field(default_factory=list)
    deployments: list[JsonObject] = field(default_factory=list)
    stateful_sets: list[JsonObject] = field(default_factory=list)
    daemon_sets: list[JsonObject] = field(default_factory=list)
    budgets: list[JsonObject] = field(default_factory=list)
    storage_classes: list[JsonObject] = field(default_factory=list)
    buffers: list[JsonObject] = field(default_factory=list)


def random_cluster(dice: Dice) -> Cluster:
    """Draw a cluster."""
    cluster = Cluster(pools=[random_pool(dice, f"pool{n}") for n in range(dice.one([1, 1, 2, 3]))])
    for number in range(dice.number(1, 4)):
        name, replicas = f"app{number}", dice.number(0, 6)
        if dice.has(Feature.VOLUMES, 0.5):
            cluster.stateful_sets.append(_random_stateful_set(dice, name, min(replicas, 3)))
        else:
            made = deployment(name, replicas, pod=_random_pod(dice, name))
            _annotate(dice, made)
            cluster.deployments.append(made)
        if dice.chance(0.4):
            cluster.budgets.append(_random_budget(dice, name, replicas))
    if dice.has(Feature.DAEMONS, 0.9):
        cluster.daemon_sets.append(daemon_set("agent", _random_daemon(dice)))
    if cluster.deployments and dice.chance(0.15):
        cluster.buffers.append(_random_buffer(dice, cluster.deployments[0]["metadata"]["name"]))
    zones = dice.some(ZONES, 1) if dice.chance(0.5) else None
    cluster.storage_classes.append(storage_class(STORAGE, zones))
    return cluster


def random_pool(dice: Dice, name: str) -> JsonObject:
    """Draw a NodePool."""
    if dice.chance(0.1):
        return _random_static_pool(dice, name)
    requirements = []
    if dice.has(Feature.SELECTORS, 0.5):
        requirements.append(one_of(ZONE, *dice.some(ZONES, 1)))
    if dice.has(Feature.SELECTORS, 0.3):
        requirements.append(one_of(ARCH, dice.one(["amd64", "arm64"])))
    requirements.append(one_of(CAPACITY_TYPE, *dice.some(["spot", "on-demand"], 1)))
    template: JsonObject = {}
    if dice.has(Feature.TAINTS, 0.4):
        template["taints"] = [DEDICATED]
    if dice.chance(0.3):
        template["terminationGracePeriod"] = dice.one(["30s", "2m", "10m"])
    spec: JsonObject = {}
    if dice.has(Feature.LIMITS, 0.7) or dice.chance(0.1):
        spec["limits"] = random_limits(dice)
    if dice.has(Feature.WEIGHTS):
        spec["weight"] = dice.number(1, 3) * 10
    if dice.chance(0.8):
        spec["disruption"] = random_disruption(dice)
    labels = {TEAM: dice.one(["red", "blue"])} if dice.has(Feature.SELECTORS, 0.4) else {}
    return pool(name, requirements=requirements, template=template, labels=labels, **spec)


def random_disruption(dice: Dice) -> JsonObject:
    """Draw the `disruption` of a NodePool."""
    disruption: JsonObject = {"consolidateAfter": dice.one(["0s", "10s", "1m", "Never"])}
    if dice.chance(0.5):
        policies = ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"]
        disruption["consolidationPolicy"] = dice.one(policies)
    if dice.chance(0.6):
        disruption["budgets"] = [_random_disruption_budget(dice) for _ in range(dice.one([1, 2]))]
    return disruption


def _random_disruption_budget(dice: Dice) -> JsonObject:
    made: JsonObject = {"nodes": dice.one(["0", "1", "2", "30%", "50%", "100%"])}
    if dice.chance(0.3):
        made["reasons"] = dice.some(["Underutilized", "Empty", "Drifted"], 1)
    return made


def _random_static_pool(dice: Dice, name: str) -> JsonObject:
    spec: JsonObject = {"replicas": dice.number(0, 3)}
    if dice.chance(0.5):
        spec["disruption"] = {"budgets": [_random_disruption_budget(dice)]}
    if dice.chance(0.3):
        spec["limits"] = {"nodes": str(dice.number(1, 3))}
    return pool(name, requirements=[one_of(ZONE, *ZONES)], **spec)


def random_limits(dice: Dice) -> JsonObject:
    """Draw the limits of a NodePool."""
    limits = {"cpu": dice.one(_LIMITS), "nodes": str(dice.number(1, 4))}
    return {key: limits[key] for key in dice.some(sorted(limits), 1)}


def _random_pod(dice: Dice, app: str) -> JsonObject:
    spec = pod_spec(dice.one(_CPU), dice.one(_MEMORY))
    spec["terminationGracePeriodSeconds"] = dice.one([0, 5, 30])
    if dice.has(Feature.TAINTS):
        spec["tolerations"] = [{"key": DEDICATED["key"], "operator": "Exists"}]
    if dice.has(Feature.SELECTORS, 0.3):
        spec["nodeSelector"] = dice.one(
            [{ZONE: dice.one(ZONES)}, {TEAM: dice.one(["red", "blue"])}, {ARCH: "arm64"}]
        )
    if dice.has(Feature.SPREADS, 0.7):
        spec["topologySpreadConstraints"] = [_random_spread(dice, app)]
    affinity = {}
    if dice.has(Feature.AFFINITY, 0.4):
        affinity["podAffinity"] = {_REQUIRED: [_term(app, ZONE)]}
    if dice.has(Feature.ANTI_AFFINITY, 0.4):
        affinity["podAntiAffinity"] = {_REQUIRED: [_term(app, dice.one([HOSTNAME, ZONE]))]}
    if affinity:
        spec["affinity"] = affinity
    return spec


def _random_spread(dice: Dice, app: str) -> JsonObject:
    return {
        "topologyKey": dice.one([ZONE, ZONE, HOSTNAME]),
        "maxSkew": dice.one([1, 1, 2]),
        "whenUnsatisfiable": dice.one(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": app}},
    }


def _term(app: str, key: str) -> JsonObject:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def _random_daemon(dice: Dice) -> JsonObject:
    spec = pod_spec(dice.one(["100m", "500m"]))
    if dice.chance(0.7):
        spec["tolerations"] = [{"operator": "Exists"}]
    return spec


def _random_stateful_set(dice: Dice, name: str, replicas: int) -> JsonObject:
    made = stateful_set(name, replicas, STORAGE)
    made["spec"]["podManagementPolicy"] = dice.one(["Parallel", "OrderedReady"])
    if dice.has(Feature.TAINTS):
        tolerations = [{"key": DEDICATED["key"], "operator": "Exists"}]
        made["spec"]["template"]["spec"]["tolerations"] = tolerations
    return made


def _random_budget(dice: Dice, app: str, replicas: int) -> JsonObject:
    if dice.chance(0.5):
        return budget(app, maxUnavailable=dice.number(0, 2))
    return budget(app, minAvailable=dice.number(0, max(replicas - 1, 1)))


def _random_buffer(dice: Dice, app: str) -> JsonObject:
    """Return a CapacityBuffer for some pods of a Deployment."""
    like = {"apiGroup": "apps", "kind": "Deployment", "name": app}
    amount = dice.one([{"replicas": dice.number(1, 3)}, {"percentage": 50}])
    return {
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"scalableRef": like, **amount},
    }


def _annotate(dice: Dice, made: JsonObject) -> None:
    """Make some pods slow, or annotate them with do-not-disrupt."""
    notes = {}
    if dice.chance(0.2):
        notes["sim.karpy.dev/stop-seconds"] = dice.one(["3", "20"])
    if dice.chance(0.1):
        notes["karpenter.sh/do-not-disrupt"] = dice.one(["true", "1m"])
    if notes:
        made["spec"]["template"]["metadata"]["annotations"] = notes
