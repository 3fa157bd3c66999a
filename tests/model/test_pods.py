from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from karpy.model.constraints import (
    AffinityTerm,
    NodeTerm,
    SpreadConstraint,
    WeightedNodeTerm,
    WeightedTerm,
)
from karpy.model.pods import (
    DAEMON_SET,
    NODE,
    STATEFUL_SET,
    HostPort,
    Owner,
    Pod,
    PodRules,
    PodVolume,
)
from karpy.model.requirement import one_of

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
TERM = AffinityTerm("zone")
POD = Pod("web-1", "shop", "u1", NOON, {}, {"pods": 1}, PodRules())


@pytest.mark.parametrize(
    ("mine", "its", "expected"),
    [
        (HostPort(80), HostPort(80), True),
        (HostPort(80), HostPort(81), False),
        (HostPort(80), HostPort(80, "UDP"), False),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.1"), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.2"), False),
        (HostPort(80, address="10.0.0.1"), HostPort(80), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="::"), True),
        (HostPort(80, address="::"), HostPort(80), True),
    ],
)
def test_ports_clash_unless_protocol_or_address_differ(
    mine: HostPort, its: HostPort, *, expected: bool
) -> None:
    """An unspecified address, of either family, takes the port on all of them."""
    assert mine.clashes_with(its) is expected
    assert its.clashes_with(mine) is expected


def test_a_volume_made_for_the_pod_is_named_after_it() -> None:
    assert PodVolume("data").claim_of("web-1") == "web-1-data"
    assert PodVolume("data", "shared").claim_of("web-1") == "shared"


@pytest.mark.parametrize(
    "rules",
    [
        PodRules(spreads=(SpreadConstraint("zone", 1),)),
        PodRules(affinity=(TERM,)),
        PodRules(anti_affinity=(TERM,)),
        PodRules(preferred_affinity=(WeightedTerm(1, TERM),)),
        PodRules(preferred_anti_affinity=(WeightedTerm(1, TERM),)),
    ],
)
def test_rules_about_other_pods_are_topology(rules: PodRules) -> None:
    assert rules.has_topology


def test_rules_about_nodes_alone_are_no_topology() -> None:
    rules = PodRules(
        node_selector=(one_of("zone", "a"),),
        preferred_node_terms=(WeightedNodeTerm(1, NodeTerm()),),
        ports=(HostPort(80),),
        volumes=(PodVolume("data"),),
    )

    assert not rules.has_topology


def test_equal_rules_are_one_key() -> None:
    """Work done per rules is done once for all pods of a workload."""
    mine = PodRules(node_selector=(one_of("zone", "a", "b"),), spreads=(SpreadConstraint("z", 1),))
    its = PodRules(node_selector=(one_of("zone", "b", "a"),), spreads=(SpreadConstraint("z", 1),))

    assert {mine: 1} == {its: 1}


@pytest.mark.parametrize(
    ("phase", "is_deleting", "is_terminal", "is_active"),
    [
        ("", False, False, True),
        ("Pending", False, False, True),
        ("Running", False, False, True),
        ("Running", True, False, False),
        ("Succeeded", False, True, False),
        ("Failed", False, True, False),
        ("Failed", True, True, False),
    ],
)
def test_a_pod_is_active_until_it_ends_or_is_told_to(
    phase: str, *, is_deleting: bool, is_terminal: bool, is_active: bool
) -> None:
    pod = replace(POD, phase=phase, is_deleting=is_deleting)

    assert (pod.is_terminal, pod.is_active) == (is_terminal, is_active)


def test_a_pod_is_known_by_namespace_and_name() -> None:
    assert POD.key == "shop/web-1"


def test_an_owner_counts_by_api_version_and_kind() -> None:
    """A DaemonSet of another API group makes other pods."""
    owned = replace(POD, owners=(Owner("v1", "Node"), Owner("apps/v1", "DaemonSet")))
    other = replace(POD, owners=(Owner("apps.kruise.io/v1alpha1", "DaemonSet"),))

    assert [owned.is_owned_by(kind) for kind in (DAEMON_SET, NODE, STATEFUL_SET)] == [
        True,
        True,
        False,
    ]
    assert not other.is_owned_by(DAEMON_SET)
    assert not POD.is_owned_by(DAEMON_SET)
