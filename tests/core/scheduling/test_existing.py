"""Section 3: nodes that are there, boot, or are still in flight."""

import pytest

from karpy.model.constraints import NO_EXECUTE, PREFER_NO_SCHEDULE, NodeTerm
from karpy.model.labels import ARCH, INSTANCE_TYPE, ZONE
from karpy.model.nodes import join_node
from karpy.model.pods import DaemonSet, HostPort, Pod
from tests.builders import (
    FAMILY,
    ZONE_A,
    ZONE_B,
    above,
    absent,
    amounts,
    below,
    daemon,
    daemon_pod,
    exists,
    is_in,
    node,
    not_in,
    pod,
    pods,
    pool,
    snapshot,
    taint,
    term,
    tolerate,
)
from tests.builders.nodes import kube_node, node_claim
from tests.core.scheduling.answers import hosts

SOFT = taint("please", effect=PREFER_NO_SCHEDULE)


# --- which nodes -----------------------------------------------------------------------------


def test_a_deleting_node_takes_no_pod() -> None:
    cluster = snapshot(nodes=[node("going", deleting=True)], pods=[pod("p")])

    assert hosts(cluster) == {"p": "default-0"}


def test_a_node_that_no_pool_made_takes_pods_too() -> None:
    assert hosts(snapshot(nodes=[node("own", pool="")], pods=[pod("p")], pools=[])) == {"p": "own"}


def test_a_node_of_a_pool_that_is_gone_takes_pods_too() -> None:
    assert hosts(snapshot(nodes=[node("n", pool="gone")], pods=[pod("p")])) == {"p": "n"}


def test_a_claim_in_flight_takes_pods_under_its_own_name() -> None:
    """The NodeClaim has no Node yet, and the resources that the provider reports count."""
    claim = node_claim(
        "default-x7", labels=node("n").labels, allocatable=amounts(cpu="2", memory="4Gi", pods="10")
    )
    cluster = snapshot(nodes=[join_node(None, claim)], pods=pods("p", 2, cpu="1500m"))

    assert hosts(cluster) == {"p-0": "default-x7", "p-1": "default-0"}


def test_taints_that_go_by_themselves_do_not_count_while_a_node_boots() -> None:
    booting = taint("node.kubernetes.io/not-ready", effect=NO_EXECUTE)
    claim = node_claim("c", labels=node("n").labels, startup_taints=(taint("setup"),))
    made = kube_node(
        "n",
        labels={**node("n", initialized=False).labels, "karpenter.sh/registered": "true"},
        taints=(booting, taint("setup")),
        allocatable=amounts(cpu="4", memory="8Gi", pods="10"),
    )
    ready = kube_node(
        "r",
        labels=node("r").labels,
        taints=(taint("setup"),),
        allocatable=amounts(cpu="4", memory="8Gi", pods="10"),
    )

    assert hosts(snapshot(nodes=[join_node(made, claim)], pods=[pod("p")])) == {"p": "n"}
    assert hosts(snapshot(nodes=[join_node(ready, claim)], pods=[pod("p")])) == {"p": "default-0"}


# --- room ------------------------------------------------------------------------------------


def test_requests_of_bound_pods_are_taken_unless_the_pods_are_terminal() -> None:
    cluster = snapshot(
        nodes=[node("n", cpu="4")],
        pods=[
            pod("runs", cpu="1", on="n"),
            pod("leaves", cpu="1", on="n", deleting=True),
            pod("done", cpu="3", on="n", phase="Succeeded"),
            pod("first", cpu="1500m"),
            pod("second", cpu="600m"),
            pod("third", cpu="500m"),
        ],
    )

    assert hosts(cluster) == {"first": "n", "second": "default-0", "third": "n"}


def test_pods_are_a_resource_like_any_other() -> None:
    cluster = snapshot(nodes=[node("n", pods=2)], pods=[pod("runs", on="n"), *pods("p", 2)])

    assert hosts(cluster) == {"p-0": "n", "p-1": "default-0"}


def test_a_resource_the_node_lacks_is_zero_there() -> None:
    wants = pod("wants", more={"example.com/gpu": "1"})
    asks_for_none = pod("asks-for-none", more={"example.com/gpu": "0"})

    assert hosts(snapshot(nodes=[node("n")], pods=[wants, asks_for_none], pools=[])) == {
        "asks-for-none": "n",
        "wants": "NO_POOL",
    }


def test_an_oversold_node_takes_no_pod() -> None:
    """A negative amount of anything means that nothing fits, even what asks for none of it."""
    sold = [pod("runs", on="n", more={"example.com/gpu": "2"})]
    cluster = snapshot(
        nodes=[node("n", capacity={"example.com/gpu": "1"})], pods=[*sold, pod("p")], pools=[]
    )

    assert hosts(cluster) == {"p": "NO_POOL"}


