"""NodeClaims, Nodes and NodePools with the fields that controllers read and write."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from karpy.model.conditions import REBOOTING, Condition, Conditions
from karpy.model.constraints import Taint
from karpy.model.labels import NODE_POOL
from karpy.model.requirements import Requirement
from karpy.model.resources import Resources


class ClassState(Struct, frozen=True, gc=False):
    """The state of a node class, of whatever provider."""

    ready: Condition | None = None
    is_deleting: bool = False
    generation: int = 0
    version: str = ""
    """The resourceVersion: any change of the node class may be drift of its machines."""


class NodeClassRef(Struct, frozen=True, gc=False):
    """The nodeClassRef of a NodePool or NodeClaim."""

    group: str = ""
    kind: str = ""
    name: str = ""


class OwnerReference(Struct, frozen=True, gc=False):
    """An ownerReference."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks_deletion: bool = False


class Identity(Struct, frozen=True, gc=False):
    """The metadata of an object."""

    name: str
    uid: str = ""
    version: str = ""
    """The resourceVersion; a patch of a list that other writers change carries it as a guard."""
    generation: int = 0
    created: datetime | None = None
    deleted: datetime | None = None
    """The deletionTimestamp; None unless the object is being deleted."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owners: tuple[OwnerReference, ...] = ()

    @property
    def is_deleting(self) -> bool:
        return self.deleted is not None


class ClaimRecord(Struct, frozen=True, gc=False):
    """A NodeClaim in full."""

    meta: Identity
    node_class: NodeClassRef = NodeClassRef()
    requirements: tuple[Requirement, ...] = ()
    requests: Resources = {}
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: timedelta | None = None
    """None never expires."""
    grace_period: timedelta | None = None
    """The terminationGracePeriod: after this time a drain deletes pods by force; None is never."""
    provider_id: str = ""
    node_name: str = ""
    image_id: str = ""
    capacity: Resources = {}
    allocatable: Resources = {}
    last_pod_event: datetime | None = None
    conditions: Conditions = Conditions()

    @property
    def name(self) -> str:
        return self.meta.name

    @property
    def pool(self) -> str:
        """Name of the NodePool, or empty for a claim that stands alone."""
        return self.meta.labels.get(NODE_POOL, "")

    @property
    def is_rebooting(self) -> bool:
        return self.conditions.is_true(REBOOTING)


class NodeRecord(Struct, frozen=True, gc=False):
    """A Node in full."""

    meta: Identity
    provider_id: str = ""
    taints: tuple[Taint, ...] = ()
    is_unschedulable: bool = False
    capacity: Resources = {}
    allocatable: Resources = {}
    conditions: tuple[Condition, ...] = ()
    boot_id: str = ""

    @property
    def name(self) -> str:
        return self.meta.name

    @property
    def is_ready(self) -> bool:
        return any(each.type == "Ready" and each.is_true for each in self.conditions)


class PoolRecord(Struct, frozen=True, gc=False):
    """A NodePool as its controllers read and write it; they read the template from the object."""

    meta: Identity
    node_class: NodeClassRef = NodeClassRef()
    replicas: int | None = None
    limits: Resources = {}
    resources: Resources = {}
    """`status.resources`: the sum over its nodes."""
    nodes: int | None = None
    class_generation: int | None = None
    """The generation of the node class that the condition NodeRegistrationHealthy is about."""
    conditions: Conditions = Conditions()

    @property
    def name(self) -> str:
        return self.meta.name
