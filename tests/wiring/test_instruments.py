"""Decisions are recorded unless they repeat the last one."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.adapters.mirror.mirror import Mirror
from karpy.cli.examples import CLUSTER, example_documents
from karpy.codec.catalogs import kwok_catalog
from karpy.codec.verdicts import disruption_to_json
from karpy.controllers.nominations import ClaimNominations
from karpy.core.disruption.decide import decide_disruption, decide_nodes
from karpy.core.lifecycle.changes import Remark
from karpy.core.staticpools import decide_pool
from karpy.model.commands import DisruptionVerdict
from karpy.model.pools import Headcount
from karpy.model.settings import Settings
from karpy.model.snapshot import (
    ConfirmationQuestion,
    DisruptionQuestion,
    FillUpQuestion,
    LegacyRepairQuestion,
    NodeQuestion,
    PoolQuestion,
    Snapshot,
    ThinOutQuestion,
    ValidationQuestion,
)
from karpy.model.verdicts import PoolVerdict, Reason, Refusal, Verdict
from karpy.sim.world import World
from karpy.wiring.embedded import embedded_world
from karpy.wiring.instruments import DecisionAudience, DisruptionAudience, PoolAudience
from karpy.wiring.resident import BRISK, apply_manifests, operating
from tests.builders import NOON, pool
from tests.core.disruption.methods.test_repair import broken, crowd
from tests.core.disruption.scenes import cluster, node, pod
from tests.core.nodepool.test_staticcapacity import static
from tests.sim.stories import on_virtual_time
from tests.wiring.test_resident import Deaf

NOTHING = DisruptionQuestion(cluster())
BUSY = DisruptionQuestion(cluster(node("a"), pods=[pod("x", on="a", cpu="3")]))
SETTLED = replace(
    BUSY, settled=frozenset({"multi-node-consolidation", "single-node-consolidation"})
)
LEAVING = DisruptionQuestion(cluster(node("a", replaced=True)))
IDLE = DisruptionQuestion(cluster(node("a")))
STILL_IDLE = ValidationQuestion(IDLE.snapshot, decide_disruption(IDLE).commands[0])
LISTED = ConfirmationQuestion(BUSY.snapshot, "emptiness", STILL_IDLE.command.nodes)
REBOOT = DisruptionQuestion(crowd(broken("a", "Slow")))
GIVEN_UP = LegacyRepairQuestion(crowd(broken("a")), "a-claim")
KEPT = LegacyRepairQuestion(crowd(broken("a"), broken("b"), well=0), "a-claim")
ALSO_KEPT = LegacyRepairQuestion(KEPT.snapshot, "b-claim")


def _limited(name: str) -> FillUpQuestion:
    """Ask about a pool that lacks what its limit forbids."""
    record = static(2, limit=0)
    return FillUpQuestion(NOON, replace(record, meta=replace(record.meta, name=name)), Headcount())


LIMITED, OTHERS_LIMITED = _limited("web"), _limited("batch")
ENOUGH = FillUpQuestion(NOON, static(2), Headcount(active=2))
LACKING = FillUpQuestion(NOON, static(2), Headcount(), pool("web", static=True))
TOO_MANY = ThinOutQuestion(NOON, static(0), Headcount(active=1), (node("a"),))


class Book:
    """A journal in memory."""

    def __init__(self) -> None:
        self.disruptions: list[tuple[NodeQuestion, DisruptionVerdict]] = []
        self.pools: list[tuple[PoolQuestion, PoolVerdict]] = []

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        del snapshot, verdict

    def record_disruption(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        self.disruptions.append((question, verdict))

    def record_pool(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        self.pools.append((question, verdict))


def recorded(asked: Sequence[NodeQuestion]) -> list[NodeQuestion]:
    """Decide one after the other; return which of it was recorded."""
    book = Book()
    audience = DisruptionAudience(book)
    for question in asked:
        audience.decided(question, decide_nodes(question))
    return [question for question, _ in book.disruptions]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ([NOTHING, NOTHING], []),
        ([BUSY, BUSY, BUSY], [BUSY]),
        ([BUSY, SETTLED, BUSY, SETTLED], [BUSY]),
        ([BUSY, LEAVING, BUSY], [BUSY, LEAVING, BUSY]),
        ([BUSY, NOTHING, NOTHING], [BUSY, NOTHING]),
        ([IDLE, IDLE], [IDLE, IDLE]),
        ([STILL_IDLE, STILL_IDLE], [STILL_IDLE, STILL_IDLE]),
        ([BUSY, STILL_IDLE, BUSY], [BUSY, STILL_IDLE]),
        ([LISTED, LISTED, BUSY], [LISTED, LISTED, BUSY]),
        ([REBOOT, REBOOT], [REBOOT, REBOOT]),
        ([GIVEN_UP, GIVEN_UP], [GIVEN_UP, GIVEN_UP]),
        ([KEPT, ALSO_KEPT, KEPT, ALSO_KEPT, BUSY], [KEPT, ALSO_KEPT, BUSY]),
    ],
)
def test_only_news_about_nodes_is_recorded(
    asked: Sequence[NodeQuestion], expected: Sequence[NodeQuestion]
) -> None:
    assert recorded(asked) == expected


class LogBook(Deaf):
    """Keeps the lines of the log."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def remark(self, remark: Remark) -> None:
        self.lines.append(remark.event)


