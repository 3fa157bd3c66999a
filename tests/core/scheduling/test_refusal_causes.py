"""Why a pod fits nowhere: each cause has its name, and the right one is blamed."""

import pytest
from msgspec.structs import replace

from karpy.model.conditions import Condition, Conditions
from karpy.model.labels import CAPACITY_TYPE, HOSTNAME, ON_DEMAND, SPOT, ZONE
from karpy.model.pods import HostPort
from karpy.model.records import Identity, PoolRecord
from karpy.model.settings import ReservedMode, Settings
from karpy.model.snapshot import Snapshot
from karpy.model.verdicts import (
    Constraint,
    Exclusion,
)
from tests.builders import (
    DRIVER,
    FAMILY,
    RESERVATION,
    ZONE_A,
    ZONE_B,
    ZONE_C,
    ZONES,
    affinity,
    anti_affinity,
    catalog,
    daemon,
    exists,
    instance_type,
    is_in,
    min_values,
    node,
    offering,
    pod,
    pool,
    snapshot,
    spread,
    storage,
    taint,
    term,
    volume,
    volume_claim,
)
from tests.builders.pods import NOON
from tests.core.scheduling.answers import (
    only_pool_refusal,
)

WEB = {"app": "web"}
BUSY = [node(zone, zone=zone, cpu="0") for zone in ZONES]
IN_B_OR_SPOT = instance_type("t", offerings=[offering(ZONE_A, SPOT), offering(ZONE_B, ON_DEMAND)])
ONLY_FULL = instance_type("t", offerings=[offering(reservation="cr", left=0)])
FALLBACK = Settings(reserved_mode=ReservedMode.FALLBACK)


def _bound(*zones: str) -> Snapshot:
    """Make a cluster with a pod whose volumes are in these zones."""
    names = [f"v-{zone}" for zone in zones]
    stored = storage(
        *(volume_claim(name, bound_to=name) for name in names),
        *(volume(f"v-{zone}", term(is_in(ZONE, zone))) for zone in zones),
    )
    return snapshot(pods=[pod("p", claims=names)], storage=stored)


# --- every constraint once -------------------------------------------------------------------


SINGLE_CAUSES = {
    Constraint.POOL_NOT_READY: (
        "see `kubectl describe nodepool default`",
        snapshot(pods=[pod("p")], pools=[pool(ready=False)]),
    ),
    Constraint.POOL_STATIC: ("default", snapshot(pods=[pod("p")], pools=[pool(static=True)])),
    Constraint.POOL_DELETING: ("default", snapshot(pods=[pod("p")], pools=[pool(deleting=True)])),
    Constraint.POOL_EMPTY: (
        f"{FAMILY} In [x]",
        snapshot(pods=[pod("p")], pools=[pool(requirements=[is_in(FAMILY, "x")])]),
    ),
    Constraint.TAINT: (
        "gpu=yes:NoSchedule",
        snapshot(pods=[pod("p")], pools=[pool(taints=[taint("gpu", "yes")])]),
    ),
    Constraint.UNDEFINED_LABEL: ("foo In [a]", snapshot(pods=[pod("p", selector={"foo": "a"})])),
    Constraint.REQUIREMENT: (
        f"{FAMILY} In [x]",
        snapshot(pods=[pod("p", selector={FAMILY: "x"})]),
    ),
    Constraint.RESOURCE: (
        "cpu: 17 asked, 15900m is the most a type leaves",
        snapshot(pods=[pod("p", cpu="17")]),
    ),
    Constraint.OFFERING: (
        f"{CAPACITY_TYPE} In [spot], {ZONE} In [zone-b]",
        snapshot(
            pods=[pod("p", selector={ZONE: ZONE_B, CAPACITY_TYPE: SPOT})],
            catalog=catalog([IN_B_OR_SPOT]),
        ),
    ),
    Constraint.LIMIT: (
        "cpu: 1 left of 5",
        snapshot(
            nodes=[node("n", cpu="4", taints=[taint("full")])],
            pods=[pod("p")],
            pools=[pool(limits={"cpu": "5"})],
        ),
    ),
    Constraint.NODE_LIMIT: (
        "limit 1",
        snapshot(
            nodes=[node("n", taints=[taint("full")])],
            pods=[pod("p")],
            pools=[pool(limits={"nodes": "1"})],
        ),
    ),
    Constraint.SPREAD: (
        "spread on rack of pods with app In [web]; open: nowhere",
        snapshot(pods=[pod("p", labels=WEB, spreads=[spread("rack", WEB)])]),
    ),
    Constraint.AFFINITY: (
        f"affinity on {HOSTNAME} of pods with app In [web]",
        snapshot(pods=[pod("p", affinity=[affinity(HOSTNAME, WEB)])]),
    ),
    Constraint.ANTI_AFFINITY: (
        f"anti-affinity on {ZONE} of pods with app In [web]; open: nowhere",
        snapshot(
            nodes=BUSY,
            pods=[
                *(pod(f"web-{zone}", labels=WEB, on=zone) for zone in ZONES),
                pod("p", anti_affinity=[anti_affinity(ZONE, WEB)]),
            ],
        ),
    ),
    Constraint.HOST_PORT: (
        "80/TCP",
        snapshot(
            pods=[pod("p", ports=[HostPort(80)])], daemons=[daemon("d", ports=[HostPort(80)])]
        ),
    ),
    Constraint.VOLUME_TOPOLOGY: (f"{ZONE} In [zone-z]", _bound("zone-z")),
    Constraint.VOLUME_LIMIT: (
        DRIVER,
        snapshot(
            pods=[pod("p", claims=["a", "b"])],
            storage=storage(volume_claim("a"), volume_claim("b")),
            catalog=catalog([instance_type("t", volume_limits={DRIVER: 1})]),
        ),
    ),
    Constraint.MIN_VALUES: (
        f"{ZONE}: 1 values left",
        snapshot(
            pods=[pod("p", selector={ZONE: ZONE_B})],
            pools=[pool(requirements=[min_values(exists(ZONE), 3)])],
        ),
    ),
    Constraint.RESERVATION: (
        "",
        snapshot(pods=[pod("p")], catalog=catalog([ONLY_FULL]), settings=FALLBACK),
    ),
}


