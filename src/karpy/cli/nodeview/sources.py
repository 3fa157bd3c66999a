"""Where an overview comes from: manifests, or a cluster that is followed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from karpy.cli.ec2supply import Needs
from karpy.cli.hosts import explain_host
from karpy.cli.inputs import Seen, decide_seen, find_supply, supplied
from karpy.cli.live import access_of, at_home
from karpy.cli.nodeexplanations import Screen, node_explanation_lines
from karpy.cli.options import Question, Reach
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


class Look(Struct, frozen=True):
    """A cluster at one moment, decided and ready to be shown."""

    snapshot: Snapshot
    verdict: Verdict
    shown: Overview
    catalog: str = ""
    trouble: str = ""
    """Why it may be out of date."""

    def explain(self, node: str, width: int) -> list[Line]:
        """Say why a node, which must be there, is still there."""
        explained = explain_node(self.snapshot, node)
        host = explain_host(self.snapshot, self.verdict, node)
        assert host is not None
        screen = Screen(width, self.snapshot.now, knows_gates=False)
        return node_explanation_lines(explained, host, screen)


Looking: TypeAlias = Callable[[], Awaitable[Look]]
Source: TypeAlias = Callable[[], AbstractAsyncContextManager[Looking]]
"""Opens a cluster; what comes of it looks at it again and again."""


def files_source(seen: Seen, question: Question) -> Source:
    """Show manifests, which stay what they are."""
    look = _look_at(seen, question)

    async def again() -> Look:
        return look

    @asynccontextmanager
    async def opened() -> AsyncIterator[Looking]:
        yield again

    return opened


def live_source(reach: Reach, question: Question) -> Source:
    """Follow the cluster of a kubeconfig."""
    access = access_of(reach)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Looking]:
        shop = _Shop(question)
        async with watch(access, question.settings) as watching:

            async def again() -> Look:
                sight = await watching.sight()
                # The decision takes a second on large clusters; keys are answered meanwhile.
                look = await asyncio.to_thread(_look_anew, sight, shop, question)
                return replace(look, trouble=watching.trouble)

            yield again

    return opened


class _Shop:
    """What can be bought, worked out again only when NodePools or node classes change."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._known: tuple[_Pools, Supply] | None = None

    def supply(self, sight: Sight) -> Supply:
        """Return the catalog for what is seen."""
        pools = tuple(replace(each, record=None) for each in sight.snapshot.pools)
        specs = tuple(
            replace(each, value={key: each.value.get(key) for key in ("spec", "status")})
            for each in sight.node_classes
        )
        question = at_home(self._question, sight.snapshot)
        asked = question.catalog, pools, specs
        if self._known is None or self._known[0] != asked:
            needs = Needs(sight.snapshot, sight.node_classes)
            self._known = asked, find_supply(question, needs)
        return self._known[1]


_Pools: TypeAlias = tuple[str | None, tuple[NodePool, ...], tuple[NodeClassFound, ...]]


def _look_anew(sight: Sight, shop: _Shop, question: Question) -> Look:
    snapshot, _ = with_room(sight.snapshot, sight.buffers, question, is_live=True)
    return _look_at(supplied(snapshot, question, shop.supply(sight)), question)


def _look_at(seen: Seen, question: Question) -> Look:
    decided = decide_seen(seen, question)
    snapshot = with_inferred_state(decided.snapshot, decided.verdict)
    shown = overview(snapshot, decided.verdict)
    return Look(snapshot, decided.verdict, shown, seen.catalog_title)
