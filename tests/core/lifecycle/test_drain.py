from datetime import timedelta

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Changes, Count
from karpy.core.lifecycle.conditions import with_true_because, with_unknown
from karpy.core.lifecycle.drain import (
    Detachment,
    Drain,
    DrainingNode,
    await_detachment,
    drain,
    find_pending,
    first_tier,
)
from karpy.core.lifecycle.eviction import Eviction
from karpy.model.constraints import Toleration
from karpy.model.kinds import NODE
from karpy.model.notices import Notice, Subject
from karpy.model.pods import DAEMON_SET, PodDisruption
from karpy.model.records import ClaimRecord
from karpy.model.storage import VolumeAttachment
from tests.builders.pods import NOON
from tests.core.lifecycle.scenes import bound, claim, condition_of, node, texts_of

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
STAYS = Toleration("karpenter.sh/disrupted", "Exists")


def draining(since: timedelta) -> ClaimRecord:
    return with_unknown(claim(deleted=MINUTE), "Drained", "Draining", "Draining", NOON - since)


def names(entries: tuple[Eviction, ...]) -> list[str]:
    return [each.name for each in entries]


def test_pods_are_evicted_and_the_drain_waits_for_them() -> None:
    pods = (bound("b"), bound("a"), bound("done", phase="Succeeded"))

    drained = drain(DrainingNode(node(), claim(), pods), NOON)

    assert condition_of(drained.changes.claim, "Drained") == ("Unknown", "Draining", "Draining")
    assert replace(drained, changes=replace(drained.changes, claim=None)) == Drain(
        Changes(
            notices=(
                Notice(
                    Subject(NODE, "node-1", uid="uid-node-1"),
                    "FailedDraining",
                    "Failed to drain node, 2 pods are waiting to be evicted",
                    is_warning=True,
                    same_as=("node-1",),
                ),
            ),
            requeue_after=SECOND,
        ),
        (Eviction("shop", "a", "uid-a"), Eviction("shop", "b", "uid-b")),
    )


TIERS = (
    bound("web"),
    bound("logs", owner=DAEMON_SET),
    bound("dns", priority_class="system-cluster-critical"),
    bound("proxy", priority_class="system-node-critical", owner=DAEMON_SET),
)


@pytest.mark.parametrize(("gone", "next_"), [(0, "web"), (1, "logs"), (2, "dns"), (3, "proxy")])
def test_critical_pods_are_evicted_last_and_daemons_after_other_pods(gone: int, next_: str) -> None:
    drained = drain(DrainingNode(node(), claim(), TIERS[gone:]), NOON)

    assert names(drained.evictions) == [next_]


NODE_OF_FOUR = replace(node(), allocatable={"cpu": 4000})
SIZES = (
    replace(bound("tiny"), requests={"cpu": 100}),
    replace(bound("large"), requests={"cpu": 2000}),
    replace(bound("small"), requests={"cpu": 300}),
    replace(bound("middle"), requests={"cpu": 800}),
)


@pytest.mark.parametrize(
    ("age", "leave"),
    [
        (0, ["large"]),
        (1, ["large", "middle"]),
        (2, ["large", "middle", "small"]),
        (3, ["large", "middle", "small", "tiny"]),
    ],
)
@pytest.mark.parametrize("reason", ["Underutilized", "Drifted"])
def test_pods_of_a_consolidated_node_are_evicted_largest_first(
    age: int, leave: list[str], reason: str
) -> None:
    """A small pod must not take the room of a large one, which fits nowhere else."""
    record = with_true_because(draining(age * SECOND), "DisruptionReason", reason, reason, NOON)

    drained = drain(DrainingNode(NODE_OF_FOUR, record, SIZES), NOON)

    assert names(drained.evictions) == leave
    assert drained.changes.requeue_after == SECOND


def test_before_the_drain_condition_is_set_only_the_largest_pods_are_evicted() -> None:
    reason = "Underutilized"
    record = with_true_because(claim(), "DisruptionReason", reason, reason, NOON)

    assert names(drain(DrainingNode(NODE_OF_FOUR, record, SIZES), NOON).evictions) == ["large"]


@pytest.mark.parametrize("reason", ["", "Empty", "Unhealthy"])
def test_without_a_planned_place_all_pods_are_evicted_at_once(reason: str) -> None:
    record = draining(0 * SECOND)
    if reason:
        record = with_true_because(record, "DisruptionReason", reason, reason, NOON)

    drained = drain(DrainingNode(NODE_OF_FOUR, record, SIZES), NOON)

    assert names(drained.evictions) == ["large", "middle", "small", "tiny"]


def test_no_pods_have_no_first_tier() -> None:
    assert first_tier([]) == []


def test_pods_past_their_threshold_are_evicted_in_any_tier() -> None:
    proxy = replace(TIERS[3], disruption=PodDisruption(grace=10 * MINUTE))
    late = DrainingNode(node(), claim(), (*TIERS[:3], proxy), NOON + 5 * MINUTE)

    drained = drain(late, NOON)

    assert names(drained.evictions) == ["proxy", "web"]
    assert {each.deadline for each in drained.evictions} == {NOON + 5 * MINUTE}
    assert [each.note for each in drained.changes.notices] == [
        "Failed to drain node, 4 pods are waiting to be evicted"
    ]


