"""
Snapshots as rows and tables, so that what was one object before is one object again.

Pods of one workload share their rules, labels and requests, NodePools share their instance types.
It is most of what there is to write, and decisions on shared objects are faster.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from karpy.model.instances import Catalog, InstanceType
from karpy.model.pods import USUAL_DISRUPTION, DaemonSet, Owner, Pod, PodDisruption, PodRules
from karpy.model.resources import Resources
from karpy.model.snapshot import Snapshot

T = TypeVar("T")


class PodRow(Struct, frozen=True, array_like=True):
    """A pod, column by column as Pod has them; shared parts are places in their tables."""

    name: str
    namespace: str
    uid: str
    created: datetime
    labels: int
    requests: int
    rules: int
    node_name: str
    nominated_node: str
    phase: str
    is_unschedulable: bool
    is_deleting: bool
    owners: int
    is_virtual: bool = False
    limits: int | None = None
    bound: datetime | None = None
    ready: datetime | None = None
    is_untried: bool = False
    is_expected: bool = False
    disruption: int | None = None
    started: datetime | None = None
    deleted: datetime | None = None
    is_unready: bool = False


class DaemonRow(Struct, frozen=True, array_like=True):
    """A DaemonSet and its pod."""

    name: str
    namespace: str
    pod: PodRow


class SharedSnapshot(Struct, frozen=True):
    """A snapshot but for what is on sale."""

    rest: Snapshot
    labels: tuple[Mapping[str, str], ...]
    requests: tuple[Resources, ...]
    rules: tuple[PodRules, ...]
    owners: tuple[tuple[Owner, ...], ...]
    disruptions: tuple[PodDisruption, ...]
    pods: tuple[PodRow, ...]
    daemons: tuple[DaemonRow, ...]


class SharedCatalog(Struct, frozen=True):
    """What is on sale: each instance type once, and each list of them."""

    rest: Catalog
    offered: tuple[InstanceType, ...]
    lists: tuple[tuple[int, ...], ...]
    types: int
    by_pool: Mapping[str, int]


def share_snapshot(snapshot: Snapshot) -> SharedSnapshot:
    """Take a snapshot apart."""
    tables = _Tables()
    pods = tuple(tables.row(pod) for pod in snapshot.pods)
    daemons = tuple(
        DaemonRow(each.name, each.namespace, tables.row(each.pod)) for each in snapshot.daemons
    )
    return SharedSnapshot(
        rest=replace(snapshot, pods=(), daemons=(), catalog=Catalog()),
        labels=tuple(tables.labels.items),
        requests=tuple(tables.requests.items),
        rules=tuple(tables.rules.items),
        owners=tuple(tables.owners.items),
        disruptions=tuple(tables.disruptions.items),
        pods=pods,
        daemons=daemons,
    )


def join_snapshot(shared: SharedSnapshot, catalog: Catalog) -> Snapshot:
    """Put a snapshot together again."""
    return replace(
        shared.rest,
        pods=tuple(_pod(row, shared) for row in shared.pods),
        daemons=tuple(
            DaemonSet(each.name, each.namespace, _pod(each.pod, shared)) for each in shared.daemons
        ),
        catalog=catalog,
    )


def share_catalog(catalog: Catalog) -> SharedCatalog:
    """Take apart what is on sale."""
    offered: _Table[InstanceType] = _Table()
    lists: _Table[tuple[InstanceType, ...]] = _Table()
    types = lists.place(catalog.types)
    by_pool = {pool: lists.place(each) for pool, each in catalog.by_pool.items()}
    places = tuple(tuple(offered.place(each) for each in some) for some in lists.items)
    rest = replace(catalog, types=(), by_pool={})
    return SharedCatalog(rest, tuple(map(_in_full, offered.items)), places, types, by_pool)


def join_catalog(shared: SharedCatalog) -> Catalog:
    """Put together again what is on sale."""
    offered = [_in_full(each) for each in shared.offered]
    lists = [tuple(offered[place] for place in places) for places in shared.lists]
    by_pool = {pool: lists[place] for pool, place in shared.by_pool.items()}
    return replace(shared.rest, types=lists[shared.types], by_pool=by_pool)


def _in_full(each: InstanceType) -> InstanceType:
    """Return a type with its offerings in a tuple, which is how they are written."""
    return replace(each, offerings=tuple(each.offerings))


class _Table(Generic[T]):
    """Objects, each once; equal ones that are not the same stay apart."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self._places: dict[int, int] = {}

    def place(self, item: T) -> int:
        place = self._places.get(id(item))
        if place is None:
            place = self._places[id(item)] = len(self.items)
            self.items.append(item)
        return place


class _Tables:
    def __init__(self) -> None:
        self.labels: _Table[Mapping[str, str]] = _Table()
        self.requests: _Table[Resources] = _Table()
        self.rules: _Table[PodRules] = _Table()
        self.owners: _Table[tuple[Owner, ...]] = _Table()
        self.disruptions: _Table[PodDisruption] = _Table()

    def row(self, pod: Pod) -> PodRow:
        return PodRow(
            pod.name,
            pod.namespace,
            pod.uid,
            pod.created,
            self.labels.place(pod.labels),
            self.requests.place(pod.requests),
            self.rules.place(pod.rules),
            pod.node_name,
            pod.nominated_node,
            pod.phase,
            pod.is_unschedulable,
            pod.is_deleting,
            self.owners.place(pod.owners),
            pod.is_virtual,
            self.requests.place(pod.limits) if pod.limits else None,
            pod.bound,
            pod.ready,
            pod.is_untried,
            pod.is_expected,
            None if pod.disruption is USUAL_DISRUPTION else self.disruptions.place(pod.disruption),
            pod.started,
            pod.deleted,
            pod.is_unready,
        )


def _pod(row: PodRow, tables: SharedSnapshot) -> Pod:
    return Pod(
        row.name,
        row.namespace,
        row.uid,
        row.created,
        tables.labels[row.labels],
        tables.requests[row.requests],
        tables.rules[row.rules],
        row.node_name,
        row.nominated_node,
        row.phase,
        row.is_unschedulable,
        row.is_deleting,
        tables.owners[row.owners],
        row.is_virtual,
        {} if row.limits is None else tables.requests[row.limits],
        row.bound,
        row.ready,
        row.is_untried,
        row.is_expected,
        USUAL_DISRUPTION if row.disruption is None else tables.disruptions[row.disruption],
        row.started,
        row.deleted,
        row.is_unready,
    )
