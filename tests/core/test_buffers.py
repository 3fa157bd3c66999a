from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from karpy.core.buffers import (
    PODS_MAX,
    TOGETHER_MAX,
    BufferPlacement,
    Resolved,
    Unresolved,
    allow,
    buffer_of,
    find_placements,
    judge_placement,
    not_found,
    pods_by_node,
    pods_wanted,
    resolve,
    room_of,
    rooms_among,
    settle,
    virtual_pods,
    wanted_replicas,
    why_unresolvable,
)
from karpy.model.buffers import BufferRecord, PodSource, ScalableRef
from karpy.model.conditions import FALSE, TRUE, Condition, Conditions
from karpy.model.pods import DAEMON_SET
from karpy.model.records import Identity
from karpy.model.verdicts import Launch, LaunchOption, Nomination, Reason, Refusal, Verdict
from tests.builders import owner, pod, requests
from tests.builders.pods import NOON

LATER = NOON + timedelta(minutes=1)
DEPLOYMENT = ScalableRef("Deployment", "web")
OPTION = LaunchOption("small", 1, "zone-a", "spot")


def buffer(**changes: object) -> BufferRecord:
    """Build the buffer `shop/spare` of a Deployment."""
    record = BufferRecord(Identity("spare", "uid-1", generation=3), "shop", scalable=DEPLOYMENT)
    return replace(record, **changes)


def ready(replicas: int) -> BufferRecord:
    return settle(buffer(replicas=replicas), Resolved(pod("web")), NOON)


@pytest.mark.parametrize(
    ("changes", "workload", "expected"),
    [
        ({"percentage": 20}, 10, 2),
        ({"percentage": 1}, 1, 1),
        ({"percentage": 0}, 10, 0),
        ({"percentage": 50}, 0, 0),
        ({"replicas": 5, "percentage": 20}, 10, 5),
        ({"replicas": 1, "percentage": 20}, 10, 2),
        ({"replicas": 99, "limits": {"cpu": 20_000}}, 10, 10),
        ({"replicas": 3, "limits": {"cpu": 20_000}}, 10, 3),
        ({"limits": {"cpu": 20_000, "memory": 5 * 2**30}}, 0, 5),
        ({"replicas": 3, "limits": {"gpu": 1}}, 0, 3),
        ({"limits": {"gpu": 1}}, 0, 0),
        ({}, 10, 0),
        ({"percentage": 50, "pod_template": "t", "scalable": None}, 10, 0),
    ],
)
def test_a_buffer_has_the_larger_of_replicas_and_percentage_within_its_limits(
    changes: dict[str, object], workload: int, expected: int
) -> None:
    size = requests("2", "1Gi")

    assert wanted_replicas(buffer(**changes), size, workload) == expected


@given(st.integers(1, 100), st.integers(1, 200), st.integers(1, 50))
def test_a_percentage_of_a_workload_is_rounded_up(
    workload: int, percentage: int, limit: int
) -> None:
    free = wanted_replicas(buffer(percentage=percentage), {"cpu": 1}, workload)
    limited = buffer(percentage=percentage, limits={"cpu": limit})

    assert free >= 1
    assert free * 100 >= workload * percentage
    assert wanted_replicas(limited, {"cpu": 1}, workload) == min(free, limit)


@given(st.dictionaries(st.text("abc", max_size=3), st.integers(0, 2**63), max_size=20))
def test_buffers_have_what_they_ask_for_as_far_as_all_together_may(wanted: dict[str, int]) -> None:
    allowed = allow(wanted)

    capped = {key: min(count, PODS_MAX) for key, count in wanted.items()}
    assert sum(allowed.values()) == min(sum(capped.values()), TOGETHER_MAX)
    assert all(allowed[key] <= capped[key] for key in wanted)
    # One that gets less than it asks for has no less than any other.
    cut = [allowed[key] for key in wanted if allowed[key] < capped[key]]
    assert all(each >= max(allowed.values()) - 1 for each in cut)


def test_a_vast_buffer_costs_no_more_than_a_decision_can_look_at_and_says_so() -> None:
    source = PodSource(pod("web"), 7)
    vast = buffer(replicas=2**63)

    settled = settle(vast, resolve(vast, source), NOON)

    condition = settled.conditions.get("ReadyForProvisioning")
    assert settled.settled_replicas == PODS_MAX == len(room_of(vast, source, NOON))
    assert pods_wanted(vast, source) == 2**63
    assert condition == Condition(
        "ReadyForProvisioning",
        TRUE,
        NOON,
        "Resolved",
        "Pod template resolved successfully; room is kept for 5000 of 9223372036854775808 pods: "
        "at most 5000 for one CapacityBuffer, and 10000 for all together",
        3,
    )


