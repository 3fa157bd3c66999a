from msgspec.structs import replace

from karpy.core.check.breaches import Breach, Rule
from karpy.model.pods import DAEMON_SET, STATEFUL_SET, Owner
from tests.core.check.builders import bound, launch, node, pod, refusal, world

WEB = pod("web")
NODE = node("n1")
GOING = node("n2", is_deleting=True)


def test_a_pod_is_placed_or_refused() -> None:
    other = pod("other")

    plan = world(launch("l1", [WEB]), pods=[WEB, other], refused=[other])

    assert plan.breaches() == ()


def test_an_unknown_pod_is_a_breach() -> None:
    plan = world(launch("l1", [WEB, pod("ghost")]), pods=[WEB], refused=[pod("spectre")])

    assert plan.breaches() == (
        Breach(Rule.UNKNOWN_POD, pod="shop/ghost"),
        Breach(Rule.UNKNOWN_POD, pod="shop/spectre"),
    )


def test_a_pod_placed_twice_is_a_breach_and_counts_once() -> None:
    plan = world(launch("l1", [WEB]), pods=[WEB], nodes=(NODE,), nominations={"n1": [WEB]})

    assert plan.breaches()[0] == Breach(
        Rule.DECIDED_TWICE, pod="shop/web", detail="placed 2 times, refused 0 times"
    )
    assert plan.rules() == {Rule.DECIDED_TWICE}


def test_a_pod_refused_twice_is_a_breach() -> None:
    plan = world(pods=[WEB])
    plan = plan._replace(verdict=replace(plan.verdict, refusals=(refusal(WEB), refusal(WEB))))

    assert plan.rules() == {Rule.DECIDED_TWICE}


def test_a_pod_placed_and_refused_is_a_breach() -> None:
    plan = world(launch("l1", [WEB]), pods=[WEB], refused=[WEB])

    assert plan.breaches() == (Breach(Rule.PLACED_AND_REFUSED, pod="shop/web"),)


def test_a_forgotten_pod_is_a_breach() -> None:
    assert world(pods=[WEB]).breaches() == (Breach(Rule.FORGOTTEN, pod="shop/web"),)


def test_a_pod_that_waits_for_something_else_must_be_refused() -> None:
    young = replace(WEB, is_unschedulable=False)
    preempting = replace(WEB, nominated_node="n1")

    assert world(pods=[young], refused=[young]).rules() == set()
    assert world(pods=[young]).rules() == {Rule.FORGOTTEN}
    assert world(launch("l1", [young]), pods=[young]).rules() == {Rule.NOT_WAITING}
    assert world(launch("l1", [preempting]), pods=[preempting]).rules() == {Rule.NOT_WAITING}


def test_pods_of_a_deleting_node_must_be_placed_again() -> None:
    displaced = bound(WEB, "n2")
    nodes = (NODE, GOING)

    placed = world(pods=[displaced], nodes=nodes, nominations={"n1": [displaced]})

    assert placed.rules() == set()
    assert world(pods=[displaced], nodes=nodes).rules() == {Rule.FORGOTTEN}


def test_a_terminating_pod_is_displaced_only_if_a_stateful_set_recreates_it() -> None:
    leaving = replace(bound(WEB, "n2"), is_deleting=True)
    stateful = replace(leaving, owners=(Owner(*STATEFUL_SET, "db"),))

    assert world(pods=[leaving], nodes=(GOING,)).rules() == set()
    assert world(pods=[stateful], nodes=(GOING,)).rules() == {Rule.FORGOTTEN}


def test_running_pods_daemons_and_finished_pods_are_not_decided_on() -> None:
    running = bound(WEB, "n1")
    daemon = replace(pod("daemon"), owners=(Owner(*DAEMON_SET, "d"),))
    done = replace(pod("done"), phase="Succeeded")

    silent = world(pods=[running, daemon, done], nodes=(NODE,))
    chatty = world(launch("l1", [running]), pods=[running, daemon], nodes=(NODE,), refused=[daemon])

    assert silent.rules() == set()
    assert chatty.breaches() == (
        Breach(Rule.NOT_WAITING, pod="shop/web", detail="placed"),
        Breach(Rule.NOT_WAITING, pod="shop/daemon", detail="refused"),
    )
