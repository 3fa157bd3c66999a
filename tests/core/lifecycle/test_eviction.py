from datetime import datetime, timedelta

import pytest

from karpy.core.lifecycle.changes import Count
from karpy.core.lifecycle.eviction import (
    Eviction,
    EvictionAnswer,
    EvictionMode,
    EvictionStep,
    EvictionVerb,
    Protection,
    after_budget_conflict,
    after_deletion,
    after_eviction,
    eviction_reason,
    is_evictable,
    merged,
    next_step,
    protection_of,
)
from karpy.model.constraints import Toleration
from karpy.model.kinds import NODE, POD
from karpy.model.notices import Notice, Subject
from karpy.model.pods import DAEMON_SET, Pod
from karpy.model.pods import NODE as NODE_OWNER
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import bound, claim, node

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
WAITS = Eviction("shop", "web-1", "uid-web-1")
SUBJECT = Subject(POD, "web-1", "shop", "uid-web-1")
HOUR = timedelta(hours=1)


def until(seconds: int, mode: EvictionMode = EvictionMode.FORCE_DELETE) -> Eviction:
    return Eviction("shop", "web-1", "uid-web-1", mode, NOON + seconds * SECOND)


@pytest.mark.parametrize(
    ("known", "new", "expected"),
    [
        (None, WAITS, WAITS),
        (until(9), until(5), until(5)),
        (until(5), until(9), until(5)),
        (until(5), WAITS, until(5)),
        (WAITS, until(5), until(5)),
        (until(5, EvictionMode.TIMEOUT), until(9), until(9)),
        (until(9), until(5, EvictionMode.TIMEOUT), until(9)),
        (WAITS, until(5, EvictionMode.TIMEOUT), WAITS),
        (Eviction("shop", "web-1", "earlier", deadline=NOON), WAITS, WAITS),
    ],
)
def test_the_earlier_deadline_and_force_delete_win(
    known: Eviction | None, new: Eviction, expected: Eviction
) -> None:
    assert merged(known, new) == expected


@pytest.mark.parametrize(
    ("entry", "pod", "verb"),
    [
        (WAITS, bound("web-1"), EvictionVerb.EVICT),
        (WAITS, None, EvictionVerb.DROP),
        (WAITS, bound("web-1", uid="another"), EvictionVerb.DROP),
        (WAITS, bound("web-1", phase="Succeeded"), EvictionVerb.DROP),
        (WAITS, bound("web-1", deleted=NOON), EvictionVerb.DROP),
        (WAITS, bound("web-1", owner=NODE_OWNER), EvictionVerb.DROP),
        (WAITS, bound("web-1", do_not_disrupt="true"), EvictionVerb.RETRY),
        (until(31), bound("web-1"), EvictionVerb.EVICT),
        (until(30), bound("web-1"), EvictionVerb.EVICT),
        (until(-9), bound("web-1", phase="Failed"), EvictionVerb.DROP),
        (until(1, EvictionMode.TIMEOUT), bound("web-1"), EvictionVerb.EVICT),
        (until(0, EvictionMode.TIMEOUT), bound("web-1"), EvictionVerb.DROP),
        (
            until(0, EvictionMode.TIMEOUT),
            bound("web-1", do_not_disrupt="true"),
            EvictionVerb.DROP,
        ),
    ],
)
def test_a_pod_is_evicted_left_alone_or_retried(
    entry: Eviction, pod: Pod | None, verb: EvictionVerb
) -> None:
    assert next_step(entry, pod, NOON) == EvictionStep(verb)


@pytest.mark.parametrize(
    ("entry", "pod", "grace"),
    [
        (until(29), bound("web-1"), 29),
        (until(60), bound("web-1", grace=120 * SECOND), 60),
        (until(10), bound("web-1", do_not_disrupt="true"), 10),
        (until(-3600), bound("web-1"), 1),
        (until(10), bound("web-1", deleted=NOON + 20 * SECOND), 10),
    ],
    ids=["in time", "all that is left", "whatever it says", "too late", "less than it has"],
)
def test_a_pod_is_deleted_early_enough_for_its_grace_period(
    entry: Eviction, pod: Pod, grace: int
) -> None:
    move = next_step(entry, pod, NOON)

    assert (move.verb, move.grace_seconds) == (EvictionVerb.DELETE, grace)


def test_a_forced_deletion_has_an_event() -> None:
    move = next_step(until(60), bound("web-1", grace=120 * SECOND), NOON)

    note = (
        "Deleting the pod because its node ends by 2026-03-02T12:01:00Z. It has 60 of its 120 "
        "seconds to stop, whatever its disruption budgets and annotations say."
    )
    assert move.notices == (Notice(SUBJECT, "Disrupted", note, same_as=("web-1",)),)


@pytest.mark.parametrize(
    ("entry", "deleted"),
    [(until(10), NOON + 10 * SECOND), (until(-3600), NOON + SECOND), (until(-3600), NOON)],
)
def test_a_pod_whose_grace_period_cannot_shrink_is_not_deleted_again(
    entry: Eviction, deleted: datetime
) -> None:
    assert next_step(entry, bound("web-1", deleted=deleted), NOON) == EvictionStep(
        EvictionVerb.DROP
    )


def test_the_event_about_a_protected_pod_says_until_when() -> None:
    pod = bound("web-1", do_not_disrupt="2h", started=NOON - 60 * MINUTE)

    move = next_step(WAITS, pod, NOON)

    assert move.verb is EvictionVerb.RETRY
    assert [each.reason for each in move.notices] == ["DoNotDisruptUntil"]


