from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from karpy.adapters.clock import WallClock
from karpy.codec.fields import Fields, JsonObject
from karpy.codec.records import read_claim_record, read_node_record
from karpy.codec.schemas.definitions import CUSTOM_KINDS
from karpy.controllers.writer import Writer
from karpy.core.lifecycle.changes import Changes, Count, Remark
from karpy.model.conditions import Condition
from karpy.model.constraints import Taint
from karpy.model.kinds import CUSTOM_RESOURCE, NODE, NODE_CLAIM, Kind
from karpy.model.notices import Notice, Subject
from karpy.model.records import ClaimRecord, Identity, NodeRecord
from karpy.ports.objects import Patch, PatchType
from karpy.ports.records import Kept
from karpy.sim.objects import EmbeddedObjects
from karpy.sim.store.store import Store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLAIM: JsonObject = {
    "metadata": {"name": "web-1"},
    "spec": {
        "requirements": [],
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "k"},
    },
}


class Heard:
    """Records all events, counts and remarks."""

    def __init__(self) -> None:
        self.told: list[Notice | Count | Remark] = []

    def emit(self, notice: Notice) -> None:
        self.told.append(notice)

    def count(self, count: Count) -> None:
        self.told.append(count)

    def remark(self, remark: Remark) -> None:
        self.told.append(remark)


@pytest.fixture
def store() -> Store:
    made = Store(WallClock())
    for kind in CUSTOM_KINDS:
        made.create(CUSTOM_RESOURCE, kind.to_json())
    made.create(NODE_CLAIM, CLAIM)
    made.create(NODE, {"metadata": {"name": "n1"}, "spec": {}})
    return made


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def writer(store: Store, heard: Heard) -> Writer:
    return Writer(EmbeddedObjects(store), heard, heard)


def claim_in(store: Store) -> Kept[ClaimRecord]:
    obj = store.get(NODE_CLAIM, "web-1")
    return Kept(read_claim_record(Fields(obj)), obj)


def node_in(store: Store) -> Kept[NodeRecord]:
    obj = store.get(NODE, "n1")
    return Kept(read_node_record(Fields(obj)), obj)


def launched(claim: ClaimRecord) -> ClaimRecord:
    said = Condition("Launched", "True", NOON, "Launched", "", 1)
    return replace(
        claim,
        meta=replace(claim.meta, labels={"zone": "a"}, finalizers=("karpenter.sh/termination",)),
        provider_id="kwok://n1",
        conditions=claim.conditions.with_condition(said, NOON),
    )


async def test_an_object_becomes_what_it_should_be(store: Store, writer: Writer) -> None:
    claim = claim_in(store)
    wanted = launched(claim.record)

    is_written = await writer.carry_out(Changes(claim=wanted), claim=claim)

    after = claim_in(store).record
    assert is_written
    assert after.provider_id == "kwok://n1"
    assert after.meta.labels == {"zone": "a"}
    assert after.meta.finalizers == ("karpenter.sh/termination",)
    assert after.conditions.is_true("Launched")


async def test_the_write_of_a_faster_writer_is_not_overwritten(
    store: Store, writer: Writer, heard: Heard
) -> None:
    claim = claim_in(store)
    patch = Patch(PatchType.MERGE, {"metadata": {"finalizers": ["example.com/theirs"]}})
    store.patch(NODE_CLAIM, "web-1", patch)
    notice = Notice(Subject(NODE_CLAIM, "web-1"), "Launched", "launched")

    is_written = await writer.carry_out(
        Changes(claim=launched(claim.record), notices=(notice,)), claim=claim
    )

    assert not is_written
    assert claim_in(store).record.meta.finalizers == ("example.com/theirs",)
    assert heard.told == []


async def test_conditions_are_not_written_over_newer_ones_after_a_label(
    store: Store, writer: Writer
) -> None:
    """The label needs no version; but its new version must not be the guard of the status."""
    claim = claim_in(store)
    theirs = {"type": "Drifted", "status": "True", "reason": "R", "message": ""}
    theirs["lastTransitionTime"] = "2026-01-01T12:00:00Z"
    body = {"status": {"conditions": [theirs]}}
    store.patch(NODE_CLAIM, "web-1", Patch(PatchType.MERGE, body), subresource="status")
    said = Condition("Launched", "True", NOON, "Launched", "", 1)
    wanted = replace(
        claim.record,
        meta=replace(claim.record.meta, labels={"zone": "a"}),
        conditions=claim.record.conditions.with_condition(said, NOON),
    )

    is_written = await writer.carry_out(Changes(claim=wanted), claim=claim)

    assert not is_written
    assert claim_in(store).record.conditions.is_true("Drifted")


