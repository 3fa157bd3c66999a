"""The scenarios: pending pods, and a NodePool for them."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject

NODE_CLASS: Final[JsonObject] = {
    "apiVersion": "karpenter.kwok.sh/v1alpha1",
    "kind": "KWOKNodeClass",
    "metadata": {"name": "default"},
}
NODE_POOL: Final[JsonObject] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "template": {
            "spec": {
                "expireAfter": "Never",
                "nodeClassRef": {
                    "group": "karpenter.kwok.sh",
                    "kind": "KWOKNodeClass",
                    "name": "default",
                },
                "requirements": [
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                    {
                        "key": "karpenter.sh/capacity-type",
                        "operator": "In",
                        "values": ["on-demand"],
                    },
                    {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["17"]},
                ],
            }
        },
        "disruption": {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": "10s",
            "budgets": [{"nodes": "100%"}],
        },
    },
}
SCALE_IN_PERCENT: Final = 70
"""The share of pods that a Deployment keeps in a scale-in."""
_KINDS: Final = 6
_DEPLOYMENTS: Final = 30
_ANTI_AFFINE_MAX: Final = 20
_ZONE: Final = "topology.kubernetes.io/zone"
_HOSTNAME: Final = "kubernetes.io/hostname"


class Scenario(Struct, frozen=True):
    """Deployments created at once, and what is measured."""

    name: str
    make: Callable[[int], list[JsonObject]]
    pods: int
    peak_share_max: float
    """The limit of Karpy's peak memory as a share of the peer's."""
    is_timed: bool = True
    """Whether time and price count, not memory alone."""
    is_scaled_in: bool = False
    """Whether the Deployments are scaled to 70 % once all pods run."""

    @property
    def deployments(self) -> list[JsonObject]:
        return self.make(self.pods)

    @property
    def replicas_left(self) -> dict[str, int]:
        """The replicas of each Deployment after the scale-in, by name."""
        return {
            each["metadata"]["name"]: each["spec"]["replicas"] * SCALE_IN_PERCENT // 100
            for each in self.deployments
        }


def basic(pods: int) -> list[JsonObject]:
    """Return two Deployments, one of small pods and one of large pods."""
    half = pods // 2
    return [
        deployment("small", half, cpu_milli=950, memory_mib=3900),
        deployment("large", pods - half, cpu_milli=3800, memory_mib=7500),
    ]


def mix(pods: int) -> list[JsonObject]:
    """
    Return thirty Deployments, a sixth of each kind.

    The kinds: small, large, spread over zones, spread over hosts, anti-affine (few), one zone only.
    """
    return [_mixed(number, pods // _DEPLOYMENTS) for number in range(_DEPLOYMENTS)]


def _mixed(number: int, replicas: int) -> JsonObject:
    cpu = 100 + 137 * (number * 7 % 13)
    memory = 128 + 211 * (number * 5 % 17)
    labels = {"matchLabels": {"app": f"mix-{number:02}"}}
    name = f"mix-{number:02}"
    match number % _KINDS:
        case 1:
            return deployment(name, replicas, cpu_milli=4 * cpu, memory_mib=3 * memory)
        case 2:
            rules = _spread(_ZONE, labels)
        case 3:
            rules = _spread(_HOSTNAME, labels)
        case 4:
            replicas = min(replicas, _ANTI_AFFINE_MAX)
            term = {"topologyKey": _HOSTNAME, "labelSelector": labels}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            rules = {"affinity": {"podAntiAffinity": required}}
        case 5:
            rules = {"nodeSelector": {_ZONE: "test-zone-a"}}
        case _:
            rules = {}
    return deployment(name, replicas, cpu_milli=cpu, memory_mib=memory, rules=rules)


def _spread(key: str, labels: JsonObject) -> JsonObject:
    spread = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": labels,
    }
    return {"topologySpreadConstraints": [spread]}


def deployment(
    name: str,
    replicas: int,
    *,
    cpu_milli: int,
    memory_mib: int,
    rules: Mapping[str, object] | None = None,
) -> JsonObject:
    """Return a Deployment whose pods have no termination grace period."""
    labels = {"app": name}
    requests = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}
    spec = {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}],
        **(rules or {}),
    }
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


SCENARIOS: Final = {
    each.name: each
    for each in (
        Scenario("basic-200", basic, 200, peak_share_max=0.8),
        Scenario("basic-1000", basic, 1000, peak_share_max=0.8, is_scaled_in=True),
        Scenario("mix-1000", mix, 1000, peak_share_max=0.8, is_scaled_in=True),
        Scenario("mix-3000", mix, 3000, peak_share_max=0.5, is_timed=False),
    )
}
USUAL: Final = ("basic-1000", "mix-1000", "mix-3000")