def test_a_bound_pod_may_request_more_than_64_bits_hold() -> None:
    huge = pod("huge", on="n", more={"example.com/stars": "100000000000000000000000"})
    short = node("n", cpu="16", capacity={"example.com/stars": "1"})

    found = hosts(snapshot(nodes=[short], pods=[huge, pod("p")]))

    assert found == {"p": "default-0"}


def test_requests_for_a_resource_that_a_node_does_not_list_exclude_no_other_pod() -> None:
    sold = [pod("runs", on="n", more={"example.com/gpu": "2"})]

    assert hosts(snapshot(nodes=[node("n")], pods=[*sold, pod("p")], pools=[])) == {"p": "n"}


def test_a_daemon_that_requests_an_unlisted_resource_excludes_no_pod() -> None:
    hungry = daemon("gpu", more={"example.com/gpu": "1"})

    assert hosts(snapshot(nodes=[node("n")], pods=[pod("p")], daemons=[hungry], pools=[])) == {
        "p": "n"
    }


def test_a_daemon_that_is_larger_than_a_node_excludes_no_pod() -> None:
    cluster = snapshot(
        nodes=[node("n", cpu="4")],
        pods=[pod("p", cpu="2"), pod("q", cpu="2")],
        daemons=[daemon("huge", cpu="100"), daemon("agent", cpu="1")],
        pools=[],
    )

    assert hosts(cluster) == {"p": "n", "q": "NO_POOL"}


# --- daemons to come -------------------------------------------------------------------------


def test_daemons_still_to_come_keep_their_room() -> None:
    agent = daemon("agent", cpu="1")
    nodes = [node("n", cpu="4")]
    running = daemon_pod("agent-n", cpu="1", on="n")
    big = pod("big", cpu="3500m")

    assert hosts(snapshot(nodes=nodes, pods=[big])) == {"big": "n"}
    assert hosts(snapshot(nodes=nodes, pods=[big], daemons=[agent])) == {"big": "default-0"}
    assert hosts(snapshot(nodes=nodes, pods=[pod("p", cpu="3")], daemons=[agent])) == {"p": "n"}
    assert hosts(snapshot(nodes=nodes, pods=[pod("p", cpu="3"), running], daemons=[agent])) == {
        "p": "n"
    }


def test_daemons_that_run_make_up_for_those_to_come_resource_by_resource() -> None:
    """A daemon that takes more CPU than expected leaves no more memory for other daemons."""
    agent = daemon("agent", cpu="1", memory="8Gi")
    running = daemon_pod("agent-n", cpu="2", memory="2Gi", on="n")

    def host(cpu: str, memory: str) -> dict[str, str]:
        small = pod("p", cpu=cpu, memory=memory)
        return hosts(snapshot(nodes=[node("n")], pods=[running, small], daemons=[agent]))

    assert host("2", "8Gi") == {"p": "n"}
    assert host("2", "8193Mi") == {"p": "default-0"}
    assert host("2001m", "1Gi") == {"p": "default-0"}


@pytest.mark.parametrize(
    ("agent", "host"),
    [
        (daemon("d", cpu="2"), "default-0"),
        (daemon("d", cpu="2", selector={ARCH: "arm64"}), "n"),
        (daemon("d", cpu="2", selector={"team": "red"}), "n"),
        (daemon("d", cpu="2", selector=[absent("team")]), "default-0"),
        (daemon("d", cpu="2", terms=[term(is_in(ARCH, "arm64")), term(exists(ARCH))]), "default-0"),
    ],
)
def test_daemons_count_on_nodes_whose_labels_match(agent: DaemonSet, host: str) -> None:
    cluster = snapshot(nodes=[node("n")], pods=[pod("p", cpu="3")], daemons=[agent])

    assert hosts(cluster) == {"p": host}


def test_a_daemon_that_contradicts_itself_runs_nowhere() -> None:
    """Two contradicting requirements leave no value, which is not the same as no label."""
    torn = daemon("torn", cpu="2", selector={"team": "a"}, terms=[term(is_in("team", "b"))])
    cluster = snapshot(nodes=[node("n")], pods=[pod("p", cpu="3")], daemons=[torn])

    assert hosts(cluster) == {"p": "n"}


def test_daemons_count_where_they_tolerate_the_taints_and_soft_ones_always() -> None:
    """The kubelet admits a daemon in spite of a soft taint, whether it tolerates it or not."""
    agent = daemon("agent", cpu="2")
    big = pod("p", cpu="3", tolerations=[tolerate()])
    pools = [pool(taints=[taint("closed")])]

    def host(effect: str) -> dict[str, str]:
        nodes = [node("n", taints=[taint("x", effect=effect)])]
        return hosts(snapshot(nodes=nodes, pods=[big], daemons=[agent], pools=pools))

    assert host("NoSchedule") == {"p": "n"}
    assert host(PREFER_NO_SCHEDULE) == {"p": "default-0"}


