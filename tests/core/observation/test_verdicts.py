from karpy.core.lifecycle.changes import Count
from karpy.core.observation.verdicts import verdict_counts
from karpy.core.scheduling.decide import decide
from karpy.model.labels import ZONE
from karpy.model.refusals import Reason, Refusal
from karpy.model.verdicts import Verdict
from tests.builders import ZONE_A, ZONE_B, pod, pods, snapshot

PROVISIONER = {"controller": "provisioner"}


def valued(counts: tuple[Count, ...], metric: str) -> dict[str, float]:
    """Return the values of a metric by the labels that tell its series apart."""
    return {
        " ".join(value for value in each.labels.values() if value != "provisioner"): each.value
        for each in counts
        if each.metric == metric
    }


def test_pods_are_counted_by_what_was_decided() -> None:
    cluster = snapshot(
        pods=[
            *pods("fits", 3),
            pod("large", cpu="1000"),
            pod("odd", selector={"kubernetes.io/hostname": "x"}),
            pod("early", unschedulable=False),
        ]
    )

    counts = verdict_counts(cluster, decide(cluster))

    refused = valued(counts, "karpy_refused_pods")
    assert Count("scheduler_unschedulable_pods_count", PROVISIONER, 1.0) in counts
    assert Count("scheduler_ignored_pods_count", {}, 1.0) in counts
    assert {reason for reason, value in refused.items() if value} == {
        "NO_HOST",
        "RESTRICTED_LABEL",
        "NOT_YET_UNSCHEDULABLE",
    }
    assert refused.keys() == Reason.__members__.keys()


def test_pending_pods_are_counted_by_the_zone_they_must_go_to() -> None:
    cluster = snapshot(
        pods=[
            *pods("here", 2, selector={ZONE: ZONE_A}),
            pod("there", selector={ZONE: ZONE_B}),
            pod("anywhere"),
            pod("odd", selector={"kubernetes.io/hostname": "x"}),
            pod("bound", on="n", selector={ZONE: ZONE_A}),
            pod("early", unschedulable=False),
        ]
    )

    counts = verdict_counts(cluster, decide(cluster))

    assert valued(counts, "scheduler_pending_pods_by_effective_zone_count") == {
        "flexible": 1.0,
        ZONE_A: 2.0,
        ZONE_B: 1.0,
    }


def test_pods_without_a_decision_wait_in_the_queue() -> None:
    verdict = Verdict(refusals=(Refusal(Reason.UNDECIDED, ("shop/a", "shop/b")),))

    counts = verdict_counts(snapshot(), verdict)

    assert valued(counts, "scheduler_queue_depth") == {"2026-03-02T12:00:00Z": 2.0}
    assert Count("scheduler_unschedulable_pods_count", PROVISIONER, 0.0) in counts
