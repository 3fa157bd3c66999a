"""Random small clusters: `random_snapshot(seed)`, and `raw_snapshot(seed)` for judges."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from msgspec.structs import replace

from karpy.core.scheduling.overlays import with_overlays
from karpy.model.nodes import Node
from karpy.model.pods import (
    DAEMON_SET,
    NODE,
    STATEFUL_SET,
    DaemonSet,
    Pod,
    PodController,
    PodDisruption,
    PodVolume,
    Service,
)
from karpy.model.settings import (
    MinValuesPolicy,
    Packing,
    PreferencePolicy,
    ReservedMode,
    Settings,
)
from karpy.model.snapshot import Snapshot, VainCause, VainLaunches
from tests.builders import NOON, controller, daemon, daemon_pod, owner, pod, service
from tests.builders.pods import PodFields
from tests.fuzz.clouds import random_catalog, random_overlays, random_pools
from tests.fuzz.dice import Dice, Feature
from tests.fuzz.nodes import random_nodes
from tests.fuzz.oddities import odd_pods
from tests.fuzz.volumes import Closet, wants_volumes
from tests.fuzz.words import NAMESPACES, random_requirement
from tests.fuzz.workloads import (
    APPS,
    Workload,
    random_default_spreads,
    random_ports,
    random_tolerations,
    random_workload,
)

REPLICA_SET = ("apps/v1", "ReplicaSet")
REPLICATION_CONTROLLER = ("v1", "ReplicationController")
_PODS_MAX = 40
_HELD = 1 << 32
_FORBIDDING = tuple(PodDisruption(do_not_disrupt=each) for each in ("true", "1h", "1ns", "soon"))


def random_snapshot(seed: int, packing: Packing = Packing.KARPENTER) -> Snapshot:
    """Draw a cluster; equal seeds give equal clusters, on every machine."""
    return with_overlays(raw_snapshot(seed, packing))


def raw_snapshot(seed: int, packing: Packing = Packing.KARPENTER) -> Snapshot:
    """Draw the same cluster with NodeOverlays not applied: judges apply them themselves."""
    dice = Dice(seed)
    settings = replace(_random_settings(dice), packing=packing)
    pools = random_pools(dice)
    is_reserving = Feature.RESERVATIONS in dice.features
    catalog = random_catalog(dice, pools, is_reserving=is_reserving)
    nodes = random_nodes(dice, pools, catalog)
    daemons = _random_daemons(dice)
    closet = Closet(dice)
    workloads = [random_workload(dice, number) for number in range(dice.number(1, 8))]
    controllers = [each for w in workloads if (each := _controller_of(dice, w)) is not None]
    pods = _random_pods(dice, workloads, nodes, closet, controllers)
    pods += _daemon_pods(dice, daemons, nodes)
    pods += odd_pods(dice)
    return Snapshot(
        now=NOON,
        pods=tuple(_held(Dice(seed + _HELD), pods, nodes)),
        nodes=tuple(nodes),
        pools=tuple(pools),
        daemons=tuple(daemons),
        catalog=catalog,
        overlays=tuple(random_overlays(dice)),
        storage=closet.storage(),
        namespaces=NAMESPACES,
        services=tuple(_random_services(dice)),
        controllers=tuple(controllers),
        settings=settings,
        vain_launches=tuple(_random_vain_launches(dice, pods)),
    )


def _held(dice: Dice, pods: Sequence[Pod], nodes: Sequence[Node]) -> Iterator[Pod]:
    """Make some pods of deleting nodes forbid their eviction."""
    deleting = {each.name for each in nodes if each.is_deleting}
    for each in pods:
        if each.node_name in deleting and dice.chance(0.2):
            yield replace(each, disruption=dice.one(_FORBIDDING))
        else:
            yield each


def _random_vain_launches(dice: Dice, pods: Sequence[Pod]) -> list[VainLaunches]:
    """Draw the launches in vain for pods, mostly none."""
    if not dice.chance(0.1):
        return []
    groups = sorted({pod.group for pod in dice.some(pods, 0, 3)})
    retry_at = [NOON + timedelta(seconds=dice.number(-5, 5)) for _ in groups]
    return [
        VainLaunches(group, dice.number(1, 9), NOON, when, dice.one(list(VainCause)))
        for group, when in zip(groups, retry_at, strict=True)
    ]


def _random_settings(dice: Dice) -> Settings:
    return Settings(
        preference_policy=(
            PreferencePolicy.IGNORE if dice.has(Feature.IGNORE, 0.8) else PreferencePolicy.RESPECT
        ),
        min_values_policy=dice.one(list(MinValuesPolicy)),
        reserved_mode=dice.one(list(ReservedMode)),
        node_overlay=dice.has(Feature.OVERLAYS, 0.95),
        default_spreads=tuple(random_default_spreads(dice)),
    )


def _random_daemons(dice: Dice) -> list[DaemonSet]:
    if Feature.DAEMONS not in dice.features:
        return []
    daemons = []
    for number in range(dice.number(1, 3)):
        fields: PodFields = {
            "cpu": dice.one([*["100m", "300m", "900m"] * 4, "7", "300"]),
            "memory": dice.one(["64Mi", "512Mi"]),
            "tolerations": random_tolerations(dice),
            "ports": random_ports(dice),
        }
        if dice.chance(0.5):
            fields["selector"] = [random_requirement(dice)]
        daemons.append(daemon(f"daemon-{number}", **fields))
    return daemons


# --- pods ------------------------------------------------------------------------------------


def _random_pods(
    dice: Dice,
    workloads: list[Workload],
    nodes: list[Node],
    closet: Closet,
    controllers: list[PodController],
) -> list[Pod]:
    known = {each.name: (each.api_version, each.kind) for each in controllers}
    pods: list[Pod] = []
    for workload in workloads:
        template = pod(workload.name, **workload.fields)
        if workload.name in known:
            template = replace(template, owners=(owner(known[workload.name], workload.name),))
        if dice.chance(0.1):
            template = replace(template, owners=(owner(STATEFUL_SET, "set"),))
        shares = dice.chance(0.2)
        for number in range(workload.replicas):
            name = f"{workload.name}-{number}"
            made = replace(
                template,
                name=name,
                uid=f"uid-{dice.number(0, 9)}-{name}",
                created=NOON - timedelta(minutes=dice.number(1, 3)),
            )
            pods.append(_bound_perhaps(dice, made, nodes))
        if wants_volumes(dice):
            pods[-workload.replicas :] = _with_volumes(
                pods[-workload.replicas :], closet, shares=shares
            )
    return pods[:_PODS_MAX]


def _bound_perhaps(dice: Dice, made: Pod, nodes: list[Node]) -> Pod:
    if not nodes or not dice.chance(0.35):
        return made
    phase = "Succeeded" if dice.chance(0.05) else "Running"
    return replace(
        made,
        node_name=dice.one(nodes).name,
        is_unschedulable=dice.chance(0.05),
        phase=phase,
        is_deleting=phase == "Running" and dice.chance(0.1),
    )


def _with_volumes(pods: list[Pod], closet: Closet, *, shares: bool) -> list[Pod]:
    namespace = pods[0].namespace
    shared = [closet.claim(namespace)] if shares else []
    result = []
    for each in pods:
        claims, ephemeral = (shared, []) if shares else closet.claims_for(namespace, each.name)
        volumes = [PodVolume(f"v-{i}", name) for i, name in enumerate(claims)]
        volumes += [PodVolume(name) for name in ephemeral]
        result.append(replace(each, rules=replace(each.rules, volumes=tuple(volumes))))
    return result


def _daemon_pods(dice: Dice, daemons: list[DaemonSet], nodes: list[Node]) -> list[Pod]:
    pods = []
    for node in nodes:
        for each in daemons:
            if dice.chance(0.5):
                running = daemon_pod(f"{each.name}-{node.name}", on=node.name)
                rules, requests = each.pod.rules, each.pod.requests
                pods.append(replace(running, rules=rules, requests=requests))
    if dice.chance(0.05):
        pods.append(pod("mirror", owners=[owner(NODE, "node-1")]))
        pods.append(pod("daemon-waiting", owners=[owner(DAEMON_SET, "daemon-0")]))
    return pods


# --- what default spreads are deduced from ---------------------------------------------------


def _controller_of(dice: Dice, workload: Workload) -> PodController | None:
    if not dice.has(Feature.DEFAULT_SPREADS, 0.7):
        return None
    labels = workload.fields.get("labels", {})
    selector = {key: labels[key] for key in dice.some(list(labels), 0)}
    return controller(
        dice.one([REPLICA_SET, REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER]),
        workload.name,
        selector,
        namespace=workload.fields.get("namespace", "default"),
    )


def _random_services(dice: Dice) -> list[Service]:
    if not dice.has(Feature.DEFAULT_SPREADS, 0.8):
        return []
    selectors: list[dict[str, str] | None] = [None, {}, {"track": "stable"}]
    selectors += [{"app": app} for app in APPS]
    return [
        service(f"service-{number}", selector, namespace=dice.one(list(NAMESPACES)))
        for number, selector in enumerate(dice.some(selectors, 1, 4))
    ]
