"""The fields we know the names of, so that a slip of the pen is noticed."""

from collections.abc import Iterator
from typing import Final

from karpy.codec.fields import Fields

_POD_SPEC: Final = frozenset(
    {
        "activeDeadlineSeconds",
        "affinity",
        "automountServiceAccountToken",
        "containers",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "ephemeralContainers",
        "hostAliases",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostUsers",
        "hostname",
        "hostnameOverride",
        "imagePullSecrets",
        "initContainers",
        "nodeName",
        "nodeSelector",
        "os",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "readinessGates",
        "resourceClaims",
        "resources",
        "restartPolicy",
        "runtimeClassName",
        "schedulerName",
        "schedulingGates",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "subdomain",
        "schedulingGroup",
        "terminationGracePeriodSeconds",
        "tolerations",
        "topologySpreadConstraints",
        "volumes",
        "workloadRef",
    }
)
_POOL_SPEC: Final = frozenset({"disruption", "limits", "replicas", "template", "weight"})
_POOL_TEMPLATE: Final = frozenset(
    {
        "expireAfter",
        "nodeClassRef",
        "requirements",
        "startupTaints",
        "taints",
        "terminationGracePeriod",
    }
)
_OVERLAY_SPEC: Final = frozenset({"capacity", "price", "priceAdjustment", "requirements", "weight"})


def unknown_in_pod(spec: Fields) -> Iterator[str]:
    """Name the fields of a pod's specification that Kubernetes does not have."""
    return _unknown(spec, _POD_SPEC)


def unknown_in_pool(fields: Fields) -> Iterator[str]:
    """Name the fields of a NodePool that Karpenter does not have."""
    spec = fields.child("spec")
    yield from _unknown(spec, _POOL_SPEC)
    yield from _unknown(spec.child("template").child("spec"), _POOL_TEMPLATE)


def unknown_in_overlay(fields: Fields) -> Iterator[str]:
    """Name the fields of a NodeOverlay that Karpenter does not have."""
    return _unknown(fields.child("spec"), _OVERLAY_SPEC)


def _unknown(fields: Fields, known: frozenset[str]) -> Iterator[str]:
    for name in fields.obj:
        if name not in known:
            yield f"{fields.path}.{name}"
