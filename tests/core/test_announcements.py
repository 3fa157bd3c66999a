import re
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from karpy.core.announcements import (
    launch_notices,
    names_real_pods,
    nomination_notices,
    pending_remark,
    refusal_notices,
)
from karpy.core.scheduling.decide import decide
from karpy.model.notices import Notice
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import (
    Constraint,
    Exclusion,
    Nomination,
    PoolRefusal,
    Reason,
    Refusal,
    Verdict,
)
from tests.builders import pod
from tests.fuzz.clusters import random_snapshot

WEB = pod("web")
VIRTUAL = replace(pod("spare"), is_virtual=True)
PODS = {each.key: each for each in (WEB, VIRTUAL)}
KEYS = tuple(PODS)
DISPLACED = "default/displaced"


def told(notices: Iterable[Notice]) -> list[tuple[str, str]]:
    return [(each.subject.name, each.reason) for each in notices]


def test_virtual_pods_get_no_events() -> None:
    verdict = Verdict(refusals=(Refusal(Reason.NO_HOST, KEYS),))

    assert told(refusal_notices(verdict, PODS)) == [("web", "FailedScheduling")]
    assert told(launch_notices(KEYS, "web-1", PODS)) == [("web", "Nominated")]
    assert told(nomination_notices(Nomination("n", KEYS), "", PODS)) == [("web", "Nominated")]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [((VIRTUAL.key,), False), (KEYS, True), ((VIRTUAL.key, DISPLACED), True)],
)
def test_a_nomination_of_virtual_pods_only_names_no_real_pods(
    keys: tuple[str, ...], *, expected: bool
) -> None:
    assert names_real_pods(Nomination("n", keys), PODS) is expected


def refused(count: int, *decided: tuple[str, Constraint]) -> Refusal:
    pools = tuple(
        PoolRefusal(pool, Exclusion(why, f"{count} of it", 1), is_single=True, types=1)
        for pool, why in decided
    )
    keys = tuple(f"default/{count}-{each}" for each in range(count))
    return Refusal(Reason.NO_HOST if decided else Reason.VOLUME_CLAIM_MISSING, keys, pools=pools)


LIMIT, TAINT, SIZE = Constraint.LIMIT, Constraint.TAINT, Constraint.RESOURCE


@pytest.mark.parametrize(
    ("refusals", "expected"),
    [
        (
            [refused(12, ("web", SIZE)), refused(2, ("web", LIMIT)), refused(3, ("web", LIMIT))],
            (
                "12 because a resource does not suffice (NodePool web),"
                " 5 because a limit of the NodePool is reached (NodePool web)"
            ),
        ),
        (
            [refused(1, ("web", LIMIT), ("gpu", TAINT), ("arm", TAINT))],
            (
                "1 because a limit of the NodePool is reached (NodePool web);"
                " a taint is not tolerated (NodePool gpu, arm)"
            ),
        ),
        (
            [refused(1, *((f"p{each}", TAINT) for each in range(5)))],
            "1 because a taint is not tolerated (NodePool p0, p1, p2 and 2 more)",
        ),
        (
            [refused(4), *(refused(each, ("web", why)) for each, why in enumerate(Constraint, 5))],
            (
                "23 because reserved capacity is taken (NodePool web),"
                " 22 because too little variety is left for minValues (NodePool web),"
                " 21 because no more volumes can be attached (NodePool web), 204 for other reasons"
            ),
        ),
        ([refused(4)], "4 because one of its PersistentVolumeClaims does not exist"),
    ],
)
def test_pods_that_stay_pending_are_one_log_line(refusals: list[Refusal], expected: str) -> None:
    remark = pending_remark(Verdict(refusals=tuple(refusals)), {})

    assert remark is not None
    assert remark.fields == {
        "pods": str(sum(len(each.pods) for each in refusals)),
        "reasons": expected,
    }


@pytest.mark.parametrize(
    "reason",
    [
        *(Reason.NOT_YET_UNSCHEDULABLE, Reason.ON_ITS_WAY, Reason.PLACE_TAKEN),
        *(Reason.PREEMPTING, Reason.OPTED_OUT),
    ],
)
def test_pods_with_a_node_or_none_needed_are_in_no_log_line(reason: Reason) -> None:
    assert pending_remark(Verdict(refusals=(Refusal(reason, (WEB.key,)),)), PODS) is None


def test_virtual_pods_are_in_no_log_line() -> None:
    verdict = Verdict(refusals=(Refusal(Reason.NO_HOST, (VIRTUAL.key,)),))

    assert pending_remark(verdict, PODS) is None


@pytest.mark.parametrize("seed", range(60))
def test_a_decision_that_launches_nothing_leaves_a_line_about_every_pod(seed: int) -> None:
    cluster = random_snapshot(seed)
    full = tuple(replace(each, limits={"nodes": 0}) for each in cluster.pools)

    for asked in (replace(cluster, pools=()), replace(cluster, pools=full)):
        verdict = decide(asked)
        assert verdict.launches == ()
        assert told_of(asked, verdict) == len(lasting(asked, verdict))


def lasting(asked: Snapshot, verdict: Verdict) -> set[str]:
    """Return the pods that stay pending for a reason that belongs into the log."""
    virtual = {each.key for each in asked.pods if each.is_virtual}
    passing = {Reason.NOT_YET_UNSCHEDULABLE, Reason.ON_ITS_WAY, Reason.PLACE_TAKEN}
    passing |= {Reason.PREEMPTING, Reason.OPTED_OUT}
    refusals = (each for each in verdict.refusals if each.reason not in passing)
    return {key for each in refusals for key in each.pods} - virtual


def told_of(asked: Snapshot, verdict: Verdict) -> int:
    """Return the number of pods in the log line of a decision, after a check of its sum."""
    remark = pending_remark(verdict, {each.key: each for each in asked.pods})
    if remark is None:
        return 0
    parts = re.findall(r"(?:^|, )(\d+) (?:because|for other reasons)", remark.fields["reasons"])
    assert sum(map(int, parts)) == int(remark.fields["pods"])
    assert len(remark.fields["reasons"]) < 600
    return int(remark.fields["pods"])
