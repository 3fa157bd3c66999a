from datetime import timedelta
from typing import Unpack

import pytest
from msgspec.structs import replace

from karpy.core.lifecycle.changes import Count
from karpy.core.observation.scheduling import (
    FLEXIBLE,
    NO_WAITS,
    NOWHERE,
    UNKNOWN,
    PodTiming,
    Waits,
    Zones,
    bound_counts,
    decision_counts,
    find_waits,
    owner_link,
    startup_counts,
    verdict_counts,
)
from karpy.core.scheduling.decide import decide
from karpy.model.labels import ZONE
from karpy.model.pods import Pod
from karpy.model.settings import PreferencePolicy, Settings
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import Reason, Refusal, Verdict
from tests.builders import (
    NOON,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    PodFields,
    affinity,
    is_in,
    node,
    not_in,
    owner,
    pod,
    pods,
    snapshot,
    spread,
    storage,
    term,
    volume,
    volume_claim,
)

PROVISIONER = {"controller": "provisioner"}
WEB = {"app": "web"}
EVEN = spread(ZONE, WEB)
NEAR = affinity(ZONE, WEB)
SOFT = spread(ZONE, WEB, soft=True)
CREATED = NOON - timedelta(minutes=1)
ACKED = NOON - timedelta(seconds=50)
FOUND = NOON - timedelta(seconds=40)
PLACED = PodTiming(ACKED, FOUND, FOUND)
REFUSED = PodTiming(ACKED, FOUND)
STARTED = replace(
    pod("web", on="n"),
    bound=NOON - timedelta(seconds=30),
    ready=NOON - timedelta(seconds=10),
)


def valued(counts: tuple[Count, ...], metric: str) -> dict[str, float]:
    """Return the values of a metric by the labels of its series."""
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


def zone_of(cluster: Snapshot, **fields: Unpack[PodFields]) -> str:
    fields["labels"] = WEB
    return Zones(cluster).of(pod("new", **fields))


def crowded(*zones: str) -> Snapshot:
    """Return a cluster of three zones with one web pod for each zone given."""
    nodes = [node(f"n-{zone}", zone=zone) for zone in (ZONE_A, ZONE_B, ZONE_C)]
    there = [pod(f"web-{i}", on=f"n-{zone}", labels=WEB) for i, zone in enumerate(zones)]
    return snapshot(pods=there, nodes=nodes)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, FLEXIBLE),
        ({"selector": {ZONE: ZONE_A}}, ZONE_A),
        ({"selector": [is_in(ZONE, ZONE_A, ZONE_B)]}, FLEXIBLE),
        ({"selector": [is_in(ZONE, ZONE_A, ZONE_B), not_in(ZONE, ZONE_A)]}, ZONE_B),
        ({"selector": [not_in(ZONE, ZONE_A)]}, FLEXIBLE),
        ({"prefers": [(1, term(is_in(ZONE, ZONE_A)))]}, FLEXIBLE),
        ({"spreads": [EVEN]}, FLEXIBLE),
        ({"affinity": [NEAR]}, FLEXIBLE),
        ({"affinity": [affinity(ZONE, {"app": "db"})]}, NOWHERE),
        ({"anti_affinity": [NEAR]}, FLEXIBLE),
    ],
)
def test_in_an_empty_cluster_a_pods_own_requirements_confine_it(
    fields: PodFields, expected: str
) -> None:
    assert zone_of(crowded(), **fields) == expected


@pytest.mark.parametrize(
    ("zones", "fields", "expected"),
    [
        ((ZONE_A, ZONE_B), {"spreads": [EVEN]}, ZONE_C),
        ((ZONE_A, ZONE_B), {"spreads": [SOFT]}, ZONE_C),
        ((ZONE_A, ZONE_B), {"spreads": [EVEN], "selector": {ZONE: ZONE_A}}, ZONE_A),
        ((ZONE_A,), {"spreads": [EVEN], "selector": [is_in(ZONE, ZONE_A, ZONE_B)]}, ZONE_B),
        ((ZONE_A, ZONE_B), {"spreads": [spread(ZONE, WEB, min_domains=4)]}, ZONE_C),
        ((ZONE_A, ZONE_A, ZONE_B, ZONE_C), {"spreads": [EVEN]}, FLEXIBLE),
        ((ZONE_B,), {"affinity": [NEAR]}, ZONE_B),
        ((ZONE_B,), {"affinity": [NEAR], "selector": {ZONE: ZONE_A}}, NOWHERE),
        ((ZONE_B,), {"affinity": [NEAR], "namespace": "shop"}, FLEXIBLE),
        ((ZONE_A, ZONE_B), {"anti_affinity": [NEAR]}, ZONE_C),
        ((ZONE_A, ZONE_B, ZONE_C), {"anti_affinity": [NEAR]}, NOWHERE),
        ((ZONE_A, ZONE_B), {"prefers_away": [(1, NEAR)]}, ZONE_C),
    ],
)
def test_spread_and_affinity_confine_pods_to_zones(
    zones: tuple[str, ...], fields: PodFields, expected: str
) -> None:
    assert zone_of(crowded(*zones), **fields) == expected


