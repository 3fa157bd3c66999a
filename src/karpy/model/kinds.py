"""The kinds of Kubernetes objects that Karpy reads or writes."""

from typing import Final

from msgspec import Struct

_CORE: Final = "v1"


class Kind(Struct, frozen=True, gc=False, cache_hash=True):
    """A kind of object, and the path under which an API server serves it."""

    group: str
    """Empty for the core group."""
    version: str
    name: str
    """The `kind` of manifests: `NodePool`."""
    plural: str
    """The name in URLs: `nodepools`."""
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """The part of a URL that names group and version: `/apis/apps/v1`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @property
    def resource(self) -> str:
        """The name in messages: `nodepools.karpenter.sh`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def __str__(self) -> str:
        return self.resource


def _cluster(group: str, version: str, name: str, plural: str) -> Kind:
    return Kind(group, version, name, plural, is_namespaced=False)


POD: Final = Kind("", _CORE, "Pod", "pods")
NODE: Final = _cluster("", _CORE, "Node", "nodes")
NAMESPACE: Final = _cluster("", _CORE, "Namespace", "namespaces")
EVENT: Final = Kind("", _CORE, "Event", "events")
SERVICE: Final = Kind("", _CORE, "Service", "services")
CONFIG_MAP: Final = Kind("", _CORE, "ConfigMap", "configmaps")
SECRET: Final = Kind("", _CORE, "Secret", "secrets")
SERVICE_ACCOUNT: Final = Kind("", _CORE, "ServiceAccount", "serviceaccounts")
POD_TEMPLATE: Final = Kind("", _CORE, "PodTemplate", "podtemplates")
REPLICATION_CONTROLLER: Final = Kind("", _CORE, "ReplicationController", "replicationcontrollers")
PERSISTENT_VOLUME: Final = _cluster("", _CORE, "PersistentVolume", "persistentvolumes")
PERSISTENT_VOLUME_CLAIM: Final = Kind("", _CORE, "PersistentVolumeClaim", "persistentvolumeclaims")
LIMIT_RANGE: Final = Kind("", _CORE, "LimitRange", "limitranges")
RESOURCE_QUOTA: Final = Kind("", _CORE, "ResourceQuota", "resourcequotas")
DEPLOYMENT: Final = Kind("apps", _CORE, "Deployment", "deployments")
REPLICA_SET: Final = Kind("apps", _CORE, "ReplicaSet", "replicasets")
STATEFUL_SET: Final = Kind("apps", _CORE, "StatefulSet", "statefulsets")
DAEMON_SET: Final = Kind("apps", _CORE, "DaemonSet", "daemonsets")
CONTROLLER_REVISION: Final = Kind("apps", _CORE, "ControllerRevision", "controllerrevisions")
JOB: Final = Kind("batch", _CORE, "Job", "jobs")
CRON_JOB: Final = Kind("batch", _CORE, "CronJob", "cronjobs")
DISRUPTION_BUDGET: Final = Kind("policy", _CORE, "PodDisruptionBudget", "poddisruptionbudgets")
PRIORITY_CLASS: Final = _cluster("scheduling.k8s.io", _CORE, "PriorityClass", "priorityclasses")
RUNTIME_CLASS: Final = _cluster("node.k8s.io", _CORE, "RuntimeClass", "runtimeclasses")
STORAGE_CLASS: Final = _cluster("storage.k8s.io", _CORE, "StorageClass", "storageclasses")
CSI_NODE: Final = _cluster("storage.k8s.io", _CORE, "CSINode", "csinodes")
VOLUME_ATTACHMENT: Final = _cluster(
    "storage.k8s.io", _CORE, "VolumeAttachment", "volumeattachments"
)
LEASE: Final = Kind("coordination.k8s.io", _CORE, "Lease", "leases")
EVENTS_EVENT: Final = Kind("events.k8s.io", _CORE, "Event", "events")
CUSTOM_RESOURCE: Final = _cluster(
    "apiextensions.k8s.io", _CORE, "CustomResourceDefinition", "customresourcedefinitions"
)
NODE_POOL: Final = _cluster("karpenter.sh", _CORE, "NodePool", "nodepools")
NODE_CLAIM: Final = _cluster("karpenter.sh", _CORE, "NodeClaim", "nodeclaims")
NODE_OVERLAY: Final = _cluster("karpenter.sh", "v1alpha1", "NodeOverlay", "nodeoverlays")
KWOK_NODE_CLASS: Final = _cluster(
    "karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass", "kwoknodeclasses"
)
EC2_NODE_CLASS: Final = _cluster("karpenter.k8s.aws", _CORE, "EC2NodeClass", "ec2nodeclasses")
CAPACITY_BUFFER: Final = Kind(
    "autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer", "capacitybuffers"
)

BUILT_IN: Final = (
    POD,
    NODE,
    NAMESPACE,
    EVENT,
    SERVICE,
    CONFIG_MAP,
    SECRET,
    SERVICE_ACCOUNT,
    POD_TEMPLATE,
    REPLICATION_CONTROLLER,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    LIMIT_RANGE,
    RESOURCE_QUOTA,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    DAEMON_SET,
    CONTROLLER_REVISION,
    JOB,
    CRON_JOB,
    DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    RUNTIME_CLASS,
    STORAGE_CLASS,
    CSI_NODE,
    VOLUME_ATTACHMENT,
    LEASE,
    EVENTS_EVENT,
    CUSTOM_RESOURCE,
)
"""Kinds that every API server has."""

CUSTOM: Final = (
    NODE_POOL,
    NODE_CLAIM,
    NODE_OVERLAY,
    KWOK_NODE_CLASS,
    EC2_NODE_CLASS,
    CAPACITY_BUFFER,
)
"""Kinds that come with Karpenter and Karpy."""
