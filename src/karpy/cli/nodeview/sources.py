"""Sources of an overview: manifests, or a watched cluster."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from karpy.cli.ec2supply import Needs
from karpy.cli.hosts import explain_host
from karpy.cli.inputs import ClusterInput, decide_cluster, find_supply, with_catalog
from karpy.cli.live import access_of, with_region_of_nodes
from karpy.cli.nodeexplanations import Screen, node_explanation_lines
from karpy.cli.options import ClusterAccess, Question
from karpy.cli.room import with_room
from karpy.cli.terminal import Line
from karpy.codec.bystanders import NodeClassFound
from karpy.codec.narrowing import Supply
from karpy.core.disruption.explain import explain_node, with_inferred_state
from karpy.core.overview import Overview, overview
from karpy.model.pools import NodePool
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Verdict
from karpy.wiring.onlooker import Sight, watch


class Frame(Struct, frozen=True):
    """A snapshot with its verdict and its overview, at one moment."""

    snapshot: Snapshot
    verdict: Verdict
    overview: Overview
    catalog: str = ""
    trouble: str = ""
    """Why the snapshot may be out of date; empty if it is not."""

    def explain(self, node: str, width: int) -> list[Line]:
        """Write why an existing node is still there."""
        explained = explain_node(self.snapshot, node)
        host = explain_host(self.snapshot, self.verdict, node)
        assert host is not None
        screen = Screen(width, self.snapshot.now, knows_gates=False)
        return node_explanation_lines(explained, host, screen)


Refresh: TypeAlias = Callable[[], Awaitable[Frame]]
Source: TypeAlias = Callable[[], AbstractAsyncContextManager[Refresh]]
"""Opens a cluster and returns a function that reads its current state."""


def files_source(cluster: ClusterInput, question: Question) -> Source:
    """Return a source for manifests, which do not change."""
    frame = _frame_of(cluster, question)

    async def refresh() -> Frame:
        return frame

    @asynccontextmanager
    async def open_source() -> AsyncIterator[Refresh]:
        yield refresh

    return open_source


def live_source(reach: ClusterAccess, question: Question) -> Source:
    """Return a source that watches the cluster of a kubeconfig."""
    access = access_of(reach)

    @asynccontextmanager
    async def open_source() -> AsyncIterator[Refresh]:
        cache = _CatalogCache(question)
        async with watch(access, question.settings) as watching:

            async def refresh() -> Frame:
                sight = await watching.sight()
                # On large clusters a decision takes a second; in a thread it does not block keys.
                frame = await asyncio.to_thread(_refreshed, sight, cache, question)
                return replace(frame, trouble=watching.trouble)

            yield refresh

    return open_source


class _CatalogCache:
    """Keeps the catalog until NodePools or node classes change."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._known: tuple[_Pools, Supply] | None = None

    def supply(self, sight: Sight) -> Supply:
        """Return the catalog for the current state of the cluster."""
        pools = tuple(replace(each, record=None) for each in sight.snapshot.pools)
        specs = tuple(
            replace(each, value={key: each.value.get(key) for key in ("spec", "status")})
            for each in sight.node_classes
        )
        question = with_region_of_nodes(self._question, sight.snapshot)
        key = question.catalog, pools, specs
        if self._known is None or self._known[0] != key:
            needs = Needs(sight.snapshot, sight.node_classes)
            self._known = key, find_supply(question, needs)
        return self._known[1]


_Pools: TypeAlias = tuple[str | None, tuple[NodePool, ...], tuple[NodeClassFound, ...]]


def _refreshed(sight: Sight, cache: _CatalogCache, question: Question) -> Frame:
    snapshot, _ = with_room(sight.snapshot, sight.buffers, question, is_live=True)
    return _frame_of(with_catalog(snapshot, question, cache.supply(sight)), question)


def _frame_of(cluster: ClusterInput, question: Question) -> Frame:
    decided = decide_cluster(cluster, question)
    snapshot = with_inferred_state(decided.snapshot, decided.verdict)
    shown = overview(snapshot, decided.verdict)
    return Frame(snapshot, decided.verdict, shown, cluster.catalog_title)
