"""Families of pods on the linear catalog: Karpenter's own benchmarks, and hard inputs."""

from collections.abc import Callable
from typing import Final, TypeAlias

from karpy.bench.catalogs import (
    LINEAR_TYPES,
    LINEAR_WELL_KNOWN,
    LINEAR_ZONES,
    linear_name,
    linear_types,
)
from karpy.bench.draws import Draws
from karpy.bench.objects import (
    PREFERRED,
    REQUIRED,
    Json,
    PodTemplate,
    expression,
    pod,
    pool,
    preferred_nodes,
    preferred_pods,
    spread,
    term,
)
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, SPOT, ZONE

TemplateOf: TypeAlias = Callable[[Draws, int], PodTemplate]
"""The template of the n-th pod."""

CPUS_MILLI: Final = (100, 250, 500, 1000, 1500)
MEMORIES_MIB: Final = (100, 256, 512, 1024, 2048, 4096)
GROUPS: Final = ("a", "b", "c", "d", "e", "f", "g")
_PARTS: Final = 5
_NGINX: Final = {"app": "nginx"}
_PREFERRING_GROUPS: Final = 50
_UNSCHEDULABLE_GROUPS: Final = 20


def diverse(draws: Draws, pods: int, types: int | None) -> Json:
    """
    Make the pods of Karpenter's benchmark: five equal parts, one of them unconstrained.

    The other parts: zone spread and hostname spread (over a group drawn independently of the pod's
    own), zone affinity to the own group, and one Deployment with hostname anti-affinity.
    """
    part = pods // _PARTS
    makers = (_free, _zone_spread, _host_spread, _zone_affine, _host_averse)
    order = [maker for maker in makers for _ in range(part)]
    order += [_free] * (pods - len(order))
    return _on_linear_catalog(draws, [maker(draws) for maker in order], types)


def preference(draws: Draws, pods: int, types: int | None) -> Json:
    """Make Karpenter's preference benchmark: equal pods, three preferences, one unsatisfiable."""
    affinity: Json = {
        "nodeAffinity": {PREFERRED: [preferred_nodes(1, expression(ZONE, "In", LINEAR_ZONES[0]))]},
        "podAntiAffinity": {
            PREFERRED: [preferred_pods(10, ZONE, _NGINX), preferred_pods(1, HOSTNAME, _NGINX)]
        },
    }
    template = _drawn_template(draws, _NGINX, affinity=affinity)
    return _on_linear_catalog(draws, [template] * pods, types)


def adversarial(template_of: TemplateOf) -> Callable[[Draws, int, int | None], Json]:
    """Return a generator that makes the n-th pod from a template."""

    def make(draws: Draws, pods: int, types: int | None) -> Json:
        return _on_linear_catalog(
            draws, [template_of(draws, index) for index in range(pods)], types
        )

    return make


def distinct(draws: Draws, index: int) -> PodTemplate:
    """Return the template of a pod that equals no other."""
    labels = {"app": f"app-{index}", "number": str(index)}
    return PodTemplate(labels, draws.between(50, 4000), draws.between(64, 8192))


def host_averse(_: Draws, __: int) -> PodTemplate:
    """Return the template of one Deployment whose pods need a node each."""
    return PodTemplate(_NGINX, 500, 512, rules={"affinity": _away_from(HOSTNAME, _NGINX)})


