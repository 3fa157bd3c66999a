"""The nodes of a karpbench workload: what their instance type and NodePool make of them."""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct

from karpy.codec.constraints import read_taints
from karpy.codec.fields import Fields
from karpy.model.constraints import Taint
from karpy.model.instances import Catalog, InstanceType, allocatable
from karpy.model.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    NODE_POOL,
    OS,
    REGISTERED,
    ZONE,
)
from karpy.model.nodes import Node
from karpy.model.pools import NodePool
from karpy.model.requirement import Requirement
from karpy.model.requirements import collect
from karpy.model.resources import NODES, Resources

_LINUX = "linux"
_make = itemgetter("instanceType", "nodePool", "zone", "capacityType")
AttachLimits = Mapping[str, Mapping[str, int | None]]


class _Mould(Struct, frozen=True, gc=False):
    """What nodes of one type, pool, zone and capacity type have in common."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    capacity: Resources
    allocatable: Resources
    is_managed: bool
    """Whether there is a NodePool."""


class NodeMaker:
    """Makes nodes; what nodes of one make share is computed once."""

    def __init__(
        self, pools: Iterable[NodePool], catalog: Catalog, limits: AttachLimits | None = None
    ) -> None:
        """Take what the nodes refer to, and the attach limits they publish."""
        self._pools = {pool.name: pool for pool in pools}
        self._types = {each.name: each for each in catalog.types}
        self._limits = limits or {}
        self._moulds: dict[tuple[str, str, str, str], _Mould] = {}

    def read(self, fields: Fields) -> Node:
        """Read one entry of `nodes`."""
        obj = fields.obj
        mould = self._mould_of(fields)
        name = fields.needed("name")
        labels = {**mould.labels, HOSTNAME: name}
        if "labels" in obj:
            labels |= fields.labels("labels")
        return Node(
            name=name,
            labels=labels,
            taints=read_taints(fields, "taints") if "taints" in obj else mould.taints,
            capacity=mould.capacity,
            allocatable=mould.allocatable,
            is_initialized=obj.get("initialized") is not False,
            is_deleting=obj.get("deletionTimestamp") is not None,
            claim=name if mould.is_managed else "",
            volume_limits=self._limits.get(name, {}) if self._limits else {},
        )

    def _mould_of(self, fields: Fields) -> _Mould:
        try:
            # Most nodes are like one that was read with care before.
            return self._moulds[_make(fields.obj)]
        except (KeyError, TypeError):
            make = (
                fields.needed("instanceType"),
                fields.text("nodePool"),
                fields.text("zone"),
                fields.text("capacityType"),
            )
            mould = self._moulds.get(make)
            if mould is None:
                mould = self._moulds[make] = self._mould(fields, make)
            return mould

    def _mould(self, fields: Fields, make: tuple[str, str, str, str]) -> _Mould:
        type_name, pool_name, zone, capacity_type = make
        kind = self._types.get(type_name)
        if kind is None:
            fields.fail("instanceType", f"is `{type_name}`, not on sale", "name a known type")
        pool = self._pools.get(pool_name)
        if pool is None and pool_name:
            fields.fail("nodePool", f"is `{pool_name}`, not there", "name a known pool")
        labels = {
            **_type_labels(kind, pool.requirements if pool else ()),
            **(_pool_labels(pool) if pool else {}),
            INSTANCE_TYPE: type_name,
        }
        labels |= {ZONE: zone} if zone else {}
        labels |= {CAPACITY_TYPE: capacity_type} if capacity_type else {}
        capacity, rest = _amounts(kind, zone, capacity_type)
        taints = pool.taints if pool else ()
        return _Mould(labels, taints, {**capacity, NODES: 1}, rest, is_managed=bool(pool_name))


def _type_labels(kind: InstanceType, wanted: Sequence[Requirement]) -> dict[str, str]:
    """Name what a machine of this type is; where it may run several systems, take Linux."""
    labels = {
        key: next(iter(each.values))
        for key, each in kind.requirements.items()
        if len(each.values) == 1 and not each.complement
    }
    system = kind.requirements.get(OS)
    if system is not None and OS not in labels:
        allowed = collect([system, *(each for each in wanted if each.key == OS)])[OS]
        labels[OS] = _LINUX if _LINUX in allowed else min(allowed.values or system.values)
    return labels


def _pool_labels(pool: NodePool) -> dict[str, str]:
    labels = {**pool.labels, NODE_POOL: pool.name, REGISTERED: "true", INITIALIZED: "true"}
    made_by = pool.node_class
    if made_by.group and made_by.kind and made_by.name:
        labels[f"{made_by.group}/{made_by.kind.lower()}"] = made_by.name
    return labels


def _amounts(kind: InstanceType, zone: str, capacity_type: str) -> tuple[Resources, Resources]:
    for offering in kind.offerings:
        if (offering.zone, offering.capacity_type) == (zone, capacity_type):
            capacity = {**kind.capacity, **offering.capacity_override}
            overhead = {**kind.overhead, **offering.overhead_override}
            return capacity, allocatable(capacity, overhead)
    return kind.capacity, kind.allocatable
