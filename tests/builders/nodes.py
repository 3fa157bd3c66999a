"""Nodes and the NodePools they come from."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypedDict, Unpack

from karpy.model.conditions import REBOOTING, TRUE, Condition, Conditions
from karpy.model.constraints import Taint
from karpy.model.labels import (
    ARCH,
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_POOL,
    ON_DEMAND,
    OS,
    REGISTERED,
    ZONE,
)
from karpy.model.nodes import Node
from karpy.model.pools import NodePool
from karpy.model.records import ClaimRecord, Identity, NodeClassRef, NodeRecord
from karpy.model.requirements import Requirement
from karpy.model.resources import NODES, PODS
from tests.builders.pods import amounts

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
ZONE_A: Final = "zone-a"
ZONE_B: Final = "zone-b"
ZONE_C: Final = "zone-c"
ZONES: Final = (ZONE_A, ZONE_B, ZONE_C)
NODE_CLASS: Final = NodeClassRef("example.com", "TestNodeClass", "default")
NODE_CLASS_LABEL: Final = "example.com/testnodeclass"


class NodeFields(TypedDict, total=False):
    """What a node may say; `capacity` are further resources besides CPU, memory and pods."""

    pool: str
    type: str
    zone: str
    capacity_type: str
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    cpu: str
    memory: str
    pods: int
    capacity: Mapping[str, str]
    initialized: bool
    deleting: bool
    volume_limits: Mapping[str, int | None]


def node(name: str, **fields: Unpack[NodeFields]) -> Node:
    """Build an initialized on-demand node of 4 CPUs and 16Gi in zone-a, of the pool `default`."""
    initialized = fields.get("initialized", True)
    pool_name = fields.get("pool", "default")
    labels = {
        HOSTNAME: name,
        ZONE: fields.get("zone", ZONE_A),
        CAPACITY_TYPE: fields.get("capacity_type", ON_DEMAND),
        INSTANCE_TYPE: fields.get("type", "m.xlarge"),
        ARCH: "amd64",
        OS: "linux",
        **({NODE_POOL: pool_name, NODE_CLASS_LABEL: NODE_CLASS.name} if pool_name else {}),
        **({REGISTERED: "true", INITIALIZED: "true"} if pool_name and initialized else {}),
        **fields.get("labels", {}),
    }
    capacity = {
        **amounts(cpu=fields.get("cpu", "4"), memory=fields.get("memory", "16Gi")),
        PODS: fields.get("pods", 110),
        **amounts(**fields.get("capacity", {})),
    }
    return Node(
        name=name,
        labels={key: value for key, value in labels.items() if value},
        taints=tuple(fields.get("taints", ())),
        capacity={**capacity, NODES: 1},
        allocatable=capacity,
        is_initialized=initialized,
        is_deleting=fields.get("deleting", False),
        claim=f"{name}-claim" if pool_name else "",
        volume_limits=fields.get("volume_limits", {}),
    )


class RecordFields(TypedDict, total=False):
    """What a Node object may say."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    provider_id: str
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    is_deleting: bool


def kube_node(name: str, **fields: Unpack[RecordFields]) -> NodeRecord:
    """Build a Node object."""
    return NodeRecord(
        _identity(name, fields.get("labels", {}), is_deleting=fields.get("is_deleting", False)),
        provider_id=fields.get("provider_id", ""),
        taints=fields.get("taints", ()),
        capacity=fields.get("capacity", {}),
        allocatable=fields.get("allocatable", {}),
    )


class ClaimFields(RecordFields, total=False):
    """What a NodeClaim object may say."""

    startup_taints: tuple[Taint, ...]
    node_name: str
    is_rebooting: bool


def node_claim(name: str, **fields: Unpack[ClaimFields]) -> ClaimRecord:
    """Build a NodeClaim object."""
    rebooting = Condition(REBOOTING, TRUE, EPOCH)
    return ClaimRecord(
        _identity(name, fields.get("labels", {}), is_deleting=fields.get("is_deleting", False)),
        taints=fields.get("taints", ()),
        startup_taints=fields.get("startup_taints", ()),
        provider_id=fields.get("provider_id", ""),
        node_name=fields.get("node_name", ""),
        capacity=fields.get("capacity", {}),
        allocatable=fields.get("allocatable", {}),
        conditions=Conditions((rebooting,) if fields.get("is_rebooting", False) else ()),
    )


def _identity(name: str, labels: Mapping[str, str], *, is_deleting: bool) -> Identity:
    return Identity(name, labels=labels, deleted=EPOCH if is_deleting else None)


class PoolFields(TypedDict, total=False):
    """What a NodePool may say; limits are quantities, `nodes` among them."""

    labels: Mapping[str, str]
    requirements: Sequence[Requirement]
    taints: Sequence[Taint]
    startup_taints: Sequence[Taint]
    limits: Mapping[str, str]
    weight: int
    node_class: NodeClassRef
    static: bool
    ready: bool
    deleting: bool


def pool(name: str = "default", **fields: Unpack[PoolFields]) -> NodePool:
    """Build a ready, dynamic NodePool without requirements of its own."""
    return NodePool(
        name=name,
        labels=fields.get("labels", {}),
        requirements=tuple(fields.get("requirements", ())),
        taints=tuple(fields.get("taints", ())),
        startup_taints=tuple(fields.get("startup_taints", ())),
        node_class=fields.get("node_class", NODE_CLASS),
        limits=amounts(**fields.get("limits", {})),
        weight=fields.get("weight", 0),
        is_static=fields.get("static", False),
        is_ready=fields.get("ready", True),
        is_deleting=fields.get("deleting", False),
    )
