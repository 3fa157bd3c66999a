"""Label requirements of pods, possible domains of nodes, and whether two nodes may share one."""

import pytest
from msgspec.structs import replace

from karpy.core.check.breaches import Breach, Rule
from karpy.core.check.constraints import Domains, as_domains, join_domains
from karpy.core.check.scene import DomainTally
from karpy.model.constraints import (
    NodeTerm,
)
from karpy.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS
from karpy.model.pods import Pod
from karpy.model.requirements import Operator, Requirement, one_of, require
from tests.builders import exists, is_in, not_in
from tests.core.check.builders import (
    LARGE,
    catalog,
    in_zone,
    instance_type,
    node,
    offering,
    on_launch,
    on_node,
    option,
    pod,
    pool,
)

NOT_RED = as_domains(exists("team") & not_in("team", "red"))
RED, BLUE = as_domains(is_in("team", "red")), as_domains(is_in("team", "blue"))
NOWHERE = as_domains(None)


def selecting(*wanted: Requirement) -> Pod:
    return pod("web", node_selector=wanted)


def test_a_selector_must_hold_for_every_possible_zone_of_the_node() -> None:
    choosy = selecting(in_zone("a"))

    assert on_launch(choosy, requirements=[in_zone("a")]).rules() == set()
    assert on_launch(choosy).breaches() == (
        Breach(Rule.NODE_AFFINITY, "l1", "shop/web", "medium and 1 others"),
    )
    assert on_node(choosy, present_node=node("n1", "a")).rules() == set()
    assert on_node(choosy, present_node=node("n1", "b")).breaches() == (
        Breach(Rule.NODE_AFFINITY, "n1", "shop/web"),
    )


def test_a_zone_that_is_sold_out_is_not_possible() -> None:
    only_a = instance_type("medium", 4, [offering("a", 400), offering("b", 1, is_available=False)])

    plan = on_launch(selecting(in_zone("a")), options=[only_a], catalog=catalog(only_a))

    assert plan.rules() == set()


def test_labels_of_the_type_count_option_by_option() -> None:
    choosy = selecting(one_of(INSTANCE_TYPE, "large"))

    assert on_launch(choosy, options=[LARGE]).rules() == set()
    assert on_launch(choosy).breaches() == (Breach(Rule.NODE_AFFINITY, "l1", "shop/web", "medium"),)


def test_a_type_with_several_systems_does_not_surely_have_one() -> None:
    either = instance_type("medium", 4, requirements={OS: one_of(OS, "linux", "windows")})
    shop = catalog(either)
    linux = selecting(one_of(OS, "linux"))

    pinned = on_launch(linux, requirements=[one_of(OS, "linux")], options=[either], catalog=shop)

    assert on_launch(linux, options=[either], catalog=shop).rules() == {Rule.NODE_AFFINITY}
    assert pinned.rules() == set()


def test_each_possible_zone_may_be_met_by_another_term() -> None:
    choosy = pod("web", required_node_terms=(NodeTerm((in_zone("a"),)), NodeTerm((in_zone("b"),))))

    assert on_launch(choosy, requirements=[in_zone("a", "b")]).rules() == set()
    assert on_launch(choosy, requirements=[in_zone("b", "c")]).rules() == {Rule.NODE_AFFINITY}
    assert on_node(choosy, present_node=node("n1", "b")).rules() == set()
    assert on_node(choosy, present_node=node("n1", "c")).rules() == {Rule.NODE_AFFINITY}


