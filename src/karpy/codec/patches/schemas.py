"""How fields merge: which lists have keys, and which values are replaced as a whole."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from karpy.codec.fields import JsonObject
from karpy.model.kinds import Kind


class Schema(Struct, frozen=True, gc=False):
    """
    How a value merges.

    By default, objects merge field by field, and lists are replaced as a whole.
    """

    fields: Mapping[str, "Schema"] = {}
    values: "Schema | None" = None
    """How the values of a mapping with arbitrary keys merge."""
    item: "Schema | None" = None
    """How the items of a list merge."""
    keys: tuple[str, ...] = ()
    """The fields that identify an item of a list in a server-side apply."""
    key: str = ""
    """The field that identifies an item of a list in a strategic merge patch."""
    usual: Mapping[str, str] = {}
    """The defaults of keys that an item omits."""
    is_set: bool = False
    """A list in which each text occurs once."""
    is_merged_set: bool = False
    """A list that is a set in strategic merge patches, too."""
    is_atomic: bool = False
    """An object that a server-side apply replaces as a whole."""
    is_replaced: bool = False
    """An object that a strategic merge patch replaces as a whole."""
    drops_others: bool = False
    """`$retainKeys`: setting one field of it drops the others."""

    def field(self, name: str) -> "Schema":
        """Return how a field merges."""
        return self.fields.get(name) or self.values or PLAIN


PLAIN: Final = Schema()
WHOLE: Final = Schema(is_atomic=True)


def _keyed(key: str, item: Schema = PLAIN, *more: str, usual: Mapping[str, str] = {}) -> Schema:
    return Schema(item=item, keys=(key, *more), key=key, usual=usual)


def _conditions() -> Schema:
    return _keyed("type")


_TCP: Final = {"protocol": "TCP"}
_SET: Final = Schema(is_set=True)
_STATUS: Final = Schema({"conditions": _conditions()})
_METADATA: Final = Schema(
    {
        "finalizers": Schema(is_set=True, is_merged_set=True),
        "ownerReferences": _keyed("uid", WHOLE),
    }
)
_ENV: Final = _keyed(
    "name",
    Schema(
        {
            "valueFrom": Schema(
                {
                    "configMapKeyRef": WHOLE,
                    "fieldRef": WHOLE,
                    "fileKeyRef": WHOLE,
                    "resourceFieldRef": WHOLE,
                    "secretKeyRef": WHOLE,
                }
            )
        }
    ),
)
_CONTAINER: Final = Schema(
    {
        "env": _ENV,
        "ports": _keyed("containerPort", PLAIN, "protocol", usual=_TCP),
        "volumeDevices": _keyed("devicePath"),
        "volumeMounts": _keyed("mountPath"),
        "resources": Schema({"claims": Schema(item=PLAIN, keys=("name",))}),
    }
)
_VOLUME: Final = Schema(
    {
        name: Schema({field: WHOLE})
        for name, field in (
            ("csi", "nodePublishSecretRef"),
            ("cephfs", "secretRef"),
            ("flexVolume", "secretRef"),
            ("iscsi", "secretRef"),
            ("rbd", "secretRef"),
            ("scaleIO", "secretRef"),
            ("storageos", "secretRef"),
        )
    },
    drops_others=True,
)
_NODE_AFFINITY: Final = Schema(
    {"nodeAffinity": Schema({"requiredDuringSchedulingIgnoredDuringExecution": WHOLE})}
)
_POD_SPEC: Final = Schema(
    {
        "affinity": _NODE_AFFINITY,
        "containers": _keyed("name", _CONTAINER),
        "ephemeralContainers": _keyed("name", _CONTAINER),
        "hostAliases": _keyed("ip"),
        "imagePullSecrets": _keyed("name", WHOLE),
        "initContainers": _keyed("name", _CONTAINER),
        "nodeSelector": WHOLE,
        "resourceClaims": _keyed("name", Schema(drops_others=True)),
        "schedulingGates": _keyed("name"),
        "topologySpreadConstraints": _keyed(
            "topologyKey", Schema({"labelSelector": WHOLE}), "whenUnsatisfiable"
        ),
        "volumes": _keyed("name", _VOLUME),
    }
)
_TEMPLATE: Final = Schema({"metadata": _METADATA, "spec": _POD_SPEC})
_POD_STATUS: Final = Schema(
    {
        "conditions": _conditions(),
        "hostIPs": Schema(key="ip"),
        "podIPs": _keyed("ip"),
        "resourceClaimStatuses": _keyed("name"),
    }
)
_WORKLOAD: Final = Schema({"selector": WHOLE, "template": _TEMPLATE})
_DEPLOYMENT: Final = Schema(
    {
        "selector": WHOLE,
        "template": _TEMPLATE,
        "strategy": Schema(drops_others=True),
    }
)
_JOB: Final = Schema({"selector": WHOLE, "template": _TEMPLATE})
_CLAIM: Final = Schema(
    {
        "selector": WHOLE,
        "dataSource": WHOLE,
    }
)

_KINDS: Final[dict[tuple[str, str], tuple[Schema, Schema]]] = {
    ("", "Pod"): (_POD_SPEC, _POD_STATUS),
    ("", "Node"): (
        Schema({"podCIDRs": Schema(is_set=True, is_merged_set=True)}),
        Schema({"conditions": _conditions(), "addresses": _keyed("type")}),
    ),
    ("", "Namespace"): (PLAIN, _STATUS),
    ("", "Service"): (
        Schema({"ports": _keyed("port", PLAIN, "protocol", usual=_TCP), "selector": WHOLE}),
        _STATUS,
    ),
    ("", "ReplicationController"): (_WORKLOAD, _STATUS),
    ("", "PersistentVolume"): (PLAIN, PLAIN),
    ("", "PersistentVolumeClaim"): (_CLAIM, _STATUS),
    ("apps", "Deployment"): (_DEPLOYMENT, _STATUS),
    ("apps", "ReplicaSet"): (_WORKLOAD, _STATUS),
    ("apps", "StatefulSet"): (_WORKLOAD, _STATUS),
    ("apps", "DaemonSet"): (_WORKLOAD, _STATUS),
    ("batch", "Job"): (_JOB, Schema({"conditions": Schema(key="type")})),
    ("batch", "CronJob"): (
        Schema({"jobTemplate": Schema({"metadata": _METADATA, "spec": _JOB})}),
        PLAIN,
    ),
    ("policy", "PodDisruptionBudget"): (
        Schema({"selector": Schema(is_atomic=True, is_replaced=True)}),
        _STATUS,
    ),
    ("storage.k8s.io", "CSINode"): (Schema({"drivers": _keyed("name")}), PLAIN),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        PLAIN,
        Schema({"conditions": Schema(item=PLAIN, keys=("type",))}),
    ),
}
_OTHERS: Final[dict[tuple[str, str], dict[str, Schema]]] = {
    ("", "ServiceAccount"): {
        "secrets": _keyed("name", WHOLE),
        "imagePullSecrets": Schema(item=WHOLE),
    },
    ("", "PodTemplate"): {"template": _TEMPLATE},
    ("node.k8s.io", "RuntimeClass"): {"scheduling": Schema({"nodeSelector": WHOLE})},
    ("", "Event"): {"involvedObject": WHOLE, "related": WHOLE},
    ("events.k8s.io", "Event"): {"regarding": WHOLE, "related": WHOLE},
}


@lru_cache(maxsize=256)
def schema_of(kind: Kind) -> Schema:
    """Return how objects of a built-in kind merge."""
    name = (kind.group, kind.name)
    spec, status = _KINDS.get(name, (PLAIN, PLAIN))
    return Schema({"metadata": _METADATA, "spec": spec, "status": status, **_OTHERS.get(name, {})})


def schema_of_custom(openapi: JsonObject | None) -> Schema:
    """Return how objects of a CustomResourceDefinition merge, from the schema of a version."""
    body = _from_openapi(openapi or {})
    return Schema({**body.fields, "metadata": _METADATA}, values=body.values)


def _from_openapi(node: JsonObject) -> Schema:
    properties = node.get("properties") or {}
    fields = {name: _from_openapi(each) for name, each in properties.items()}
    values = node.get("additionalProperties")
    items = node.get("items")
    keys = tuple(node.get("x-kubernetes-list-map-keys") or ())
    if node.get("x-kubernetes-list-type") != "map":
        keys = ()
    usual = {}
    item = _from_openapi(items) if isinstance(items, dict) else None
    for key in keys:
        given = ((items or {}).get("properties") or {}).get(key) or {}
        if isinstance(given.get("default"), str):
            usual[key] = given["default"]
    return Schema(
        fields,
        values=_from_openapi(values) if isinstance(values, dict) else None,
        item=item,
        keys=keys,
        usual=usual,
        is_set=node.get("x-kubernetes-list-type") == "set",
        is_atomic=node.get("x-kubernetes-map-type") == "atomic",
    )
