"""Sections 2 and 3: labels that a NodePool does not define."""

import pytest

from karpy.model.labels import ARCH, NODE_POOL, REGION, ZONE
from karpy.model.requirements import Requirement
from tests.builders import (
    CPUS,
    FAMILY,
    GPU_NAME,
    NODE_CLASS_LABEL,
    ZONE_A,
    ZONE_B,
    above,
    absent,
    below,
    catalog,
    exists,
    instance_type,
    is_in,
    not_in,
    pod,
    pods,
    pool,
    snapshot,
    term,
)
from tests.core.scheduling.answers import (
    hosts,
    only_launch,
    pods_launched,
    types_launched,
    values_launched,
)


@pytest.mark.parametrize(
    ("asked", "host"),
    [
        (exists("foo"), "NO_HOST"),
        (is_in("foo", "a"), "NO_HOST"),
        (above("foo", 1), "NO_HOST"),
        (not_in("foo", "a"), "default-0"),
        (absent("foo"), "default-0"),
        (is_in(ZONE, ZONE_A), "default-0"),
        (exists(ZONE), "default-0"),
        (is_in(REGION, "anywhere"), "default-0"),
        (is_in(FAMILY, "m"), "default-0"),
        (is_in(GPU_NAME, "t4"), "default-0"),
        (is_in(NODE_CLASS_LABEL, "default"), "default-0"),
        (is_in(NODE_CLASS_LABEL, "other"), "NO_HOST"),
        (is_in(NODE_POOL, "default"), "default-0"),
        (is_in(NODE_POOL, "other"), "NO_HOST"),
        (above(CPUS, 8), "default-0"),
        (above(CPUS, 16), "NO_HOST"),
    ],
    ids=str,
)
def test_custom_labels_must_be_defined_well_known_ones_need_not(
    asked: Requirement, host: str
) -> None:
    """The golden values of the specification, and similar ones."""
    assert hosts(snapshot(pods=[pod("p", selector=[asked])])) == {"p": host}


@pytest.mark.parametrize(
    ("asked", "host"),
    [
        (is_in("team", "red"), "default-0"),
        (is_in("team", "blue"), "NO_HOST"),
        (exists("team"), "default-0"),
        (absent("team"), "NO_HOST"),
        (not_in("team", "red"), "NO_HOST"),
        (not_in("team", "blue"), "default-0"),
        (is_in("rack", "2", "9"), "default-0"),
        (below("rack", 1), "NO_HOST"),
        (above("rack", 1), "default-0"),
    ],
    ids=str,
)
def test_what_a_pool_defines_by_label_or_requirement_can_be_asked_for(
    asked: Requirement, host: str
) -> None:
    defined = pool(labels={"team": "red"}, requirements=[is_in("rack", "1", "2")])

    assert hosts(snapshot(pods=[pod("p", selector=[asked])], pools=[defined])) == {"p": host}


def test_a_custom_label_that_only_types_define_is_not_enough() -> None:
    """Neither the pool nor the provider sets it; keys of the catalog are well known instead."""
    kind = instance_type("t", requirements=[is_in("disk", "fast")])
    cluster = snapshot(pods=[pod("p", selector={"disk": "fast"})], catalog=catalog([kind]))

    assert hosts(cluster) == {"p": "NO_HOST"}


def test_types_without_a_well_known_label_may_still_be_asked_for_it() -> None:
    """Parity: an undefined key is ignored on both sides, so that a type without it will do."""
    types = [instance_type("plain"), instance_type("gpu", requirements=[is_in(GPU_NAME, "t4")])]

    def types_for(name: str) -> list[list[str]]:
        return types_launched(
            snapshot(pods=[pod("p", selector={GPU_NAME: name})], catalog=catalog(types))
        )

    assert types_for("t4") == [["gpu", "plain"]]
    assert types_for("a100") == [["plain"]]


def test_what_a_pod_requires_of_an_open_label_becomes_a_requirement_of_the_claim() -> None:
    batch = [
        pod("p", cpu="1", selector=[not_in(ARCH, "arm64")]),
        pod("q", selector={ARCH: "amd64"}),
    ]

    launch = only_launch(snapshot(pods=batch))

    assert launch.requirements[ARCH] == is_in(ARCH, "amd64")


def test_pods_that_exclude_a_value_define_the_label_for_the_claim() -> None:
    """From then on a pod may require another value of the claim, but no longer its absence."""
    shuns = pod("shuns", cpu="2", selector=[not_in("team", "red")])
    blue = pod("blue", cpu="1", selector={"team": "blue"})
    red = pod("red", cpu="1", selector={"team": "red"})

    assert hosts(snapshot(pods=[shuns, blue])) == {"blue": "default-0", "shuns": "default-0"}
    assert hosts(snapshot(pods=[shuns, red])) == {"red": "NO_HOST", "shuns": "default-0"}
    assert values_launched(snapshot(pods=[shuns, blue]), "team") == [["blue"]]


def test_a_pod_that_came_too_early_gets_the_label_in_the_next_round() -> None:
    blue = pod("blue", cpu="2", selector={"team": "blue"})
    shuns = pod("shuns", cpu="1", selector=[not_in("team", "red")])

    assert pods_launched(snapshot(pods=[blue, shuns])) == [["shuns", "blue"]]


def test_pods_that_require_a_label_to_be_absent_do_not_define_it() -> None:
    absent_too = pod("absent", cpu="2", selector=[absent("team")])
    blue = pod("blue", selector={"team": "blue"})

    assert hosts(snapshot(pods=[absent_too, blue])) == {"absent": "default-0", "blue": "NO_HOST"}


def test_two_kinds_of_negation_go_together() -> None:
    batch = [
        pod("a", cpu="3", selector=[absent("team")]),
        pod("b", cpu="2", selector=[not_in("team", "red")]),
        pod("c", cpu="1", selector=[not_in("team", "blue")]),
    ]

    assert pods_launched(snapshot(pods=batch)) == [["a", "b", "c"]]


def test_a_label_that_all_pods_only_exclude_is_not_written_on_the_node() -> None:
    """Karpenter writes a random value; Karpy launches a node without the label."""
    launch = only_launch(snapshot(pods=[pod("p", selector=[not_in("team", "red")])]))

    assert launch.requirements["team"] == not_in("team", "red")
    assert launch.requirements["team"].is_negative


def test_pods_with_different_values_get_nodes_of_their_own() -> None:
    teams = pool(requirements=[is_in("team", "red", "blue")])
    batch = [
        *pods("red", 2, selector={"team": "red"}),
        *pods("blue", 2, selector={"team": "blue"}),
        pod("any", cpu="50m"),
    ]

    assert values_launched(snapshot(pods=batch, pools=[teams]), "team") == [["blue"], ["red"]]


def test_the_first_pool_that_defines_the_label_makes_the_node() -> None:
    pools = [pool("heavy", weight=9), pool("defined", labels={"team": "red"})]

    assert hosts(snapshot(pods=[pod("p", selector={"team": "red"})], pools=pools)) == {
        "p": "defined-0"
    }


def test_a_preference_for_an_undefined_label_is_dropped() -> None:
    wishful = pod("p", prefers=[(1, term(is_in("foo", "a")))])

    assert hosts(snapshot(pods=[wishful])) == {"p": "default-0"}


def test_former_label_names_mean_the_current_ones() -> None:
    old_style = pod("p", selector={"failure-domain.beta.kubernetes.io/zone": ZONE_B})

    assert values_launched(snapshot(pods=[old_style]), ZONE) == [[ZONE_B]]