def test_a_buffer_that_others_leave_less_says_so() -> None:
    source = PodSource(pod("web"), 7)
    record = buffer(replicas=40)

    settled = settle(record, resolve(record, source), NOON, allowed=25)

    condition = settled.conditions.get("ReadyForProvisioning")
    assert condition is not None
    assert settled.settled_replicas == 25 == len(room_of(record, source, NOON, allowed=25))
    assert "room is kept for 25 of 40 pods" in condition.message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scalable": None}, "Neither podTemplateRef nor scalableRef is set"),
        (
            {"scalable": ScalableRef("Job", "web", "batch")},
            (
                "scalableRef is a Job of `batch`; "
                "it can be one of Deployment, StatefulSet, ReplicaSet of apps"
            ),
        ),
        (
            {"scalable": ScalableRef("Deployment", "web", "example.com")},
            (
                "scalableRef is a Deployment of `example.com`; "
                "it can be one of Deployment, StatefulSet, ReplicaSet of apps"
            ),
        ),
    ],
)
def test_an_invalid_reference_of_a_buffer_is_unresolvable(
    changes: dict[str, object], message: str
) -> None:
    assert why_unresolvable(buffer(**changes)) == Unresolved("ResolutionFailed", message)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"scalable": ScalableRef("ReplicaSet", "web", "apps")},
        {"scalable": None, "pod_template": "t"},
    ],
)
def test_a_valid_reference_of_a_buffer_is_resolvable(changes: dict[str, object]) -> None:
    assert why_unresolvable(buffer(**changes)) is None


def test_the_reason_names_the_kind_of_the_missing_object() -> None:
    reasons = [not_found(each, "gone").reason for each in (buffer(), buffer(pod_template="t"))]

    assert reasons == ["ScalableRefNotFound", "PodTemplateNotFound"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Resolved(pod("web"), workload_replicas=7)),
        (
            {"pod_template": "t", "scalable": None},
            Resolved(pod("web"), template="t", template_generation=4),
        ),
        (
            {"scalable": None},
            Unresolved("ResolutionFailed", "Neither podTemplateRef nor scalableRef is set"),
        ),
    ],
)
def test_the_pods_of_a_buffer_are_made_from_its_source(
    changes: dict[str, object], expected: Resolved | Unresolved
) -> None:
    assert resolve(buffer(**changes), PodSource(pod("web"), 7, 4)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Unresolved("ScalableRefNotFound", 'deployments.apps "web" not found')),
        (
            {"pod_template": "t", "scalable": None},
            Unresolved("PodTemplateNotFound", 'podtemplates "t" not found'),
        ),
    ],
)
def test_a_source_that_is_missing_is_named(
    changes: dict[str, object], expected: Unresolved
) -> None:
    assert resolve(buffer(**changes), None) == expected


def test_virtual_pods_do_not_need_a_status() -> None:
    meta = Identity("spare", "uid-1", created=NOON)
    source = PodSource(pod("web"))

    room = room_of(buffer(meta=meta, replicas=2), source, LATER)

    assert [each.name for each in room] == ["capacity-buffer-spare-1", "capacity-buffer-spare-2"]
    assert {(each.created, each.is_virtual) for each in room} == {(NOON, True)}


@pytest.mark.parametrize(
    ("record", "source"),
    [
        (buffer(replicas=2), None),
        (buffer(replicas=2, meta=Identity("spare", deleted=NOON)), PodSource(pod("web"))),
        (buffer(), PodSource(pod("web"))),
    ],
)
def test_a_deleting_unresolvable_or_empty_buffer_has_no_virtual_pods(
    record: BufferRecord, source: PodSource | None
) -> None:
    assert room_of(record, source, LATER) == ()


def test_the_status_of_a_buffer_has_its_replicas() -> None:
    resolved = Resolved(pod("web"), workload_replicas=10)

    settled = settle(buffer(percentage=20), resolved, NOON)

    message = "Pod template resolved successfully"
    condition = Condition("ReadyForProvisioning", TRUE, NOON, "Resolved", message, 3)
    assert settled == buffer(
        percentage=20,
        settled_strategy="buffer.x-k8s.io/active-capacity",
        settled_replicas=2,
        conditions=Conditions((condition,)),
    )


