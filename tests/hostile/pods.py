"""Pods that a tenant may create, and that make decisions expensive."""

from typing import Final

from karpy.codec.fields import JsonObject
from tests.scenarios.manifests import one_of, pod_spec

_MANY: Final = 200
FOREVER: Final = "100000000h"


def hostile_pods() -> list[JsonObject]:
    """Return one pod of each sort, named after its sort."""
    return [
        _pod("spreading", topologySpreadConstraints=[_spread(each) for each in range(_MANY)]),
        _pod("choosy", affinity={"nodeAffinity": _preferred()}),
        _pod("sociable", affinity={"podAffinity": _preferred_pods()}),
        _pod("unreadable", affinity={"nodeAffinity": _required("Gt", "abc")}),
        _pod("tolerant", tolerations=[{"key": f"k{each}"} for each in range(_MANY)]),
        _pod(
            "endless",
            terminationGracePeriodSeconds=2**63 - 1,
            annotations={"karpenter.sh/do-not-disrupt": FOREVER},
        ),
        _pod("giant", cpu="9E"),
    ]


def _pod(
    name: str, *, cpu: str = "100m", annotations: dict[str, str] | None = None, **spec: object
) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "default", "labels": {"app": "hostile"}}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": {**pod_spec(cpu), **spec}}


def _spread(number: int) -> JsonObject:
    return {
        "maxSkew": 1,
        "topologyKey": f"example.com/rack-{number}",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "hostile"}},
    }


def _preferred() -> JsonObject:
    terms = [
        {"weight": 1 + each % 100, "preference": {"matchExpressions": [one_of(f"k{each}", "v")]}}
        for each in range(_MANY)
    ]
    return {"preferredDuringSchedulingIgnoredDuringExecution": terms}


def _preferred_pods() -> JsonObject:
    terms = [
        {
            "weight": 1 + each % 100,
            "podAffinityTerm": {
                "topologyKey": "topology.kubernetes.io/zone",
                "labelSelector": {"matchLabels": {f"k{each}": "v"}},
            },
        }
        for each in range(_MANY)
    ]
    return {"preferredDuringSchedulingIgnoredDuringExecution": terms}


def _required(operator: str, *values: str) -> JsonObject:
    expression = {"key": "foo", "operator": operator, "values": list(values)}
    terms = [{"matchExpressions": [expression]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