def test_pods_that_block_a_drain_are_named_with_the_reason() -> None:
    pods = (
        bound("keep", do_not_disrupt="true"),
        bound("budget"),
        bound("slow", deleted=NOON + SECOND),
        bound("stuck", deleted=NOON - SECOND),
        bound("goes"),
    )
    draining = DrainingNode(
        node(), claim(), pods, refused={"uid-budget": "evicting pod violates a PDB"}
    )

    changes = drain(draining, NOON).changes

    blocked = (
        "blocked by shop/budget (evicting pod violates a PDB), shop/keep "
        "(karpenter.sh/do-not-disrupt), shop/stuck (still there after its grace period)"
    )
    expected = ("Unknown", "Draining", f"Draining, {blocked}")
    assert condition_of(changes.claim, "Drained") == expected
    assert [each.note for each in changes.notices] == [
        f"Failed to drain node, 5 pods are waiting to be evicted, {blocked}"
    ]


def test_a_long_list_of_blocking_pods_is_cut() -> None:
    pods = tuple(bound(f"p{i}", do_not_disrupt="true") for i in range(7))

    changes = drain(DrainingNode(node(), claim(), pods), NOON).changes

    assert changes.notices[0].note.endswith("(karpenter.sh/do-not-disrupt) and 2 other(s)")


@pytest.mark.parametrize(
    ("made", "since"),
    [(claim(), timedelta()), (draining(4 * SECOND), 4 * SECOND)],
    ids=["first look", "too early"],
)
def test_an_empty_node_is_drained_only_after_a_moment(made: ClaimRecord, since: timedelta) -> None:
    drained = drain(DrainingNode(node(), made), NOON)

    assert drained.changes.claim is not None
    condition = drained.changes.claim.conditions.get("Drained")
    assert condition is not None
    assert (condition.status, condition.changed) == ("Unknown", NOON - since)
    assert replace(drained.changes, claim=None) == Changes(requeue_after=SECOND)
    assert not drained.is_done


def test_a_node_that_stays_empty_counts_as_drained() -> None:
    drained = drain(DrainingNode(node(), draining(5 * SECOND)), NOON)

    assert drained.is_done
    assert condition_of(drained.changes.claim, "Drained") == ("True", "Drained", "")
    assert drained.changes.counts == (Count("nodes_drained_total", {"nodepool": "web"}),)


def test_a_drained_node_is_counted_once() -> None:
    done = claim(said={"Drained": SECOND})

    assert drain(DrainingNode(node(), done), NOON) == Drain(Changes(done), is_done=True)


def test_a_pod_bound_during_the_drain_is_evicted_as_well() -> None:
    done = claim(said={"Drained": SECOND})

    drained = drain(DrainingNode(node(), done, (bound("late"),)), NOON)

    assert condition_of(drained.changes.claim, "Drained")[0] == "Unknown"
    assert names(drained.evictions) == ["late"]


def test_a_node_without_a_claim_counts_as_drained_as_soon_as_it_is_empty() -> None:
    assert drain(DrainingNode(node()), NOON) == Drain(Changes(), is_done=True)


def test_only_volumes_of_drainable_pods_are_awaited() -> None:
    attachments = [
        VolumeAttachment("va-b", "node-1", "pv-b"),
        VolumeAttachment("va-a", "node-1", "pv-a"),
        VolumeAttachment("va-static", "node-1", "pv-static"),
        VolumeAttachment("va-inline", "node-1"),
    ]
    pods = [
        bound("web", claims=("a",)),
        bound("agent", claims=("static", "unbound"), tolerations=(STAYS,)),
    ]
    volumes = {("shop", "a"): "pv-a", ("shop", "static"): "pv-static", ("other", "b"): "pv-b"}

    assert find_pending(attachments, pods, volumes, NOON) == ("va-a", "va-b")


def test_termination_waits_until_volumes_are_detached() -> None:
    detachment = await_detachment(DrainingNode(node(), claim()), ["va-1", "va-2"], NOON)

    expected = ("Unknown", "AwaitingVolumeDetachment", "AwaitingVolumeDetachment")
    assert condition_of(detachment.changes.claim, "VolumesDetached") == expected
    assert texts_of(detachment.changes.notices) == [
        (
            "Node",
            "AwaitingVolumeDetachment",
            "Awaiting deletion of bound volumeattachments (va-1, va-2)",
        )
    ]
    assert detachment.changes.requeue_after == SECOND
    assert not detachment.is_done


def test_termination_continues_once_volumes_are_detached() -> None:
    detachment = await_detachment(DrainingNode(node(), claim()), (), NOON)

    assert detachment.is_done
    expected = ("True", "VolumesDetached", "")
    assert condition_of(detachment.changes.claim, "VolumesDetached") == expected


def test_volumes_are_not_awaited_after_the_deadline() -> None:
    detachment = await_detachment(DrainingNode(node(), claim(), deadline=NOON), ["va-1"], NOON)

    expected = ("False", "TerminationGracePeriodElapsed", "TerminationGracePeriodElapsed")
    assert detachment.is_done
    assert condition_of(detachment.changes.claim, "VolumesDetached") == expected


def test_termination_without_a_claim_also_waits_for_volumes() -> None:
    assert not await_detachment(DrainingNode(node()), ["va-1"], NOON).is_done
    assert await_detachment(DrainingNode(node()), (), NOON) == Detachment(Changes(), is_done=True)
