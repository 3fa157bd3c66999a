"""Those who hear of decisions, and what they make of it."""

import asyncio
from collections.abc import Iterable, Sequence

import pytest
from msgspec.structs import replace

from karpy.cli.examples import CLUSTER, example_documents
from karpy.codec.verdicts import disruption_to_json
from karpy.core.disruption.decide import decide_disruption
from karpy.core.staticpools import decide_pool
from karpy.model.pools import Headcount
from karpy.model.questions import (
    BrokenNodesQuestion,
    DisruptionQuestion,
    EmptyNodesQuestion,
    FillUpQuestion,
    LegacyRepairQuestion,
    PoolQuestion,
    ProposedNode,
    SecondLookQuestion,
    ThinOutQuestion,
    TreatmentQuestion,
)
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import DisruptionVerdict, PoolVerdict, Verdict
from karpy.wiring.audiences import DisruptionAudience, PoolAudience
from karpy.wiring.embedded import embedded_world
from karpy.wiring.resident import BRISK, apply_manifests, operating
from tests.builders import NOON, node, pod, pool, snapshot
from tests.core.disruption.questions import REPAIRS
from tests.core.disruption.scenes import around, state, tenant
from tests.core.disruption.test_repairing import crowd, sick
from tests.core.nodepool.test_staticcapacity import static
from tests.sim.stories import on_virtual_time
from tests.wiring.test_resident import Deaf

NOBODY = EmptyNodesQuestion(around())
BUSY = EmptyNodesQuestion(around(state("a", tenants=[tenant("x")])))
MARKED = EmptyNodesQuestion(around(state("a", marked=True)))
IDLE = EmptyNodesQuestion(around(state("a")))
STILL_IDLE = SecondLookQuestion(around(state("a")), (ProposedNode("a-claim", "a"),))
WELL = BrokenNodesQuestion(crowd(), REPAIRS)
REBOOT = TreatmentQuestion(crowd(sick("a", "Slow")), snapshot(), REPAIRS)
HOPELESS = TreatmentQuestion(
    crowd(sick("a")),
    snapshot(
        nodes=[node("a", pool="web")], pods=[pod("x", on="a", cpu="300")], pools=[pool("web")]
    ),
    REPAIRS,
)
GIVEN_UP = LegacyRepairQuestion(crowd(sick("a")), sick("a"), REPAIRS)
SPARED = LegacyRepairQuestion(crowd(sick("a"), sick("b"), well=0), sick("a"), REPAIRS)
ALSO_SPARED = LegacyRepairQuestion(SPARED.surroundings, sick("b"), REPAIRS)
NO_PATIENT = TreatmentQuestion(crowd(), snapshot(), REPAIRS)
BROKEN = BrokenNodesQuestion(crowd(sick("a")), REPAIRS)


def _limited(name: str) -> FillUpQuestion:
    """Ask about a pool that lacks what its limit forbids."""
    record = static(2, limit=0)
    return FillUpQuestion(NOON, replace(record, meta=replace(record.meta, name=name)), Headcount())


LIMITED, OTHERS_LIMITED = _limited("web"), _limited("batch")
ENOUGH = FillUpQuestion(NOON, static(2), Headcount(active=2))
LACKING = FillUpQuestion(NOON, static(2), Headcount(), pool("web", static=True))
TOO_MANY = ThinOutQuestion(NOON, static(0), Headcount(active=1), (state("a"),))


class Book:
    """A journal in memory."""

    def __init__(self) -> None:
        self.disruptions: list[tuple[DisruptionQuestion, DisruptionVerdict]] = []
        self.pools: list[tuple[PoolQuestion, PoolVerdict]] = []

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        del snapshot, verdict

    def record_disruption(self, question: DisruptionQuestion, verdict: DisruptionVerdict) -> None:
        self.disruptions.append((question, verdict))

    def record_pool(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        self.pools.append((question, verdict))


def recorded(asked: Sequence[DisruptionQuestion]) -> list[DisruptionQuestion]:
    """Decide one after the other; return which of it was recorded."""
    book = Book()
    audience = DisruptionAudience(book)
    for question in asked:
        audience.decided(question, decide_disruption(question))
    return [question for question, _ in book.disruptions]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ([NOBODY, NOBODY, WELL], []),
        ([BUSY, BUSY, BUSY], [BUSY]),
        ([BUSY, MARKED, BUSY], [BUSY, MARKED, BUSY]),
        ([BUSY, NOBODY, NOBODY], [BUSY, NOBODY]),
        ([IDLE, IDLE], [IDLE, IDLE]),
        ([STILL_IDLE, STILL_IDLE], [STILL_IDLE, STILL_IDLE]),
        ([BUSY, STILL_IDLE, BUSY], [BUSY, STILL_IDLE]),
        ([REBOOT, REBOOT], [REBOOT, REBOOT]),
        ([HOPELESS, HOPELESS, HOPELESS], [HOPELESS]),
        ([NO_PATIENT, HOPELESS, NO_PATIENT, NO_PATIENT], [HOPELESS, NO_PATIENT]),
        ([BROKEN, HOPELESS, BROKEN, HOPELESS], [BROKEN, HOPELESS]),
        ([GIVEN_UP, GIVEN_UP], [GIVEN_UP, GIVEN_UP]),
        ([SPARED, ALSO_SPARED, SPARED, ALSO_SPARED, BROKEN], [SPARED, ALSO_SPARED, BROKEN]),
        ([BROKEN, BROKEN, WELL, WELL], [BROKEN, WELL]),
        ([BUSY, BROKEN, BUSY, BROKEN], [BUSY, BROKEN]),
    ],
)
def test_only_news_about_nodes_is_recorded(
    asked: Sequence[DisruptionQuestion], expected: Sequence[DisruptionQuestion]
) -> None:
    assert recorded(asked) == expected


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


def test_of_very_many_pools_those_are_forgotten_that_were_told_of_first() -> None:
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
    assert [disruption_to_json(decide_disruption(each)) for each, _ in book.disruptions] == [
        disruption_to_json(verdict) for _, verdict in book.disruptions
    ]