def test_preferences_do_not_count_if_they_are_ignored() -> None:
    settings = Settings(preference_policy=PreferencePolicy.IGNORE)
    nodes = [node(f"n-{zone}", zone=zone) for zone in (ZONE_A, ZONE_B)]
    cluster = snapshot(
        pods=[pod("a", on=f"n-{ZONE_A}", labels=WEB)], nodes=nodes, settings=settings
    )

    assert zone_of(cluster, spreads=[SOFT]) == FLEXIBLE


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"claims": ["data"]}, ZONE_B),
        ({"claims": ["data"], "selector": {ZONE: ZONE_A}}, NOWHERE),
        ({"claims": ["data"], "selector": [not_in(ZONE, ZONE_A)]}, ZONE_B),
    ],
)
def test_a_pod_goes_where_its_volume_is(fields: PodFields, expected: str) -> None:
    there = storage(volume_claim("data", bound_to="vol"), volume("vol", term(is_in(ZONE, ZONE_B))))

    zone = zone_of(snapshot(storage=there), **fields)

    assert zone == expected


def test_a_volume_that_does_not_say_where_it_is_can_be_anywhere() -> None:
    there = storage(volume_claim("data", bound_to="vol"), volume("vol"))

    assert zone_of(snapshot(storage=there), claims=["data"]) == FLEXIBLE


@pytest.mark.parametrize(
    ("waiting", "timing", "expected"),
    [
        (pod("web"), UNKNOWN, Waits(CREATED, CREATED)),
        (pod("web"), PodTiming(ACKED), Waits(CREATED, CREATED, undecided=ACKED)),
        (pod("web"), REFUSED, Waits(CREATED, CREATED)),
        (pod("web"), PLACED, Waits(CREATED, CREATED, FOUND, FOUND)),
        (pod("web", on="n", phase="Pending"), PLACED, Waits(CREATED, None, FOUND)),
        (pod("web", on="n"), PLACED, Waits(CREATED, None, FOUND)),
    ],
)
def test_a_starting_pod_waits_for_its_missing_steps(
    waiting: Pod, timing: PodTiming, expected: Waits
) -> None:
    assert find_waits(waiting, timing, is_starting=True) == expected


@pytest.mark.parametrize("timing", [UNKNOWN, PodTiming(ACKED), PLACED])
def test_a_pod_that_has_started_waits_for_nothing(timing: PodTiming) -> None:
    assert find_waits(STARTED, timing, is_starting=False) == NO_WAITS


def test_waiting_times_of_a_pod_are_measured() -> None:
    dynamic = {"dynamic_resources": "false"}

    counts = (
        *decision_counts(PLACED),
        *bound_counts(STARTED, PLACED),
        *startup_counts(STARTED, PLACED),
    )

    assert counts == (
        Count("pods_scheduling_decision_duration_seconds", {}, 10.0),
        Count("pods_bound_duration_seconds", dynamic, 30.0),
        Count("pods_provisioning_bound_duration_seconds", dynamic, 10.0),
        Count("pods_startup_duration_seconds", {}, 50.0),
        Count("pods_provisioning_startup_duration_seconds", {}, 30.0),
    )


def test_a_pod_without_a_decision_has_no_provisioning_times() -> None:
    counts = (*bound_counts(STARTED, UNKNOWN), *startup_counts(STARTED, UNKNOWN))

    assert [each.metric for each in counts] == [
        "pods_bound_duration_seconds",
        "pods_startup_duration_seconds",
    ]


def test_an_unfinished_step_is_not_measured() -> None:
    assert (bound_counts(pod("a"), PLACED), startup_counts(pod("a"), PLACED)) == ((), ())


def test_no_duration_is_negative() -> None:
    """Kubernetes timestamps have whole seconds, those of Karpy do not."""
    late = PodTiming(ACKED, FOUND, NOON)

    counts = (*bound_counts(STARTED, late), *startup_counts(STARTED, late))

    assert [each.value for each in counts] == [30.0, 0.0, 50.0, 0.0]


def test_an_owner_is_named_by_a_path() -> None:
    owned = pod("web-1", namespace="shop", owners=[owner(("apps/v1", "ReplicaSet"), "web")])

    assert owner_link(owned) == "/apis/apps/v1/namespaces/shop/replicasets/web"
    assert owner_link(pod("alone")) == ""
