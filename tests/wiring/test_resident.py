"""The autoscaler inside an embedded cluster."""

import asyncio
import json
from pathlib import Path

import pytest

from karpy.cli.examples import CLUSTER, example_documents
from karpy.core.lifecycle.changes import Count, Remark
from karpy.errors import ManifestInvalid
from karpy.model.commands import DisruptionVerdict
from karpy.model.kinds import EVENTS_EVENT, NODE_CLAIM
from karpy.model.notices import Notice
from karpy.model.snapshot import NodeQuestion, PoolQuestion, Snapshot
from karpy.model.verdicts import PoolVerdict, Verdict
from karpy.wiring.embedded import embedded_world
from karpy.wiring.resident import BRISK, apply_manifests, autoscaled, operating
from tests.sim.stories import on_virtual_time


class Deaf:
    """A Voice that ignores everything but failures, which it raises."""

    def emit(self, notice: Notice) -> None:
        del notice

    def count(self, count: Count) -> None:
        del count

    def remark(self, remark: Remark) -> None:
        del remark

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        raise AssertionError((controller, key, error))


class TornJournal:
    """Cannot be written in."""

    def record(self, snapshot: Snapshot, verdict: Verdict) -> None:
        del snapshot, verdict
        raise ValueError("no page is left")

    def record_disruption(self, question: NodeQuestion, verdict: DisruptionVerdict) -> None:
        del question, verdict
        raise ValueError("no page is left")

    def record_pool(self, question: PoolQuestion, verdict: PoolVerdict) -> None:
        del question, verdict
        raise ValueError("no page is left")


@on_virtual_time
async def test_it_launches_what_pods_wait_for_until_it_is_left() -> None:
    async with embedded_world(BRISK) as world:
        async with operating(world, notices=Deaf(), voice=Deaf()) as task:
            apply_manifests(world, example_documents(CLUSTER))
            await asyncio.sleep(10)

        assert len(world.store.list(NODE_CLAIM)) == 4
        assert task.cancelled()


class Alert(Deaf):
    """Keeps what failed."""

    def __init__(self) -> None:
        self.failures: list[tuple[str, str, str]] = []

    def fail(self, controller: str, key: str, error: BaseException) -> None:
        self.failures.append((controller, key, str(error.__cause__)))


@on_virtual_time
async def test_a_journal_that_cannot_be_written_is_reported_and_launches_go_on() -> None:
    voice = Alert()

    async with (
        embedded_world(BRISK) as world,
        operating(world, notices=Deaf(), voice=voice, journal=TornJournal()),
    ):
        apply_manifests(world, example_documents(CLUSTER))
        await asyncio.sleep(10)
        claims = len(world.store.list(NODE_CLAIM))

    assert claims == 4
    assert ("provisioner", "verdict", "no page is left") in voice.failures


@on_virtual_time
async def test_events_and_a_log_tell_what_it_does(tmp_path: Path) -> None:
    async with embedded_world(BRISK) as world, autoscaled(world, tmp_path / "log"):
        apply_manifests(world, example_documents(CLUSTER))
        await asyncio.sleep(10)
        reasons = {each["reason"] for each in world.store.list(EVENTS_EVENT)}

    messages = [json.loads(each)["message"] for each in (tmp_path / "log").read_text().splitlines()]
    assert "Nominated" in reasons
    assert messages.count("launched nodeclaim") == 4


@on_virtual_time
async def test_a_manifest_that_cannot_be_read_is_named() -> None:
    async with embedded_world(BRISK) as world:
        with pytest.raises(ManifestInvalid, match=r"broken\.yaml"):
            apply_manifests(world, [("broken.yaml", "kind: [")])
