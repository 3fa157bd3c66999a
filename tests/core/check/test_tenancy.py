from msgspec.structs import replace

from karpy.core.check.breaches import Breach, Rule
from karpy.model.constraints import (
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Taint,
    Toleration,
)
from karpy.model.labels import INSTANCE_TYPE
from karpy.model.pods import HostPort
from karpy.model.requirements import one_of
from karpy.model.settings import Settings
from tests.core.check.builders import (
    MEDIUM,
    bound,
    daemon,
    node,
    on_launch,
    on_node,
    pod,
    pool,
)

GPU = Taint("gpu", NO_SCHEDULE, "yes")
SOFT = Taint("slow", PREFER_NO_SCHEDULE)
TOLERANT = Toleration("gpu", value="yes")


def test_hard_taints_must_be_tolerated() -> None:
    shy, bold = pod("web"), pod("web", tolerations=(TOLERANT,))
    pools = (pool(taints=(SOFT, GPU)),)
    tainted = node("n1", taints=(SOFT, GPU))

    assert on_launch(bold, pools=pools).rules() == set()
    assert on_launch(shy, pools=pools).breaches() == (
        Breach(Rule.TAINT, "l1", "shop/web", "gpu=yes:NoSchedule"),
    )
    assert on_node(bold, present_node=tainted).rules() == set()
    assert on_node(shy, present_node=tainted).breaches() == (
        Breach(Rule.TAINT, "n1", "shop/web", "gpu=yes:NoSchedule"),
    )


def test_startup_and_soft_taints_keep_no_pod_off() -> None:
    pools = (pool(taints=(SOFT,), startup_taints=(GPU,)),)

    assert on_launch(pod("web"), pools=pools).rules() == set()
    assert on_node(pod("web"), present_node=node("n1", taints=(SOFT,))).rules() == set()


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


def test_host_ports_clash_with_bound_pods() -> None:
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
