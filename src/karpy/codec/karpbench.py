"""Workload files of format karpbench/v1 (docs/benchmarks.md) to snapshots, by the usual readers."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias, TypeVar

from karpy.codec.clusters import name_namespaces
from karpy.codec.constraints import read_spreads, read_taints
from karpy.codec.crdfaults import custom_faults
from karpy.codec.crds import read_overlay, read_pool
from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.instances import InstanceReader
from karpy.codec.objects import (
    read_budget,
    read_controller,
    read_namespace,
    read_service,
)
from karpy.codec.pods import EPOCH, PodReader
from karpy.codec.storage import (
    gather_storage,
    read_attach_limits,
    read_claim,
    read_class,
    read_volume,
)
from karpy.codec.workloads import read_daemon_set
from karpy.errors import WorkloadInvalid
from karpy.model.conditions import READY, TRUE, Condition, Conditions
from karpy.model.instances import Catalog, InstanceType, allocatable
from karpy.model.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INITIALIZED,
    INSTANCE_TYPE,
    NAMESPACE_NAME,
    NODE_POOL,
    OS,
    REGISTERED,
    WELL_KNOWN,
    ZONE,
)
from karpy.model.nodes import Node, join_node
from karpy.model.pods import Pod, PodController
from karpy.model.pools import NodePool
from karpy.model.records import ClaimRecord, Identity, NodeRecord
from karpy.model.requirements import Requirement, collect
from karpy.model.resources import Resources
from karpy.model.settings import (
    MinValuesPolicy,
    Packing,
    PreferencePolicy,
    ReservedMode,
    Settings,
)
from karpy.model.snapshot import Snapshot
from karpy.model.storage import Storage

FORMAT: Final = "karpbench/v1"
_CUSTOM: Final = (
    ("nodePools", "karpenter.sh/v1", "NodePool"),
    ("nodeOverlays", "karpenter.sh/v1alpha1", "NodeOverlay"),
)
_NODE_CLASS: Final = {"group": "example.com", "kind": "NodeClass", "name": "default"}
_CONTROLLERS: Final = (
    ("replicaSets", "ReplicaSet"),
    ("statefulSets", "StatefulSet"),
    ("replicationControllers", "ReplicationController"),
)
AttachLimits: TypeAlias = Mapping[str, Mapping[str, int | None]]
"""Volumes that nodes can attach, by node and CSI driver."""
NO_LIMITS: Final[AttachLimits] = {}
_LINUX: Final = "linux"
_CONSOLIDATABLE: Final = "Consolidatable"

T = TypeVar("T")


def read_workload(obj: JsonObject, name: str = "workload") -> Snapshot:
    """Read a workload; every pod without a node counts as unschedulable for kube-scheduler."""
    try:
        return _read(Fields(obj))
    except FieldInvalid as error:
        raise WorkloadInvalid(path=name, problem=str(error)) from error


def workload_faults(obj: JsonObject) -> tuple[FieldInvalid, ...]:
    """List what an API server would refuse in the NodePools and NodeOverlays of a workload."""
    labels = obj.get("wellKnownLabels")
    own = (each for each in labels if isinstance(each, str)) if isinstance(labels, list) else ()
    well_known = WELL_KNOWN.union(own)
    found: list[FieldInvalid] = []
    for key, version, kind in _CUSTOM:
        objects = obj.get(key)
        for index, each in enumerate(objects if isinstance(objects, list) else ()):
            if isinstance(each, dict):
                whole = _whole({"apiVersion": version, "kind": kind, **each})
                faults = _faults(whole, (version, kind), well_known)
                found += [fault.within(f"{key}[{index}]") for fault in faults]
    return tuple(found)


def _faults(
    obj: JsonObject, known: tuple[str, str], well_known: frozenset[str]
) -> tuple[FieldInvalid, ...]:
    if (obj["apiVersion"], obj["kind"]) == known:
        return custom_faults(obj, well_known)
    what = f"is `{obj['apiVersion']}`, and {known[1]} has no such version"
    return (FieldInvalid("apiVersion", what, f"write `{known[0]}`"),)


def _whole(obj: JsonObject) -> JsonObject:
    """Fill in the fields of a NodePool that its definition requires and a workload may omit."""
    spec = obj.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    inner = template.get("spec") if isinstance(template, dict) else None
    if not isinstance(spec, dict) or not isinstance(template, dict) or not isinstance(inner, dict):
        return obj
    filled = {"nodeClassRef": _NODE_CLASS, "requirements": [], **inner}
    return {**obj, "spec": {**spec, "template": {**template, "spec": filled}}}


def _read(fields: Fields) -> Snapshot:
    if fields.text("format") != FORMAT:
        fields.fail("format", "is not `karpbench/v1`", "give a karpbench file")
    reader = PodReader(is_pending_unschedulable=True)
    pods = _read_pods(fields, reader)
    pools = _each(fields, "nodePools", read_pool)
    catalog = _read_catalog(fields)
    overlays = _each(fields, "nodeOverlays", read_overlay)
    namespaces = _each(fields, "namespaces", _read_namespace)
    return Snapshot(
        now=fields.time("now") or _latest(reader, fields),
        pods=pods,
        nodes=_read_nodes(fields, pools, catalog),
        pools=pools,
        daemons=_each(fields, "daemonSets", lambda each: read_daemon_set(each, reader)),
        catalog=catalog,
        overlays=overlays,
        storage=_read_storage(fields),
        namespaces=name_namespaces(namespaces, pods),
        services=_each(fields, "services", read_service),
        controllers=_read_controllers(fields),
        budgets=_each(fields, "pdbs", read_budget),
        settings=read_settings(fields.child("options"), has_overlays=bool(overlays)),
    )


def _each(fields: Fields, key: str, read: Callable[[Fields], T]) -> tuple[T, ...]:
    return tuple([read(each) for each in fields.children(key)])


def _read_pods(fields: Fields, reader: PodReader) -> tuple[Pod, ...]:
    objects, pods = fields.items("pods"), list[Pod]()
    try:
        pods.extend(reader.read(obj) for obj in objects)
    except FieldInvalid as error:
        raise error.within(f"pods[{len(pods)}]") from error
    return tuple(pods)


def _read_namespace(fields: Fields) -> Mapping[str, str]:
    name, labels = read_namespace(fields)
    return {NAMESPACE_NAME: name, **labels}


def _latest(reader: PodReader, fields: Fields) -> datetime:
    created = [each.time("created") for each in fields.children("nodes")]
    return max([reader.latest, *(moment for moment in created if moment)])


def read_types(fields: Fields, reader: InstanceReader) -> tuple[InstanceType, ...]:
    """Read the list `instanceTypes`."""
    types = []
    for index, each in enumerate(fields.items("instanceTypes")):
        types.append(reader.read(each, f"instanceTypes[{index}]"))
    return tuple(types)


def _read_catalog(fields: Fields) -> Catalog:
    reader = InstanceReader()
    types = read_types(fields, reader)
    by_name = {each.name: each for each in types}
    if len(by_name) < len(types):
        fields.fail("instanceTypes", "name the same type twice", "give each type its own name")
    pools = fields.child("instanceTypesByNodePool")
    by_pool = {}
    for pool in pools.obj:
        names = pools.texts(pool)
        for index, name in enumerate(names):
            if name not in by_name:
                pools.fail(f"{pool}[{index}]", f"is `{name}`, not on sale", "name a known type")
        by_pool[pool] = tuple(by_name[name] for name in names)
    return Catalog(
        types=types,
        by_pool=by_pool,
        well_known=WELL_KNOWN.union(fields.texts("wellKnownLabels")),
        reservation_label=reader.reservation_label,
    )


def _read_nodes(fields: Fields, pools: Sequence[NodePool], catalog: Catalog) -> tuple[Node, ...]:
    limits = {
        each.child("metadata").needed("name"): read_attach_limits(each)
        for each in fields.children("csiNodes")
    }
    types = {each.name: each for each in catalog.types}
    pool_of = {pool.name: pool for pool in pools}
    return _each(fields, "nodes", lambda each: read_workload_node(each, pool_of, types, limits))


def read_workload_node(
    fields: Fields,
    pools: Mapping[str, NodePool],
    types: Mapping[str, InstanceType],
    limits: AttachLimits = NO_LIMITS,
) -> Node:
    """Build the Node and NodeClaim of an entry from its instance type and NodePool; join them."""
    name, type_name, pool_name = (
        fields.needed("name"),
        fields.needed("instanceType"),
        fields.text("nodePool"),
    )
    kind, pool = types.get(type_name), pools.get(pool_name)
    if kind is None:
        fields.fail("instanceType", f"is `{type_name}`, not on sale", "name a known type")
    if pool is None and pool_name:
        fields.fail("nodePool", f"is `{pool_name}`, not there", "name a known pool")
    zone, capacity_type = fields.text("zone"), fields.text("capacityType")
    place = {ZONE: zone, CAPACITY_TYPE: capacity_type}
    labels = {
        **_type_labels(kind, pool.requirements if pool else ()),
        **(_pool_labels(pool) if pool else {}),
        INSTANCE_TYPE: type_name,
        **{key: value for key, value in place.items() if value},
        HOSTNAME: name,
        **fields.labels("labels"),
    }
    if pool is None:
        taints = read_taints(fields, "taints")
    else:
        labels |= {REGISTERED: "true"}
        if fields.flag("initialized", default=True):
            labels |= {INITIALIZED: "true"}
        taints = read_taints(fields, "taints") if "taints" in fields else pool.taints
    capacity, rest = _amounts(kind, zone, capacity_type)
    meta = Identity(
        name,
        created=fields.time("created"),
        deleted=fields.time("deletionTimestamp"),
        labels=labels,
    )
    since = meta.created or EPOCH
    ready = Condition(READY, TRUE, since)
    node = NodeRecord(meta, name, taints, False, capacity, rest, (ready,))
    claim = None
    if pool is not None:
        claim = ClaimRecord(
            meta,
            pool.node_class,
            taints=taints,
            provider_id=name,
            node_name=name,
            conditions=Conditions((Condition(_CONSOLIDATABLE, TRUE, since),)),
        )
    return join_node(node, claim, limits.get(name))


def _type_labels(kind: InstanceType, required: Sequence[Requirement]) -> dict[str, str]:
    """Return the labels of a machine of this type; of several systems, Linux."""
    labels = {
        key: next(iter(each.values))
        for key, each in kind.requirements.items()
        if len(each.values) == 1 and not each.complement
    }
    system = kind.requirements.get(OS)
    if system is not None and OS not in labels:
        allowed = collect([system, *(each for each in required if each.key == OS)])[OS]
        labels[OS] = _LINUX if _LINUX in allowed else min(allowed.values or system.values)
    return labels


def _pool_labels(pool: NodePool) -> dict[str, str]:
    labels = {**pool.labels, NODE_POOL: pool.name}
    node_class = pool.node_class
    if node_class.group and node_class.kind and node_class.name:
        labels[f"{node_class.group}/{node_class.kind.lower()}"] = node_class.name
    return labels


def _amounts(kind: InstanceType, zone: str, capacity_type: str) -> tuple[Resources, Resources]:
    """Return capacity and allocatable, with the overrides of the offering in this zone."""
    for offering in kind.offerings:
        if (offering.zone, offering.capacity_type) == (zone, capacity_type):
            capacity = {**kind.capacity, **offering.capacity_override}
            overhead = {**kind.overhead, **offering.overhead_override}
            return capacity, allocatable(capacity, overhead)
    return kind.capacity, kind.allocatable


def _read_storage(fields: Fields) -> Storage:
    return gather_storage(
        _each(fields, "persistentVolumeClaims", read_claim),
        _each(fields, "persistentVolumes", read_volume),
        _each(fields, "storageClasses", read_class),
    )


def _read_controllers(fields: Fields) -> tuple[PodController, ...]:
    return tuple(
        read_controller(each, kind) for key, kind in _CONTROLLERS for each in fields.children(key)
    )


def read_settings(options: Fields, *, has_overlays: bool = False) -> Settings:
    """Read `options`; the default of `nodeOverlay` is whether the workload has NodeOverlays."""
    preference = options.choice("preferencePolicy", {"Respect", "Ignore"}, "Respect")
    min_values = options.choice("minValuesPolicy", {"Strict", "BestEffort"}, "Strict")
    reserved_mode = options.choice("reservedMode", {"Strict", "Fallback"}, "Strict")
    packing = options.choice("packing", {"Karpenter", "Cheapest"}, "Karpenter")
    return Settings(
        preference_policy=PreferencePolicy(preference),
        min_values_policy=MinValuesPolicy(min_values),
        reserved_capacity=options.flag("reservedCapacity", default=True),
        reserved_mode=ReservedMode(reserved_mode),
        node_overlay=options.flag("nodeOverlay", default=has_overlays),
        ignore_device_claims=options.flag("ignoreDeviceClaims", default=True),
        default_spreads=read_spreads(options, "defaultConstraints"),
        packing=Packing(packing),
    )
