from collections.abc import Iterable
from typing import Unpack

import pytest
from msgspec.structs import replace

from karpy.core.check.breaches import Breach, Rule
from karpy.model.constraints import (
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    NodeTerm,
    Taint,
    Toleration,
)
from karpy.model.instances import InstanceType
from karpy.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE
from karpy.model.nodes import Node
from karpy.model.pods import DaemonSet, HostPort, Pod
from karpy.model.requirement import Operator, Requirement, one_of, require
from karpy.model.resources import Resources
from karpy.model.settings import Settings
from karpy.model.verdicts import LaunchOption
from tests.core.check.builders import (
    LARGE,
    MEDIUM,
    SMALL,
    World,
    amounts,
    bound,
    catalog,
    daemon,
    daemon_pod,
    in_zone,
    instance_type,
    launch,
    node,
    offering,
    option,
    pod,
    pool,
    world,
)
from tests.core.check.fields import SnapshotFields

GPU = Taint("gpu", NO_SCHEDULE, "yes")
SOFT = Taint("slow", PREFER_NO_SCHEDULE)
TOLERANT = Toleration("gpu", value="yes")


def on_launch(
    *pods: Pod,
    requirements: Iterable[Requirement] = (),
    options: Iterable[InstanceType | LaunchOption] = (MEDIUM, LARGE),
    resources: Resources | None = None,
    **snapshot: Unpack[SnapshotFields],
) -> World:
    its = launch("l1", pods, *requirements, options=options, resources=resources)
    return world(its, pods=pods, **snapshot)


def on_node(
    *pods: Pod,
    there: Iterable[Pod] = (),
    its: Node | None = None,
    daemons: tuple[DaemonSet, ...] = (),
) -> World:
    nodes = (its or node("n1"),)
    everyone = (*pods, *there)
    return world(pods=everyone, nodes=nodes, nominations={"n1": pods}, daemons=daemons)


# --- resources -----------------------------------------------------------------------------------


def test_pods_fit_the_smallest_option_not_only_the_largest() -> None:
    three = pod("three", "3")

    assert on_launch(three, options=[MEDIUM, LARGE]).rules() == set()
    assert on_launch(three, options=[SMALL, LARGE]).breaches() == (
        Breach(Rule.RESOURCES, "l1", detail="small"),
    )


def test_what_the_system_keeps_is_not_for_pods() -> None:
    reserved = instance_type("medium", 4, overhead=amounts(cpu="1500m"))

    plan = on_launch(pod("three", "3"), options=[reserved], catalog=catalog(reserved))

    assert plan.rules() == {Rule.RESOURCES}


def test_daemons_take_their_share_of_a_new_node() -> None:
    pods = [pod("one", "2"), pod("two", "2")]

    assert on_launch(*pods).rules() == set()
    assert on_launch(*pods, daemons=(daemon("log"),)).breaches() == (
        Breach(Rule.RESOURCES, "l1", detail="medium"),
    )


@pytest.mark.parametrize(
    "shy",
    [
        daemon("log", node_selector=(one_of(ARCH, "arm64"),)),
        daemon("log", node_selector=(one_of(ZONE, "b"),)),
        daemon("log", node_selector=(one_of("rack", "r1"),)),
        daemon("log", required_node_terms=(NodeTerm((one_of(ARCH, "arm64"),)),)),
    ],
)
def test_daemons_that_cannot_run_there_take_nothing(shy: DaemonSet) -> None:
    full = pod("full", "4")

    assert on_launch(full, requirements=[in_zone("a")], daemons=(shy,)).rules() == set()


def test_a_daemon_that_may_run_there_counts() -> None:
    """The zone is still open, and so is the second term."""
    choosy = daemon(
        "log",
        required_node_terms=(NodeTerm((one_of(ARCH, "arm64"),)), NodeTerm((one_of(ZONE, "b"),))),
    )

    assert on_launch(pod("full", "4"), daemons=(choosy,)).rules() == {Rule.RESOURCES}


def test_daemons_need_tolerations_but_not_for_soft_or_startup_taints() -> None:
    full = pod("full", "4", tolerations=(TOLERANT,))
    hard = (pool(taints=(GPU,)),)
    soft = (pool(taints=(SOFT,), startup_taints=(GPU,)),)

    assert on_launch(full, pools=hard, daemons=(daemon("log"),)).rules() == set()
    assert on_launch(full, pools=soft, daemons=(daemon("log"),)).rules() == {Rule.RESOURCES}


