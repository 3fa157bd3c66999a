"""Workloads with running nodes, pods on them, and pending pods."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from karpy.bench.catalogs import CATEGORY, CLOUD_WELL_KNOWN, CLOUD_ZONES, FAMILY, cloud_types
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
_MOSTLY: Final = range(45, 96)
"""The utilization of nodes in percent, drawn evenly."""
_PARTLY: Final = range(15, 66)
_FULL: Final = 100
_FULLY: Final = range(_FULL, _FULL + 1)
_ONE_FAMILY: Final = "m6a"
_DISRUPTION: Final[Json] = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
_CPU_MAX, _MEMORY_MAX = 2000, 8192
_RULES: Final = (("zone-spread", 10), ("host-averse", 5), ("one-zone", 5), ("plain", 80))


class _Service(Struct):
    """A Deployment, and the nodes and zones of its pods."""

    name: str
    rule: str
    zone: str
    template: PodTemplate
    requests: Mapping[str, int]
    zones: dict[str, int]
    last_node: str = ""
    replicas: int = 0

    def may_join(self, node: str, zone: str) -> bool:
        """Say whether the rule of the Deployment allows one more pod on a node."""
        match self.rule:
            case "zone-spread":
                return self.zones[zone] == min(self.zones.values())
            case "host-averse":
                return self.last_node != node
            case "one-zone":
                return self.zone == zone
        return True

    def join(self, node: str, zone: str, draws: Draws) -> Json:
        """Return one more pod, bound to a node."""
        self.zones[zone] += 1
        self.replicas += 1
        self.last_node = node
        return pod(self.template, f"{self.name}-{self.replicas:05d}", draws.uid(), node)


def mixed(draws: Draws, nodes: int, types: int | None) -> Json:
    """Make nodes at about 70 %, and ten pending pods per node, of old and new Deployments."""
    running = _Running(draws, nodes, types)
    running.fill(_MOSTLY)
    return running.written([*running.pods, *_pending(draws, running.services, nodes)])


def idle(draws: Draws, nodes: int, types: int | None) -> Json:
    """Make nodes at about 40 %, many of which can be consolidated."""
    running = _Running(draws, nodes, types)
    running.fill(_PARTLY)
    return running.written(running.pods, _DISRUPTION)


def full(draws: Draws, nodes: int, types: int | None) -> Json:
    """Make full nodes of one family: none can be deleted or replaced by a smaller one."""
    running = _Running(draws, nodes, types, family=_ONE_FAMILY)
    running.fill(_FULLY)
    return running.written(running.pods, _DISRUPTION)


class _Running:
    """Nodes, and the Deployments whose pods run on them."""

    def __init__(self, draws: Draws, nodes: int, types: int | None, family: str = "") -> None:
        """Take the number of nodes, and the only family that the NodePool allows, if any."""
        self._draws = draws
        self._count = nodes
        self._catalog = cloud_types(types)
        usual = [each for each in self._catalog if _is_usual(each)]
        own = [each for each in usual if each["name"].startswith(f"{family}.")] if family else usual
        self._family = family if own else ""
        self._usual = own or usual or self._catalog
        self.services = [_service(draws, number) for number in range(max(8, nodes * 3 // 2))]
        self._nodes: list[Json] = []
        self.pods: list[Json] = []

    def fill(self, percent: range) -> None:
        """Make the nodes, each filled to a drawn utilization."""
        draws = self._draws
        for number in range(self._count):
            machine, zone = draws.pick(self._usual), CLOUD_ZONES[number % len(CLOUD_ZONES)]
            name = f"node-{number:05d}"
            self._nodes.append(_node(name, machine["name"], zone))
            free = _free_space(machine)
            self.pods += _filling(draws, name, zone, free, self.services, percent)
            self.pods += _daemon_pods(draws, name)

    def written(self, pods: list[Json], disruption: Json | None = None) -> Json:
        """Return the workload with these pods added."""
        written = _pool(self._family)
        if disruption is not None:
            written["spec"]["disruption"] = disruption
        return {
            "wellKnownLabels": list(CLOUD_WELL_KNOWN),
            "instanceTypes": self._catalog,
            "nodePools": [written],
            "daemonSets": [daemon_set(name, template) for name, template in _daemons().items()],
            "nodes": self._nodes,
            "pods": pods,
        }


def _pool(family: str) -> Json:
    kinds = expression(FAMILY, "In", family) if family else expression(CATEGORY, "In", *"cmr")
    requirements = [
        kinds,
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
    """Return the resources of a node of this type that its DaemonSets leave free."""
    overhead = add(*(_amounts(part) for part in machine["overhead"].values()))
    taken = add(*(_requests(template) for template in _daemons().values()))
    return subtract(allocatable(_amounts(machine["capacity"]), overhead), taken)


def _amounts(written: Mapping[str, str]) -> dict[str, int]:
    return {name: parse_quantity(text, name) for name, text in written.items()}


def _filling(
    draws: Draws,
    node: str,
    zone: str,
    free: dict[str, int],
    services: Sequence[_Service],
    percent: range,
) -> list[Json]:
    """Bind pods until the node has the drawn utilization, or no pod that fits is found."""
    target = draws.between(percent.start, percent.stop - 1)
    size, misses = free, 0
    bound: list[Json] = []
    while misses < _MISSES_MAX and _percent_used(size, free) < target:
        # The smaller of two draws, so that some Deployments have many more pods than others.
        service = services[min(draws.below(len(services)), draws.below(len(services)))]
        if fits(service.requests, free) and service.may_join(node, zone):
            bound.append(service.join(node, zone, draws))
            free = subtract(free, service.requests)
            misses = 0
        else:
            misses += 1
    if target == _FULL:
        bound += _topping(draws, node, zone, free, services)
    return bound


def _topping(
    draws: Draws, node: str, zone: str, free: dict[str, int], services: Sequence[_Service]
) -> Iterator[Json]:
    """Bind pods of the smallest size while they fit."""
    least = min(
        (each for each in services if each.rule == "plain"),
        key=lambda each: (each.template.cpu_milli, each.template.memory_mib, each.name),
        default=None,
    )
    while least is not None and fits(least.requests, free):
        yield least.join(node, zone, draws)
        free = subtract(free, least.requests)


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


def _pending(draws: Draws, services: Sequence[_Service], nodes: int) -> list[Json]:
    count = nodes * PENDING_PER_NODE
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
