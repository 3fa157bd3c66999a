"""A realistic batch: a few giant Deployments and many small ones, on a large cloud."""

from typing import Any, Final

from karpy.bench.catalogs import (
    CATEGORY,
    CLOUD_WELL_KNOWN,
    CLOUD_ZONES,
    FAMILY,
    GENERATION,
    GPU_MAKER,
    cloud_types,
)
from karpy.bench.draws import Draws
from karpy.bench.objects import (
    GPU,
    PREFERRED,
    REQUIRED,
    Json,
    PodTemplate,
    daemon_set,
    expression,
    node_terms,
    pod,
    pool,
    preferred_pods,
    spread,
    term,
)
from karpy.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, OS, SPOT, ZONE

CPUS_MILLI: Final = (
    *((50, 8), (100, 20), (200, 13), (250, 13), (500, 18)),
    *((1000, 14), (2000, 8), (4000, 4), (8000, 2)),
)
MIB_PER_CORE: Final = ((512, 10), (1024, 20), (2048, 30), (4096, 25), (8192, 15))
TIERS: Final = ("web", "api", "batch", "cache")
NAMESPACES: Final = 12
_SHARE_MAX: Final = 8
_AVERSE_REPLICAS_MAX: Final = 60
_GPU_REPLICAS_MAX: Final = 8

_PLACES: Final = (("gpu", 2), ("data", 3), ("arm64", 30), ("amd64", 50), ("any", 15))
_HABITS: Final = (
    *(("zone-spread", 10), ("host-averse", 5), ("picky", 5), ("zone-affine", 3)),
    *(("soft-spread", 5), ("soft-averse", 5), ("plain", 67)),
)


def real(draws: Draws, pods: int, types: int | None) -> Json:
    """Make a realistic batch of pending pods in arrival order."""
    batch = []
    for number, replicas in enumerate(_replica_counts(draws, pods)):
        template, most = _deployment(draws, number)
        names = [
            f"{template.labels['app']}-{replica:05d}" for replica in range(min(replicas, most))
        ]
        batch += [pod(template, name, draws.uid()) for name in names]
    draws.shuffle(batch)
    return {
        "wellKnownLabels": list(CLOUD_WELL_KNOWN),
        "instanceTypes": cloud_types(types),
        "nodePools": pools(),
        "daemonSets": [daemon_set(name, template) for name, template in daemons().items()],
        "pods": batch,
    }


