from datetime import timedelta

from msgspec.structs import replace

from karpy.adapters.telemetry.statusmetrics import StatusMetrics
from karpy.model.conditions import FALSE, TRUE, Condition, Conditions
from karpy.model.labels import INITIALIZED
from karpy.model.records import ClaimRecord
from tests.adapters.telemetry.books import Book
from tests.builders import NODE_CLASS_LABEL, NOON
from tests.core.lifecycle.scenes import claim, node, pool

EARLIER = NOON - timedelta(minutes=1)
COUNT = "status_condition_count"
TRANSITIONS = "status_condition_transitions_total"


def watched() -> Book:
    book = Book()
    StatusMetrics(book.metrics, book.records, book, book, [NODE_CLASS_LABEL])
    return book


def said(status: str, reason: str = "Why") -> ClaimRecord:
    changed = NOON if status == TRUE else EARLIER
    condition = Condition("Launched", status, changed, reason)
    record = claim(labels={NODE_CLASS_LABEL: "default"})
    return replace(record, conditions=Conditions((condition,)))


def test_each_condition_is_also_exported_for_all_kinds() -> None:
    book = watched()
    book.put_claim(said(TRUE))

    own, shared = book.labels(f"operator_nodeclaim_{COUNT}"), book.labels(f"operator_{COUNT}")

    common = {
        "namespace": "",
        "name": "web-1",
        "type": "Launched",
        "status": "True",
        "reason": "Why",
    }
    assert own == [
        {**common, "example_com_testnodeclass": "default", "karpenter_sh_nodepool": "web"}
    ]
    assert shared == [{**common, "group": "karpenter.sh", "kind": "NodeClaim"}]


def test_a_condition_is_as_old_as_its_last_change() -> None:
    book = watched()
    book.put_claim(said(FALSE))

    book.wait(30)

    seconds = book.told("operator_nodeclaim_status_condition_current_status_seconds", "status")
    assert seconds == {"False": 90.0}


def test_a_transition_is_counted_measured_and_causes_an_event() -> None:
    book = watched()
    book.put_claim(said(FALSE))

    book.put_claim(said(TRUE))

    assert book.told(f"operator_nodeclaim_{TRANSITIONS}", "status") == {"False": 1.0, "True": 1.0}
    assert book.told(
        "operator_status_condition_transition_seconds_sum", "status", "to_status", "kind"
    ) == {"False True NodeClaim": 60.0}
    assert book.told(f"operator_nodeclaim_{COUNT}", "status") == {"True": 1.0}
    assert [each.note for each in book.notices] == [
        "Status condition transitioned, Type: Launched, Status: False -> True, Reason: Why"
    ]


def test_what_is_there_already_is_counted_without_a_word() -> None:
    book = Book()
    book.put_claim(said(TRUE))

    StatusMetrics(book.metrics, book.records, book, book, [NODE_CLASS_LABEL])

    assert book.told(f"operator_nodeclaim_{TRANSITIONS}", "status") == {"True": 1.0}
    assert book.notices == []


def test_deleting_objects_are_exported_until_they_are_gone() -> None:
    book = watched()
    going = "operator_nodepool_termination_"
    record = pool()
    book.put_pool(replace(record, meta=replace(record.meta, deleted=EARLIER)))
    there = book.told(f"{going}current_time_seconds", "name")

    book.records.pools.put(record.name, None)

    assert there == {record.name: 60.0}
    assert book.told(f"{going}current_time_seconds", "name") == {}
    assert book.told(f"{going}duration_seconds_sum") == {"": 60.0}


def test_another_object_of_the_same_name_is_not_the_same() -> None:
    book = watched()
    first = replace(said(TRUE), meta=replace(claim().meta, deleted=EARLIER))
    book.put_claim(first)

    book.put_claim(replace(said(FALSE), meta=replace(claim().meta, uid="other")))

    assert book.told("operator_termination_duration_seconds_sum", "kind") == {"NodeClaim": 60.0}
    assert [each.note for each in book.notices] == ["Finalized karpenter.sh/termination"]


def test_nodes_have_no_metrics_for_all_kinds() -> None:
    book = watched()
    book.put_node(node(labels={INITIALIZED: "true"}))

    own = book.told(f"operator_node_{COUNT}", "karpenter_sh_initialized", "type", "status")

    assert own == {"true Ready True": 1.0}
    assert book.told(f"operator_{COUNT}", "kind") == {}