STUCK = Verdict(refusals=(Refusal(Reason.NO_POOL, ("default/web-0", "default/web-1")),))
LESS_STUCK = Verdict(refusals=(Refusal(Reason.NO_POOL, ("default/web-0",)),))
FREE = Verdict()


@pytest.mark.parametrize(
    ("verdicts", "lines"),
    [
        ([STUCK, STUCK, STUCK], 1),
        ([STUCK, LESS_STUCK, LESS_STUCK], 2),
        ([STUCK, FREE, FREE, STUCK], 2),
        ([FREE, FREE], 0),
    ],
)
def test_what_stays_pending_is_said_once_until_it_changes(
    verdicts: Sequence[Verdict], lines: int
) -> None:
    book, world = LogBook(), World()
    mirror = Mirror(world.objects, world.clock, kwok_catalog, Settings())
    audience = DecisionAudience(
        book, claim_nominations=ClaimNominations(mirror.records, world.clock)
    )

    for verdict in verdicts:
        audience.decided(Snapshot(now=NOON), verdict, timedelta())

    assert book.lines == ["pod(s) stay pending"] * lines


def recorded_of_pools(asked: Iterable[PoolQuestion]) -> list[PoolQuestion]:
    """Decide one after the other; return which of it was recorded."""
    book = Book()
    audience = PoolAudience(book)
    for question in asked:
        audience.decided(question, decide_pool(question))
    return [question for question, _ in book.pools]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ([ENOUGH, ENOUGH], []),
        ([LACKING, LACKING], [LACKING, LACKING]),
        ([LIMITED, LIMITED, LIMITED], [LIMITED]),
        ([LIMITED, ENOUGH, ENOUGH, LIMITED], [LIMITED, ENOUGH, LIMITED]),
        ([LIMITED, TOO_MANY, LIMITED, TOO_MANY], [LIMITED, TOO_MANY, TOO_MANY]),
        ([LIMITED, OTHERS_LIMITED, LIMITED], [LIMITED, OTHERS_LIMITED]),
    ],
)
def test_only_news_about_pools_is_recorded(
    asked: Sequence[PoolQuestion], expected: Sequence[PoolQuestion]
) -> None:
    assert recorded_of_pools(asked) == expected


def test_of_very_many_pools_the_oldest_verdicts_are_dropped() -> None:
    many = [_limited(f"web-{number}") for number in range(1001)]

    asked = [*many, many[1], many[0]]

    assert recorded_of_pools(asked) == [*many, many[0]]


@on_virtual_time
async def test_an_operator_records_what_it_decides_about_nodes_until_all_is_quiet() -> None:
    book = Book()
    async with (
        embedded_world(BRISK) as world,
        operating(world, notices=Deaf(), voice=Deaf(), journal=book),
    ):
        apply_manifests(world, example_documents(CLUSTER))
        await asyncio.sleep(600)
        settled = len(book.disruptions)
        await asyncio.sleep(3600)

    assert settled > 0
    assert len(book.disruptions) == settled
    assert [disruption_to_json(decide_nodes(each)) for each, _ in book.disruptions] == [
        disruption_to_json(verdict) for _, verdict in book.disruptions
    ]
