"""The names of all fields of a pod's spec, so that misspelt ones are found."""

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


def unknown_in_pod(spec: Fields) -> Iterator[str]:
    """Name the fields of a pod's specification that Kubernetes does not have."""
    return _unknown(spec, _POD_SPEC)


def _unknown(fields: Fields, known: frozenset[str]) -> Iterator[str]:
    for name in fields.obj:
        if name not in known:
            yield f"{fields.path}.{name}"
