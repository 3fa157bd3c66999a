from datetime import UTC, datetime, timedelta

from karpy.model.conditions import FALSE, READY, TRUE, UNKNOWN, Condition, Conditions

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=1)
EMPTY = Conditions(dependents=("Launched", "Registered"))


def said(type_: str, status: str, reason: str = "", generation: int = 1) -> Condition:
    return Condition(type_, status, NOON, reason, "", generation)


def test_what_readiness_depends_on_is_unknown_at_first() -> None:
    begun = EMPTY.with_unknown(created=NOON, now=LATER, generation=1)

    assert [(each.type, each.status, each.changed) for each in begun.items] == [
        ("Launched", UNKNOWN, NOON),
        ("Registered", UNKNOWN, NOON),
        (READY, UNKNOWN, LATER),
    ]
    assert {each.reason for each in begun.items} == {"AwaitingReconciliation"}
    assert begun.with_unknown(NOON, LATER, 1) is begun


def test_an_object_is_ready_once_everything_it_depends_on_is() -> None:
    begun = EMPTY.with_unknown(NOON, NOON, 1)

    half = begun.with_condition(said("Launched", TRUE), LATER)
    whole = half.with_condition(said("Registered", TRUE), LATER)

    root = half.get(READY)
    assert root is not None
    assert (root.status, root.reason, root.message) == (
        UNKNOWN,
        "ReconcilingDependents",
        "Registered=Unknown",
    )
    assert whole.is_true(READY)
    assert whole.items[-1].type == READY


def test_something_that_failed_makes_the_object_unready() -> None:
    failed = EMPTY.with_unknown(NOON, NOON, 1).with_condition(
        said("Launched", FALSE, "Broken"), LATER
    )

    root = failed.get(READY)
    assert root is not None
    assert (root.status, root.reason) == (FALSE, "UnhealthyDependents")
    assert root.message == "Launched=False, Registered=Unknown"


def test_a_status_that_stays_keeps_its_time() -> None:
    first = Conditions().with_condition(said("Drained", UNKNOWN, "Draining"), NOON)

    again = first.with_condition(said("Drained", UNKNOWN, "Waiting"), LATER)
    done = again.with_condition(said("Drained", TRUE), LATER)

    assert [each.items[0].changed for each in (first, again, done)] == [NOON, NOON, LATER]


def test_saying_the_same_again_is_no_change() -> None:
    once = Conditions().with_condition(said("Drained", TRUE), NOON)

    assert once.with_condition(said("Drained", TRUE), LATER) is once


def test_what_was_true_of_an_older_generation_does_not_make_ready() -> None:
    ready = (
        EMPTY.with_unknown(NOON, NOON, 1)
        .with_condition(said("Launched", TRUE), NOON)
        .with_condition(said("Registered", TRUE), NOON)
    )

    changed = ready.with_condition(said("Launched", TRUE, generation=2), LATER)

    assert changed.status(READY) == UNKNOWN


def test_an_object_on_its_way_out_is_spoken_of_as_it_is_now() -> None:
    before = Conditions().with_condition(said("Drifted", TRUE), NOON)

    after = before.with_condition(said("Drained", TRUE, generation=3), LATER, is_deleting=True)

    assert {each.generation for each in after.items} == {3}


def test_what_was_said_can_be_taken_back() -> None:
    drifted = Conditions().with_condition(said("Drifted", TRUE), NOON)

    assert drifted.without("Drifted").get("Drifted") is None
    assert drifted.without("Drifted").status("Drifted") == UNKNOWN
