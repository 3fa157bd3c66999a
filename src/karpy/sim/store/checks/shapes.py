"""Type checks of fields, on which later checks rely."""

import re
from collections.abc import Mapping
from types import GenericAlias
from typing import Final, TypeAlias, cast

import msgspec

from karpy.codec.fields import JsonObject
from karpy.errors import BadRequest
from karpy.model.kinds import BUILT_IN, Kind
from karpy.sim.store.answers import unreadable
from karpy.sim.store.quantities import LIMIT_BOUNDS

Shape: TypeAlias = "type | Mapping[str, Shape] | list[Shape] | tuple[Shape]"
"""A type, the fields of an object, a list of one shape, or, as a tuple, a map of one shape."""

_TEXTS: Final[Shape] = (str,)
_SELECTOR: Final[Shape] = {
    "matchLabels": _TEXTS,
    "matchExpressions": [{"key": str, "operator": str, "values": [str]}],
}
_METADATA: Final[Shape] = {
    "name": str,
    "generateName": str,
    "namespace": str,
    "uid": str,
    "resourceVersion": str,
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "finalizers": [str],
    "ownerReferences": [{"apiVersion": str, "kind": str, "name": str, "uid": str}],
    "managedFields": [{}],
}
_CONTAINER: Final[Shape] = {
    "name": str,
    "image": str,
    "env": [{"name": str, "value": str, "valueFrom": {}}],
    "ports": [{"containerPort": int, "hostPort": int, "protocol": str}],
    "resources": {"limits": {}, "requests": {}},
    "volumeMounts": [{"name": str, "mountPath": str}],
    "livenessProbe": {},
    "readinessProbe": {},
    "startupProbe": {},
}
_POD_SPEC: Final[Shape] = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "volumes": [{"name": str}],
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str}],
    "nodeSelector": _TEXTS,
    "affinity": {"nodeAffinity": {}, "podAffinity": {}, "podAntiAffinity": {}},
    "topologySpreadConstraints": [{"topologyKey": str, "maxSkew": int, "labelSelector": _SELECTOR}],
    "schedulingGates": [{"name": str}],
    "overhead": {},
    "nodeName": str,
    "schedulerName": str,
    "restartPolicy": str,
    "serviceAccountName": str,
    "priorityClassName": str,
    "priority": int,
    "hostNetwork": bool,
    "terminationGracePeriodSeconds": int,
    "activeDeadlineSeconds": int,
}
_TEMPLATE: Final[Shape] = {"metadata": _METADATA, "spec": _POD_SPEC}
_CONDITIONS: Final[Mapping[str, Shape]] = {"conditions": [{"type": str, "status": str}]}
_WORKLOAD: Final[Shape] = {
    "replicas": int,
    "selector": _SELECTOR,
    "template": _TEMPLATE,
    "minReadySeconds": int,
    "revisionHistoryLimit": int,
    "progressDeadlineSeconds": int,
    "strategy": {"type": str, "rollingUpdate": {}},
    "updateStrategy": {},
}
_JOB: Final[Shape] = {
    "completions": int,
    "parallelism": int,
    "backoffLimit": int,
    "selector": _SELECTOR,
    "template": _TEMPLATE,
    "suspend": bool,
}
_SPECS: Final[dict[tuple[str, str], Shape]] = {
    ("", "Pod"): _POD_SPEC,
    ("", "Node"): {
        "taints": [{"key": str, "value": str, "effect": str}],
        "unschedulable": bool,
        "providerID": str,
    },
    ("", "Service"): {"selector": _TEXTS, "ports": [{"port": int}], "type": str, "clusterIP": str},
    ("", "Namespace"): {"finalizers": [str]},
    ("", "ReplicationController"): {"replicas": int, "selector": _TEXTS, "template": _TEMPLATE},
    ("", "PersistentVolumeClaim"): {
        "accessModes": [str],
        "resources": {"requests": {}},
        "storageClassName": str,
        "volumeName": str,
    },
    ("", "LimitRange"): {"limits": [{"type": str, **{bound: {} for bound in LIMIT_BOUNDS}}]},
    ("", "ResourceQuota"): {
        "hard": {},
        "scopes": [str],
        "scopeSelector": {
            "matchExpressions": [{"scopeName": str, "operator": str, "values": [str]}]
        },
    },
    ("", "PersistentVolume"): {"capacity": {}, "accessModes": [str]},
    ("apps", "Deployment"): _WORKLOAD,
    ("apps", "ReplicaSet"): _WORKLOAD,
    ("apps", "DaemonSet"): _WORKLOAD,
    ("apps", "StatefulSet"): {
        "replicas": int,
        "selector": _SELECTOR,
        "template": _TEMPLATE,
        "serviceName": str,
        "volumeClaimTemplates": [{"metadata": _METADATA, "spec": {}}],
        "updateStrategy": {},
    },
    ("batch", "Job"): _JOB,
    ("batch", "CronJob"): {"schedule": str, "jobTemplate": {"spec": _JOB}, "suspend": bool},
    ("policy", "PodDisruptionBudget"): {"selector": _SELECTOR, "unhealthyPodEvictionPolicy": str},
    ("coordination.k8s.io", "Lease"): {"holderIdentity": str, "leaseDurationSeconds": int},
    ("apiextensions.k8s.io", "CustomResourceDefinition"): {
        "group": str,
        "scope": str,
        "names": {"kind": str, "plural": str, "singular": str, "shortNames": [str]},
        "versions": [{"name": str, "served": bool, "storage": bool, "subresources": {}}],
    },
}
_STATUSES: Final[dict[tuple[str, str], Shape]] = {
    ("", "Node"): {**_CONDITIONS, "capacity": {}, "allocatable": {}, "addresses": [{}]},
    ("policy", "PodDisruptionBudget"): {
        **_CONDITIONS,
        "disruptionsAllowed": int,
        "currentHealthy": int,
        "desiredHealthy": int,
        "disruptedPods": _TEXTS,
    },
}


