from typing import Unpack

import pytest

from karpy.core.observation.zones import FLEXIBLE, NOWHERE, Zones
from karpy.model.labels import ZONE
from karpy.model.settings import PreferencePolicy, Settings
from karpy.model.snapshot import Snapshot
from tests.builders import (
    ZONE_A,
    ZONE_B,
    ZONE_C,
    PodFields,
    affinity,
    is_in,
    node,
    not_in,
    pod,
    snapshot,
    spread,
    storage,
    term,
    volume,
    volume_claim,
)

WEB = {"app": "web"}
EVEN = spread(ZONE, WEB)
NEAR = affinity(ZONE, WEB)
SOFT = spread(ZONE, WEB, soft=True)


def zone_of(cluster: Snapshot, **fields: Unpack[PodFields]) -> str:
    fields["labels"] = WEB
    return Zones(cluster).of(pod("new", **fields))


def crowded(*zones: str) -> Snapshot:
    """Return a cluster of three zones with a web pod in each zone named, as often as it is."""
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
def test_an_empty_cluster_leaves_what_a_pod_asks_for(fields: PodFields, expected: str) -> None:
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
def test_other_pods_leave_less(zones: tuple[str, ...], fields: PodFields, expected: str) -> None:
    assert zone_of(crowded(*zones), **fields) == expected


def test_wishes_do_not_count_if_nobody_respects_them() -> None:
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
