"""The metrics of one decision about pending pods."""

from collections import Counter
from typing import Final

from karpy.core.lifecycle.changes import Count
from karpy.core.observation.zones import Zones
from karpy.model.refusals import Reason
from karpy.model.snapshot import Snapshot
from karpy.model.times import write_moment
from karpy.model.verdicts import Verdict

CONTROLLER: Final = "provisioner"
REFUSED: Final = "karpy_refused_pods"
ZONE_COUNT: Final = "scheduler_pending_pods_by_effective_zone_count"
QUEUE_DEPTH: Final = "scheduler_queue_depth"
UNFINISHED: Final = "scheduler_unfinished_work_seconds"
_NOT_CONSIDERED: Final = frozenset(
    {Reason.NOT_YET_UNSCHEDULABLE, Reason.PREEMPTING, Reason.ON_ITS_WAY, Reason.PLACE_TAKEN}
)
"""Another component still works on these pods."""
_PUT_OFF: Final = frozenset(
    {
        Reason.WAITS_FOR_RESERVATION,
        Reason.UNDECIDED,
        Reason.TOO_COMPLEX,
        Reason.DECISION_FAILED,
    }
)
NO_DECISION: Final = _NOT_CONSIDERED | _PUT_OFF - {Reason.WAITS_FOR_RESERVATION}
_WITHOUT_PLACE: Final = frozenset(
    {Reason.DEVICE_CLAIMS, Reason.NO_POOL, Reason.NO_HOST, Reason.MIN_VALUES_TRUNCATED}
)
_IGNORED: Final = frozenset(Reason) - _NOT_CONSIDERED - _WITHOUT_PLACE - _PUT_OFF
_WAITING: Final = frozenset({"", "Pending"})


def verdict_counts(snapshot: Snapshot, verdict: Verdict) -> tuple[Count, ...]:
    """
    Return the gauges of the last decision about pending pods.

    Gauges that are labelled by zone or decision have only these series.
    """
    refused = Counter[Reason]()
    for each in verdict.refusals:
        refused[each.reason] += len(each.pods)
    by = {"controller": CONTROLLER}
    return (
        Count(
            "scheduler_unschedulable_pods_count",
            by,
            float(sum(refused[each] for each in _WITHOUT_PLACE)),
        ),
        Count("scheduler_ignored_pods_count", {}, float(sum(refused[each] for each in _IGNORED))),
        Count(QUEUE_DEPTH, decision_labels(snapshot), float(refused[Reason.UNDECIDED])),
        *(Count(REFUSED, {"reason": reason.name}, float(refused[reason])) for reason in Reason),
        *(
            Count(ZONE_COUNT, {**by, "zone": zone}, float(count))
            for zone, count in sorted(_pods_by_zone(snapshot, verdict).items())
        ),
    )


def decision_labels(snapshot: Snapshot) -> dict[str, str]:
    """Return the labels that identify one decision about pending pods."""
    return {"controller": CONTROLLER, "scheduling_id": write_moment(snapshot.now)}


def _pods_by_zone(snapshot: Snapshot, verdict: Verdict) -> Counter[str]:
    ignored = {key for each in verdict.refusals if each.reason in _IGNORED for key in each.pods}
    zones = Zones(snapshot)
    return Counter(
        zones.of(pod)
        for pod in snapshot.pods
        if pod.is_provisionable and pod.phase in _WAITING and pod.key not in ignored
    )
