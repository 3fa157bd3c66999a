"""The RBAC rights that `karpy run` needs, equal to those in deploy/rbac.yaml."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_READ: Final = ("list", "watch")
_KARPENTER: Final = "karpenter.sh"
_BUFFERS: Final = "autoscaling.x-k8s.io"
_LEASES: Final = "coordination.k8s.io"
_EVERYWHERE: Final = ""
_OWN_NAMESPACE: Final = "*"


class Right(Struct, frozen=True, order=True):
    """The right to use one verb on one resource."""

    verb: str
    group: str
    resource: str
    """With subresource, if any: `pods/eviction`."""
    namespace: str = _EVERYWHERE
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f" {self.name}" if self.name else ""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {resource}{named}{where}"


class _Rule(Struct, frozen=True):
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    namespace: str = _EVERYWHERE
    """`*` is the namespace of the operator."""
    name: str = ""


_CORE: Final = (
    _Rule(
        "",
        (
            "limitranges",
            "namespaces",
            "nodes",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "replicationcontrollers",
            "services",
        ),
        _READ,
    ),
    _Rule("apps", ("daemonsets", "deployments", "replicasets", "statefulsets"), _READ),
    _Rule("node.k8s.io", ("runtimeclasses",), _READ),
    _Rule("policy", ("poddisruptionbudgets",), _READ),
    _Rule("storage.k8s.io", ("csinodes", "storageclasses"), _READ),
    _Rule(_KARPENTER, ("nodeclaims", "nodeoverlays", "nodepools"), _READ),
    _Rule(_BUFFERS, ("capacitybuffers",), _READ),
    _Rule(_KARPENTER, ("nodeclaims",), ("get", "create", "patch", "delete")),
    _Rule(_KARPENTER, ("nodepools",), ("patch",)),
    _Rule(_KARPENTER, ("nodeclaims/status", "nodeoverlays/status", "nodepools/status"), ("patch",)),
    _Rule(_BUFFERS, ("capacitybuffers/status",), ("patch",)),
    _Rule(_KARPENTER, ("nodeclaims/finalizers", "nodepools/finalizers"), ("update",)),
    _Rule("", ("nodes",), ("patch", "delete")),
    _Rule("", ("pods",), ("get", "delete")),
    _Rule("", ("pods/eviction",), ("create",)),
    _Rule("", ("pods/status",), ("patch",)),
    _Rule("storage.k8s.io", ("volumeattachments",), ("list",)),
    _Rule("", ("persistentvolumeclaims",), ("get",)),
    _Rule("events.k8s.io", ("events",), ("create",)),
    _Rule(_LEASES, ("leases",), ("create",), _OWN_NAMESPACE),
    _Rule(_LEASES, ("leases",), ("get", "update"), _OWN_NAMESPACE, "karpenter-leader-election"),
)
_OF_PROVIDER: Final = {
    "aws": (
        _Rule("karpenter.k8s.aws", ("ec2nodeclasses",), ("list", "watch", "patch")),
        _Rule("karpenter.k8s.aws", ("ec2nodeclasses/status",), ("patch",)),
        _Rule("", ("services",), ("get",), "kube-system", "kube-dns"),
    ),
    "kwok": (
        _Rule("karpenter.kwok.sh", ("kwoknodeclasses",), ("get", "list", "watch")),
        _Rule("", ("nodes",), ("get", "create")),
        _Rule("", ("nodes/status",), ("patch",)),
    ),
}


def rights_of(provider: str, namespace: str) -> tuple[Right, ...]:
    """Return all rights that the operator needs with a provider, if it runs in a namespace."""
    return tuple(sorted(set(_rights(provider, namespace))))


def _rights(provider: str, namespace: str) -> Iterator[Right]:
    for rule in (*_CORE, *_OF_PROVIDER.get(provider, ())):
        where = namespace if rule.namespace == _OWN_NAMESPACE else rule.namespace
        for resource in rule.resources:
            for verb in rule.verbs:
                yield Right(verb, rule.group, resource, where, rule.name)