def test_a_daemon_may_ask_for_the_labels_of_a_ready_node() -> None:
    ready = daemon("log", node_selector=(one_of("karpenter.sh/initialized", "true"),))

    assert on_launch(pod("full", "4"), daemons=(ready,)).rules() == {Rule.RESOURCES}


def test_an_offering_smaller_than_what_the_launch_states_is_never_picked() -> None:
    halves = instance_type(
        "mixed", 4, [offering("a", 400), offering("b", 300, capacity_override=amounts(cpu="2"))]
    )
    shop = catalog(halves)
    three = pod("three", "3")

    big = on_launch(three, options=[option(halves, "a")], catalog=shop)
    vague = on_launch(
        three,
        options=[option(halves, "b")],
        catalog=shop,
        resources=amounts(cpu="1", memory="1Gi", pods="1"),
    )
    nothing = on_launch(
        three, requirements=[in_zone("b")], options=[option(halves, "b")], catalog=shop
    )

    assert big.rules() == set()
    assert vague.rules() == {Rule.RESOURCES, Rule.STATED_RESOURCES}
    assert nothing.rules() == {Rule.RESOURCES}


def test_what_an_offering_keeps_for_itself_replaces_what_its_type_says() -> None:
    greedy = instance_type("medium", 4, [offering("a", 400, overhead_override=amounts(cpu="2"))])

    plan = on_launch(pod("three", "3"), options=[greedy], catalog=catalog(greedy))

    assert plan.rules() == {Rule.RESOURCES}


def test_a_node_has_what_bound_pods_leave() -> None:
    three = pod("three", "3")
    five, six = bound(pod("five", "5"), "n1"), bound(pod("six", "6"), "n1")
    done = replace(six, phase="Succeeded")

    assert on_node(three, there=[five]).rules() == set()
    assert on_node(three, there=[done]).rules() == set()
    assert on_node(three, there=[six]).breaches() == (
        Breach(Rule.RESOURCES, "n1", detail="cpu: 3 wanted, 2 there"),
    )


def test_a_pod_on_its_way_out_still_takes_room() -> None:
    leaving = replace(bound(pod("leaving", "6"), "n1"), is_deleting=True)

    assert on_node(pod("three", "3"), there=[leaving]).rules() == {Rule.RESOURCES}


def test_a_node_keeps_room_for_daemons_still_to_come() -> None:
    full = pod("full", "7900m")
    daemons = (daemon("log"), daemon("net"))
    log = daemon_pod("log-x", "n1")

    assert on_node(full, daemons=daemons[:1]).rules() == set()
    assert on_node(full, daemons=daemons).rules() == {Rule.RESOURCES}
    assert on_node(pod("less", "7800m"), daemons=daemons, there=[log]).rules() == set()
    assert on_node(full, daemons=daemons[:1], there=[log]).rules() == set()


def test_a_resource_the_node_does_not_have_is_not_there() -> None:
    greedy = replace(pod("gpu"), requests={**pod("gpu").requests, "example.com/gpu": 1})

    assert on_node(greedy).breaches() == (
        Breach(Rule.RESOURCES, "n1", detail="example.com/gpu: 1 wanted, 0 there"),
    )


def test_a_shortage_that_was_there_before_is_not_the_plans_fault() -> None:
    hog = replace(bound(pod("hog"), "n1"), requests={"example.com/disk": 5})

    assert on_node(pod("web"), there=[hog]).rules() == set()


# --- taints --------------------------------------------------------------------------------------


def test_hard_taints_must_be_tolerated() -> None:
    shy, bold = pod("web"), pod("web", tolerations=(TOLERANT,))
    pools = (pool(taints=(SOFT, GPU)),)
    tainted = node("n1", taints=(SOFT, GPU))

    assert on_launch(bold, pools=pools).rules() == set()
    assert on_launch(shy, pools=pools).breaches() == (
        Breach(Rule.TAINT, "l1", "shop/web", "gpu=yes:NoSchedule"),
    )
    assert on_node(bold, its=tainted).rules() == set()
    assert on_node(shy, its=tainted).breaches() == (
        Breach(Rule.TAINT, "n1", "shop/web", "gpu=yes:NoSchedule"),
    )


def test_startup_taints_and_soft_ones_keep_nobody_away() -> None:
    pools = (pool(taints=(SOFT,), startup_taints=(GPU,)),)

    assert on_launch(pod("web"), pools=pools).rules() == set()
    assert on_node(pod("web"), its=node("n1", taints=(SOFT,))).rules() == set()


# --- labels --------------------------------------------------------------------------------------


def selecting(*wanted: Requirement) -> Pod:
    return pod("web", node_selector=wanted)