@pytest.mark.parametrize("term", [NodeTerm(), NodeTerm((in_zone("a"),), has_match_fields=True)])
def test_an_empty_term_or_one_with_fields_never_holds(term: NodeTerm) -> None:
    choosy = pod("web", required_node_terms=(term,))

    assert on_node(choosy).rules() == {Rule.NODE_AFFINITY}
    assert on_launch(choosy, requirements=[in_zone("a")]).rules() == {Rule.NODE_AFFINITY}


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        (one_of("rack", "r1"), one_of("rack", "r1", "r2")),
        (one_of("rack", "r1"), require("rack", Operator.EXISTS)),
        (require("rack", Operator.EXISTS), require("rack", Operator.EXISTS)),
        (require("rack", Operator.NOT_IN, ["r1", "r2"]), require("rack", Operator.NOT_IN, ["r1"])),
        (require("rack", Operator.GT, ["5"]), require("rack", Operator.GT, ["3"])),
        (require("rack", Operator.LT, ["5"]), require("rack", Operator.LTE, ["5"])),
        (require("rack", Operator.DOES_NOT_EXIST), require("rack", Operator.NOT_IN, ["r1"])),
    ],
    ids=str,
)
def test_requirements_of_the_launch_surely_hold(stated: Requirement, wanted: Requirement) -> None:
    pools = (pool("web", stated),)

    plan = on_launch(selecting(wanted), requirements=[stated], pools=pools)

    assert plan.rules() == set()


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        (one_of("rack", "r1", "r2"), one_of("rack", "r1")),
        (require("rack", Operator.EXISTS), one_of("rack", "r1")),
        (require("rack", Operator.EXISTS), require("rack", Operator.NOT_IN, ["r1"])),
        (require("rack", Operator.EXISTS), require("rack", Operator.GT, ["3"])),
        (require("rack", Operator.GT, ["3"]), require("rack", Operator.GT, ["5"])),
        (require("rack", Operator.EXISTS), require("rack", Operator.LT, ["3"])),
        (require("rack", Operator.DOES_NOT_EXIST), require("rack", Operator.EXISTS)),
        (one_of("rack", "r1"), require("rack", Operator.DOES_NOT_EXIST)),
    ],
    ids=str,
)
def test_values_that_the_launch_leaves_open_do_not_surely_hold(
    stated: Requirement, wanted: Requirement
) -> None:
    pools = (pool("web", stated),)

    plan = on_launch(selecting(wanted), requirements=[stated], pools=pools)

    assert plan.rules() == {Rule.NODE_AFFINITY}


def test_a_label_that_nothing_defines_does_not_exist() -> None:
    absent = selecting(require("rack", Operator.DOES_NOT_EXIST))
    present = selecting(one_of("rack", "r1"))

    assert on_launch(absent).rules() == set()
    assert on_launch(present).rules() == {Rule.NODE_AFFINITY}
    assert on_node(absent).rules() == set()
    assert on_node(present).rules() == {Rule.NODE_AFFINITY}


def test_a_negative_requirement_does_not_define_a_label() -> None:
    """The type has no such label, and NotIn allows that."""
    key = "example.com/gpu-name"
    bare = instance_type("medium", 4, requirements={key: require(key, Operator.DOES_NOT_EXIST)})
    stated = require(key, Operator.NOT_IN, ["old"])

    plan = on_launch(
        selecting(require(key, Operator.EXISTS)),
        requirements=[stated],
        options=[bare],
        catalog=catalog(bare),
    )

    assert plan.rules() == {Rule.NODE_AFFINITY}


def test_labels_of_the_pool_are_labels_of_the_node() -> None:
    pools = (pool(labels={"team": "x"}),)

    assert on_launch(selecting(one_of("team", "x")), pools=pools).rules() == set()
    assert on_launch(selecting(one_of("team", "y")), pools=pools).rules() == {Rule.NODE_AFFINITY}


def test_a_deprecated_label_name_selects_the_present_one() -> None:
    old = node("n1", labels={"beta.kubernetes.io/arch": "amd64"})
    labels = {key: value for key, value in old.labels.items() if key != ARCH}

    plan = on_node(selecting(one_of(ARCH, "amd64")), present_node=replace(old, labels=labels))

    assert plan.rules() == set()


def test_capacity_type_is_open_until_it_is_settled() -> None:
    both = instance_type("medium", 4, [offering("a", 100, "spot"), offering("a", 400)])
    careful = selecting(one_of(CAPACITY_TYPE, "on-demand"))
    shop = catalog(both)

    pinned = on_launch(
        careful,
        requirements=[one_of(CAPACITY_TYPE, "on-demand")],
        options=[both],
        catalog=shop,
    )
    free = on_launch(careful, options=[option(both, capacity_type="spot")], catalog=shop)

    assert pinned.rules() == set()
    assert free.rules() == {Rule.NODE_AFFINITY}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (RED, RED, True),
        (RED, BLUE, False),
        (NOT_RED, BLUE, True),
        (NOT_RED, RED, False),
        (NOT_RED, NOT_RED, True),
        (NOT_RED, NOWHERE, False),
        (join_domains([NOT_RED, RED]), RED, True),
        (join_domains([NOT_RED, as_domains(exists("team"))]), RED, True),
    ],
)
def test_two_nodes_may_be_in_the_same_domain(
    one: Domains, other: Domains, *, expected: bool
) -> None:
    assert (one.may_meet(other), other.may_meet(one)) == (expected, expected)


def test_nodes_that_exclude_a_domain_are_not_counted_in_it() -> None:
    tally = DomainTally([NOT_RED, RED, BLUE, NOWHERE])

    assert (tally["red"], tally["blue"], tally.most(NOT_RED)) == (1, 2, (2, "any"))
