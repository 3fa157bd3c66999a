"""A pod with thousands of constraints costs others nothing, and work grows with it by no square."""

import gc
from collections.abc import Callable
from typing import Any

import pytest

from karpy.core.scheduling.decide import decide
from karpy.core.scheduling.effort import (
    CONSTRAINTS_MAX,
    HEAVY_MIN,
    HEAVY_TOGETHER_MAX,
    TOGETHER_MAX,
    Effort,
    refuse_costly,
    split_by_cost,
)
from karpy.model.constraints import Toleration
from karpy.model.labels import HOSTNAME, ZONE
from karpy.model.pods import Pod
from karpy.model.requirements import Requirement
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Reason
from tests.builders import (
    affinity,
    anti_affinity,
    is_in,
    node,
    not_in,
    pod,
    snapshot,
    spread,
    term,
)
from tests.core.scheduling.answers import hosts_in

WEB = {"app": "web"}


def _spreads(count: int) -> dict[str, Any]:
    return {"spreads": [spread(f"key-{number}", WEB, soft=True) for number in range(count)]}


def _hard_spreads(count: int) -> dict[str, Any]:
    return {"spreads": [spread(f"key-{number}", WEB) for number in range(count)]}


def _near(count: int) -> dict[str, Any]:
    terms = [(1, affinity(HOSTNAME, {"app": f"app-{number}"})) for number in range(count)]
    return {"prefers_near": terms}


def _near_in_zone(count: int) -> dict[str, Any]:
    return {"prefers_near": [(1, affinity(ZONE, {"app": f"no-{each}"})) for each in range(count)]}


def _away(count: int) -> dict[str, Any]:
    terms = [(1, anti_affinity(f"key-{number}", WEB)) for number in range(count)]
    return {"prefers_away": terms}


def _always_away(count: int) -> dict[str, Any]:
    terms = [anti_affinity(HOSTNAME, {"app": f"app-{number}"}) for number in range(count)]
    return {"anti_affinity": terms}


def _tolerations(count: int) -> dict[str, Any]:
    keys = [Toleration(key=f"key-{number}", operator="Exists") for number in range(count)]
    return {"tolerations": keys, "spreads": [spread(ZONE, WEB)]}


def _terms(count: int) -> dict[str, Any]:
    return {"terms": [term(is_in("team", f"team-{number}")) for number in range(count)]}


def _wishes(count: int) -> dict[str, Any]:
    return {"prefers": [(1, term(is_in("team", f"team-{number}"))) for number in range(count)]}


def _selector(count: int) -> dict[str, Any]:
    return {"selector": {f"key-{number}": "value" for number in range(count)}}


ATTACKS = [
    (_spreads, 4000),
    (_hard_spreads, 4000),
    (_near, 2000),
    (_near_in_zone, 2000),
    (_away, 2000),
    (_always_away, 2000),
    (_tolerations, 10_000),
    (_terms, 5000),
    (_wishes, 5000),
    (_selector, 5000),
]


def _cluster(*pods: Pod) -> Snapshot:
    nodes = [node(f"n-{number}", cpu="2") for number in range(20)]
    running = [
        pod(f"r-{number}", labels={"app": f"app-{number}"}, on=f"n-{number % 20}")
        for number in range(100)
    ]
    return snapshot(nodes=nodes, pods=[*running, *pods])


