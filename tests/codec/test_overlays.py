from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from karpy.codec.fields import FieldInvalid, Fields
from karpy.codec.overlays import overlay_writes, read_overlay_record
from karpy.codec.patches.merge import merge
from karpy.codec.records import Writes
from karpy.model.conditions import Condition, Conditions
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, NODE_POOL
from karpy.model.pools import NodeOverlay, OverlayRecord
from karpy.model.records import Identity
from karpy.model.requirements import one_of
from tests.codec.plain import Json, Value, wants

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DEPENDENTS = ("ValidationSucceeded",)


def overlay(*requirements: Json, **spec: Value) -> Json:
    meta = {"name": "o", "uid": "u", "resourceVersion": "7", "generation": 2}
    return {"metadata": meta, "spec": {"requirements": list(requirements), **spec}}


def test_an_overlay_is_read_in_full() -> None:
    obj = overlay(wants(NODE_POOL, "In", "web"), price="0.5", weight=3)

    record = read_overlay_record(Fields(obj))

    assert record == OverlayRecord(
        Identity("o", "u", "7", 2),
        NodeOverlay("o", (one_of(NODE_POOL, "web"),), price="0.5", weight=3),
        conditions=Conditions((), DEPENDENTS),
    )


@pytest.mark.parametrize(
    ("obj", "fault"),
    [
        (overlay(wants(HOSTNAME, "In", "x")), "`spec.requirements[0].key` is"),
        (overlay(wants("a", "NotIn")), "`spec.requirements[0].values` is empty"),
        (overlay(wants("a", "NotIn", "no value!")), "`spec.requirements[0].values[0]` is"),
        (overlay(wants(CAPACITY_TYPE, "In", "barter")), "`spec.requirements[0].values` is"),
        (overlay(price="cheap"), "`spec.price` is `cheap`"),
        (overlay(capacity={"cpu": "1"}), "`spec.capacity.cpu` may not be changed"),
        (overlay(wants(NODE_POOL, "In")), "`spec.requirements[0].values`"),
    ],
)
def test_an_overlay_that_makes_no_sense_says_why(obj: Json, fault: str) -> None:
    record = read_overlay_record(Fields(obj))

    assert record.overlay is None
    assert record.faults[0].startswith(fault)


def test_every_fault_is_reported_once() -> None:
    obj = overlay(wants(HOSTNAME, "In", "x"), wants("a", "In"))

    record = read_overlay_record(Fields(obj))

    assert len(record.faults) == len(set(record.faults)) == 2


def test_an_overlay_without_a_name_cannot_be_kept() -> None:
    with pytest.raises(FieldInvalid, match=r"metadata\.name"):
        read_overlay_record(Fields({"spec": {"requirements": []}}))


def test_conditions_are_written_over_what_was_read_only() -> None:
    obj = overlay()
    before = read_overlay_record(Fields(obj))
    said = Condition("ValidationSucceeded", "False", NOON, "Conflict", "with another", 2)
    after = replace(before, conditions=Conditions((said,), DEPENDENTS))

    writes = overlay_writes(before, after)

    assert writes.status is not None
    assert writes.status["metadata"] == {"resourceVersion": "7"}
    assert read_overlay_record(Fields(merge(obj, writes.status))) == after
    assert overlay_writes(after, after) == Writes()
