from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.disruption.advancing import advance, start
from karpy.core.disruption.rollout import Rollout, Stage, Target
from karpy.core.lifecycle.changes import Count
from karpy.model.conditions import TRUE, Condition
from karpy.model.disruption import DisruptionReason
from tests.builders.pods import NOON
from tests.core.disruption.scenes import DISRUPTED, around, state

TIME = "karpenter.sh/nodeclaim-termination-timestamp"
MINUTE = timedelta(minutes=1)
TARGET = Target("a-claim", "a", "web", 1_000_000, 2, "KWOKUnhealthy", 5 * MINUTE)
ROLLOUT = Rollout("id-1", DisruptionReason.UNHEALTHY, "", (TARGET,), NOON)
WAITING = replace(ROLLOUT, stage=Stage.WAITING, begun=NOON)


def test_a_repair_begins_without_a_second_look() -> None:
    progress = start(ROLLOUT, around(state("a", said=[])))

    (change,) = progress.changes
    assert progress.rollout == replace(ROLLOUT, stage=Stage.MARKING, begun=NOON)
    assert [each.event for each in progress.outcome.remarks] == ["disrupting node(s)"]
    assert change.outcome.node is not None
    assert change.outcome.node.taints == (DISRUPTED,)
    assert change.outcome.claim is not None
    said = Condition("DisruptionReason", TRUE, NOON, "Unhealthy", "Unhealthy")
    assert change.outcome.claim.conditions.get("DisruptionReason") == said


def test_the_pods_of_a_broken_node_have_so_much_time_and_no_more() -> None:
    progress = advance(WAITING, around(state("a", grace_period=60 * MINUTE)))

    (change,) = progress.changes
    assert change.outcome.deletes_claim
    assert change.outcome.claim is not None
    assert change.outcome.claim.meta.annotations == {TIME: "2026-03-02T12:05:00Z"}
    assert change.outcome.counts[-1] == Count(
        "nodeclaims_unhealthy_disrupted_total",
        {
            "condition": "kwok_unhealthy",
            "nodepool": "web",
            "capacity_type": "on-demand",
            "image_id": "",
            "termination_mode": "eventual",
        },
    )
    assert change.outcome.counts[1].value == 2.0


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("2026-03-02T12:04:00Z", "2026-03-02T12:04:00Z"),
        ("2026-03-02T12:30:00Z", "2026-03-02T12:05:00Z"),
    ],
)
def test_the_earlier_end_counts(written: str, kept: str) -> None:
    node = state("a")
    assert node.claim is not None
    meta = replace(node.claim.meta, annotations={TIME: written})

    progress = advance(WAITING, around(replace(node, claim=replace(node.claim, meta=meta))))

    (change,) = progress.changes
    assert change.outcome.claim is not None
    assert change.outcome.claim.meta.annotations == {TIME: kept}


def test_a_node_that_goes_first_is_counted_as_such() -> None:
    rollout = replace(WAITING, goes_first="static-at-limit")

    progress = advance(rollout, around(state("a")))

    labels = {
        "nodepool": "web",
        "reason": "unhealthy",
        "terminate_first_reason": "static-at-limit",
    }
    assert progress.outcome.counts[0].labels["decision"] == "terminate-first"
    assert progress.outcome.counts[-1] == Count(
        "voluntary_disruption_terminate_first_decisions_total", labels
    )