def test_the_status_of_a_buffer_names_its_template() -> None:
    resolved = Resolved(pod("web"), template="t", template_generation=4)

    settled = settle(buffer(pod_template="t", scalable=None, replicas=1), resolved, NOON)

    assert (settled.settled_template, settled.settled_generation) == ("t", 4)


def test_a_buffer_without_its_workload_keeps_no_room() -> None:
    lost = settle(ready(2), not_found(buffer(), "deployments.apps web not found"), LATER)

    condition = lost.conditions.get("ReadyForProvisioning")
    assert condition == Condition(
        "ReadyForProvisioning",
        FALSE,
        LATER,
        "ScalableRefNotFound",
        "deployments.apps web not found",
        3,
    )
    assert virtual_pods(lost, pod("web"), NOON) == ()


def test_virtual_pods_are_pending_and_unschedulable() -> None:
    template = pod(
        "web",
        namespace="default",
        labels={"app": "web"},
        claims=["data"],
        ephemeral=["scratch"],
        on="node-1",
        owners=[owner(DAEMON_SET)],
    )

    pods = virtual_pods(ready(2), template, LATER)

    expected = replace(
        pod("web", namespace="shop", labels={"app": "web"}),
        phase="",
        created=LATER,
        is_virtual=True,
    )
    assert pods == (
        replace(expected, name="capacity-buffer-spare-1", uid="uid-1-1"),
        replace(expected, name="capacity-buffer-spare-2", uid="uid-1-2"),
    )


def test_pods_of_a_buffer_share_what_is_equal() -> None:
    first, second = virtual_pods(ready(2), pod("web", claims=["data"]), NOON)

    assert first.rules is second.rules
    assert first.requests is second.requests


def test_placements_count_nominations_launches_and_refusals() -> None:
    pods = virtual_pods(ready(4), pod("web"), NOON)
    one, two, three, four = (each.key for each in pods)
    verdict = Verdict(
        launches=(Launch("l", "web", ("shop/x", three), {}, {}, (OPTION,)),),
        nominations=(Nomination("b", (one,)), Nomination("a", (two, "shop/y"))),
        refusals=(Refusal(Reason.NO_HOST, (four,)),),
    )

    placements = find_placements({"spare": pods, "other": ()}, verdict)
    assert placements == {"spare": BufferPlacement(existing=2, launched=1, failed=1)}
    assert pods_by_node(pods, verdict) == {"a": 1, "b": 1}


def test_a_buffer_that_a_verdict_does_not_name_has_no_placement() -> None:
    verdict = Verdict(nominations=(Nomination("a", ("shop/x",)),))

    assert find_placements({"spare": virtual_pods(ready(1), pod("web"), NOON)}, verdict) == {}
    assert pods_by_node((), verdict) == {}


@pytest.mark.parametrize(
    ("record", "placement", "status", "reason", "message"),
    [
        (
            buffer(),
            None,
            FALSE,
            "NotReadyForProvisioning",
            "Buffer is not ReadyForProvisioning",
        ),
        (ready(0), None, FALSE, "BufferEmpty", "Buffer has zero desired replicas"),
        (
            ready(3),
            BufferPlacement(existing=1, launched=1, failed=1),
            FALSE,
            "RequiresNewCapacity",
            "1/3 virtual pods required new capacity, 1 failed",
        ),
        (
            ready(3),
            BufferPlacement(existing=3),
            TRUE,
            "FitsExistingCapacity",
            "All 3 virtual pods fit on existing capacity",
        ),
    ],
)
def test_provisioning_says_whether_virtual_pods_fit(
    record: BufferRecord, placement: BufferPlacement | None, status: str, reason: str, message: str
) -> None:
    judged = judge_placement(record, placement, LATER)

    assert judged.conditions.get("Provisioning") == Condition(
        "Provisioning", status, LATER, reason, message, 3
    )


@pytest.mark.parametrize("placement", [None, BufferPlacement(existing=2)])
def test_provisioning_stays_without_a_placement(placement: BufferPlacement | None) -> None:
    record = ready(3)

    assert judge_placement(record, placement, LATER) is record


def test_virtual_pods_are_found_by_their_buffer_among_all_pods() -> None:
    spare = virtual_pods(ready(1), pod("web"), NOON)
    other = virtual_pods(replace(ready(2), meta=Identity("spare-1", "u")), pod("web"), NOON)

    rooms = rooms_among([pod("capacity-buffer-real-1"), *other, *spare])

    assert rooms == {"shop/spare-1": [*other], "shop/spare": [*spare]}
    assert [buffer_of(each) for each in (pod("web"), *spare)] == ["", "shop/spare"]