async def test_a_claim_says_nothing_of_its_node_that_could_not_be_written(
    store: Store, writer: Writer
) -> None:
    claim, node = claim_in(store), node_in(store)
    theirs = {"spec": {"taints": [{"key": "theirs", "effect": "NoSchedule"}]}}
    store.patch(NODE, "n1", Patch(PatchType.MERGE, theirs))
    ours = replace(node.record, taints=(Taint("ours", "NoSchedule"),))

    is_written = await writer.carry_out(
        Changes(claim=launched(claim.record), node=ours), claim=claim, node=node
    )

    assert not is_written
    assert claim_in(store).record == claim.record


async def test_a_claim_says_nothing_of_a_node_that_is_gone(store: Store, writer: Writer) -> None:
    claim, node = claim_in(store), node_in(store)
    store.delete(NODE, "n1")
    ours = replace(node.record, taints=(Taint("ours", "NoSchedule"),))

    is_written = await writer.carry_out(
        Changes(claim=launched(claim.record), node=ours), claim=claim, node=node
    )

    assert not is_written
    assert claim_in(store).record == claim.record


async def test_what_is_gone_needs_nothing(store: Store, writer: Writer) -> None:
    claim = claim_in(store)
    store.delete(NODE_CLAIM, "web-1")

    assert await writer.carry_out(
        Changes(claim=launched(claim.record), deletes_claim=True), claim=claim
    )


async def test_taints_are_written_to_the_node(store: Store, writer: Writer) -> None:
    node = node_in(store)
    tainted = replace(node.record, taints=(Taint("karpenter.sh/disrupted", "NoSchedule"),))

    await writer.carry_out(Changes(node=tainted), node=node)

    assert node_in(store).record.taints == tainted.taints


async def test_a_deletion_is_for_the_one_that_was_looked_at(store: Store, writer: Writer) -> None:
    claim = claim_in(store)
    store.delete(NODE_CLAIM, "web-1")
    store.create(NODE_CLAIM, CLAIM)

    is_written = await writer.carry_out(Changes(deletes_claim=True), claim=claim)

    assert not is_written
    assert claim_in(store).record.meta.uid != claim.record.meta.uid


async def test_counts_and_events_are_reported_after_the_write(
    store: Store, writer: Writer, heard: Heard
) -> None:
    notice = Notice(Subject(NODE_CLAIM, "web-1"), "Expired", "too old")
    count, remark = Count("nodeclaims_disrupted_total"), Remark("deleted nodeclaim")

    await writer.carry_out(
        Changes(deletes_claim=True, notices=(notice,), counts=(count,), remarks=(remark,)),
        claim=claim_in(store),
    )

    assert heard.told == [notice, count, remark]
    assert store.find(NODE_CLAIM, "web-1") is None


class Knowing:
    """A cache with one newest version, which records writes."""

    def __init__(self, version: str = "") -> None:
        self.version = version
        self.noted: list[JsonObject] = []

    def is_current(self, kind: Kind, meta: Identity) -> bool:
        del kind
        return not self.version or meta.version == self.version

    def note_written(self, kind: Kind, obj: JsonObject) -> None:
        del kind
        self.noted.append(obj)


async def test_what_was_written_is_known_at_once(store: Store, heard: Heard) -> None:
    memory = Knowing()
    writer = Writer(EmbeddedObjects(store), heard, heard, memory)
    seen = claim_in(store)
    wanted = replace(seen.record, provider_id="kwok://n1")

    await writer.carry_out(Changes(wanted), claim=seen)

    assert memory.noted == [store.get(NODE_CLAIM, "web-1")]


async def test_an_outdated_object_causes_no_request(store: Store, heard: Heard) -> None:
    writer = Writer(EmbeddedObjects(store), heard, heard, Knowing("999"))
    seen = claim_in(store)
    wanted = replace(seen.record, provider_id="kwok://n1")
    before = store.version

    is_written = await writer.carry_out(Changes(wanted), claim=seen)

    assert not is_written
    assert store.version == before