def test_a_selector_must_hold_for_every_zone_the_node_may_come_up_in() -> None:
    choosy = selecting(in_zone("a"))

    assert on_launch(choosy, requirements=[in_zone("a")]).rules() == set()
    assert on_launch(choosy).breaches() == (
        Breach(Rule.NODE_AFFINITY, "l1", "shop/web", "medium and 1 others"),
    )
    assert on_node(choosy, its=node("n1", "a")).rules() == set()
    assert on_node(choosy, its=node("n1", "b")).breaches() == (
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


def test_a_type_that_leaves_the_system_open_promises_nothing() -> None:
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
    assert on_node(choosy, its=node("n1", "b")).rules() == set()
    assert on_node(choosy, its=node("n1", "c")).rules() == {Rule.NODE_AFFINITY}


@pytest.mark.parametrize("term", [NodeTerm(), NodeTerm((in_zone("a"),), has_match_fields=True)])
def test_a_term_that_says_nothing_or_names_fields_holds_nowhere(term: NodeTerm) -> None:
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
def test_what_the_launch_promises_is_had(stated: Requirement, wanted: Requirement) -> None:
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
def test_what_the_launch_leaves_open_is_not(stated: Requirement, wanted: Requirement) -> None:
    pools = (pool("web", stated),)

    plan = on_launch(selecting(wanted), requirements=[stated], pools=pools)

    assert plan.rules() == {Rule.NODE_AFFINITY}


def test_a_label_that_nothing_defines_is_not_there() -> None:
    absent = selecting(require("rack", Operator.DOES_NOT_EXIST))
    present = selecting(one_of("rack", "r1"))

    assert on_launch(absent).rules() == set()
    assert on_launch(present).rules() == {Rule.NODE_AFFINITY}
    assert on_node(absent).rules() == set()
    assert on_node(present).rules() == {Rule.NODE_AFFINITY}


def test_a_promise_to_avoid_a_value_is_no_promise_to_have_one() -> None:
    """The type says there is no such label, and NotIn is fine with that."""
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


def test_a_label_may_have_the_name_it_once_had() -> None:
    old = node("n1", labels={"beta.kubernetes.io/arch": "amd64"})
    labels = {key: value for key, value in old.labels.items() if key != ARCH}

    plan = on_node(selecting(one_of(ARCH, "amd64")), its=replace(old, labels=labels))

    assert plan.rules() == set()


# --- ports and devices ---------------------------------------------------------------------------


def test_host_ports_clash_among_new_pods() -> None:
    one, two = pod("one", ports=(HostPort(80),)), pod("two", ports=(HostPort(80),))
    other = pod("other", ports=(HostPort(80, "UDP"),))

    assert on_launch(one, other).rules() == set()
    assert on_launch(one, two).breaches() == (
        Breach(Rule.HOST_PORT, "l1", "shop/two", "80 of shop/one"),
    )


def test_a_pod_does_not_clash_with_itself() -> None:
    twice = pod("twice", ports=(HostPort(80, address="10.0.0.1"), HostPort(80)))

    assert on_launch(twice).rules() == set()


def test_host_ports_clash_with_those_who_are_there() -> None:
    new = pod("new", ports=(HostPort(80, address="10.0.0.1"),))
    old = bound(pod("old", ports=(HostPort(80),)), "n1")
    elsewhere = bound(pod("old", ports=(HostPort(80, address="10.0.0.2"),)), "n1")

    assert on_node(new, there=[elsewhere]).rules() == set()
    assert on_node(new, there=[old]).breaches() == (Breach(Rule.HOST_PORT, "n1", "shop/new", "80"),)


def test_host_ports_clash_with_daemons_option_by_option() -> None:
    monitor = daemon(
        "monitor", ports=(HostPort(9100),), node_selector=(one_of(INSTANCE_TYPE, "large"),)
    )
    new = pod("new", ports=(HostPort(9100),))

    assert on_launch(new, options=[MEDIUM], daemons=(monitor,)).rules() == set()
    assert on_launch(new, daemons=(monitor,)).breaches() == (
        Breach(Rule.HOST_PORT, "l1", detail="with daemons on large"),
    )


def test_a_pod_that_asks_for_devices_waits_while_devices_are_ignored() -> None:
    asking = pod("gpu", claims_devices=True)
    plan = on_launch(asking)
    heeded = replace(plan.snapshot, settings=Settings(ignore_device_claims=False))

    assert plan.breaches() == (Breach(Rule.DEVICES, "l1", "shop/gpu"),)
    assert plan._replace(snapshot=heeded).rules() == set()


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