@pytest.mark.parametrize("code", [200, 201])
def test_an_evicted_pod_is_done_and_counted(code: int) -> None:
    assert after_eviction(bound("web-1"), node(), "Empty", code) == EvictionAnswer(
        is_done=True,
        notices=(Notice(SUBJECT, "Evicted", "Evicted pod: Empty", same_as=("web-1",)),),
        counts=(
            Count("pods_eviction_requests_total", {"code": "200"}),
            Count("pods_drained_total", {"reason": "Empty"}),
        ),
    )


@pytest.mark.parametrize("code", [404, 409])
def test_an_eviction_of_a_missing_pod_is_done(code: int) -> None:
    answered = after_eviction(bound("web-1"), node(), "Empty", code)

    counts = (Count("pods_eviction_requests_total", {"code": str(code)}),)
    assert answered == EvictionAnswer(is_done=True, counts=counts)


def test_an_eviction_refused_by_a_budget_has_an_event() -> None:
    answered = after_eviction(bound("web-1"), node(), "Empty", 429)

    assert answered == EvictionAnswer(
        is_done=False,
        refusal="evicting pod violates a PDB",
        notices=(
            Notice(
                Subject(NODE, "node-1", uid="uid-node-1"),
                "FailedDraining",
                "Failed to drain node, evicting pod violates a PDB (Pod=shop/web-1)",
                is_warning=True,
                same_as=("node-1", "shop/web-1"),
            ),
        ),
        counts=(Count("pods_eviction_requests_total", {"code": "429"}),),
    )


def test_an_eviction_refused_for_several_budgets_has_an_event() -> None:
    answered = after_budget_conflict(bound("web-1"), node(), 500)

    assert answered.refusal == "eviction does not support multiple PDBs"
    assert [each.note for each in answered.notices] == [
        "Failed to drain node, eviction does not support multiple PDBs (Pod=shop/web-1)"
    ]
    assert not answered.is_done


def test_a_refused_eviction_is_done_if_the_node_is_gone() -> None:
    answered = after_eviction(bound("web-1"), None, "", 429)

    counts = (Count("pods_eviction_requests_total", {"code": "429"}),)
    assert answered == EvictionAnswer(is_done=True, counts=counts)


def test_any_other_response_is_retried() -> None:
    answered = after_eviction(bound("web-1"), node(), "", 503)

    counts = (Count("pods_eviction_requests_total", {"code": "503"}),)
    assert answered == EvictionAnswer(is_done=False, counts=counts)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (200, EvictionAnswer(True, counts=(Count("pods_drained_total", {"reason": "Drifted"}),))),
        (404, EvictionAnswer(True)),
        (409, EvictionAnswer(True)),
        (500, EvictionAnswer(False)),
    ],
)
def test_a_forced_deletion_is_counted_once(code: int, expected: EvictionAnswer) -> None:
    assert after_deletion("Drifted", code) == expected


def test_the_eviction_reason_is_the_disruption_reason() -> None:
    disrupted = claim(said={"DisruptionReason": MINUTE})

    assert eviction_reason(disrupted) == "DisruptionReason"
    assert eviction_reason(claim()) == "Forceful Termination"
    assert eviction_reason(None) == ""


def test_do_not_disrupt_protects_a_pod() -> None:
    pod = bound("web-1", do_not_disrupt="true")

    assert protection_of(pod, NOON) == Protection(is_active=True)


def test_a_pod_without_the_annotation_is_not_protected() -> None:
    assert protection_of(bound("web-1"), NOON) == Protection()


def test_a_protection_with_a_duration_starts_with_the_pod() -> None:
    pod = bound("web-1", do_not_disrupt="1h30m", started=NOON - HOUR)

    assert protection_of(pod, NOON) == Protection(
        is_active=True,
        until=NOON + HOUR / 2,
        notices=(
            Notice(
                SUBJECT,
                "DoNotDisruptUntil",
                "The karpenter.sh/do-not-disrupt grace period will elapse at 2026-03-02T12:30:00Z",
                same_as=("uid-web-1", "2026-03-02T12:30:00Z"),
            ),
        ),
    )


def test_a_protection_with_a_duration_ends() -> None:
    pod = bound("web-1", do_not_disrupt="1h", started=NOON - HOUR)

    assert protection_of(pod, NOON) == Protection(
        until=NOON,
        notices=(
            Notice(
                SUBJECT,
                "DoNotDisruptGracePeriodElapsed",
                "The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable",
                same_as=("uid-web-1",),
            ),
        ),
    )


def test_a_duration_protects_a_pod_that_has_not_started() -> None:
    pod = bound("web-1", do_not_disrupt="1h", started=None)

    assert protection_of(pod, NOON) == Protection(is_active=True)


@pytest.mark.parametrize("value", ["false", "", "-1h", "0s", "1 day"])
def test_an_annotation_without_a_positive_duration_protects_no_pod_and_is_reported(
    value: str,
) -> None:
    note = (
        f"Invalid karpenter.sh/do-not-disrupt annotation: `{value}` is neither `true` nor a "
        "positive duration such as `4h`, ignoring annotation"
    )

    assert protection_of(bound("web-1", do_not_disrupt=value), NOON) == Protection(
        notices=(
            Notice(
                SUBJECT,
                "InvalidDoNotDisruptAnnotation",
                note,
                is_warning=True,
                same_as=("uid-web-1", note),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (bound("p"), True),
        (bound("p", phase="Failed"), False),
        (bound("p", deleted=NOON), False),
        (bound("p", owner=NODE_OWNER), False),
        (bound("p", tolerations=(Toleration(operator="Exists"),)), False),
        (bound("p", do_not_disrupt="true"), False),
        (bound("p", do_not_disrupt="nonsense"), True),
        (bound("p", owner=DAEMON_SET), True),
    ],
)
def test_some_pods_are_not_evictable(pod: Pod, *, expected: bool) -> None:
    assert is_evictable(pod, NOON) is expected
