"""A cluster that is running already, and pods that come on top."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from karpy.bench.catalogs import CATEGORY, CLOUD_WELL_KNOWN, CLOUD_ZONES, cloud_types
from karpy.bench.draws import Draws
from karpy.bench.objects import (
    CREATED,
    GPU,
    REQUIRED,
    Json,
    PodTemplate,
    daemon_set,
    daemon_uid,
    expression,
    pod,
    pool,
    spread,
    term,
)
from karpy.bench.realistic import daemons, drawn_size
from karpy.model.instances import allocatable
from karpy.model.labels import ARCH, CAPACITY_TYPE, HOSTNAME, ON_DEMAND, OS, ZONE
from karpy.model.resources import CPU, MEMORY, PODS, add, fits, parse_quantity, subtract

PENDING_PER_NODE: Final = 10
_POOL: Final = "default"
_SIZES: Final = ("xlarge", "2xlarge", "4xlarge")
_MISSES_MAX: Final = 40
_OLD_PERCENT: Final = 60
_CPU_MAX, _MEMORY_MAX = 2000, 8192
_RULES: Final = (("zone-spread", 10), ("host-averse", 5), ("one-zone", 5), ("plain", 80))


class _Service(Struct):
    """A deployment and where its pods are so far."""

    name: str
    rule: str
    zone: str
    template: PodTemplate
    requests: Mapping[str, int]
    zones: dict[str, int]
    last_node: str = ""
    replicas: int = 0

    def may_join(self, node: str, zone: str) -> bool:
        """Say whether one more pod there keeps the rule."""
        match self.rule:
            case "zone-spread":
                return self.zones[zone] == min(self.zones.values())
            case "host-averse":
                return self.last_node != node
            case "one-zone":
                return self.zone == zone
        return True

    def join(self, node: str, zone: str, draws: Draws) -> Json:
        """Bind one more pod."""
        self.zones[zone] += 1
        self.replicas += 1
        self.last_node = node
        return pod(self.template, f"{self.name}-{self.replicas:05d}", draws.uid(), node)


def mixed(draws: Draws, nodes: int, types: int | None) -> Json:
    """Make nodes at about 70 %, and ten pending pods for each: more replicas, and new services."""
    catalog = cloud_types(types)
    services = [_service(draws, number) for number in range(max(8, nodes * 3 // 2))]
    usual = [each for each in catalog if _is_usual(each)] or catalog
    written, pods = [], []
    for number in range(nodes):
        machine, zone = draws.pick(usual), CLOUD_ZONES[number % len(CLOUD_ZONES)]
        name = f"node-{number:05d}"
        written.append(_node(name, machine["name"], zone))
        pods += _filling(draws, name, zone, _free_space(machine), services)
        pods += _daemon_pods(draws, name)
    pods += _pending(draws, services, nodes * PENDING_PER_NODE)
    return {
        "wellKnownLabels": list(CLOUD_WELL_KNOWN),
        "instanceTypes": catalog,
        "nodePools": [_pool()],
        "daemonSets": [daemon_set(name, template) for name, template in _daemons().items()],
        "nodes": written,
        "pods": pods,
    }


def _pool() -> Json:
    requirements = [
        expression(CATEGORY, "In", "c", "m", "r"),
        expression(ARCH, "In", "amd64"),
        expression(OS, "In", "linux"),
        expression(CAPACITY_TYPE, "In", ON_DEMAND),
    ]
    return pool(_POOL, requirements)


def _is_usual(machine: Json) -> bool:
    family, _, size = machine["name"].partition(".")
    has_gpu = GPU in machine["capacity"]
    return size in _SIZES and family[0] in "cmr" and family[2] in "ia" and not has_gpu


def _node(name: str, machine: str, zone: str) -> Json:
    return {
        "name": name,
        "nodePool": _POOL,
        "instanceType": machine,
        "zone": zone,
        "capacityType": ON_DEMAND,
        "created": CREATED,
    }


def _service(draws: Draws, number: int) -> _Service:
    name = f"s{number:05d}"
    labels = {"app": name}
    rule, zone = draws.weighted(_RULES), draws.pick(CLOUD_ZONES)
    rules: dict[str, Json] = {
        "zone-spread": {"topologySpreadConstraints": [spread(ZONE, labels)]},
        "host-averse": {"affinity": {"podAntiAffinity": {REQUIRED: [term(HOSTNAME, labels)]}}},
        "one-zone": {"nodeSelector": {ZONE: zone}},
        "plain": {},
    }
    template = _modest_template(draws, labels, rules[rule])
    return _Service(name, rule, zone, template, _requests(template), dict.fromkeys(CLOUD_ZONES, 0))


def _modest_template(draws: Draws, labels: Mapping[str, str], rules: Json) -> PodTemplate:
    cpu, memory = drawn_size(draws)
    return PodTemplate(labels, min(cpu, _CPU_MAX), min(memory, _MEMORY_MAX), rules=rules)


def _requests(template: PodTemplate) -> dict[str, int]:
    return {CPU: template.cpu_milli, MEMORY: template.memory_mib << 20, PODS: 1}


def _daemons() -> dict[str, PodTemplate]:
    return {name: template for name, template in daemons().items() if not template.rules}


def _free_space(machine: Json) -> dict[str, int]:
    """Say what a node of this type offers besides its daemons."""
    overhead = add(*(_amounts(part) for part in machine["overhead"].values()))
    taken = add(*(_requests(template) for template in _daemons().values()))
    return subtract(allocatable(_amounts(machine["capacity"]), overhead), taken)


def _amounts(written: Mapping[str, str]) -> dict[str, int]:
    return {name: parse_quantity(text, name) for name, text in written.items()}


def _filling(
    draws: Draws, node: str, zone: str, free: dict[str, int], services: Sequence[_Service]
) -> list[Json]:
    """Bind pods until the node is as full as drawn, or nothing more was found that fits."""
    target = draws.between(45, 95)
    size, misses = free, 0
    bound: list[Json] = []
    while misses < _MISSES_MAX and _percent_used(size, free) < target:
        # The smaller of two draws: some services have many more pods than others.
        service = services[min(draws.below(len(services)), draws.below(len(services)))]
        if fits(service.requests, free) and service.may_join(node, zone):
            bound.append(service.join(node, zone, draws))
            free = subtract(free, service.requests)
            misses = 0
        else:
            misses += 1
    return bound


def _percent_used(size: Mapping[str, int], free: Mapping[str, int]) -> int:
    return max(100 - 100 * free[name] // size[name] for name in (CPU, MEMORY, PODS))


def _daemon_pods(draws: Draws, node: str) -> list[Json]:
    pods = []
    for name, template in _daemons().items():
        written = pod(template, f"{name}-{node}", draws.uid(), node)
        written["spec"]["tolerations"] = [{"operator": "Exists"}]
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name}
        written["metadata"]["ownerReferences"] = [
            {**owner, "uid": daemon_uid(name), "controller": True}
        ]
        pods.append(written)
    return pods


def _pending(draws: Draws, services: Sequence[_Service], count: int) -> list[Json]:
    fresh = [
        _modest_template(draws, {"app": f"new-{number:04d}"}, {})
        for number in range(max(2, count // 40))
    ]
    pods = []
    for number in range(count):
        is_old = draws.happens(_OLD_PERCENT)
        template = draws.pick(services).template if is_old else draws.pick(fresh)
        pods.append(pod(template, f"pending-{number:05d}", draws.uid()))
    return pods