@pytest.mark.parametrize("cpu", ["1", "999"], ids=["fits", "fits nowhere"])
@pytest.mark.parametrize(("attack", "count"), ATTACKS)
def test_work_grows_with_the_constraints_of_a_pod_and_not_with_their_square(
    attack: Callable[[int], dict[str, Any]],
    count: int,
    cpu: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work: list[int] = []
    monkeypatch.setattr(Effort, "spend", lambda _, more: work.append(more))

    decide(_cluster(pod("costly", cpu=cpu, **attack(count // 4))))
    quarter = sum(work)
    work.clear()
    decide(_cluster(pod("costly", cpu=cpu, **attack(count))))

    assert sum(work) <= 4 * quarter + 100
    assert sum(work) <= 20 * count


@pytest.mark.parametrize(("attack", "count"), ATTACKS)
def test_a_pod_beside_one_with_thousands_of_constraints_gets_its_node(
    attack: Callable[[int], dict[str, Any]], count: int
) -> None:
    cluster = _cluster(pod("costly", **attack(count)), pod("usual", cpu="100m"))

    verdict = decide(cluster)

    assert hosts_in(verdict)["usual"] == "n-0"
    assert verdict.is_complete


@pytest.mark.parametrize(("attack", "count"), ATTACKS)
def test_where_time_runs_out_the_costly_pod_is_refused_with_its_numbers(
    attack: Callable[[int], dict[str, Any]], count: int
) -> None:
    """One look at the clock is enough for the other one; the next comes with the costly one."""
    looks = iter([True])
    cluster = _cluster(pod("costly", cpu="4", **attack(count)), pod("usual", cpu="100m"))

    verdict = decide(cluster, keep_going=lambda: next(looks, False))

    refused = [(each.reason, each.pods) for each in verdict.refusals]
    assert not verdict.is_complete
    assert hosts_in(verdict)["usual"] == "n-0"
    assert refused == [(Reason.TOO_COMPLEX, ("default/costly",))]
    assert f"; pods with up to {CONSTRAINTS_MAX} come first" in verdict.refusals[0].detail


@pytest.mark.parametrize("attack", [_spreads, _hard_spreads, _away])
def test_constraints_that_multiply_each_other_end_after_so_much_work(
    attack: Callable[[int], dict[str, Any]],
) -> None:
    """Each of 2,500 terms is tried with all of 2,000 wishes; without the limit it takes minutes."""
    both = {**_terms(2500), **attack(2000)}

    verdict = decide(_cluster(pod("costly", **both), pod("usual", cpu="100m")))

    assert [each.reason for each in verdict.refusals] == [Reason.TOO_COMPLEX]
    assert hosts_in(verdict)["usual"] == "n-0"


def test_a_pod_that_asks_much_is_placed_after_others_however_large_it_is() -> None:
    """There is room for one of them, and alone the larger one would have it."""
    cluster = snapshot(
        nodes=[node("n", cpu="2")],
        pods=[pod("large", cpu="2", **_spreads(CONSTRAINTS_MAX + 1)), pod("small", cpu="1")],
        pools=[],
    )

    assert hosts_in(decide(cluster)) == {"large": "NO_POOL", "small": "n"}


def test_a_pod_at_the_limit_has_its_usual_turn() -> None:
    cluster = snapshot(
        nodes=[node("n", cpu="2")],
        pods=[pod("large", cpu="2", **_spreads(CONSTRAINTS_MAX)), pod("small", cpu="1")],
        pools=[],
    )

    assert hosts_in(decide(cluster)) == {"large": "n", "small": "NO_POOL"}


def test_of_many_costly_pods_only_so_many_are_decided_about_at_once() -> None:
    each = TOGETHER_MAX // 2
    costly = [
        pod(f"costly-{number}", cpu="100m", labels={"n": str(number)}, **_tolerations(each - 1))
        for number in range(3)
    ]

    verdict = decide(_cluster(*costly, pod("usual", cpu="100m")))

    (refusal,) = verdict.refusals
    assert (refusal.reason, refusal.pods) == (Reason.TOO_COMPLEX, ("default/costly-2",))


def test_of_many_pods_just_below_the_limit_those_beyond_an_allowance_come_after_others() -> None:
    """Each of them is large, so that all would have their turn before the usual one."""
    count = HEAVY_TOGETHER_MAX // CONSTRAINTS_MAX + 2
    most = [_tolerations(CONSTRAINTS_MAX - 1) for _ in range(count)]
    heavy = [
        pod(f"heavy-{number}", cpu="2", labels={"n": str(number)}, **each)
        for number, each in enumerate(most)
    ]

    parted = split_by_cost((*heavy, pod("usual")))

    assert [each.name for each in parted.usual] == [*(each.name for each in heavy[:-2]), "usual"]
    assert parted.costly == tuple(heavy[-2:])


def test_pods_below_the_allowance_have_their_usual_turn_however_many_they_are() -> None:
    pods = tuple(
        pod(f"p-{number}", **_tolerations(HEAVY_MIN - 2))
        for number in range(HEAVY_TOGETHER_MAX // HEAVY_MIN + 10)
    )

    assert split_by_cost(pods) == (pods, (), ())


def test_a_pod_beyond_the_allowance_is_refused_with_its_numbers() -> None:
    (refusal,) = refuse_costly([pod("heavy", **_tolerations(CONSTRAINTS_MAX - 1))])

    assert refusal.detail == (
        "500 constraints, and pods with 20 or more have over 100,000 together; "
        "pods with fewer come first"
    )


def test_all_preferences_but_the_last_one_may_have_to_go() -> None:
    """Each is dropped in its turn, however many are in vain before it."""
    near = affinity(HOSTNAME, {"app": "app-3"})
    wishes = [*_near_in_zone(999)["prefers_near"], (0, near)]

    verdict = decide(_cluster(pod("costly", cpu="100m", prefers_near=wishes)))

    assert hosts_in(verdict)["costly"] == "n-3"


@pytest.mark.parametrize("after", [1, 2, 5, 20])
def test_a_decision_ends_at_once_when_time_is_up_whatever_it_is_about(after: int) -> None:
    """A clock that is looked at after its deadline a few times more at most."""
    looks: list[bool] = []

    def keep_going() -> bool:
        looks.append(len(looks) < after)
        return looks[-1]

    pods = [pod(f"p-{number}", **_near(400)) for number in range(50)]
    decide(_cluster(*pods), keep_going=keep_going)

    assert looks.count(False) <= 3


def test_a_decision_leaves_nothing_that_only_the_collector_of_cycles_frees() -> None:
    """Its scratch state goes with it, and the next decision does not pay for it."""
    costly = pod("costly", **_near(CONSTRAINTS_MAX + 1))
    cluster = _cluster(costly, pod("never", cpu="999"), *(pod(f"p-{n}") for n in range(5)))
    decide(cluster)
    gc.collect()
    gc.disable()

    try:
        decide(cluster)
        left = gc.collect()
    finally:
        gc.enable()

    assert left == 0


def _shunning(name: str, *shunned: Requirement) -> Pod:
    return pod(name, terms=[term(*shunned)])


def _longest(cluster: Snapshot) -> tuple[int, int]:
    """Return how many labels a launch has requirements on, and how many values in all of them."""
    sets = [each.requirements.values() for each in decide(cluster).launches]
    return max(map(len, sets)), max(sum(len(each.values) for each in all_) for all_ in sets)


def test_pods_that_exclude_much_together_make_no_node_claim_that_is_refused() -> None:
    """An API server takes at most 100 requirements, and no more than some megabytes of values."""
    keys = [
        _shunning(f"p{n}", *(not_in(f"example.com/{n}-{each}", "a") for each in range(10)))
        for n in range(40)
    ]
    values = [
        _shunning(f"p{n}", not_in(ZONE, *(f"{n}-{each}" for each in range(300)))) for n in range(40)
    ]

    assert _longest(snapshot(pods=[*keys, pod("web")]))[0] <= 100
    assert _longest(snapshot(pods=[*values, pod("web")]))[1] <= 1000 + 100


@pytest.mark.parametrize(
    ("shunned", "why"),
    [
        ([not_in(f"example.com/{each}", "a") for each in range(120)], "requirements on"),
        ([not_in(ZONE, *(f"z{each}" for each in range(1200)))], "1200 excluded label values"),
    ],
    ids=["labels", "values"],
)
def test_a_pod_that_excludes_more_than_a_node_claim_holds_is_refused_and_no_other(
    shunned: list[Requirement], why: str
) -> None:
    verdict = decide(snapshot(pods=[_shunning("greedy", *shunned), pod("web")]))

    assert [each.pods for each in verdict.launches] == [("default/web",)]
    assert [each.pods for each in verdict.refusals] == [("default/greedy",)]
    assert why in verdict.refusals[0].pools[0].decisive.detail