# --- what keeps a pod off ----------------------------------------------------------------------


def test_hard_taints_must_be_tolerated() -> None:
    nodes = [node("n", taints=[taint("gpu", "yes"), taint("old", effect=NO_EXECUTE)])]
    cluster = snapshot(
        nodes=nodes,
        pools=[],
        pods=[
            pod("none"),
            pod("one", tolerations=[tolerate("gpu")]),
            pod("value", tolerations=[tolerate("gpu", "no"), tolerate("old")]),
            pod("effect", tolerations=[tolerate("gpu"), tolerate("old", effect="NoSchedule")]),
            pod("both", tolerations=[tolerate("gpu", "yes"), tolerate("old")]),
            pod("all", tolerations=[tolerate()]),
        ],
    )

    assert hosts(cluster) == {
        "all": "n",
        "both": "n",
        "effect": "NO_POOL",
        "none": "NO_POOL",
        "one": "NO_POOL",
        "value": "NO_POOL",
    }


def test_soft_taints_count_like_hard_ones_unless_the_ladder_tolerates_them() -> None:
    """The last step of the ladder does, and only if some pool has such a taint."""
    nodes = [node("n", taints=[SOFT])]
    soft_pool = pool(taints=[SOFT, taint("hard")])

    assert hosts(snapshot(nodes=nodes, pods=[pod("p")])) == {"p": "default-0"}
    assert hosts(snapshot(nodes=nodes, pods=[pod("p")], pools=[])) == {"p": "NO_POOL"}
    assert hosts(snapshot(nodes=nodes, pods=[pod("p")], pools=[soft_pool])) == {"p": "n"}


def test_host_ports_of_bound_pods_are_taken_those_of_finished_ones_are_free() -> None:
    cluster = snapshot(
        nodes=[node("n")],
        pods=[
            pod("runs", on="n", ports=[HostPort(80)]),
            pod("done", on="n", ports=[HostPort(81)], phase="Failed"),
            pod("clashes", ports=[HostPort(80)]),
            pod("free", ports=[HostPort(81)]),
        ],
    )

    assert hosts(cluster) == {"clashes": "default-0", "free": "n"}


@pytest.mark.parametrize(
    ("guest", "host"),
    [
        (pod("p", selector={ZONE: ZONE_A}), "n"),
        (pod("p", selector={ZONE: ZONE_B}), "NO_POOL"),
        (pod("p", selector={INSTANCE_TYPE: "m.xlarge"}), "n"),
        (pod("p", selector=[above("tier", 2), below("tier", 4)]), "n"),
        (pod("p", selector=[above("tier", 3)]), "NO_POOL"),
        (pod("p", selector=[not_in("tier", "4")]), "n"),
        (pod("p", selector=[not_in("tier", "3")]), "NO_POOL"),
        (pod("p", selector=[exists("tier")]), "n"),
        (pod("p", selector=[absent("tier")]), "NO_POOL"),
        (pod("p", selector={FAMILY: "m"}), "NO_POOL"),
        (pod("p", selector=[exists("team")]), "NO_POOL"),
        (pod("p", selector=[absent("team"), not_in(FAMILY, "c")]), "n"),
    ],
)
def test_labels_must_match_and_what_is_absent_only_matches_a_negation(
    guest: Pod, host: str
) -> None:
    """Golden: an existing node without a label lacks it, even if the label is well known."""
    cluster = snapshot(nodes=[node("n", labels={"tier": "3"})], pods=[guest], pools=[])

    assert hosts(cluster) == {"p": host}


def test_former_label_names_match_the_current_ones() -> None:
    old = node("n", labels={ZONE: "", "failure-domain.beta.kubernetes.io/zone": ZONE_B})
    asks = pod("p", selector={"failure-domain.beta.kubernetes.io/zone": ZONE_B})

    assert hosts(snapshot(nodes=[old], pods=[asks], pools=[])) == {"p": "n"}
    assert hosts(snapshot(nodes=[node("n", zone=ZONE_B)], pods=[asks], pools=[])) == {"p": "n"}


def test_a_node_does_not_become_wider_by_its_pods() -> None:
    """A pod that excludes a label value does not allow the next pod to require another value."""
    cluster = snapshot(
        nodes=[node("n")],
        pools=[],
        pods=[
            pod("shuns", cpu="2", selector=[not_in("team", "red")]),
            pod("p", selector={"team": "x"}),
        ],
    )

    assert hosts(cluster) == {"p": "NO_POOL", "shuns": "n"}


def test_an_empty_term_matches_no_node() -> None:
    """As in kube-scheduler; a node launched for such a pod would stay empty."""
    cluster = snapshot(nodes=[node("n")], pods=[pod("p", terms=[NodeTerm()])])

    assert hosts(cluster) == {"p": "NO_HOST"}
