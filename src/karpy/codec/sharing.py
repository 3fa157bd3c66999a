"""
Snapshots as rows and tables: objects that are shared when written are shared when read.

Pods of one workload share their rules, labels and requests, NodePools share their instance types.
These are most of a snapshot; writing each once is small, and decisions on shared objects are fast.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Generic, TypeVar

from msgspec import Struct
from msgspec.json import Encoder
from msgspec.structs import replace

from karpy.model.instances import Catalog, InstanceType, Offering, PriceList, columns
from karpy.model.pods import USUAL_DISRUPTION, DaemonSet, Owner, Pod, PodDisruption, PodRules
from karpy.model.requirements import Requirement
from karpy.model.resources import Resources
from karpy.model.snapshot import Snapshot

T = TypeVar("T")

_PLAIN: Final = Encoder(order="deterministic")


class PodRow(Struct, frozen=True, array_like=True):
    """A pod, with the columns of Pod; shared parts are indexes into their tables."""

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
    scheduler_message: str = ""


class DaemonRow(Struct, frozen=True, array_like=True):
    """A DaemonSet and its pod."""

    name: str
    namespace: str
    pod: PodRow


class SharedSnapshot(Struct, frozen=True):
    """A snapshot without its catalog."""

    rest: Snapshot
    labels: tuple[Mapping[str, str], ...]
    requests: tuple[Resources, ...]
    rules: tuple[PodRules, ...]
    owners: tuple[tuple[Owner, ...], ...]
    disruptions: tuple[PodDisruption, ...]
    pods: tuple[PodRow, ...]
    daemons: tuple[DaemonRow, ...]


class SoldRow(Struct, frozen=True, array_like=True):
    """Requirements and offerings of an instance type, by index into the tables, and its prices."""

    requirements: tuple[int, ...]
    market: int
    prices: tuple[int, ...]


class SharedCatalog(Struct, frozen=True):
    """
    A catalog: each instance type once, and each list of instance types.

    Many types have the same offerings and the same labels: these are written once, too. Older
    recordings have them in the types themselves, and none of the last four fields.
    """

    rest: Catalog
    offered: tuple[InstanceType, ...]
    lists: tuple[tuple[int, ...], ...]
    types: int
    by_pool: Mapping[str, int]
    requirements: tuple[Requirement, ...] = ()
    places: tuple[Offering, ...] = ()
    """Offerings without their price."""
    markets: tuple[tuple[int, ...], ...] = ()
    sold: tuple[SoldRow, ...] = ()
    """A row for each type of `offered`."""


def share_snapshot(snapshot: Snapshot) -> SharedSnapshot:
    """Split a snapshot into rows and tables."""
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
    """Build a snapshot from its rows and tables."""
    return replace(
        shared.rest,
        pods=tuple(_pod(row, shared) for row in shared.pods),
        daemons=tuple(
            DaemonSet(each.name, each.namespace, _pod(each.pod, shared)) for each in shared.daemons
        ),
        catalog=catalog,
    )


def share_catalog(catalog: Catalog) -> SharedCatalog:
    """Split a catalog into rows and tables."""
    offered: _ObjectTable[InstanceType] = _ObjectTable()
    lists: _ObjectTable[tuple[InstanceType, ...]] = _ObjectTable()
    types = lists.place(catalog.types)
    by_pool = {pool: lists.place(each) for pool, each in catalog.by_pool.items()}
    numbers = tuple(tuple(offered.place(each) for each in some) for some in lists.items)
    tables = _CatalogTables()
    sold = tuple(map(tables.row, offered.items))
    return SharedCatalog(
        rest=replace(catalog, types=(), by_pool={}),
        offered=tuple(replace(each, requirements={}, offerings=()) for each in offered.items),
        lists=numbers,
        types=types,
        by_pool=by_pool,
        requirements=tuple(tables.requirements.items),
        places=tuple(tables.places.items),
        markets=tuple(tables.markets),
        sold=sold,
    )


def join_catalog(shared: SharedCatalog) -> Catalog:
    """Build a catalog from its rows and tables."""
    if shared.sold:
        markets = [tuple(shared.places[each] for each in some) for some in shared.markets]
        offered = [
            replace(
                each,
                requirements=_by_key(shared.requirements[each] for each in row.requirements),
                offerings=PriceList(markets[row.market], row.prices),
            )
            for each, row in zip(shared.offered, shared.sold, strict=True)
        ]
    else:
        offered = [replace(each, offerings=tuple(each.offerings)) for each in shared.offered]
    lists = [tuple(offered[place] for place in places) for places in shared.lists]
    by_pool = {pool: lists[place] for pool, place in shared.by_pool.items()}
    return replace(shared.rest, types=lists[shared.types], by_pool=by_pool)


def _by_key(requirements: Iterable[Requirement]) -> dict[str, Requirement]:
    return {each.key: each for each in requirements}


class _CatalogTables:
    """Tables of the requirements, places and offering lists that instance types share."""

    def __init__(self) -> None:
        self.requirements: _ValueTable[Requirement] = _ValueTable()
        self.places: _ValueTable[Offering] = _ValueTable()
        self.markets: list[tuple[int, ...]] = []
        self._by_numbers: dict[tuple[int, ...], int] = {}
        self._by_list: dict[int, tuple[Sequence[Offering], tuple[int, ...]]] = {}

    def row(self, kind: InstanceType) -> SoldRow:
        """Return the row of a type; equal types have equal rows."""
        required = tuple(
            self.requirements.place(each) for _, each in sorted(kind.requirements.items())
        )
        places, prices = columns(kind.offerings)
        known = self._by_list.get(id(places))
        numbers = known[1] if known else tuple(map(self._place, places))
        # Keep a reference to the list: another one could get the id of a freed list.
        self._by_list[id(places)] = (places, numbers)
        market = self._by_numbers.setdefault(numbers, len(self.markets))
        if market == len(self.markets):
            self.markets.append(numbers)
        return SoldRow(required, market, tuple(prices))

    def _place(self, offering: Offering) -> int:
        return self.places.place(replace(offering, price=0))


class _ValueTable(Generic[T]):
    """A table of values, each once; values with the same JSON are equal."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self._by_text: dict[bytes, int] = {}
        self._by_id: dict[int, tuple[T, int]] = {}

    def place(self, item: T) -> int:
        known = self._by_id.get(id(item))
        if known is not None:
            return known[1]
        place = self._by_text.setdefault(_PLAIN.encode(item), len(self.items))
        if place == len(self.items):
            self.items.append(item)
        self._by_id[id(item)] = (item, place)
        return place


class _ObjectTable(Generic[T]):
    """A table of objects, each once, by identity: equal objects have rows of their own."""

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
        self.labels: _ObjectTable[Mapping[str, str]] = _ObjectTable()
        self.requests: _ObjectTable[Resources] = _ObjectTable()
        self.rules: _ObjectTable[PodRules] = _ObjectTable()
        self.owners: _ObjectTable[tuple[Owner, ...]] = _ObjectTable()
        self.disruptions: _ObjectTable[PodDisruption] = _ObjectTable()

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
            pod.scheduler_message,
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
        row.scheduler_message,
    )
