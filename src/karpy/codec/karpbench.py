"""karpbench/v1 workloads (docs/benchmarks.md) to snapshots, fast: this is on the clock."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

from karpy.codec.benchnodes import NodeMaker
from karpy.codec.constraints import read_spreads
from karpy.codec.crds import read_overlay, read_pool
from karpy.codec.fields import FieldInvalid, Fields, JsonObject
from karpy.codec.instances import InstanceReader
from karpy.codec.objects import (
    read_budget,
    read_controller,
    read_namespace,
    read_service,
)
from karpy.codec.podrows import PodRows
from karpy.codec.pods import PodReader
from karpy.codec.storage import (
    gather_storage,
    read_attach_limits,
    read_claim,
    read_class,
    read_volume,
)
from karpy.codec.workloads import read_daemon_set
from karpy.errors import WorkloadInvalid
from karpy.model.census import CountedPods
from karpy.model.instances import Catalog, InstanceType
from karpy.model.labels import NAMESPACE_NAME, WELL_KNOWN
from karpy.model.nodes import Node
from karpy.model.pods import Pod, PodController
from karpy.model.pools import NodePool
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
_CONTROLLERS: Final = (
    ("replicaSets", "ReplicaSet"),
    ("statefulSets", "StatefulSet"),
    ("replicationControllers", "ReplicationController"),
)

T = TypeVar("T")


def read_workload(obj: JsonObject, name: str = "workload") -> Snapshot:
    """Read a workload; every pod without a node counts as one kube-scheduler has given up on."""
    try:
        return _read(Fields(obj), name)
    except FieldInvalid as error:
        raise WorkloadInvalid(path=name, problem=str(error)) from error


def _read(fields: Fields, name: str) -> Snapshot:
    if fields.text("format") != FORMAT:
        fields.fail("format", "is not `karpbench/v1`", "give a karpbench file")
    reader = PodRows(is_pending_unschedulable=True)
    pods = _read_pods(fields, reader, name)
    pools = _each(fields, "nodePools", read_pool)
    catalog = _read_catalog(fields)
    overlays = _each(fields, "nodeOverlays", read_overlay)
    nodes = _read_nodes(fields, pools, catalog)
    return Snapshot(
        now=fields.time("now") or _latest(reader, fields),
        pods=pods,
        nodes=nodes,
        pools=pools,
        daemons=_each(fields, "daemonSets", lambda each: read_daemon_set(each, reader)),
        catalog=catalog,
        overlays=overlays,
        storage=_read_storage(fields),
        namespaces=_named(reader.namespaces) | dict(_each(fields, "namespaces", read_namespace)),
        services=_each(fields, "services", read_service),
        controllers=_read_controllers(fields),
        budgets=_each(fields, "pdbs", read_budget),
        settings=read_settings(fields.child("options"), has_overlays=bool(overlays)),
    )


def _each(fields: Fields, key: str, read: Callable[[Fields], T]) -> tuple[T, ...]:
    return tuple([read(each) for each in fields.children(key)])


def _read_pods(fields: Fields, reader: PodRows, name: str) -> CountedPods:
    reader.read_all(fields.items("pods"))

    def finish() -> list[Pod]:
        try:
            return reader.finished()
        except FieldInvalid as error:
            raise WorkloadInvalid(path=name, problem=str(error)) from error

    return CountedPods(reader.census(), finish)


def _named(namespaces: set[str]) -> dict[str, dict[str, str]]:
    """Return the namespaces that pods name, with the label every namespace has."""
    return {name: {NAMESPACE_NAME: name} for name in sorted(namespaces)}


def _latest(reader: PodReader, fields: Fields) -> datetime:
    # Most nodes were made at the same moment, and reading one takes longer than finding that out.
    by_text = {str(each.get("created")): each for each in fields.items("nodes")}
    made = [Fields(each).time("created") for each in by_text.values()]
    return max([reader.latest, *(moment for moment in made if moment)])


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


def _read_nodes(fields: Fields, pools: tuple[NodePool, ...], catalog: Catalog) -> tuple[Node, ...]:
    limits = {
        each.child("metadata").needed("name"): read_attach_limits(each)
        for each in fields.children("csiNodes")
    }
    return _each(fields, "nodes", NodeMaker(pools, catalog, limits).read)


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
    """Read `options`; overlays given are overlays meant, unless `nodeOverlay` says otherwise."""
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
