"""NodePools that use every field, and pods that need each of them."""

from collections.abc import Mapping, Sequence
from typing import Final

from karpy.codec.fields import JsonObject

NODE_CLASS: Final[JsonObject] = {
    "apiVersion": "karpenter.kwok.sh/v1alpha1",
    "kind": "KWOKNodeClass",
    "metadata": {"name": "default"},
}
POOL: Final = "karpenter.sh/nodepool"
STARTUP_TAINT: Final = "example.com/starting"
_ARCH: Final = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
_OS: Final = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}


def _pool(
    name: str, requirements: list[JsonObject], template: JsonObject, spec: JsonObject
) -> JsonObject:
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {
                **template,
                "spec": {
                    "nodeClassRef": reference,
                    "requirements": [_ARCH, _OS, *requirements],
                    **template.get("spec", {}),
                },
            },
            **spec,
        },
    }


RICH: Final = _pool(
    "rich",
    [
        {
            "key": "karpenter.kwok.sh/instance-family",
            "operator": "In",
            "values": ["c", "m"],
            "minValues": 2,
        },
        {
            "key": "karpenter.sh/capacity-type",
            "operator": "In",
            "values": ["spot", "on-demand"],
        },
        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["17"]},
        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Gt", "values": ["1"]},
        {"key": "example.com/tier", "operator": "In", "values": ["gold"]},
        {"key": "example.com/old", "operator": "DoesNotExist"},
    ],
    {
        "metadata": {
            "labels": {"example.com/team": "shop"},
            "annotations": {"example.com/owner": "ada"},
        },
        "spec": {
            "taints": [{"key": "example.com/dedicated", "value": "shop", "effect": "NoSchedule"}],
            "startupTaints": [{"key": STARTUP_TAINT, "effect": "NoSchedule"}],
            "expireAfter": "720h",
            "terminationGracePeriod": "1h",
        },
    },
    {
        "weight": 50,
        "limits": {"cpu": "1000", "memory": "4000Gi"},
        "disruption": {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": "Never",
            "budgets": [
                {"nodes": "20%", "reasons": ["Drifted", "Empty"]},
                {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"},
            ],
        },
    },
)
"""Taints of both kinds, labels, annotations, expiry, grace period, minValues, weight, limits."""

SPOT: Final = _pool(
    "spot",
    [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
        {
            "key": "topology.kubernetes.io/zone",
            "operator": "NotIn",
            "values": ["test-zone-d"],
        },
        {"key": "example.com/batch", "operator": "Exists"},
    ],
    {"spec": {"expireAfter": "Never"}},
    {
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": "15s",
            "budgets": [{"nodes": "100%"}],
        }
    },
)
"""Nodes that are deleted as soon as they are empty."""

STATIC: Final = _pool(
    "static",
    [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        # Karpenter's KWOK provider requires instance types in a NodeClaim, and claims of static
        # pools have only those of their pool.
        {
            "key": "node.kubernetes.io/instance-type",
            "operator": "In",
            "values": ["c-4x-amd64-linux", "s-4x-amd64-linux"],
        },
    ],
    {"spec": {"taints": [{"key": "example.com/static", "effect": "NoSchedule"}]}},
    {"replicas": 4, "limits": {"nodes": "8"}},
)
"""A static NodePool."""

PLAIN: Final = _pool(
    "plain",
    [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
    {},
    {"disruption": {"consolidateAfter": "Never", "consolidationPolicy": "WhenEmpty"}},
)
"""A common NodePool."""

POOLS: Final = (RICH, SPOT, STATIC, PLAIN)


def lonely(
    name: str,
    replicas: int,
    selector: Mapping[str, str],
    *,
    annotations: Mapping[str, str] | None = None,
    tolerations: Sequence[JsonObject] = (),
) -> JsonObject:
    """Return a Deployment whose pods each need a separate node of a NodePool."""
    labels, alone = {"app": name}, {"example.com/wants": "a-node-for-itself"}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": alone}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    resources = {"requests": {"cpu": "700m", "memory": "900Mi"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels | alone, "annotations": dict(annotations or {})},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "affinity": {"podAntiAffinity": required},
                    "nodeSelector": dict(selector),
                    "tolerations": list(tolerations),
                    "containers": [{"name": "main", "image": "none", "resources": resources}],
                },
            },
        },
    }


WORKLOADS: Final = (
    lonely(
        "shop",
        8,
        {POOL: "rich", "example.com/tier": "gold"},
        tolerations=[{"key": "example.com/dedicated", "operator": "Exists"}],
    ),
    lonely("batch", 8, {POOL: "spot", "example.com/batch": "night"}),
    lonely("web", 6, {POOL: "plain"}),
    lonely("bank", 4, {POOL: "plain"}, annotations={"karpenter.sh/do-not-disrupt": "true"}),
)
NODES: Final = 30
"""The number of nodes for all pods, including those of the static NodePool."""
RUNNING: Final = 25
"""The number of running pods while one node of `rich` keeps its startup taint."""