def _compiled(shape: Shape) -> type:
    """Return a msgspec type for a shape; null is allowed everywhere."""
    if isinstance(shape, type):
        return shape
    if isinstance(shape, list):
        return cast("type", GenericAlias(list, (_compiled(shape[0]) | None,)))
    if isinstance(shape, tuple):
        return cast("type", GenericAlias(dict, (str, _compiled(shape[0]) | None)))
    if not shape:
        return dict
    fields = [(name, _compiled(each) | None, None) for name, each in shape.items()]
    return msgspec.defstruct("Shape", fields)


class ShapeCheck:
    """Checks objects of one kind."""

    def __init__(self, kind: Kind) -> None:
        name = (kind.group, kind.name)
        self._kind = kind
        self._latest: JsonObject | None = None
        """The parts last found valid: pods of one workload share them."""
        self._parts = {"metadata": _compiled(_METADATA)}
        # The other fields of custom resources are checked by their schema.
        if kind in BUILT_IN:
            self._parts["spec"] = _compiled(_SPECS.get(name, {}))
            self._parts["status"] = _compiled(_STATUSES.get(name, _CONDITIONS))

    def check(self, obj: JsonObject, old: JsonObject | None = None) -> None:
        """Raise BadRequest if a field has the wrong type; parts shared with `old` are skipped."""
        if obj is self._latest:
            return
        for part, shape in self._parts.items():
            value = obj.get(part)
            if value is None or (old is not None and value is old.get(part)):
                continue
            try:
                msgspec.convert(value, shape)
            except msgspec.ValidationError as error:
                raise self._refusal(str(error), part) from error
        self._latest = obj

    def _refusal(self, problem: str, part: str) -> BadRequest:
        """Return the error of a typed server, with the value, the field and its type."""
        match = _PROBLEM.match(problem)
        assert match is not None
        found, expected = match["found"], match["expected"].removesuffix(" | null")
        path = part + (match["path"] or "")
        name = self._kind.name
        return unreadable(
            self._kind,
            f"json: cannot unmarshal {_NOUNS.get(found, found)} into Go struct field "
            f"{name}.{path} of type {_NOUNS.get(expected, expected)}",
        )


_PROBLEM: Final = re.compile(
    r"Expected `(?P<expected>[^`]+)`, got `(?P<found>[^`]+)`(?:.*`\$(?P<path>[^`]*)`)?"
)
_NOUNS: Final = {"str": "string", "int": "number", "float": "number"}
