"""The cluster as its watches deliver it: a snapshot for decisions at any moment."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from karpy.adapters.mirror import records
from karpy.adapters.mirror.censusbook import CensusBook, DaemonBook
from karpy.adapters.mirror.consolidationclock import ConsolidationClock
from karpy.adapters.mirror.nodebook import NodeBook
from karpy.adapters.mirror.records import (
    Entry,
    IndexedShelf,
    OnFailure,
    RecordBook,
    Shelf,
    raise_at_once,
)
from karpy.barriers import Barrier
from karpy.codec.clusters import name_namespaces
from karpy.codec.fields import JsonObject
from karpy.codec.podjson import PodJsonReader
from karpy.codec.storage import gather_storage
from karpy.codec.unreadable import unreadable_budget, unreadable_pod
from karpy.core.lifecycle.conditions import LAUNCHED
from karpy.core.scheduling.overlays import apply_overlays
from karpy.errors import NotFound
from karpy.model.conditions import AWAITING
from karpy.model.instances import Catalog
from karpy.model.kinds import (
    CSI_NODE,
    DAEMON_SET,
    DISRUPTION_BUDGET,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    NODE_CLAIM,
    NODE_OVERLAY,
    NODE_POOL,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RUNTIME_CLASS,
    SERVICE,
    STATEFUL_SET,
    STORAGE_CLASS,
    Kind,
)
from karpy.model.nodes import Node
from karpy.model.pods import Pod, PodController
from karpy.model.pools import NodeOverlay, NodePool
from karpy.model.records import ClaimRecord, Identity
from karpy.model.settings import Settings
from karpy.model.snapshot import Snapshot
from karpy.ports.clock import Clock
from karpy.ports.objects import Change, Feed, Follow, Reader, Synced, Unreadable
from karpy.ports.records import Kept

OPTIONAL: Final = frozenset({NODE_OVERLAY})
"""Kinds whose CRD need not be installed."""
DISPENSABLE: Final = frozenset({LIMIT_RANGE, RUNTIME_CLASS})
"""Kinds without which decisions go on if RBAC forbids to read them."""
_AGAIN_SECONDS: Final = 30.0
"""Seconds until a kind whose CRD is not installed is listed again."""
_PATIENCE: Final = timedelta(seconds=15)
"""Longest wait of decisions for the machine of a NodeClaim whose launch was refused."""
_NOT_TRIED: Final = frozenset({"", AWAITING})
"""Reasons of the condition Launched before any refusal: the machine may exist already."""
_PATIENCE_WITHOUT_RESULT: Final = timedelta(minutes=2)
"""Longest wait for the machine of a NodeClaim whose launch has no result yet."""
_SPREADING: Final = (REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)
"""Kinds by which default spread constraints find the pods of a workload."""


class Mirror:
    """
    The port Cluster on top of a Feed.

    Only `run` and the `note_` methods change it, all on the event loop; readers get immutable
    values. `catalog` is called for each snapshot and returns the present catalog.
    """

    def __init__(
        self,
        feed: Feed,
        clock: Clock,
        catalog: Callable[[], Catalog],
        settings: Settings,
        on_failure: OnFailure = raise_at_once,
        is_ours: Callable[[ClaimRecord], bool] = lambda _: True,
    ) -> None:
        """Take also a function that says which claims belong to our cloud."""
        self._is_ours = is_ours
        self.pods: IndexedShelf[Pod] = IndexedShelf(lambda pod: pod.node_name)
        self._census = CensusBook(self.pods)
        self.node_book = NodeBook()
        self.pools: Shelf[NodePool] = Shelf()
        self.overlays: Shelf[NodeOverlay] = Shelf()
        self.daemon_book = DaemonBook(self.pods)
        self.records = RecordBook(self.pods)
        self._in_full: dict[Kind, Shelf[Any]] = {
            NODE: self.records.nodes,
            NODE_CLAIM: self.records.claims,
            NODE_POOL: self.records.pools,
            NODE_OVERLAY: self.records.overlays,
        }
        self._feed = feed
        self._clock = clock
        self.catalog = catalog
        self._settings = settings
        self._shelves: dict[Kind, tuple[Shelf[Any], Reader[Any]]] = {
            POD: (self.pods, PodJsonReader()),
            NODE: (self.node_book.nodes, records.NODES),
            NODE_CLAIM: (self.node_book.claims, records.CLAIMS),
            CSI_NODE: (self.node_book.limits, records.ATTACH_LIMITS),
            NODE_POOL: (self.pools, records.POOLS),
            NODE_OVERLAY: (self.overlays, records.OVERLAYS),
            DAEMON_SET: (self.daemon_book.templates, self.daemon_book.reader),
            LIMIT_RANGE: (self.daemon_book.ranges, records.LIMIT_RANGES),
            RUNTIME_CLASS: (self.daemon_book.runtimes, records.RUNTIME_CLASSES),
            DISRUPTION_BUDGET: (Shelf(), records.BUDGETS),
            NAMESPACE: (Shelf(), records.NAMESPACES),
            PERSISTENT_VOLUME: (Shelf(), records.VOLUMES),
            PERSISTENT_VOLUME_CLAIM: (Shelf(), records.VOLUME_CLAIMS),
            STORAGE_CLASS: (Shelf(), records.STORAGE_CLASSES),
        }
        if settings.default_spreads:
            self._shelves[SERVICE] = (Shelf(), records.SERVICES)
            for kind in _SPREADING:
                self._shelves[kind] = (Shelf(), records.controller_reader(kind.name))
        self._clock_of_consolidation = self._make_clock()
        self._on_failure = on_failure
        for shelf in (*self._in_full.values(), *(shelf for shelf, _ in self._shelves.values())):
            shelf.on_failure = on_failure
        self._news = asyncio.Event()
        self._undelivered: dict[str, datetime] = {}
        self._overlaid: tuple[Catalog, tuple[int, int], Catalog] | None = None

    def _make_clock(self) -> ConsolidationClock:
        others = (self.pools, self.overlays, self._shelves[DISRUPTION_BUDGET][0])
        reads_cost = not self._settings.manages_deletion_cost
        return ConsolidationClock(self.pods, self.node_book, others, reads_deletion_cost=reads_cost)

    async def run(self) -> None:
        """Follow every kind until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name, follow in self.follows():
                tasks.create_task(follow(), name=name)

    def follows(self) -> Iterator[tuple[str, Follow]]:
        """Return the watch of each kind with its name; each may fail and be started again."""
        for kind in self._shelves:
            yield f"mirror.{kind.name.lower()}", partial(self._follow, kind)

    async def wait_until_listed(self) -> None:
        """Return once every kind is listed."""
        while not self.is_listed:
            self._news.clear()
            await self._news.wait()

    @property
    def is_listed(self) -> bool:
        """Whether every kind has been listed."""
        return all(shelf.is_synced for shelf, _ in self._shelves.values())

    @property
    def is_synced(self) -> bool:
        """Whether decisions can be made: every kind listed, and every claim of ours launched."""
        return self.is_listed and not any(
            not claim.provider_id and self._is_awaited(name)
            for name, claim in self.node_book.claims.values.items()
        )

    def _is_awaited(self, name: str) -> bool:
        """Say whether decisions are to wait for the machine of a claim."""
        # An unreadable claim may have a machine: its last readable value is outdated.
        if name in self.records.claims.unreadable:
            return False
        kept = self.records.claims.get(name)
        if kept is None:
            return True
        created = kept.record.meta.created
        # Differs: a NodeClaim without a machine: Karpenter decides about no pod and no node until
        # the launch timeout of 5 minutes; Karpy waits 15 seconds once the cloud has refused the
        # launch, and 2 minutes without an answer, because one NodeClaim without a machine would
        # hold up all decisions.
        launched = kept.record.conditions.get(LAUNCHED)
        is_refused = launched is not None and launched.reason not in _NOT_TRIED
        patience = _PATIENCE if is_refused else _PATIENCE_WITHOUT_RESULT
        is_late = created is not None and self._clock.now() > created + patience
        return self._is_ours(kept.record) and not is_late

    async def wait_until_synced(self) -> None:
        """Return once decisions can be made."""
        while not self.is_synced:
            self._news.clear()
            # The end of the wait for a claim comes without a watch event.
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._news.wait()

    def waiting_for(self) -> list[Kind]:
        """Return the kinds that are not listed yet."""
        return [kind for kind, (shelf, _) in self._shelves.items() if not shelf.is_synced]

    def shelf(self, kind: Kind) -> Shelf[Any]:
        """Return the shelf of a kind."""
        return self._shelves[kind][0]

    def note_absent(self, kind: Kind) -> None:
        """Count a dispensable kind as listed, because it is not installed or may not be read."""
        if kind in OPTIONAL | DISPENSABLE and kind in self._shelves:
            self._sync(self._shelves[kind][0])

    def note_claim(self, claim: ClaimRecord) -> None:
        """Add a claim that was just created, before the watch delivers it."""
        if claim.name not in self.node_book.claims.values:
            self.node_book.claims.put(claim.name, claim)
            self._undelivered[claim.name] = self._clock.now()

    def is_current(self, kind: Kind, meta: Identity) -> bool:
        """Say whether a NodeClaim, Node or NodePool is the newest version delivered."""
        known = self._in_full[kind].get(meta.name)
        return known is None or known.record.meta.version == meta.version

    def note_written(self, kind: Kind, obj: JsonObject) -> None:
        """Take in a NodeClaim, Node or NodePool that we wrote, before the watch delivers it."""
        shelf, reader = self._shelves[kind]
        entry: Entry = reader.from_object(obj)
        meta = entry.kept.record.meta
        known = self._in_full[kind].get(meta.name)
        # An object whose deletion the watch has delivered must not come back.
        if known is not None and known.record.meta.uid == meta.uid:
            self._take(kind, shelf, Change(meta.name, entry, meta.version))

    def now(self) -> datetime:
        """Return the time by the mirror's clock."""
        return self._clock.now()

    def undelivered_claims(self, before: datetime) -> list[str]:
        """Return claims created before some time that no watch has delivered: they may be gone."""
        return sorted(name for name, noted in self._undelivered.items() if noted < before)

    def forget_claim(self, name: str) -> None:
        """Drop a created claim that no watch has delivered and the API server does not have."""
        if self._undelivered.pop(name, None) is not None:
            self.node_book.claims.put(name, None)
            self._news.set()

    def overlaid_catalog(self) -> Catalog:
        """Return the catalog with NodeOverlays applied; apply them again only after a change."""
        catalog = self.catalog()
        if not self._settings.node_overlay:
            return catalog
        versions = self.pools.version, self.overlays.version
        known = self._overlaid
        if known is None or known[0] is not catalog or known[1] != versions:
            pools, overlays = self.pools.values.values(), self.overlays.values.values()
            made = apply_overlays(catalog, tuple(pools), tuple(overlays))
            known = self._overlaid = catalog, versions, made
        return known[2]

    def snapshot(self) -> Snapshot:
        """Return everything as of now."""
        return Snapshot(
            now=self._clock.now(),
            pods=self._census.counted(),
            nodes=self._nodes(),
            pools=tuple(map(self._pool_in_full, self.pools.values.values())),
            daemons=self.daemon_book.daemons(),
            catalog=self.overlaid_catalog(),
            storage=gather_storage(
                self._values(PERSISTENT_VOLUME_CLAIM),
                self._values(PERSISTENT_VOLUME),
                self._values(STORAGE_CLASS),
            ),
            namespaces=name_namespaces(self._values(NAMESPACE), ()),
            services=self._values(SERVICE),
            controllers=self._controllers(),
            budgets=self._values(DISRUPTION_BUDGET),
            settings=self._settings,
        )

    @property
    def consolidation_version(self) -> tuple[int, Catalog]:
        """A value that changes whenever consolidation may find a new command."""
        # The catalog by value: clouds renew it periodically, mostly with equal content.
        return self._clock_of_consolidation.version, self.catalog()

    def _nodes(self) -> tuple[Node, ...]:
        """Return all nodes, unreadable ones with the problem."""
        nodes, records = self.node_book.joined(), self.records
        if not (records.claims.unreadable or records.nodes.unreadable):
            return nodes
        return tuple(
            replace(each, unreadable=problem) if (problem := self._why_unreadable(each)) else each
            for each in nodes
        )

    def _why_unreadable(self, node: Node) -> str:
        records, claim = self.records, node.claim_record
        name = node.name if claim is None or not claim.node_name else claim.node_name
        return records.claims.unreadable.get(node.claim) or records.nodes.unreadable.get(name, "")

    def _pool_in_full(self, pool: NodePool) -> NodePool:
        kept = self.records.pools.get(pool.name)
        problem = self.records.pools.unreadable.get(pool.name, "")
        return replace(pool, record=None if kept is None else kept.record, unreadable=problem)

    def _controllers(self) -> tuple[PodController, ...]:
        return tuple(chain.from_iterable(self._values(kind) for kind in _SPREADING))

    def _values(self, kind: Kind) -> tuple[Any, ...]:
        known = self._shelves.get(kind)
        return () if known is None else tuple(known[0].values.values())

    async def _follow(self, kind: Kind) -> None:
        shelf, reader = self._shelves[kind]
        while True:
            # A feed reports deletions that happen while it runs, not earlier ones: whatever the
            # first list lacks is gone.
            left = set(self._in_full.get(kind, shelf).values)
            try:
                async for change in self._feed.follow(kind, reader):
                    if isinstance(change, Synced):
                        for key in sorted(left):
                            self._take(kind, shelf, Change(key, None, ""))
                        left.clear()
                        self._sync(shelf)
                        continue
                    left.discard(change.key)
                    with Barrier(partial(self._on_failure, change.key)):
                        self._take(kind, shelf, change)
            except NotFound:
                if kind not in OPTIONAL:
                    raise
                self.note_absent(kind)
            await asyncio.sleep(_AGAIN_SECONDS)

    def _take(self, kind: Kind, shelf: Shelf[Any], change: Change[Any]) -> None:
        if kind == NODE_CLAIM:
            self._undelivered.pop(change.key, None)
        if kind == POD and change.unreadable is not None:
            change = _with_stand_in(change, change.unreadable, shelf.get(change.key))
        if kind == DISRUPTION_BUDGET and change.unreadable is not None:
            change = replace(change, value=unreadable_budget(change.unreadable.object))
        in_full = self._in_full.get(kind)
        if in_full is None:
            shelf.take(change)
            return
        if change.unreadable is None:
            self._take_in_full(change, shelf, in_full)
        else:
            in_full.take(change)
        if kind == NODE_CLAIM:
            self._news.set()

    def _take_in_full(
        self, change: Change[Entry], shelf: Shelf[Any], in_full: Shelf[Kept[Any]]
    ) -> None:
        entry = change.value
        if entry is not None and _is_older(entry, in_full.get(change.key)):
            return
        # Update the value for decisions first: a listener of the record may take a snapshot.
        shelf.put(change.key, None if entry is None else entry.value)
        in_full.take(Change(change.key, None if entry is None else entry.kept, change.version))

    def _sync(self, shelf: Shelf[Any]) -> None:
        shelf.is_synced = True
        self._news.set()


def _with_stand_in(change: Change[Pod], why: Unreadable, known: Pod | None) -> Change[Pod]:
    """Replace an unreadable pod by a stand-in that keeps its node from disruption."""
    return replace(change, value=unreadable_pod(why.object, why.problem, known))


def _is_older(entry: Entry, known: Kept[Any] | None) -> bool:
    """Say whether a delivered object is older than the known one."""
    if known is None:
        return False
    meta, before = entry.kept.record.meta, known.record.meta
    is_same = meta.uid == before.uid
    # Kubernetes 1.35 and later guarantee that resource versions of a kind compare by number.
    return is_same and _rank(meta.version) < _rank(before.version)


def _rank(version: str) -> tuple[int, str]:
    """Return a sort key of resource versions: a longer number is a larger one."""
    return (len(version), version) if version.isdecimal() else (0, "")