def zone_spread(draws: Draws, pods: int, types: int | None) -> Json:
    """Make one Deployment per twenty pods, each spread evenly over the zones."""
    groups = max(3, pods // 20)
    templates = []
    for index in range(pods):
        labels = {"app": f"group-{index % groups}"}
        rules = {"topologySpreadConstraints": [spread(ZONE, labels)]}
        templates.append(_group_template(index % groups, labels, rules))
    return _on_linear_catalog(draws, templates, types)


def preferring(_: Draws, index: int) -> PodTemplate:
    """Return the template of a pod with six preferences; unsatisfiable ones are dropped first."""
    group = index % _PREFERRING_GROUPS
    labels = {"app": f"group-{group}"}
    absent = {"app": "nobody"}
    affinity: Json = {
        "podAffinity": {PREFERRED: [preferred_pods(50, ZONE, absent)]},
        "podAntiAffinity": {
            PREFERRED: [preferred_pods(40, ZONE, labels), preferred_pods(10, HOSTNAME, labels)]
        },
        "nodeAffinity": {
            PREFERRED: [
                preferred_nodes(30, expression(ZONE, "In", "nowhere")),
                preferred_nodes(20, expression(CAPACITY_TYPE, "In", SPOT)),
            ]
        },
    }
    soft = [spread(ZONE, labels, soft=True)]
    rules = {"affinity": affinity, "topologySpreadConstraints": soft}
    return _group_template(group, labels, rules)


def unschedulable(_: Draws, index: int) -> PodTemplate:
    """Return a template that is unschedulable for every other pod, by a label or by its size."""
    group = index % _UNSCHEDULABLE_GROUPS
    labels = {"app": f"group-{group}"}
    match index % 4:
        case 0:
            return PodTemplate(
                labels, 500, 512, rules={"nodeSelector": {"nobody.karpy.dev/has": "this"}}
            )
        case 2:
            return PodTemplate(labels, 1_000_000, 512)
        case _:
            return _group_template(group, labels, {})


def selectors(draws: Draws, pods: int, types: int | None) -> Json:
    """Pin each pod to one instance type, so that no two nodes are equal."""
    count = types or LINEAR_TYPES
    templates = []
    for index in range(pods):
        name = linear_name(index % count + 1)
        templates.append(
            PodTemplate({"app": name}, 100, 128, rules={"nodeSelector": {INSTANCE_TYPE: name}})
        )
    return _on_linear_catalog(draws, templates, types)


def _on_linear_catalog(draws: Draws, templates: list[PodTemplate], types: int | None) -> Json:
    return {
        "wellKnownLabels": list(LINEAR_WELL_KNOWN),
        "instanceTypes": linear_types(types or LINEAR_TYPES),
        "nodePools": [pool("default")],
        "pods": [
            pod(template, f"p{index:06d}", draws.uid()) for index, template in enumerate(templates)
        ],
    }


def _free(draws: Draws) -> PodTemplate:
    return _drawn_template(draws, {"group": draws.pick(GROUPS)})


def _zone_spread(draws: Draws) -> PodTemplate:
    return _spread_template(draws, ZONE)


def _host_spread(draws: Draws) -> PodTemplate:
    return _spread_template(draws, HOSTNAME)


def _spread_template(draws: Draws, key: str) -> PodTemplate:
    rule = spread(key, {"group": draws.pick(GROUPS)})
    return _drawn_template(draws, {"group": draws.pick(GROUPS)}, topologySpreadConstraints=[rule])


def _zone_affine(draws: Draws) -> PodTemplate:
    labels = {"kin": draws.pick(GROUPS)}
    return _drawn_template(
        draws, labels, affinity={"podAffinity": {REQUIRED: [term(ZONE, labels)]}}
    )


def _host_averse(draws: Draws) -> PodTemplate:
    return _drawn_template(draws, _NGINX, affinity=_away_from(HOSTNAME, _NGINX))


def _away_from(key: str, labels: dict[str, str]) -> Json:
    return {"podAntiAffinity": {REQUIRED: [term(key, labels)]}}


def _drawn_template(draws: Draws, labels: dict[str, str], **rules: object) -> PodTemplate:
    return PodTemplate(labels, draws.pick(CPUS_MILLI), draws.pick(MEMORIES_MIB), rules=rules)


def _group_template(group: int, labels: dict[str, str], rules: Json) -> PodTemplate:
    cpu = CPUS_MILLI[group % len(CPUS_MILLI)]
    memory = MEMORIES_MIB[group % len(MEMORIES_MIB)]
    return PodTemplate(labels, cpu, memory, rules=rules)
