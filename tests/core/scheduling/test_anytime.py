"""Section 10: with a deadline, what is decided so far is returned, and it is valid."""

import pytest
from msgspec.structs import replace

from karpy.core.check.scene import placed_pods
from karpy.core.scheduling.decide import decide
from karpy.model.labels import HOSTNAME, ZONE
from karpy.model.pods import Pod
from karpy.model.settings import ReservedMode, Settings
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Reason, Refusal, Verdict
from tests.builders import (
    affinity,
    anti_affinity,
    catalog,
    instance_type,
    node,
    offering,
    pod,
    pods,
    snapshot,
    spread,
)
from tests.core.scheduling.answers import decide_checked, for_looks, hosts_in
from tests.fuzz.clusters import random_snapshot

LOOK_EVERY = 16
WEB = {"app": "web"}


def _placed(verdict: Verdict) -> int:
    return len(placed_pods(verdict))


def _pods(refusal: Refusal) -> tuple[str, ...]:
    return refusal.pods


def _undecided(verdict: Verdict) -> int:
    return sum(len(each.pods) for each in verdict.refusals if each.reason is Reason.UNDECIDED)


def test_with_all_the_time_in_the_world_the_verdict_is_the_same() -> None:
    cluster = snapshot(
        nodes=[node("n")],
        pods=[*pods("a", 40, cpu="1"), *pods("never", 20, cpu="99"), *pods("b", 40)],
    )

    assert decide_checked(cluster, lambda: True) == decide_checked(cluster)


@pytest.mark.parametrize("seed", range(20))
def test_with_all_the_time_in_the_world_random_clusters_get_the_same_verdict(seed: int) -> None:
    """The order of refusals may differ: hopeless pods are placed last only with a deadline."""
    cluster = random_snapshot(seed)

    timed, untimed = decide(cluster, keep_going=lambda: True), decide(cluster)

    assert replace(timed, refusals=()) == replace(untimed, refusals=())
    assert sorted(timed.refusals, key=_pods) == sorted(untimed.refusals, key=_pods)


def test_without_any_time_no_pod_is_placed_and_every_pod_is_refused() -> None:
    verdict = decide_checked(snapshot(pods=[pod("b"), pod("a", cpu="2")]), for_looks(0))

    assert verdict == Verdict(
        refusals=(Refusal(Reason.UNDECIDED, ("default/a", "default/b")),), is_complete=False
    )


@pytest.mark.parametrize("looks", range(1, 7))
def test_every_look_at_the_clock_is_worth_sixteen_pods(looks: int) -> None:
    verdict = decide_checked(snapshot(pods=pods("p", 100)), for_looks(looks))

    assert not verdict.is_complete
    assert (_placed(verdict), _undecided(verdict)) == (
        looks * LOOK_EVERY,
        100 - looks * LOOK_EVERY,
    )


def test_the_largest_pods_are_decided_first() -> None:
    batch = [*pods("small", 30, cpu="10m"), *pods("large", LOOK_EVERY, cpu="1")]

    verdict = decide_checked(snapshot(pods=batch), for_looks(1))

    assert {pod for launch in verdict.launches for pod in launch.pods} == {
        f"default/large-{i}" for i in range(LOOK_EVERY)
    }


def _eighty() -> Snapshot:
    batch = [
        *pods("spread", 20, cpu="1", labels=WEB, spreads=[spread(ZONE, WEB)]),
        *pods("apart", 20, cpu="900m", anti_affinity=[anti_affinity(HOSTNAME, WEB)]),
        *pods("near", 20, cpu="800m", affinity=[affinity(ZONE, WEB)]),
        *pods("never", 20, cpu="700m", selector={"foo": "a"}),
    ]
    return snapshot(nodes=[node("n")], pods=batch)


@pytest.mark.parametrize("looks", range(5))
def test_what_is_decided_so_far_breaks_no_rule(looks: int) -> None:
    """`decide_checked` checks each of these incomplete plans."""
    verdict = decide_checked(_eighty(), for_looks(looks))

    assert not verdict.is_complete
    assert len(hosts_in(verdict)) == 80


def test_no_time_is_spent_on_pods_for_which_nothing_has_changed_since_they_failed() -> None:
    """Five looks suffice to try eighty pods once; twenty that fit nowhere get no second try."""
    verdict = decide_checked(_eighty(), for_looks(5))

    assert verdict.is_complete
    assert len(hosts_in(verdict)) == 80


@pytest.mark.parametrize("seed", range(30))
def test_unfinished_plans_of_random_clusters_break_no_rule(seed: int) -> None:
    cluster = random_snapshot(seed)

    assert decide_checked(cluster, for_looks(1)) == decide_checked(cluster, for_looks(1))


# --- no pod starves --------------------------------------------------------------------------


def test_small_pods_are_placed_though_200_hopeless_ones_are_before_them() -> None:
    """Time is enough for 16 pods; the 200 cannot be placed however long the decision takes."""
    batch = [*pods("never", 200, cpu="99"), *pods("small", LOOK_EVERY)]

    verdict = decide_checked(snapshot(pods=batch), for_looks(1))

    assert (_placed(verdict), _undecided(verdict)) == (LOOK_EVERY, 200)


@pytest.mark.parametrize(
    "hopeless",
    [
        pods("never", 200, cpu="2", selector={"foo": "a"}),
        pods("never", 200, cpu="2", selector={ZONE: "zone-z"}),
        pods("never", 200, cpu="2", more={"example.com/gpu": "1"}),
    ],
)
def test_no_kind_of_hopelessness_holds_others_up(hopeless: list[Pod]) -> None:
    batch = [*hopeless, *pods("small", LOOK_EVERY)]

    verdict = decide_checked(snapshot(pods=batch), for_looks(1))

    assert _placed(verdict) == LOOK_EVERY


def test_hopeless_pods_are_refused_with_their_reason_if_time_allows() -> None:
    batch = [*pods("never", 4, cpu="99"), *pods("small", 4)]

    verdict = decide_checked(snapshot(pods=batch), for_looks(1))

    assert verdict.is_complete
    assert [(each.reason, len(each.pods)) for each in verdict.refusals] == [(Reason.NO_HOST, 4)]


# --- later rounds ----------------------------------------------------------------------------


def test_pods_refused_in_the_first_round_keep_that_answer_when_time_runs_out() -> None:
    """These pods were tried once; only a second try is missing."""
    near = pod("near", cpu="2", affinity=[affinity(HOSTNAME, {"app": "base"})])
    base = pod("base", cpu="1", labels={"app": "base"})

    verdict = decide_checked(snapshot(pods=[near, base]), for_looks(1))

    assert hosts_in(verdict) == {"base": "default-0", "near": "NO_HOST"}
    assert not verdict.is_complete


def test_pods_that_waited_in_the_first_round_still_wait_when_time_runs_out() -> None:
    kind = instance_type("t", offerings=[offering(reservation="cr", left=1), offering(dollars=2)])
    cluster = snapshot(
        pods=pods("p", 2, cpu="3"),
        catalog=catalog([kind]),
        settings=Settings(reserved_mode=ReservedMode.STRICT),
    )

    verdict = decide_checked(cluster, for_looks(1))

    assert hosts_in(verdict) == {"p-0": "default-0", "p-1": "WAITS_FOR_RESERVATION"}