UNTRIED = {
    Constraint.POOL_DELETING,
    Constraint.POOL_EMPTY,
    Constraint.POOL_NOT_READY,
    Constraint.POOL_STATIC,
    Constraint.RESERVATION,
}
"""Whether lifting one of these alone would be enough is not known."""


def test_every_constraint_has_its_case() -> None:
    assert set(SINGLE_CAUSES) == set(Constraint)


@pytest.mark.parametrize("constraint", SINGLE_CAUSES, ids=lambda each: each.name)
def test_a_single_cause_is_decisive_and_named(constraint: Constraint) -> None:
    detail, cluster = SINGLE_CAUSES[constraint]

    refused = only_pool_refusal(cluster)

    assert (refused.decisive.constraint, refused.decisive.detail) == (constraint, detail)
    assert refused.is_single == (constraint not in UNTRIED)


# --- causes that only show together ----------------------------------------------------------


def test_a_spread_that_leaves_only_zones_the_pod_cannot_use_is_to_blame() -> None:
    rule = spread(ZONE, WEB, honors_affinity=False)
    cluster = snapshot(
        nodes=BUSY,
        pods=[
            pod("old", labels=WEB, on=ZONE_A),
            pod("p", labels=WEB, spreads=[rule], selector={ZONE: ZONE_A}),
        ],
    )

    assert only_pool_refusal(cluster).decisive.constraint is Constraint.SPREAD


def test_a_spread_that_leaves_only_zones_without_the_volume_is_to_blame() -> None:
    cluster = snapshot(
        nodes=BUSY,
        pods=[
            pod("old", labels=WEB, on=ZONE_A),
            pod("p", labels=WEB, spreads=[spread(ZONE, WEB)], claims=["c"]),
        ],
        storage=storage(volume_claim("c", bound_to="v"), volume("v", term(is_in(ZONE, ZONE_A)))),
    )

    assert only_pool_refusal(cluster).decisive.constraint in {
        Constraint.SPREAD,
        Constraint.VOLUME_TOPOLOGY,
    }


def test_of_several_rules_for_a_key_the_tightest_is_to_blame() -> None:
    """The affinity allows the pod to start in any zone; the other rule excludes the zones."""
    torn = pod(
        "p",
        labels=WEB,
        affinity=[affinity(ZONE, WEB)],
        anti_affinity=[anti_affinity(ZONE, {"app": "db"})],
    )
    others = [pod(f"db-{zone}", labels={"app": "db"}, on=zone) for zone in ZONES]

    refused = only_pool_refusal(snapshot(nodes=BUSY, pods=[*others, torn]))

    assert refused.decisive.constraint is Constraint.ANTI_AFFINITY


def test_a_refusal_names_requirements_that_contradict_each_other() -> None:
    torn = pod("p", selector={"team": "a"}, terms=[term(is_in("team", "b"))])

    assert only_pool_refusal(snapshot(pods=[torn])).decisive.constraint is Constraint.REQUIREMENT


def test_an_offering_that_does_not_exist_is_missing_not_reserved() -> None:
    asks = [pod("p", selector={RESERVATION: "other"})]
    reserving = instance_type("t", offerings=[offering(), offering(reservation="cr", left=1)])

    for_none, for_another = snapshot(pods=asks), snapshot(pods=asks, catalog=catalog([reserving]))

    assert only_pool_refusal(for_none).decisive.constraint is Constraint.OFFERING
    assert only_pool_refusal(for_another).decisive.constraint is Constraint.OFFERING


def test_a_label_that_is_missing_is_no_fault_of_the_volume() -> None:
    stored = storage(volume_claim("c", bound_to="v"), volume("v", term(is_in(ZONE, ZONE_C))))
    cluster = snapshot(pods=[pod("p", selector={"foo": "a"}, claims=["c"])], storage=stored)

    refused = only_pool_refusal(cluster)

    assert [each.constraint for each in refused.exclusions] == [Constraint.UNDEFINED_LABEL]
    assert refused.is_single


def test_volumes_in_different_places_are_named_as_such() -> None:
    assert only_pool_refusal(_bound(ZONE_A, ZONE_B)).decisive == Exclusion(
        Constraint.VOLUME_TOPOLOGY, "nowhere: its volumes are in different places", 12
    )


def test_a_node_pool_that_is_not_ready_says_which_condition_keeps_it() -> None:
    conditions = Conditions(
        (
            Condition("Ready", "False", NOON, "UnhealthyDependents", "NodeClassReady=False"),
            Condition("ValidationSucceeded", "True", NOON, "ValidationSucceeded", ""),
            Condition("NodeClassReady", "False", NOON, "NodeClassNotReady", "no AMI is selected"),
        ),
        ("ValidationSucceeded", "NodeClassReady"),
    )
    broken = replace(
        pool(ready=False), record=PoolRecord(Identity("default"), conditions=conditions)
    )

    refused = only_pool_refusal(snapshot(pods=[pod("p")], pools=[broken]))

    assert refused.decisive.detail == "NodeClassReady: no AMI is selected"