def drawn_size(draws: Draws) -> tuple[int, int]:
    """Draw a request: milli-CPU, and MiB in steps of 16."""
    cpu = draws.weighted(CPUS_MILLI)
    memory = max(32, cpu * draws.weighted(MIB_PER_CORE) // 1000)
    return cpu, -(-memory // 16) * 16


def pools() -> list[Json]:
    """Return the four NodePools: general machines of two architectures, data, GPUs."""
    linux = expression(OS, "In", "linux")
    general = [
        expression(CATEGORY, "In", "c", "m", "r"),
        expression(GENERATION, "Gt", "5"),
        expression(CAPACITY_TYPE, "In", SPOT, ON_DEMAND),
        linux,
    ]
    data = [
        expression(CATEGORY, "In", "i", "r", "x"),
        expression(ARCH, "In", "amd64", "arm64"),
        expression(CAPACITY_TYPE, "In", ON_DEMAND),
        linux,
    ]
    gpu = [expression(CATEGORY, "In", "g", "p"), linux]
    team = {"team": "shared"}
    return [
        pool("general-amd64", [*general, expression(ARCH, "In", "amd64")], weight=50, labels=team),
        pool("general-arm64", [*general, expression(ARCH, "In", "arm64")], weight=40, labels=team),
        pool("data", data, weight=20, labels={"team": "data"}, taint=("dedicated", "data")),
        pool("gpu", gpu, weight=10, labels={"team": "ml"}, taint=(GPU, "true")),
    ]


def daemons() -> dict[str, PodTemplate]:
    """Return the templates of the DaemonSets by name; one is for nodes with a GPU only."""
    sizes = {
        "network": (30, 72),
        "proxy": (90, 64),
        "log-agent": (110, 240),
        "node-metrics": (20, 40),
    }
    templates = {name: _daemon(name, cpu, memory, {}) for name, (cpu, memory) in sizes.items()}
    on_gpus = node_terms([expression(GPU_MAKER, "In", "nvidia")])
    templates["gpu-plugin"] = _daemon("gpu-plugin", 50, 128, {"affinity": on_gpus})
    return templates


def _daemon(name: str, cpu: int, memory: int, rules: Json) -> PodTemplate:
    return PodTemplate({"daemon": name}, cpu, memory, namespace="kube-system", rules=rules)


def _replica_counts(draws: Draws, pods: int) -> list[int]:
    counts = []
    most = max(1, pods // _SHARE_MAX)
    while pods > 0:
        counts.append(min(pods, draws.heavy_tail(most)))
        pods -= counts[-1]
    return counts


def _deployment(draws: Draws, number: int) -> tuple[PodTemplate, int]:
    """Draw a Deployment, and the upper limit of its replicas."""
    name = f"d{number:05d}"
    labels = {"app": name, "tier": draws.pick(TIERS)}
    cpu, memory = drawn_size(draws)
    place, habit = draws.weighted(_PLACES), draws.weighted(_HABITS)
    is_picky = habit == "picky" and place not in {"gpu", "data"}
    rules = _picky_rules(draws) if is_picky else _habit_rules(habit, {"app": name})
    node_selector = dict(rules.pop("nodeSelector", {}))
    gpus, most = 0, _AVERSE_REPLICAS_MAX if habit.endswith("averse") else 1 << 30
    match place:
        case "gpu":
            gpus, most = draws.weighted(((1, 3), (2, 1), (4, 1))), min(most, _GPU_REPLICAS_MAX)
            cpu, memory = max(cpu, 1000), max(memory, 4096)
            rules["tolerations"] = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
        case "data":
            owner = {"key": "dedicated", "value": "data", "effect": "NoSchedule"}
            rules["tolerations"] = [{**owner, "operator": "Equal"}]
            node_selector["team"] = "data"
        case "amd64" | "arm64":
            node_selector[ARCH] = place
    if node_selector:
        rules["nodeSelector"] = node_selector
    namespace = f"team-{number % NAMESPACES}"
    return PodTemplate(labels, cpu, memory, namespace=namespace, gpus=gpus, rules=rules), most


def _habit_rules(habit: str, own: dict[str, str]) -> dict[str, Any]:
    match habit:
        case "zone-spread":
            return {"topologySpreadConstraints": [spread(ZONE, own)]}
        case "host-averse":
            return {"affinity": {"podAntiAffinity": {REQUIRED: [term(HOSTNAME, own)]}}}
        case "zone-affine":
            return {"affinity": {"podAffinity": {REQUIRED: [term(ZONE, own)]}}}
        case "soft-spread":
            soft = [spread(ZONE, own, soft=True), spread(HOSTNAME, own, skew=3, soft=True)]
            return {"topologySpreadConstraints": soft}
        case "soft-averse":
            return {
                "affinity": {"podAntiAffinity": {PREFERRED: [preferred_pods(100, HOSTNAME, own)]}}
            }
    return {}


def _picky_rules(draws: Draws) -> dict[str, Any]:
    match draws.below(4):
        case 0:
            return {"nodeSelector": {CAPACITY_TYPE: ON_DEMAND}}
        case 1:
            return {"nodeSelector": {CAPACITY_TYPE: SPOT}}
        case 2:
            return {"nodeSelector": {ZONE: draws.pick(CLOUD_ZONES)}}
    families = [expression(FAMILY, "In", "m6i", "m7i", "m6g", "m7g")]
    return {"affinity": node_terms(families, [expression(CATEGORY, "In", "m")])}
