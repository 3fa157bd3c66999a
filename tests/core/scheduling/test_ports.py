"""Section 6: host ports."""

import pytest

from karpy.model.pods import HostPort
from tests.builders import FAMILY, daemon, node, pod, pods, snapshot
from tests.core.scheduling.answers import hosts, pods_launched, types_launched

WEB = HostPort(80)


@pytest.mark.parametrize(
    ("taken", "wanted", "clash"),
    [
        (WEB, WEB, True),
        (WEB, HostPort(81), False),
        (WEB, HostPort(80, "UDP"), False),
        (WEB, HostPort(80, address="10.0.0.1"), True),
        (HostPort(80, address="10.0.0.1"), WEB, True),
        (HostPort(80, address="::"), HostPort(80, address="10.0.0.1"), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.1"), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.2"), False),
    ],
)
def test_ports_clash_by_number_protocol_and_address(
    taken: HostPort, wanted: HostPort, *, clash: bool
) -> None:
    old = pod("old", on="n", ports=[taken])
    first, second = pod("a", cpu="2", ports=[taken]), pod("b", ports=[wanted])

    on_node = hosts(snapshot(nodes=[node("n")], pods=[old, second]))
    on_claim = pods_launched(snapshot(pods=[first, second]))

    assert on_node == {"b": "default-0" if clash else "n"}
    assert on_claim == ([["a"], ["b"]] if clash else [["a", "b"]])


def test_pods_of_one_workload_with_a_port_get_a_node_each() -> None:
    batch = pods("web", 3, ports=[WEB])

    assert hosts(snapshot(nodes=[node("n")], pods=batch)) == {
        "web-0": "n",
        "web-1": "default-0",
        "web-2": "default-1",
    }


def test_one_of_several_ports_is_enough_to_clash() -> None:
    batch = [pod("a", cpu="2", ports=[WEB, HostPort(443)]), pod("b", ports=[HostPort(443)])]

    assert pods_launched(snapshot(pods=batch)) == [["a"], ["b"]]


def test_ports_of_one_pod_do_not_clash_with_themselves() -> None:
    twice = pod("p", ports=[WEB, HostPort(80, address="10.0.0.1")])

    assert hosts(snapshot(pods=[twice])) == {"p": "default-0"}


def test_types_whose_daemons_take_the_port_are_out() -> None:
    proxy = daemon("proxy", ports=[WEB], selector={FAMILY: "c"})
    cluster = snapshot(pods=[pod("p", ports=[WEB])], daemons=[proxy])

    (types,) = types_launched(cluster)

    assert {name.partition(".")[0] for name in types} == {"m", "r"}


def test_a_daemon_on_every_type_takes_its_port_for_good() -> None:
    cluster = snapshot(pods=[pod("p", ports=[WEB])], daemons=[daemon("proxy", ports=[WEB])])

    assert hosts(cluster) == {"p": "NO_HOST"}


def test_a_port_narrows_a_claim_that_has_pods() -> None:
    """The second pod's port leaves only types without the daemon that wants it, too."""
    proxy = daemon("proxy", ports=[WEB], selector={FAMILY: "c"})
    cluster = snapshot(pods=[pod("a", cpu="1"), pod("b", ports=[WEB])], daemons=[proxy])

    (types,) = types_launched(cluster)

    assert {name.partition(".")[0] for name in types} == {"m", "r"}
