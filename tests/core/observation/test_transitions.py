from datetime import timedelta

from msgspec.structs import replace

from karpy.core.lifecycle.changes import Count
from karpy.core.observation.transitions import ObservedKind, ObservedObject, Transitions, compare
from karpy.model.conditions import FALSE, TRUE, UNKNOWN, Condition
from karpy.model.kinds import NODE, NODE_CLAIM
from karpy.model.labels import NODE_POOL
from karpy.model.notices import Notice, Subject
from karpy.model.records import Identity
from tests.builders import NOON

CLAIMS = ObservedKind(NODE_CLAIM, {"karpenter_sh_nodepool": NODE_POOL})
NODES = ObservedKind(NODE, has_shared_metrics=False)
META = Identity(
    "web-1", "uid-1", labels={NODE_POOL: "web"}, finalizers=("karpenter.sh/termination",)
)
SUBJECT = Subject(NODE_CLAIM, "web-1", uid="uid-1")
EARLIER = NOON - timedelta(minutes=2)


def observed(status: str, *, message: str = "") -> ObservedObject:
    changed = EARLIER if status == UNKNOWN else NOON
    return ObservedObject(META, (Condition("Launched", status, changed, "Why", message),))


def test_a_condition_that_changes_is_counted_and_has_an_event() -> None:
    told = compare(CLAIMS, observed(UNKNOWN), observed(FALSE, message="sold out"), NOON)

    entered = {"type": "Launched", "status": FALSE, "reason": "Why"}
    left = {"type": "Launched", "status": UNKNOWN, "to_status": FALSE}
    own, shared = {"karpenter_sh_nodepool": "web"}, {"group": "karpenter.sh", "kind": "NodeClaim"}
    each = "status_condition_"
    note = (
        "Status condition transitioned, Type: Launched, Status: Unknown -> False, "
        "Reason: Why, Message: sold out"
    )
    assert told == Transitions(
        (
            Count(f"operator_nodeclaim_{each}transitions_total", {**entered, **own}),
            Count(f"operator_{each}transitions_total", {**entered, **shared}),
            Count(f"operator_nodeclaim_{each}transition_seconds", {**left, **own}, 120.0),
            Count(f"operator_{each}transition_seconds", {**left, **shared}, 120.0),
        ),
        (Notice(SUBJECT, "Launched", note, can_wait=True),),
    )


def test_a_condition_seen_for_the_first_time_is_counted_unless_it_is_unknown() -> None:
    told = [compare(NODES, None, observed(status), NOON) for status in (TRUE, UNKNOWN)]

    labels = {"type": "Launched", "status": TRUE, "reason": "Why"}
    counted = Count("operator_node_status_condition_transitions_total", labels)
    assert told == [Transitions((counted,)), Transitions()]


def test_another_reason_is_no_transition() -> None:
    before = observed(TRUE)
    after = ObservedObject(META, (replace(before.conditions[0], reason="Other"),))

    assert compare(CLAIMS, before, after, NOON) == Transitions()


def test_a_deleted_object_has_its_duration_and_finalizers_reported() -> None:
    going = ObservedObject(replace(META, deleted=EARLIER))

    told = compare(NODES, going, None, NOON)

    assert told.counts == (Count("operator_node_termination_duration_seconds", {}, 120.0),)
    assert [each.note for each in told.notices] == ["Finalized karpenter.sh/termination"]


def test_a_removed_finalizer_has_an_event() -> None:
    free = ObservedObject(replace(META, finalizers=()))

    told = compare(CLAIMS, ObservedObject(META), free, NOON)

    finalized = Notice(SUBJECT, "Finalized", "Finalized karpenter.sh/termination")
    assert told == Transitions(notices=(finalized,))
    assert compare(CLAIMS, free, None, NOON) == Transitions()
