"""Random small clusters as plain manifests: `random_cluster(seed)`."""

from dataclasses import dataclass

from karpy.codec.fields import JsonObject
from karpy.model.constraints import NO_EXECUTE
from tests.fidelity.closets import Closet
from tests.fidelity.nodes import random_limits, random_nodes
from tests.fidelity.workloads import Workload, random_workload
from tests.fuzz.dice import Dice, Feature

_THEMES = (
    (
        Feature.SPREADS,
        Feature.SPREAD_DETAILS,
        Feature.LABEL_KEYS,
        Feature.SPREAD_WISHES,
        Feature.TAINTS,
        Feature.SELECTORS,
    ),
    (
        Feature.AFFINITY,
        Feature.ANTI_AFFINITY,
        Feature.NAMESPACES,
        Feature.LABEL_KEYS,
        Feature.POD_WISHES,
    ),
    (
        Feature.SELECTORS,
        Feature.TERMS,
        Feature.BOUNDS,
        Feature.TAINTS,
        Feature.SOFT_TAINTS,
        Feature.NODE_WISHES,
    ),
    (Feature.PORTS, Feature.TAINTS, Feature.ANTI_AFFINITY),
    (Feature.VOLUMES, Feature.SPREADS, Feature.SELECTORS),
)
_THEME_WEIGHTS = (0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4)
"""The weights of the themes; low for volumes, which take kube-scheduler a second each."""
_PODS_MAX = 8


@dataclass(frozen=True)
class Cluster:
    """Ready nodes, running pods and pending pods."""

    seed: int
    features: tuple[str, ...]
    nodes: list[JsonObject]
    limits: list[JsonObject]
    """CSINodes."""
    volumes: list[JsonObject]
    claims: list[JsonObject]
    bound: list[JsonObject]
    ending: frozenset[str]
    """Names of bound pods that are deleting, with a long grace period."""
    pods: list[JsonObject]
    """Pending pods, in the order in which they are given to the scheduler."""
    samples: list[JsonObject]
    """One pod of each workload."""

    @property
    def has_volumes(self) -> bool:
        return bool(self.claims or self.volumes)


def random_cluster(seed: int) -> Cluster:
    """Draw a cluster; equal seeds give equal clusters, on every machine."""
    dice = Dice(seed)
    dice.features = _random_features(dice)
    nodes = random_nodes(dice, seed)
    names = [each["metadata"]["name"] for each in nodes]
    closet = Closet(dice, f"s{seed}")
    workloads = [random_workload(dice, f"s{seed}-w{n}", names) for n in range(dice.number(2, 3))]
    if dice.has(Feature.VOLUMES, 0.9):
        closet.stock_up()
    groups = [_random_pods(dice, each, closet) for each in workloads]
    bound = _random_bound(dice, workloads, nodes)
    pods = [pod for group in groups for pod in group][:_PODS_MAX]
    return Cluster(
        seed=seed,
        features=tuple(sorted(each.name for each in dice.features)),
        nodes=nodes,
        limits=random_limits(dice, nodes),
        volumes=closet.volumes,
        claims=closet.claims,
        bound=bound,
        ending=frozenset(each["metadata"]["name"] for each in bound if dice.chance(0.2)),
        pods=dice.some(pods, len(pods)),
        samples=[group[0] for group in groups],
    )


def _random_features(dice: Dice) -> frozenset[Feature]:
    """Draw a theme and a few features of other themes, so that related features meet often."""
    theme = _THEMES[dice.one(_THEME_WEIGHTS)]
    others = [
        feature
        for feature in dict.fromkeys(each for theme in _THEMES for each in theme)
        if feature is not Feature.VOLUMES and dice.chance(0.07)
    ]
    return frozenset([theme[0], *(each for each in theme if dice.chance(0.6)), *others])


def _random_pods(dice: Dice, workload: Workload, closet: Closet) -> list[JsonObject]:
    count = dice.one([1, 2, 3, 4, 5])
    if not dice.has(Feature.VOLUMES, 0.6):
        return [workload.pod(dice, number) for number in range(count)]
    if dice.chance(0.35):
        shared = closet.volumes_of_pod(workload.namespace, is_shared=True)
        return [workload.pod(dice, number, **shared) for number in range(count)]
    return [
        workload.pod(dice, number, **closet.volumes_of_pod(workload.namespace))
        for number in range(count)
    ]


def _random_bound(
    dice: Dice, workloads: list[Workload], nodes: list[JsonObject]
) -> list[JsonObject]:
    """Draw running pods, which need not satisfy their own rules."""
    bound = []
    for number in range(dice.one([0, 1, 2, 3, 5])):
        node = dice.one(nodes)
        pod = dice.one(workloads).pod(dice, f"b{number}", nodeName=node["metadata"]["name"])
        if any(taint["effect"] == NO_EXECUTE for taint in node["spec"].get("taints", ())):
            # Without the toleration the pod would be evicted during the test.
            pod["spec"]["tolerations"] = [{"operator": "Exists"}]
        bound.append(pod)
    return bound
