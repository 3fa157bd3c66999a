import asyncio

from karpy.cli.show.chronicle import TOGETHER, Happening
from karpy.cli.terminal import Style
from karpy.core.lifecycle.changes import Count, Remark
from karpy.model.commands import Command, CommandNode, DisruptionVerdict
from karpy.model.kinds import POD
from karpy.model.notices import Notice, Subject
from karpy.model.pools import DisruptionReason
from karpy.model.snapshot import DisruptionQuestion, Snapshot, ValidationQuestion
from tests.cli.show.shows import watched_world
from tests.sim.stories import on_virtual_time, pod

TRAINER = Notice(
    Subject(POD, "trainer", "ml"), "FailedScheduling", "Failed to schedule pod, it is too large"
)


@on_virtual_time
async def test_equal_changes_of_several_objects_share_a_line() -> None:
    async with watched_world() as (world, chronicle):
        world.add_node("n1")
        await asyncio.sleep(1)
        world.store.create(POD, pod("web"))
        world.store.create(POD, pod("mail"))

        await asyncio.sleep(0.6)
        early = chronicle.take()
        await asyncio.sleep(TOGETHER)

        assert early == []
        assert chronicle.take() == [
            Happening(1.5, "running", "mail, web; waited 0.5 s", Style.GOOD)
        ]
        assert chronicle.take() == []


@on_virtual_time
async def test_a_refusal_is_shown_once_and_again_when_the_reason_changes() -> None:
    async with watched_world() as (_, chronicle):
        chronicle.emit(TRAINER)
        chronicle.emit(TRAINER)
        chronicle.emit(Notice(TRAINER.subject, TRAINER.reason, "Failed to schedule pod, no zone"))

        told = [each.text for each in chronicle.take(is_over=True)]
        assert told == [
            "ml/trainer stays pending: it is too large",
            "ml/trainer stays pending: no zone",
        ]
        assert chronicle.refused == {"ml/trainer": "no zone"}


@on_virtual_time
async def test_failures_are_shown() -> None:
    async with watched_world() as (_, chronicle):
        chronicle.fail("nodeclaim.lifecycle", "default-1", ValueError("no such type"))
        chronicle.remark(Remark("creating nodeclaim failed", {"error": "quota"}, is_error=True))
        chronicle.remark(Remark("created nodeclaim"))
        chronicle.count(Count("nodeclaims_created_total"))

        assert [(each.word, each.text) for each in chronicle.take(is_over=True)] == [
            ("trouble", "nodeclaim.lifecycle default-1: no such type"),
            ("trouble", "creating nodeclaim failed: error quota"),
        ]
        assert chronicle.troubles == 2


EMPTY = Command(
    "emptiness", DisruptionReason.EMPTY, (CommandNode("n1", "c1", "web", price=100_000),)
)
SHARED = Command(
    "multi-node-consolidation",
    DisruptionReason.UNDERUTILIZED,
    (
        CommandNode("n1", "c1", "web", price=100_000, pods=2),
        CommandNode("n2", "c2", "web", price=50_000, pods=1),
    ),
)


@on_virtual_time
async def test_commands_are_shown_and_their_savings_are_added_up_once_valid() -> None:
    async with watched_world() as (world, chronicle):
        snapshot = Snapshot(now=world.clock.now())
        asked = DisruptionQuestion(snapshot)
        chronicle.record_disruption(asked, DisruptionVerdict("emptiness", (EMPTY,)))
        chronicle.record_disruption(asked, DisruptionVerdict(SHARED.method, (SHARED,)))
        assert chronicle.saved == 0
        held = DisruptionVerdict(SHARED.method, (SHARED,))
        chronicle.record_disruption(ValidationQuestion(snapshot, SHARED), held)

        moved = "2 nodes with 3 pods; the nodes that stay have room for them"
        told = [(each.word, each.text) for each in chronicle.take(is_over=True)]
        assert told == [
            ("empty", "1 node found empty; it goes if that still holds in 15 s"),
            ("shrink", f"{moved}; saves $0.1500/h; they go if that still holds in 15 s"),
        ]
        assert chronicle.saved == 150_000
