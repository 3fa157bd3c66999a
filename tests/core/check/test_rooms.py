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
from karpy.model.labels import ARCH, ZONE
from karpy.model.pods import DaemonSet
from karpy.model.requirements import Operator, one_of, require
from tests.core.check.builders import (
    LARGE,
    MEDIUM,
    SMALL,
    amounts,
    bound,
    catalog,
    daemon,
    daemon_pod,
    in_zone,
    instance_type,
    offering,
    on_launch,
    on_node,
    option,
    pod,
    pool,
)

GPU = Taint("gpu", NO_SCHEDULE, "yes")
SOFT = Taint("slow", PREFER_NO_SCHEDULE)
TOLERANT = Toleration("gpu", value="yes")


def test_pods_fit_the_smallest_option_not_only_the_largest() -> None:
    three = pod("three", "3")

    assert on_launch(three, options=[MEDIUM, LARGE]).rules() == set()
    assert on_launch(three, options=[SMALL, LARGE]).breaches() == (
        Breach(Rule.RESOURCES, "l1", detail="small"),
    )


def test_overhead_is_not_available_to_pods() -> None:
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
    """The zone is open, and hence the second term is possible."""
    choosy = daemon(
        "log",
        required_node_terms=(NodeTerm((one_of(ARCH, "arm64"),)), NodeTerm((one_of(ZONE, "b"),))),
    )

    assert on_launch(pod("full", "4"), daemons=(choosy,)).rules() == {Rule.RESOURCES}


def test_a_negative_requirement_does_not_give_a_daemon_its_label() -> None:
    """Karpy writes no such label; Karpenter would, with a random value."""
    choosy = daemon("log", node_selector=(require("rack", Operator.EXISTS),))
    shy = pod("shy", "4", node_selector=(require("rack", Operator.NOT_IN, ["r1"]),))

    plan = on_launch(shy, requirements=shy.rules.node_selector, daemons=(choosy,))

    assert plan.rules() == set()


def test_daemons_with_contradictory_requirements_never_run() -> None:
    torn = daemon("log", node_selector=(in_zone("a"), in_zone("b")))

    assert on_launch(pod("full", "4"), daemons=(torn,)).rules() == set()


def test_daemons_need_tolerations_but_not_for_soft_or_startup_taints() -> None:
    full = pod("full", "4", tolerations=(TOLERANT,))
    hard = (pool(taints=(GPU,)),)
    soft = (pool(taints=(SOFT,), startup_taints=(GPU,)),)

    assert on_launch(full, pools=hard, daemons=(daemon("log"),)).rules() == set()
    assert on_launch(full, pools=soft, daemons=(daemon("log"),)).rules() == {Rule.RESOURCES}


def test_a_daemon_may_require_the_labels_of_a_ready_node() -> None:
    ready = daemon("log", node_selector=(one_of("karpenter.sh/initialized", "true"),))

    assert on_launch(pod("full", "4"), daemons=(ready,)).rules() == {Rule.RESOURCES}


def test_an_offering_too_small_for_the_pods_is_never_picked() -> None:
    """Whatever the launch states: the launch knows its pods and the sizes of the offerings."""
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
    assert vague.rules() == {Rule.OPTION_PRICE, Rule.STATED_RESOURCES}
    assert nothing.rules() == {Rule.RESOURCES}


def test_which_sizes_are_too_small_does_not_depend_on_where_daemons_run() -> None:
    """The launch considers the daemons of the type, as the solver does."""
    halves = instance_type(
        "mixed", 4, [offering("a", 400), offering("b", 300, capacity_override=amounts(cpu="2"))]
    )
    only_a = daemon("log", "1", node_selector=(in_zone("a"),))

    def rules(zone: str, cpu: str) -> set[Rule]:
        options = [option(halves, zone)]
        return on_launch(
            pod("web", cpu), options=options, catalog=catalog(halves), daemons=(only_a,)
        ).rules()

    assert rules("b", "1") == set()
    assert rules("a", "2") == set()
    assert rules("b", "2") == {Rule.OPTION_PRICE}


def test_the_overhead_override_of_an_offering_replaces_that_of_its_type() -> None:
    greedy = instance_type("medium", 4, [offering("a", 400, overhead_override=amounts(cpu="2"))])

    plan = on_launch(pod("three", "3"), options=[greedy], catalog=catalog(greedy))

    assert plan.rules() == {Rule.RESOURCES}


def test_a_node_has_the_room_that_bound_pods_leave() -> None:
    three = pod("three", "3")
    five, six = bound(pod("five", "5"), "n1"), bound(pod("six", "6"), "n1")
    done = replace(six, phase="Succeeded")

    assert on_node(three, there=[five]).rules() == set()
    assert on_node(three, there=[done]).rules() == set()
    assert on_node(three, there=[six]).breaches() == (
        Breach(Rule.RESOURCES, "n1", detail="cpu: 3 wanted, 2 there"),
    )


def test_a_terminating_pod_takes_room() -> None:
    leaving = replace(bound(pod("leaving", "6"), "n1"), is_deleting=True)

    assert on_node(pod("three", "3"), there=[leaving]).rules() == {Rule.RESOURCES}


def test_a_node_keeps_room_for_daemons_that_do_not_run_yet() -> None:
    full = pod("full", "7900m")
    daemons = (daemon("log"), daemon("net"))
    log = daemon_pod("log-x", "n1")

    assert on_node(full, daemons=daemons[:1]).rules() == set()
    assert on_node(full, daemons=daemons).rules() == {Rule.RESOURCES}
    assert on_node(pod("less", "7800m"), daemons=daemons, there=[log]).rules() == set()
    assert on_node(full, daemons=daemons[:1], there=[log]).rules() == set()


def test_a_resource_that_the_node_lacks_is_not_available() -> None:
    greedy = replace(pod("gpu"), requests={**pod("gpu").requests, "example.com/gpu": 1})

    assert on_node(greedy).breaches() == (
        Breach(Rule.RESOURCES, "n1", detail="example.com/gpu: 1 wanted, 0 there"),
    )


def test_a_shortage_that_existed_before_the_plan_is_no_breach() -> None:
    hog = replace(bound(pod("hog"), "n1"), requests={"example.com/disk": 5})

    assert on_node(pod("web"), there=[hog]).rules() == set()
