"""Families of pods on the linear catalog: Karpenter's own benchmarks, and inputs made to hurt."""

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
from karpy.bench.shapes import (
    PREFERRED,
    REQUIRED,
    Json,
    Shape,
    expression,
    node_wish,
    pod,
    pool,
    spread,
    term,
    wish,
)
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, SPOT, ZONE

ShapeOf: TypeAlias = Callable[[Draws, int], Shape]
"""The shape of the n-th pod."""

CPUS_MILLI: Final = (100, 250, 500, 1000, 1500)
MEMORIES_MIB: Final = (100, 256, 512, 1024, 2048, 4096)
GROUPS: Final = ("a", "b", "c", "d", "e", "f", "g")
_PARTS: Final = 5
_NGINX: Final = {"app": "nginx"}
_PREFERRING_GROUPS: Final = 50
_UNSCHEDULABLE_GROUPS: Final = 20


def diverse(draws: Draws, pods: int, types: int | None) -> Json:
    """
    Make Karpenter's benchmark mix: five equal parts, one of them unconstrained.

    The others: zone spread and hostname spread (over a group drawn apart from the pod's own), zone
    affinity to the own group, and one deployment with hostname anti-affinity.
    """
    part = pods // _PARTS
    makers = (_free, _zone_spread, _host_spread, _zone_affine, _host_averse)
    order = [maker for maker in makers for _ in range(part)]
    order += [_free] * (pods - len(order))
    return _on_linear_catalog(draws, [maker(draws) for maker in order], types)


def preference(draws: Draws, pods: int, types: int | None) -> Json:
    """Make Karpenter's preference benchmark: equal pods, two wishes that hold, one that cannot."""
    affinity: Json = {
        "nodeAffinity": {PREFERRED: [node_wish(1, expression(ZONE, "In", LINEAR_ZONES[0]))]},
        "podAntiAffinity": {PREFERRED: [wish(10, ZONE, _NGINX), wish(1, HOSTNAME, _NGINX)]},
    }
    shape = _drawn_shape(draws, _NGINX, affinity=affinity)
    return _on_linear_catalog(draws, [shape] * pods, types)


def adversarial(shape_of: ShapeOf) -> Callable[[Draws, int, int | None], Json]:
    """Make a family out of the shape of its n-th pod."""

    def make(draws: Draws, pods: int, types: int | None) -> Json:
        return _on_linear_catalog(draws, [shape_of(draws, index) for index in range(pods)], types)

    return make


def distinct(draws: Draws, index: int) -> Shape:
    """Make no two pods alike."""
    labels = {"app": f"app-{index}", "number": str(index)}
    return Shape(labels, draws.between(50, 4000), draws.between(64, 8192))


def host_averse(_: Draws, __: int) -> Shape:
    """Make one deployment that wants a node for each of its pods."""
    return Shape(_NGINX, 500, 512, rules={"affinity": _away_from(HOSTNAME, _NGINX)})


def zone_spread(draws: Draws, pods: int, types: int | None) -> Json:
    """Make one deployment per twenty pods, each spread evenly over the zones."""
    groups = max(3, pods // 20)
    shapes = []
    for index in range(pods):
        labels = {"app": f"group-{index % groups}"}
        rules = {"topologySpreadConstraints": [spread(ZONE, labels)]}
        shapes.append(_group_shape(index % groups, labels, rules))
    return _on_linear_catalog(draws, shapes, types)


def preferring(_: Draws, index: int) -> Shape:
    """Make pods with six wishes; the first ones to be dropped are those that cannot hold."""
    group = index % _PREFERRING_GROUPS
    labels = {"app": f"group-{group}"}
    nobody = {"app": "nobody"}
    affinity: Json = {
        "podAffinity": {PREFERRED: [wish(50, ZONE, nobody)]},
        "podAntiAffinity": {PREFERRED: [wish(40, ZONE, labels), wish(10, HOSTNAME, labels)]},
        "nodeAffinity": {
            PREFERRED: [
                node_wish(30, expression(ZONE, "In", "nowhere")),
                node_wish(20, expression(CAPACITY_TYPE, "In", SPOT)),
            ]
        },
    }
    soft = [spread(ZONE, labels, soft=True)]
    rules = {"affinity": affinity, "topologySpreadConstraints": soft}
    return _group_shape(group, labels, rules)


def unschedulable(_: Draws, index: int) -> Shape:
    """Make every other pod impossible: by a label nobody has, or by its size."""
    group = index % _UNSCHEDULABLE_GROUPS
    labels = {"app": f"group-{group}"}
    match index % 4:
        case 0:
            return Shape(labels, 500, 512, rules={"nodeSelector": {"nobody.karpy.dev/has": "this"}})
        case 2:
            return Shape(labels, 1_000_000, 512)
        case _:
            return _group_shape(group, labels, {})


def selectors(draws: Draws, pods: int, types: int | None) -> Json:
    """Pin each pod to one instance type, so that no two nodes are alike."""
    count = types or LINEAR_TYPES
    shapes = []
    for index in range(pods):
        name = linear_name(index % count + 1)
        shapes.append(Shape({"app": name}, 100, 128, rules={"nodeSelector": {INSTANCE_TYPE: name}}))
    return _on_linear_catalog(draws, shapes, types)


def _on_linear_catalog(draws: Draws, shapes: list[Shape], types: int | None) -> Json:
    return {
        "wellKnownLabels": list(LINEAR_WELL_KNOWN),
        "instanceTypes": linear_types(types or LINEAR_TYPES),
        "nodePools": [pool("default")],
        "pods": [pod(shape, f"p{index:06d}", draws.uid()) for index, shape in enumerate(shapes)],
    }


def _free(draws: Draws) -> Shape:
    return _drawn_shape(draws, {"group": draws.pick(GROUPS)})


def _zone_spread(draws: Draws) -> Shape:
    return _spread_shape(draws, ZONE)


def _host_spread(draws: Draws) -> Shape:
    return _spread_shape(draws, HOSTNAME)


def _spread_shape(draws: Draws, key: str) -> Shape:
    rule = spread(key, {"group": draws.pick(GROUPS)})
    return _drawn_shape(draws, {"group": draws.pick(GROUPS)}, topologySpreadConstraints=[rule])


def _zone_affine(draws: Draws) -> Shape:
    labels = {"kin": draws.pick(GROUPS)}
    return _drawn_shape(draws, labels, affinity={"podAffinity": {REQUIRED: [term(ZONE, labels)]}})


def _host_averse(draws: Draws) -> Shape:
    return _drawn_shape(draws, _NGINX, affinity=_away_from(HOSTNAME, _NGINX))


def _away_from(key: str, labels: dict[str, str]) -> Json:
    return {"podAntiAffinity": {REQUIRED: [term(key, labels)]}}


def _drawn_shape(draws: Draws, labels: dict[str, str], **rules: object) -> Shape:
    return Shape(labels, draws.pick(CPUS_MILLI), draws.pick(MEMORIES_MIB), rules=rules)


def _group_shape(group: int, labels: dict[str, str], rules: Json) -> Shape:
    cpu = CPUS_MILLI[group % len(CPUS_MILLI)]
    memory = MEMORIES_MIB[group % len(MEMORIES_MIB)]
    return Shape(labels, cpu, memory, rules=rules)
